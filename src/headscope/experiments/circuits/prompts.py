"""Prompts with an answer, each paired with a corrupted prompt of equal length.

`made_prompts` makes sets of them, `own_prompts` reads those of the user.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headscope.core.accumulators import Ints
from headscope.corpus.document import Example
from headscope.errors import CorpusError, InputError

FEWEST_ITEMS = 10  # couples: of fewer there are no intervals


@dataclass(frozen=True)
class Prompt:
    """A text and the answer that follows it.

    answer     what should follow, with its space: " Mary"; or all that would be right
    wrong      what should not, likewise; each is one token after the text
    corrupted  a text of as many tokens after which `wrong` fits better; "" where there is none
    item       prompts of one name are no independent items; "": this one is by itself
    """

    text: str
    answer: str | tuple[str, ...]
    wrong: str | tuple[str, ...]
    corrupted: str = ""
    item: str = ""


@dataclass(frozen=True, eq=False)
class PromptSet:
    """Prompts as a model reads them.

    clean, corrupted  [prompt] the inputs; of the corrupted ones none, where any prompt has none
    right, wrong      [prompt] ids of the tokens that would be right, and wrong
    items             [prompt] name of the independent item that each is of
    notes             what was left out
    """

    kind: str
    prompts: tuple[Prompt, ...]
    clean: list[Example]
    corrupted: list[Example]
    right: list[Ints]
    wrong: list[Ints]
    notes: tuple[str, ...] = ()

    @property
    def items(self) -> list[str]:
        """[prompt] name of the independent item that each belongs to."""
        return [prompt.item or str(at) for at, prompt in enumerate(self.prompts)]

    def part(self, places: slice) -> PromptSet:
        """Some of the prompts."""
        cut: dict[str, Any] = {
            name: getattr(self, name)[places]
            for name in ("prompts", "clean", "corrupted", "right", "wrong")
        }
        return replace(self, **cut)

    def need_pairs(self) -> None:
        """Raises InputError for prompts without a corrupted one of equal length."""
        if not self.corrupted:
            raise InputError(
                "some prompts have no corrupted text, whose heads patching needs; wanted a column "
                "`corrupted` with texts of the same length"
            )
        for prompt, one, other in zip(self.prompts, self.clean, self.corrupted, strict=True):
            if len(one) != len(other):
                raise InputError(
                    f"{prompt.text!r} has {len(one)} tokens and its corrupted prompt "
                    f"{prompt.corrupted!r} {len(other)}; wanted texts of the same length, so that "
                    "each position has its counterpart"
                )


# --- as the model reads them ------------------------------------------------------------------


def encode_prompts(
    tokenizer: Any, prompts: Sequence[Prompt], *, kind: str = "prompts", notes: Sequence[str] = ()
) -> PromptSet:
    """The prompts as model inputs, with the tokens of their answers.

    raises  CorpusError without prompts; InputError for an answer that is not one token after its
            prompt, for one that is right and wrong, or for a text without tokens
    """
    if not prompts:
        raise CorpusError("found no prompts; wanted at least one")
    clean, corrupted, right, wrong = [], [], [], []
    for at, prompt in enumerate(prompts):
        clean.append(_example(tokenizer, prompt.text, at, prompt))
        if prompt.corrupted:
            corrupted.append(_example(tokenizer, prompt.corrupted, at, prompt))
        ids = [
            answer_ids(tokenizer, prompt.text, answers) for answers in (prompt.answer, prompt.wrong)
        ]
        both = np.intersect1d(ids[0], ids[1])
        if len(both):
            raise InputError(
                f"{prompt.text!r}: {tokenizer.decode(both[:1])!r} is both an answer and a wrong "
                "one; wanted different tokens"
            )
        right.append(ids[0])
        wrong.append(ids[1])
    whole = corrupted if len(corrupted) == len(clean) else []
    return PromptSet(kind, tuple(prompts), clean, whole, right, wrong, tuple(notes))


def answer_ids(tokenizer: Any, text: str, answers: str | Sequence[str]) -> Ints:
    """The ids of answers after a text; InputError for one that is not one token there."""
    answers = (answers,) if isinstance(answers, str) else answers
    return np.array([answer_id(tokenizer, text, one) for one in answers], np.int64)


def answer_id(tokenizer: Any, text: str, answer: str) -> int:
    """The id of an answer after a text; InputError where it is not one token there."""
    before, whole = input_ids(tokenizer, text), input_ids(tokenizer, text + answer)
    own = whole[len(before) :]
    known = len(own) == 1 and own[0] != tokenizer.unk_token_id
    if known and np.array_equal(whole[:-1], before):
        return int(own[0])
    pieces = tokenizer.convert_ids_to_tokens((own if len(own) else whole[-1:]).tolist())
    raise InputError(
        f"after {text!r} the tokenizer makes of the answer {answer!r} {len(own)} tokens "
        f"({', '.join(map(repr, pieces[:6]))}); wanted an answer of one known token that does not "
        "change the tokens of the prompt"
    )


def input_ids(tokenizer: Any, text: str) -> Ints:
    """[token] the ids of a text to be continued: without a closing token."""
    ids = np.array(tokenizer(text)["input_ids"], np.int64)
    own = len(tokenizer(text, add_special_tokens=False)["input_ids"])
    opening = len(ids) > own and ids[0] in tokenizer.all_special_ids
    return ids[: own + opening]


def _example(tokenizer: Any, text: str, at: int, prompt: Prompt) -> Example:
    ids = input_ids(tokenizer, text)
    if not len(ids):
        raise InputError(f"prompt {at + 1} has no tokens: {text!r}; wanted a text")
    special = np.isin(ids, tokenizer.all_special_ids)
    return Example(str(at), prompt.item or str(at), ids, np.zeros_like(ids), special)


def single(tokenizer: Any, text: str, answer: str) -> bool:
    """Whether an answer is one token after a text."""
    try:
        answer_id(tokenizer, text, answer)
    except InputError:
        return False
    return True
