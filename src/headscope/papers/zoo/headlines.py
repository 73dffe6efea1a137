"""Which claims hold for how many models, in sentences?"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import TYPE_CHECKING

from headscope.core.wording import fixed, percent
from headscope.papers.zoo.claims import CLAIMS, RELATIONS, Claim
from headscope.papers.zoo.verdict import FAILS, HOLDS, UNASKED, UNCLEAR, Answer

if TYPE_CHECKING:
    from headscope.papers.zoo.found import Zoo

MOST_NAMED = 3


def headlines(zoo: Zoo) -> list[str]:
    """One sentence per claim that has one and could be asked of some model, and one on relations.

    `In 4 of 5 models more than half of the attention … (not in x: 35 %; unclear: y; cannot be
    asked of z: no separator).`
    """
    found = []
    for claim in CLAIMS:
        answers = zoo.answers[claim.name]
        asked = [a for a in answers.values() if a.verdict != UNASKED]
        if claim.headline and asked:
            found.append(f"In {how_many(answers)} {claim.headline}{_exceptions(claim, answers)}.")
        elif claim.headline:
            why = next(iter(answers.values())).why
            found.append(f"Whether {claim.headline} cannot be asked of any model here: {why}.")
    return [*found, *_relations(zoo)]


def how_many(answers: Mapping[str, Answer]) -> str:
    """`all 6 models`, `none of 6 models`, `4 of 6 models`: those that could be asked."""
    asked = [answer for answer in answers.values() if answer.verdict != UNASKED]
    held = sum(answer.verdict == HOLDS for answer in asked)
    models = "model" if len(asked) == 1 else "models"
    if held == len(asked):
        return f"all {held} {models}" if held > 1 else "the only model asked"
    return f"{held or 'none'} of {len(asked)} {models}"


def value_words(claim: Claim, value: float) -> str:
    """A number in the unit of its claim, without interval."""
    if claim.unit == "share":
        return percent(value, float("nan"), float("nan"))
    if claim.unit == "points":
        text = fixed(100 * value, 1)
        return f"{'+' if value > 0 else ''}{text} points"
    return fixed(value, 2)


def _exceptions(claim: Claim, answers: Mapping[str, Answer]) -> str:
    """In brackets the models for which it does not hold, is unclear, or cannot be asked."""
    parts = []
    for verdict, start in ((FAILS, "not in"), (UNCLEAR, "unclear in")):
        there = [(name, a.number) for name, a in answers.items() if a.verdict == verdict]
        words = [
            name if claim.unit == "heads" else f"{name}: {value_words(claim, n.value)}"
            for name, n in there
            if n is not None
        ]
        parts += [f"{start} {_listed(words)}"] if words else []
    silent = sorted((a.why, name) for name, a in answers.items() if a.verdict == UNASKED)
    for why, group in groupby(silent, key=lambda pair: pair[0]):
        parts.append(f"cannot be asked of {_listed([name for _, name in group])}: {why}")
    return f" ({'; '.join(parts)})" if parts else ""


def _relations(zoo: Zoo) -> list[str]:
    """One sentence on all relations: for which a head beats every fixed offset, and where."""
    counted = []
    for relation in RELATIONS:
        answers = zoo.answers[f"relation_{relation.labels[0]}"].values()
        asked = [answer for answer in answers if answer.verdict != UNASKED]
        if asked:
            held = sum(answer.verdict == HOLDS for answer in asked)
            counted.append(f"{relation.name} {held} of {len(asked)}")
    if not counted:
        return []
    return [
        "On documents that it was not chosen on, the best head beats the best fixed offset in so "
        f"many models: {', '.join(counted)}."
    ]


def _listed(names: list[str]) -> str:
    if len(names) <= MOST_NAMED + 1:
        return ", ".join(names)
    return f"{', '.join(names[:MOST_NAMED])} and {len(names) - MOST_NAMED} more"
