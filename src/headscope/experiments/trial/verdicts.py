"""The verdict on each label that was tried: confirmed, not confirmed, or untestable."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import xarray as xr

from headscope.claims.plan import NOTHING
from headscope.claims.reading import Reading
from headscope.claims.verdict import Outcome
from headscope.core.confidence import stretch
from headscope.core.intervals import Estimate
from headscope.core.results import at, estimate
from headscope.core.wording import percent
from headscope.experiments.trial.terms import DISTANCE

CONFIRMED, NOT_CONFIRMED, UNTESTABLE = "confirmed", "not confirmed", "untestable"
SIGNS = {
    CONFIRMED: Outcome.HOLDS.sign,
    NOT_CONFIRMED: Outcome.FAILS.sign,
    UNTESTABLE: Outcome.NOT_ASKED.sign,
}
# Ours: of what the head changes there, at least so much by what its label says; and of its effect,
# at least so much beyond what it is compared with.
LEAST_SHARE = 0.1
AGAINST = {
    "same_keys": "the same tokens by other queries",
    "same_offset": "tokens as far away from other queries",
    "other_keys": "tokens beside them",
    "other_heads": "other heads of the layer",
}
WORDS = ("name", "kind", "why", "expects", "measure")
NUMBERS = ("effect", "share", "beyond", "repaired", "transfer")
NO_LESS = "not surely below half of what the same weight would change on other tokens"
NO_COMPARISON = "too few inputs have anything to compare it with"
NO_INTERVAL = "its inputs are of too few documents for an interval"
Ends = tuple[float, float, float]  # a value with its interval


@dataclass(frozen=True)
class TriedLabel:
    """What was found of one label.

    heads    (layer, head) places, from 0; several are tried together
    kind     of the label; "" of a rule of the user's
    outcome  CONFIRMED, NOT_CONFIRMED or UNTESTABLE
    why      of one that is not confirmed or untestable
    most     of one that is not confirmed, the largest effect that these inputs leave possible,
             beyond what it is not above
    effect   change of the output where its rule applies; share: of what the head changes there
    in_nats  whether effect and most are rises of a loss, or falls of a log-probability; else shares
             of the distance of two tokens' output vectors
    repaired whether the output surely moves less than by what the head writes straight to it
    transfers  whether what the head gathers where its rule leads to the same token can stand in
             better than where it leads to another one; None where that was not seen
    """

    name: str
    kind: str
    heads: tuple[tuple[int, int], ...]
    outcome: str
    why: str = ""
    most: float = math.nan
    effect: Ends = (math.nan,) * 3
    share: Ends = (math.nan,) * 3
    in_nats: bool = False
    repaired: bool = False
    transfers: bool | None = None

    @property
    def alone(self) -> bool:
        """Whether it is a label of one head."""
        return len(self.heads) == 1 and bool(self.kind)


def tried_labels(trial: xr.Dataset) -> list[TriedLabel]:
    """What was found of each hypothesis, in their order.

    Intervals are longer, to hold for all labels that were tried at once (Bonferroni); of what a
    label is compared with, all must be beaten, so that they need no correction.
    """
    tried = (trial["why"].values == "").sum()
    far = stretch(max(int(tried), 1))
    parts = {name: estimate(trial, name) for name in NUMBERS}
    against = [str(name) for name in trial["against"].values]
    made = []
    for row in range(trial.sizes["hypothesis"]):
        words = {name: str(trial[name].values[row]) for name in WORDS}
        beyond = {name: _longer(parts["beyond"], far, row, n) for n, name in enumerate(against)}
        effect, share = at(parts["effect"], row), at(parts["share"], row)
        outcome, why, most = UNTESTABLE, words["why"], math.nan
        if not why and words["expects"] == NOTHING:
            outcome, why, most = _rests(beyond["other_keys"], effect)
        elif not why:
            outcome, why, most = _matters(beyond, _longer(parts["share"], far, row), effect)
        low = {name: _longer(parts[name], far, row)[1] for name in ("repaired", "transfer")}
        made.append(
            TriedLabel(
                words["name"],
                words["kind"],
                tuple(heads_of(trial, row)),
                outcome,
                why,
                most,
                effect,
                share,
                words["measure"] != DISTANCE,
                repaired=low["repaired"] > 0,
                transfers=low["transfer"] > 0 if math.isfinite(low["transfer"]) else None,
            )
        )
    return made


def heads_of(trial: xr.Dataset, row: int) -> Iterator[tuple[int, int]]:
    """The heads of a hypothesis, (layer, head) from 0."""
    for place in str(trial["heads"].values[row]).split():
        layer, head = place.split(",")
        yield int(layer), int(head)


def _longer(parts: Estimate, far: float, *place: int) -> Ends:
    value, low, high = at(parts, *place)
    return value, value - far * (value - low), value + far * (high - value)


def _matters(beyond: dict[str, Ends], share: Ends, effect: Ends) -> tuple[str, str, float]:
    """Outcome, why and most of a label that says that what the head takes there matters."""
    known = {name: one for name, one in beyond.items() if math.isfinite(one[0])}
    if not known:
        return UNTESTABLE, NO_COMPARISON, math.nan
    if not all(math.isfinite(one[1]) for one in known.values()):
        return UNTESTABLE, NO_INTERVAL, math.nan
    nearest = min(known, key=lambda name: known[name][1])
    _, low, high = known[nearest]
    if low <= LEAST_SHARE * effect[0]:
        return NOT_CONFIRMED, f"not above {AGAINST[nearest]}", high
    if not share[1] > LEAST_SHARE:
        why = f"not surely {percent(LEAST_SHARE)} of what the head changes there"
        return NOT_CONFIRMED, why, effect[2]
    return CONFIRMED, "", math.nan


def _rests(less: Ends, effect: Ends) -> tuple[str, str, float]:
    """The same of a label that says that the head takes next to nothing there."""
    if not math.isfinite(less[2]):
        return UNTESTABLE, NO_COMPARISON, math.nan
    return (CONFIRMED, "", math.nan) if less[2] < 0 else (NOT_CONFIRMED, NO_LESS, effect[2])


def outcomes(run: Reading) -> dict[tuple[int, int, str, str], tuple[str, str, str]]:
    """(layer, head, kind, name) of each label -> the verdict on it, its sign, and in a sentence."""
    words = {CONFIRMED: "confirmed by trial", NOT_CONFIRMED: "not confirmed by trial"}
    return {
        (*one.heads[0], one.kind, one.name): (
            one.outcome,
            SIGNS[one.outcome],
            words.get(one.outcome, one.outcome),
        )
        for one in tried_labels(run.data)
        if one.alone
    }


def counts(run: Reading) -> Counter[str]:
    """How many labels of single heads have each outcome."""
    return Counter(one.outcome for one in tried_labels(run.data) if one.alone)


def lead(run: Reading) -> str:
    """How many labels were tried, and with what outcome: `37 of 54 labels were tried: …`."""
    outcome = counts(run)
    every = outcome.total()
    tried = every - outcome[UNTESTABLE]
    if not tried:
        return f"None of {every} labels could be tried." if every else ""
    rest = f", {outcome[NOT_CONFIRMED]} not" if outcome[NOT_CONFIRMED] else ""
    return f"{tried} of {every} labels were tried: {outcome[CONFIRMED] or 'none'} confirmed{rest}."


def weakest(beyond: Estimate, row: int) -> float:
    """The smallest difference of a hypothesis to what it is compared with."""
    return float(np.nanmin(beyond.value[row]))
