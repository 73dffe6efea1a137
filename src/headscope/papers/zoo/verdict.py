"""Does a claim hold for a model, does it not, is it unclear, or can it not be asked?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import xarray as xr

from headscope.analyses.divergence.layer_claim import CLEAR
from headscope.papers.zoo.claims import Claim
from headscope.papers.zoo.measures import MEASURES, Number
from headscope.papers.zoo.numbers import Unasked

HOLDS, FAILS, UNCLEAR, UNASKED = "holds", "does not hold", "unclear", "cannot be asked"


@dataclass(frozen=True)
class Answer:
    """What a model says to a claim.

    verdict  HOLDS, FAILS, UNCLEAR or UNASKED
    number   None where the claim cannot be asked
    why      then the reason
    """

    verdict: str
    number: Number | None = None
    why: str = ""


def answer(claim: Claim, tree: xr.DataTree) -> Answer:
    """Holds a claim against the results of one model."""
    try:
        number = MEASURES[claim.name](tree)
    except Unasked as reason:
        return Answer(UNASKED, why=str(reason))
    if not math.isfinite(number.value):
        return Answer(UNASKED, why="nothing to measure")
    return Answer(verdict(claim, number), number)


def verdict(claim: Claim, number: Number) -> str:
    """On which side of the bound the interval lies; the value where there is no interval.

    A value on the bound is not beyond it. Where the claim is held against chance as well, it holds
    only with p ≤ CLEAR.
    """
    low, high = number.low, number.high
    if not (math.isfinite(low) and math.isfinite(high)):
        low = high = number.value
    if claim.test == "above":
        holds, fails = low > claim.bound, high <= claim.bound
    elif claim.test == "below":
        holds, fails = high < claim.bound, low >= claim.bound
    else:
        bound = claim.bound
        holds, fails = -bound < low and high < bound, low >= bound or high <= -bound
    if holds and number.p > CLEAR:
        return UNCLEAR
    return HOLDS if holds else FAILS if fails else UNCLEAR
