"""What is a claim about a head, and when is its effect large enough to be made?

A claim's effect is how far the head stands above what is ordinary, of the way it could go:

    effect = (lower end of the interval − reference) / (ceiling − reference)

Without an interval the value itself stands in for its lower end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headscope.accumulate import Estimate
from headscope.derived.reading import Floats

LEAST_EFFECT = 0.05  # ours: below, a head is not told apart from an ordinary one


@dataclass(frozen=True, slots=True)
class Claim:
    """One thing to say of one head.

    kind       previous, next, self, first, cls, sep, punctuation, broad or narrow; of language:
               dependency, coreference or frames
    effect     see the module; at most 1
    sentence   without the head's name: "attends to the previous token, 87 % [85, 89]"
    value, low, high   the number behind it, as a share of the ceiling, 0 to 1
    reference  on the same scale
    n          documents behind it
    about      the relation, of a claim about one
    """

    layer: int
    head: int
    kind: str
    effect: float
    sentence: str
    value: float
    low: float
    high: float
    reference: float
    n: int
    about: str = ""


def effects(share: Estimate, reference: Floats | float) -> Floats:
    """The effect of every cell, as shares of a ceiling of 1; NaN where there is nothing to say."""
    lower = np.where(np.isfinite(share.low), share.low, share.value)
    way = np.where(np.asarray(reference) < 1, 1 - np.asarray(reference), np.nan)
    return np.asarray(np.where(np.isfinite(share.value), (lower - reference) / way, np.nan))
