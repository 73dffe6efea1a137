"""The outcome of a zoo: its runs, the claims held against each, and sentences that sum it up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

from headscope.core.accumulators import Estimate
from headscope.core.wording import fixed, percent
from headscope.papers.claim_engine import (
    FAILS,
    HOLDS,
    UNASKED,
    UNCLEAR,
    ClaimOutcome,
    PaperClaim,
    against_bound,
)
from headscope.papers.quantities import PaperRuns
from headscope.papers.zoo.claims import CLAIMS, GROUPS, MODEL_RUN, RELATIONS, relation_key
from headscope.papers.zoo.depth_curves import depth_curves
from headscope.run.finished_run import Run

MOST_NAMED = 3
Answers = Mapping[str, ClaimOutcome]


@dataclass
class ZooOutcome:
    """The runs of a list of models on one corpus, and what they say to the claims.

    path      folder of the zoo
    runs      by what the page calls the model, in the order in which they were named
    manifest  what was asked; `failed` says of every model that could not be read why
    """

    path: Path
    runs: dict[str, Run]
    manifest: Mapping[str, Any] = field(repr=False)

    @cached_property
    def answers(self) -> dict[str, dict[str, ClaimOutcome]]:
        """The outcome of every claim for every model: [key of the claim][model]."""
        runs = {label: PaperRuns({MODEL_RUN: run}) for label, run in self.runs.items()}
        return {
            claim.key: {
                label: against_bound(claim, one, group.id) for label, one in runs.items()
            }
            for group in GROUPS
            for claim in group.claims
        }  # fmt: skip

    @cached_property
    def curves(self) -> dict[str, dict[str, Estimate]]:
        """The numbers over depth of every model, see `depth_curves`: [model][number]."""
        return {label: depth_curves(run) for label, run in self.runs.items()}

    @property
    def failed(self) -> dict[str, str]:
        """Models that could not be read, and why."""
        return dict(self.manifest.get("failed", {}))

    @cached_property
    def headlines(self) -> list[str]:
        """One sentence per claim that has one, and one on relations.

        `In 4 of 5 models more than half of the attention … (not in x: 35 %; unclear: y; cannot be
        asked of z: no separator).`
        """
        sentences = []
        for claim in CLAIMS:
            answers = self.answers[claim.key]
            if claim.headline and any(a.verdict != UNASKED for a in answers.values()):
                exceptions = _exceptions(claim, answers)
                sentences.append(f"In {how_many(answers)} {claim.headline}{exceptions}.")
            elif claim.headline:
                why = next(iter(answers.values())).reason
                sentences.append(
                    f"Whether {claim.headline} cannot be asked of any model here: {why}."
                )
        return [*sentences, *_relations(self.answers)]


def held(answers: Answers) -> tuple[int, int]:
    """For how many models a claim holds, and how many could be asked."""
    asked = [answer for answer in answers.values() if answer.verdict != UNASKED]
    return sum(answer.verdict == HOLDS for answer in asked), len(asked)


def how_many(answers: Answers) -> str:
    """`all 6 models`, `none of 6 models`, `4 of 6 models`: those that could be asked."""
    holding, asked = held(answers)
    models = "model" if asked == 1 else "models"
    if holding == asked:
        return f"all {holding} {models}" if holding > 1 else "the only model asked"
    return f"{holding or 'none'} of {asked} {models}"


def value_words(claim: PaperClaim, value: float) -> str:
    """A number in the unit of its claim, without interval."""
    if claim.unit == "share":
        return percent(value, float("nan"), float("nan"))
    if claim.unit == "points":
        text = fixed(100 * value, 1)
        return f"{'+' if value > 0 else ''}{text} points"
    return fixed(value, 2)


def _exceptions(claim: PaperClaim, answers: Answers) -> str:
    """In brackets the models for which it does not hold, is unclear, or cannot be asked."""
    parts = []
    for verdict, start in ((FAILS, "not in"), (UNCLEAR, "unclear in")):
        words = [
            name if claim.unit == "heads" else f"{name}: {value_words(claim, a.measured.value)}"
            for name, a in answers.items()
            if a.verdict == verdict and a.measured is not None
        ]
        parts += [f"{start} {_listed(words)}"] if words else []
    silent = sorted((a.reason, name) for name, a in answers.items() if a.verdict == UNASKED)
    for why, group in groupby(silent, key=lambda pair: pair[0]):
        parts.append(f"cannot be asked of {_listed([name for _, name in group])}: {why}")
    return f" ({'; '.join(parts)})" if parts else ""


def _relations(answers: Mapping[str, Answers]) -> list[str]:
    """One sentence on all relations: in how many models a head beats every fixed offset."""
    counts = [(relation.name, *held(answers[relation_key(relation)])) for relation in RELATIONS]
    words = [f"{name} {holding} of {asked}" for name, holding, asked in counts if asked]
    if not words:
        return []
    return [
        "On documents that it was not chosen on, the best head beats the best fixed offset in so "
        f"many models: {', '.join(words)}."
    ]


def _listed(names: list[str]) -> str:
    if len(names) <= MOST_NAMED + 1:
        return ", ".join(names)
    return f"{', '.join(names[:MOST_NAMED])} and {len(names) - MOST_NAMED} more"
