"""Prompts with an answer, each paired with a corrupted prompt of equal length.

`made_prompts` makes sets of them, `own_prompts` reads those of the user.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product, takewhile
from typing import Any

import numpy as np

from headscope.core.accumulators import Ints
from headscope.core.wording import how_many
from headscope.corpus.document import Example
from headscope.errors import CorpusError, InputError


@dataclass(frozen=True)
class Prompt:
    """A text and the answer that follows it.

    answer     what should follow, with its space: " Mary"; or all that would be right
    wrong      what should not, likewise; the first token in which they differ is compared
    corrupted  a text of as many tokens after which `wrong` fits better; "" where there is none
    item       prompts of one name are no independent items; "": this one is by itself
    form       prompts of one name are worded alike
    others     other texts in place of `corrupted`, each with the name of its kind
    """

    text: str
    answer: str | tuple[str, ...]
    wrong: str | tuple[str, ...]
    corrupted: str = ""
    item: str = ""
    form: str = ""
    others: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, eq=False)
class PromptSet:
    """Prompts as a model reads them.

    clean, corrupted  [prompt] the inputs, with the tokens that all answers begin with; of the
                      corrupted ones none, where any prompt has none
    right, wrong      [prompt] ids of the tokens that would be right, and wrong
    items             [prompt] name of the independent item that each is of
    notes             what was left out, and which answers have several tokens
    others            by kind [prompt] other corrupted inputs; of kinds that all prompts have
    """

    kind: str
    prompts: tuple[Prompt, ...]
    clean: list[Example]
    corrupted: list[Example]
    right: list[Ints]
    wrong: list[Ints]
    notes: tuple[str, ...] = ()
    others: Mapping[str, list[Example]] = field(default_factory=dict)

    @property
    def items(self) -> list[str]:
        """[prompt] name of the independent item that each belongs to."""
        return [prompt.item or str(at) for at, prompt in enumerate(self.prompts)]

    @property
    def forms(self) -> list[str]:
        """[prompt] name of the wording of each."""
        return [prompt.form for prompt in self.prompts]

    def part(self, places: Iterable[int]) -> PromptSet:
        """Some of the prompts."""
        some = list(places)
        cut: dict[str, Any] = {
            name: [own[at] for at in some] if (own := getattr(self, name)) else own
            for name in ("clean", "corrupted", "right", "wrong")
        }
        others = {kind: [own[at] for at in some] for kind, own in self.others.items()}
        return replace(self, prompts=tuple(self.prompts[at] for at in some), others=others, **cut)

    def need_pairs(self) -> None:
        """Raises InputError for prompts without a corrupted one of equal length."""
        if not self.corrupted:
            raise InputError(
                "some prompts have no corrupted text, whose heads patching needs; wanted a column "
                "`corrupted` with texts of the same length"
            )
        for prompt, one, *sides in zip(
            self.prompts, self.clean, self.corrupted, *self.others.values(), strict=True
        ):
            texts = [prompt.corrupted, *map(dict(prompt.others).__getitem__, self.others)]
            for text, other in zip(texts, sides, strict=True):
                if len(one) != len(other):
                    raise InputError(
                        f"{prompt.text!r} is read as {len(one)} tokens and its corrupted prompt "
                        f"{text!r} as {len(other)}; wanted texts of the same length, so that each "
                        "position has its counterpart"
                    )


# --- other corrupted texts --------------------------------------------------------------------


def another_item(
    tokenizer: Any, prompts: Sequence[Prompt], pool: Sequence[Prompt], rng: np.random.Generator
) -> list[str]:
    """[prompt] a prompt of another item, worded alike and as long, with another answer.

    pool     prompts to draw from
    returns  "" where there is none
    """
    lengths = {one.text: len(input_ids(tokenizer, one.text)) for one in (*prompts, *pool)}
    texts = []
    for prompt in prompts:
        alike = [
            other.text
            for other in pool
            if other.item != prompt.item
            and other.form == prompt.form
            and lengths[other.text] == lengths[prompt.text]
            and not {*each(other.answer)} & {*each(prompt.answer)}
        ]
        texts.append(str(rng.choice(alike)) if alike else "")
    return texts


def with_others(
    tokenizer: Any, prompts: Sequence[Prompt], kinds: Mapping[str, Sequence[str]]
) -> list[Prompt]:
    """The prompts with other corrupted texts, of those kinds that all of them have, as long."""

    def lengths(texts: Iterable[str]) -> list[int]:
        return [len(input_ids(tokenizer, text)) for text in texts]

    wanted = lengths(prompt.text for prompt in prompts)
    whole = {one: texts for one, texts in kinds.items() if lengths(texts) == wanted}
    return [
        replace(prompt, others=tuple((one, texts[at]) for one, texts in whole.items()))
        for at, prompt in enumerate(prompts)
    ]


# --- as the model reads them ------------------------------------------------------------------


def encode_prompts(
    tokenizer: Any, prompts: Sequence[Prompt], *, kind: str = "prompts", notes: Sequence[str] = ()
) -> PromptSet:
    """The prompts as model inputs, with the tokens of their answers.

    Where right and wrong answers begin with the same tokens, these are appended to both prompts, so
    that the first token that differs is compared.

    raises  CorpusError without prompts; InputError as `compared_tokens`, or for a text without
            tokens
    """
    if not prompts:
        raise CorpusError("found no prompts; wanted at least one")
    clean, corrupted, right, wrong, several = [], [], [], [], 0
    others = {kind: list[Example]() for kind, _ in prompts[0].others}
    for at, prompt in enumerate(prompts):
        tokens = compared_tokens(tokenizer, prompt.text, prompt)
        clean.append(_example(tokenizer, prompt.text, at, prompt, tokens.shared))
        if prompt.corrupted:
            corrupted.append(_example(tokenizer, prompt.corrupted, at, prompt, tokens.shared))
        for other, text in prompt.others:
            if other in others:
                others[other].append(_example(tokenizer, text, at, prompt, tokens.shared))
        right.append(np.array(tokens.right, np.int64))
        wrong.append(np.array(tokens.wrong, np.int64))
        several += tokens.several
    if several:
        have = "answer has" if several == 1 else "answers have"
        which = "the first that tells right from wrong was compared"
        notes = [*notes, f"{several} {have} several tokens: {which}"]
    whole = corrupted if len(corrupted) == len(clean) else []
    others = {one: every for one, every in others.items() if len(every) == len(clean)}
    return PromptSet(kind, tuple(prompts), clean, whole, right, wrong, tuple(notes), others)


@dataclass(frozen=True)
class ComparedTokens:
    """Ids of the tokens that tell right from wrong answers.

    shared        those before, with which all answers begin
    right, wrong  the next one of each answer, each once
    several       how many of the answers have more than one token
    """

    shared: tuple[int, ...]
    right: tuple[int, ...]
    wrong: tuple[int, ...]
    several: int


def compared_tokens(tokenizer: Any, text: str, prompt: Prompt) -> ComparedTokens:
    """The tokens to compare after a text: the first in which the answers of a prompt differ.

    raises  InputError for an answer without tokens, with an unknown token, or that changes the
            tokens of the text; and where the first token that differs is that of a right and of a
            wrong answer, or one answer ends before it
    """
    right, wrong = (
        {one: answer_tokens(tokenizer, text, one) for one in each(answers)}
        for answers in (prompt.answer, prompt.wrong)
    )
    if not (right and wrong):
        raise InputError(f"{text!r} has no answer, or no wrong one; wanted both")
    every = [*right.values(), *wrong.values()]
    shared = sum(1 for _ in takewhile(lambda ids: len(set(ids)) == 1, zip(*every, strict=False)))
    for (one, ids), (other, others) in product(right.items(), wrong.items()):
        ends = ids[shared : shared + 1], others[shared : shared + 1]
        if ends[0] == ends[1] or [] in ends:
            raise InputError(
                f"after {text!r} the first token in which answers differ does not tell the answer "
                f"{one!r} from the wrong one {other!r}; wanted answers of which neither begins "
                "the other, and each right one apart from each wrong one in that token"
            )
    first, second = (
        tuple(dict.fromkeys(ids[shared] for ids in side.values())) for side in (right, wrong)
    )
    several = sum(len(ids) > 1 for ids in every)
    return ComparedTokens(tuple(every[0][:shared]), first, second, several)


def each(answers: str | Sequence[str]) -> Sequence[str]:
    """The answers, where there may be one or several."""
    return (answers,) if isinstance(answers, str) else answers


def answer_tokens(tokenizer: Any, text: str, answer: str) -> list[int]:
    """The ids of an answer after a text; InputError where one is unknown or the text's change."""
    before, whole = input_ids(tokenizer, text), input_ids(tokenizer, text + answer)
    own: list[int] = whole[len(before) :].tolist()
    known = bool(own) and tokenizer.unk_token_id not in own
    if known and np.array_equal(whole[: len(before)], before):
        return own
    pieces = tokenizer.convert_ids_to_tokens(own or whole[-1:].tolist())
    many = f"{how_many(len(own), 'token')} ({', '.join(map(repr, pieces[:6]))})"
    raise InputError(
        f"after {text!r} the tokenizer makes of the answer {answer!r} {many}; wanted one or more "
        "known tokens that do not change the tokens of the prompt"
    )


def input_ids(tokenizer: Any, text: str) -> Ints:
    """[token] the ids of a text to be continued: without a closing token."""
    ids = np.array(tokenizer(text)["input_ids"], np.int64)
    own = len(tokenizer(text, add_special_tokens=False)["input_ids"])
    opening = len(ids) > own and ids[0] in tokenizer.all_special_ids
    return ids[: own + opening]


def _example(tokenizer: Any, text: str, at: int, prompt: Prompt, shared: Sequence[int]) -> Example:
    ids = input_ids(tokenizer, text)
    if not len(ids):
        raise InputError(f"prompt {at + 1} has no tokens: {text!r}; wanted a text")
    ids = np.append(ids, np.array(shared, np.int64))
    special = np.isin(ids, tokenizer.all_special_ids)
    return Example(str(at), prompt.item or str(at), ids, np.zeros_like(ids), special)


def single(tokenizer: Any, text: str, answer: str) -> bool:
    """Whether an answer is one token after a text."""
    try:
        return len(answer_tokens(tokenizer, text, answer)) == 1
    except InputError:
        return False
