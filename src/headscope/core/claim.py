"""A claim about one head, and the effect that decides whether it is made.

The effect is how far the head lies above an ordinary one, as a share of how far it could:

    effect = (lower end of the interval − reference) / (ceiling − reference)

Without an interval the value itself stands in for its lower end. A claim that passes the rule of
its kind is a label of the head (`label_rules`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from headscope.core.accumulators import Estimate
from headscope.core.results import Floats, surely
from headscope.core.wording import percent

BRIEF = {"broad": "broad", "narrow": "few tokens", "coreference": "coreference"}
LEAST_EFFECT = 0.05  # ours: below, a head counts as ordinary


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement about one head.

    kind       of `label_rules.RULES`
    effect     see the module; at most 1
    name       without numbers: "previous token", "direct object → verb"
    label      with them: "previous token 87 % [85, 89]"
    sentence   without the head's name: "attends to the previous token, 87 % [85, 89]"
    value, low, high   the number behind it, as a share of the ceiling, 0 to 1
    reference  on the same scale: what is ordinary, a baseline, or chance
    n          documents behind it
    analysis   the group that holds the number
    about      the relation, of a claim about one
    """

    layer: int
    head: int
    kind: str
    effect: float
    name: str
    label: str
    sentence: str
    value: float
    low: float
    high: float
    reference: float
    n: int
    analysis: str
    about: str = ""

    @property
    def surely(self) -> float:
        """The lower end of the interval; the value where there is none."""
        return self.low if math.isfinite(self.low) else self.value

    @property
    def short(self) -> str:
        """For where there is little room: `previous token 87 %`, `sink on [SEP] 80 %`."""
        name = BRIEF.get(self.kind, self.name).removeprefix("attention ")
        if self.kind == "narrow":  # its value is a share of what is missing to uniform attention
            return name
        return f"{name} {percent(self.value, math.nan, math.nan)}"


def effects(share: Estimate, reference: Floats | float) -> Floats:
    """The effect of every cell, as shares of a ceiling of 1; NaN where there is no value, 0
    where even the ordinary head is at the ceiling.
    """
    way = 1 - np.asarray(reference)
    above = np.where(way > 0, surely(share) - reference, 0) / np.where(way > 0, way, 1)
    return np.asarray(np.where(np.isfinite(share.value), above, np.nan))


def rank(claim: Claim) -> tuple[float, int, int, str, str]:
    """Sorts claims: the largest effect first, then by head, kind and name, whatever comes first."""
    return (-claim.effect, claim.layer, claim.head, claim.kind, claim.name)
