"""The right answer for each word of a batch: where its syntactic head is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from headscope.corpus.contents import has_tree, label
from headscope.corpus.document import Example
from headscope.model.words import Words

OFFSETS = (-5, -4, -3, -2, -1, 1, 2, 3, 4, 5)
POSSESSIVE = ("stanford", "universal", "off")
CLITICS = ("'s", "s'", "’s", "s’")
_LABELS = {"stanford": ("poss",), "universal": ("poss", "nmod:poss"), "off": ()}
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class SyntacticHeads:
    """The trees of a batch, in places (see `Words`).

    asked      [example, place] whether the word at this place counts
    root       [example, place] whether it is a root, whose head no head can find
    head       [example, place] place of its head; -2 where there is none (never an answer)
    label      [example, place] index into the corpus's relations; 0 where not asked
    judge      [example, place] the place whose answer is scored for it: its own, or its clitic's
    by_offset  [example, place, offset] whether each of OFFSETS gives the right answer
    left_out   [example, 2] words not asked for: the head is in another input; the word, or its
               head, has no token
    """

    asked: Bools
    root: Bools
    head: Ints
    label: Ints
    judge: Ints
    by_offset: Bools
    left_out: Ints

    @classmethod
    def of(
        cls,
        examples: Sequence[Example],
        words: Words,
        relations: Sequence[str],
        *,
        possessive: str,
    ) -> SyntacticHeads:
        """Look up the trees of these examples; those without are not asked about."""
        shape = words.number.shape
        heads_of_batch = cls(
            np.zeros(shape, bool), np.zeros(shape, bool), np.full(shape, -2),
            np.zeros(shape, np.int64), np.tile(np.arange(shape[1]), (shape[0], 1)),
            np.zeros((*shape, len(OFFSETS)), bool), np.zeros((shape[0], 2), np.int64),
        )  # fmt: skip
        index = {name: at for at, name in enumerate(relations)}
        for row, example in enumerate(examples):
            if has_tree(example):
                heads_of_batch._look_up(row, example, words.place[row], index, _LABELS[possessive])
        return heads_of_batch

    def _look_up(
        self,
        row: int,
        example: Example,
        place: Ints,
        index: dict[str, int],
        possessive: Sequence[str],
    ) -> None:
        assert example.words is not None
        heads = np.array([word.head for word in example.words])
        there = np.flatnonzero(place >= 0)  # [word] that have a place here
        if not len(there):
            return
        missing = (heads[there] >= 0) & (place[heads[there]] < 0)
        inside = (heads[there] > there[0]) & (heads[there] < there[-1])
        erased = there[-1] - there[0] + 1 - len(there)
        self.left_out[row] = (missing & ~inside).sum(), (missing & inside).sum() + erased
        asked = there[~missing]
        at, head = place[asked], heads[asked]
        self.asked[row, at] = True
        self.root[row, at] = head < 0
        self.head[row, at] = np.where(head < 0, -2, place[head])
        self.label[row, at] = [index[label(example, word)] for word in asked.tolist()]
        judge = np.array([_judge(example, w, place, possessive) for w in asked.tolist()], np.int64)
        self.judge[row, at] = place[judge]
        # As the authors count: 0 is the root, words from 1; an offset stops at either end.
        answers = np.clip(judge[:, None] + 1 + np.array(OFFSETS), 0, len(heads))
        self.by_offset[row, at] = answers == head[:, None] + 1  # [word, offset]


def _judge(example: Example, word: int, place: Any, possessive: Sequence[str]) -> int:
    """The word whose answer is scored: the possessive clitic right behind it, where it applies."""
    words = example.words
    assert words is not None
    following = word + 1
    if (
        words[word].relation in possessive
        and following < len(words)
        and words[following].form.lower() in CLITICS
        and place[following] >= 0
    ):
        return following
    return word
