"""The rules of no other question: parts of words and sentences, marks, capital letters; and which
rules a run tries.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from headscope.claims.attention_rule import (
    REST,
    TOKEN,
    AttentionRule,
    Bools,
    Rows,
    RuleInput,
)
from headscope.claims.question import Question, made_or_left_out, questions
from headscope.errors import InputError

STAND_IN = "the first token, or what stands in for it"
# Where a head rests that no rule tells where to look; where it is not seen, on the first token.
RESTS = ("the first token", "the separators", "the token itself", "all tokens evenly", STAND_IN)
ENDS = (".", "!", "?", "。", "؟", "।")
BREAKS = ("\n", "Ċ", "<0x0A>")

PLACES = {
    -2: "two tokens back",
    -1: "the previous token",
    0: "the token itself",
    1: "the next token",
}
NEAR = 0.95  # share left a token on: about twenty tokens


def kinds_of(read: RuleInput) -> dict[str, Bools]:
    """Kind of tokens -> [token] whether it is of it; no special token is of any."""
    word = ~read.special & ~read.marks
    return {
        "frequent tokens": word & read.frequent & read.begins,
        "rarer tokens": word & ~read.frequent & read.begins,
        "pieces that continue a word": word & ~read.begins,
        "marks": read.marks,
    }


def _by(kind: str, offset: int | None, read: RuleInput) -> Rows:
    """What queries of a kind give to a place; None: to the first token."""
    place = read.offset == offset if offset is not None else np.arange(len(read)) == 0
    return read.even(place & kinds_of(read)[kind][:, None])


def _between(kind: str, other: str, read: RuleInput) -> Rows:
    """What queries of a kind give to keys of a kind around them."""
    kinds, near = kinds_of(read), NEAR ** np.abs(read.offset)
    return read.weighted(near * kinds[other] * kinds[kind][:, None])


def _crossed() -> Iterator[AttentionRule]:
    names = ("frequent tokens", "rarer tokens", "pieces that continue a word", "marks")
    for kind in names:
        for offset, place in PLACES.items():
            yield AttentionRule(f"{place}, by {kind}", TOKEN, partial(_by, kind, offset))
        yield AttentionRule(f"the first token, by {kind}", TOKEN, partial(_by, kind, None))
        for other in names:
            rows = partial(_between, kind, other)
            yield AttentionRule(f"{other} around, by {kind}", TOKEN, rows)


def _word_of(read: RuleInput) -> np.ndarray:
    return np.cumsum(read.begins)


def _pieces(read: RuleInput, *, others: bool) -> Rows:
    word = _word_of(read)
    same = (word[:, None] == word) & ~read.special[:, None]
    return read.even(same & (read.offset != 0) if others else same)


def _first_piece(read: RuleInput) -> Rows:
    word = _word_of(read)
    same = (word[:, None] == word) & ~read.begins[:, None]
    return read.even(same & read.begins)


def _ends(read: RuleInput) -> Bools:
    return np.array([token.endswith(ENDS) or token[:1] in BREAKS for token in read.tokens], bool)


def _sentence_start(read: RuleInput) -> Rows:
    ends = _ends(read)
    start = np.concatenate([[True], ends[:-1]]) | np.concatenate([[False], read.special[:-1]])
    start &= ~read.special
    sentence = np.cumsum(start)
    return read.even((sentence[:, None] == sentence) & start & ~read.special[:, None])


def _sentence(read: RuleInput) -> Rows:
    ends = np.concatenate([[False], _ends(read)[:-1]])
    number = np.cumsum(ends)
    word = ~read.special
    return read.even((number[:, None] == number) & word & word[:, None])


def _capital(read: RuleInput) -> Rows:
    letters = (token.lstrip("Ġ▁")[:1] for token in read.tokens)
    return read.even(np.array([letter.isupper() for letter in letters]) & ~read.special)


def _digits(read: RuleInput) -> Rows:
    return read.even(np.array([any(map(str.isdigit, token)) for token in read.tokens]))


RULES = (
    AttentionRule(STAND_IN, REST, lambda read: read.even(read.offset[0] == 0)),
    AttentionRule("all marks", REST, lambda read: read.even(read.marks)),
    AttentionRule("the latest mark", REST, lambda read: read.nearest(read.marks)),
    AttentionRule("the next mark", REST, lambda read: read.nearest(read.marks, before=False)),
    AttentionRule("the pieces of its word", TOKEN, lambda read: _pieces(read, others=False)),
    AttentionRule("the other pieces of its word", TOKEN, lambda read: _pieces(read, others=True)),
    AttentionRule("the first piece of its word", TOKEN, _first_piece),
    AttentionRule("the start of its sentence", TOKEN, _sentence_start),
    AttentionRule("its sentence between stops", TOKEN, _sentence),
    AttentionRule("capital letters", TOKEN, _capital),
    AttentionRule("numbers", TOKEN, _digits),
    *_crossed(),
)


def _rules_of(question: Question, scope: Any) -> list[AttentionRule]:
    part: Any = question.part("predicts", ())
    return list(part(scope) if callable(part) else part)


def rules_of_run(scope: Any) -> list[AttentionRule]:
    """The rules of all questions that a run tries, each once.

    scope   `run.analysis.Scope`
    raises  InputError for two rules of one name
    """
    made, none = dict[str, AttentionRule](), list[AttentionRule]()
    for question in questions():
        part = made_or_left_out(question, "its rules", partial(_rules_of, question, scope), none)
        for rule in part:
            if made.setdefault(rule.name, rule) is not rule:
                raise InputError(
                    f"two rules are called {rule.name!r}; wanted one of each name: rename that of "
                    f"{question.name!r}"
                )
    return list(made.values())
