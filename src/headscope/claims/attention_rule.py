"""Rules that predict, from an input alone, where a head looks.

A rule gives each query a row over the keys: of sum 1 where the rule applies to the query, of sum 0
where it does not, because its trigger is absent. Every question brings the rules of its own labels
(`Question.predicts`); `analyses.explained` tries them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from headscope.errors import InputError

Made = TypeVar("Made")
Bools = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.float64]
POSITION, REST, TOKEN, LANGUAGE = KINDS = ("position", "rest", "token", "language")
CONTENT = (TOKEN, LANGUAGE)  # what position and rest do not say
ROUNDING = 1e-4  # of a row's sum


@dataclass(frozen=True)
class RuleInput:
    """One input, as rules see it: its tokens and annotations, nothing of the model.

    ids         [token] int64, token ids
    tokens      the same as the vocabulary writes them
    special     [token] whether the tokenizer added it
    opening, closing, stops, marks  [token] whether it is the opening special token, a separating or
                closing one, a full stop or comma, any mark of punctuation
    segments    [token] 0 for the first segment, 1 for the second
    word        [token] number of its annotated word; -1 where there is none
    begins      [token] whether it begins a word; it continues one where not
    frequent    [token] whether it is one of the most frequent tokens of the inputs, and no mark
    words       the annotated words (`corpus.document.Word`); () without annotation
    mentions, frames  annotated mentions and frames
    causal      whether the future is hidden
    """

    ids: npt.NDArray[np.int64]
    tokens: tuple[str, ...]
    special: Bools
    opening: Bools
    closing: Bools
    stops: Bools
    marks: Bools
    segments: npt.NDArray[np.int64]
    word: npt.NDArray[np.int64]
    begins: Bools
    frequent: Bools
    words: tuple[Any, ...] = ()
    mentions: tuple[Any, ...] = ()
    frames: tuple[Any, ...] = ()
    causal: bool = False
    _made: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def once(self, make: Callable[[RuleInput], Made]) -> Made:
        """What a function makes of this input; made once, however many rules ask for it."""
        if make not in self._made:
            self._made[make] = make(self)
        made: Made = self._made[make]
        return made

    def __len__(self) -> int:
        """How many tokens it has."""
        return len(self.ids)

    @cached_property
    def offset(self) -> npt.NDArray[np.int64]:
        """[query, key] key − query, in tokens."""
        place = np.arange(len(self))
        return place[None] - place[:, None]

    @cached_property
    def visible(self) -> Bools:
        """[query, key] whether the query may attend to the key."""
        return self.offset <= 0 if self.causal else np.ones_like(self.offset, bool)

    def even(self, keys: Bools) -> Rows:
        """Rows that give each of these keys the same.

        keys  [query, key], or [key] for all queries alike; hidden ones are left out
        """
        if not keys.any():
            return np.zeros(self.visible.shape)
        there = np.broadcast_to(keys, self.visible.shape) & self.visible
        return np.asarray(there / np.maximum(there.sum(-1, keepdims=True), 1))

    def weighted(self, weights: Rows) -> Rows:
        """Rows in proportion to these weights [query, key], or [key]; 0 where there is none."""
        there = np.where(self.visible, weights, 0.0)
        total = there.sum(-1, keepdims=True)
        return np.asarray(there / np.where(total > 0, total, 1.0))

    def nearest(self, keys: Bools, *, before: bool = True) -> Rows:
        """Rows on the nearest of these keys [key] before the query, or behind it."""
        side = self.offset < 0 if before else self.offset > 0
        there = np.broadcast_to(keys, side.shape) & side & self.visible
        far = np.where(there, np.abs(self.offset), len(self))
        return self.even(there & (far == far.min(-1, keepdims=True)))

    def tokens_of(self, words: Bools) -> Bools:
        """[token] whether it belongs to one of these words [word]."""
        if not len(words):
            return np.zeros(len(self), bool)
        return np.append(words, False)[self.word]

    def links(self, pairs: Iterable[tuple[int, int]]) -> Rows:
        """Rows from all tokens of a word to all tokens of another, for pairs of words."""
        size, some = len(self.words), list(pairs)
        if not some:
            return np.zeros(self.offset.shape)
        joined = np.zeros((size + 1, size + 1), bool)
        for query, key in some:
            joined[query, key] = True
        return self.even(joined[self.word[:, None], self.word])


@dataclass(frozen=True)
class AttentionRule:
    """A rule: which keys a query looks at, if the trigger is there.

    name  the keys, in the words of a sentence on what is gathered "from …"
    kind  one of KINDS
    rows  RuleInput -> [query, key]; a row sums to 1, or to 0 without a trigger
    """

    name: str
    kind: str
    rows: Callable[[RuleInput], npt.ArrayLike]


def rows_of(
    rules: Sequence[AttentionRule], read: RuleInput, queries: npt.NDArray[np.int64] | None = None
) -> npt.NDArray[np.float32]:
    """[rule, query, key] the rows of all rules in one input.

    queries  those whose rows are kept; None: all
    raises   InputError for rows of another shape, that are no shares, or on hidden keys
    """
    size, kept = len(read), slice(None) if queries is None else queries
    every = np.empty((len(rules), size if queries is None else len(queries), size), np.float32)
    for at, rule in enumerate(rules):
        rows = np.asarray(rule.rows(read), np.float64)
        if rows.shape != (size, size):
            shape = " × ".join(map(str, rows.shape))
            raise _fault(
                rule, f"{shape} numbers for an input of {size} tokens", "[query, key] of it"
            )
        every[at] = rows[kept]
    total = every.sum(-1)  # [rule, query]
    hidden = every[:, ~read.visible[kept]] if read.causal else every[:, :0, 0]
    faults = (
        (
            ~(np.isfinite(total).all(-1) & (every >= 0).all((-1, -2))),
            "a weight that is negative or no number",
            "shares from 0 to 1",
        ),
        (
            (hidden > 0).any(-1),
            "weight on a token that the query cannot see",
            "weight on visible ones alone",
        ),
        (
            ((total > ROUNDING) & (np.abs(total - 1) > ROUNDING)).any(-1),
            f"a row of sum {_off(total):.4g}",
            "1, or 0 where the rule does not apply",
        ),
    )
    for wrong, what, wanted in faults:
        if wrong.any():
            raise _fault(rules[int(wrong.argmax())], what, wanted)
    return every


def _off(total: npt.NDArray[np.float32]) -> float:
    """The sum that is farthest from both 0 and 1."""
    off = np.minimum(np.abs(total), np.abs(total - 1))
    return float(total.flat[np.nan_to_num(off).argmax()])


def _fault(rule: AttentionRule, what: str, wanted: str) -> InputError:
    return InputError(f"the rule {rule.name!r} gave {what}; wanted {wanted}")
