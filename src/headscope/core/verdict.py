"""The verdict on a claim: it holds, it does not hold, these data cannot tell, or nobody asked.

A claim is held against a bound by its 95 % interval: it holds where the whole interval lies beyond
the bound, does not hold where none of it does. Else the data cannot tell, and the verdict says how
large an effect they could have shown. A claim without an interval cannot be told either.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """What is found of a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    CANNOT_TELL = "cannot tell"
    NOT_ASKED = "not asked"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is found of a claim, and what is missing where nothing could be.

    smallest  where the data cannot tell: the smallest distance from the bound that they could have
              shown, in the unit of the claim; NaN else, or where it is not known
    needs     of what was not asked: what is needed to ask it
    """

    outcome: Outcome
    smallest: float = math.nan
    needs: str = ""


def above(value: float, low: float, high: float, bound: float) -> Verdict:
    """Whether a number lies above a bound; low and high are the ends of its 95 % interval."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return Verdict(Outcome.CANNOT_TELL)
    if low > bound:
        return Verdict(Outcome.HOLDS)
    if high <= bound:
        return Verdict(Outcome.FAILS)
    return Verdict(Outcome.CANNOT_TELL, smallest=value - low)


def below(value: float, low: float, high: float, bound: float) -> Verdict:
    """Whether a number lies below a bound."""
    return above(-value, -high, -low, -bound)


def within(value: float, low: float, high: float, margin: float) -> Verdict:
    """Whether a number is nothing: two one-sided tests against a margin on either side of 0.

    low, high  the ends of its 90 % interval, as each test has 5 %
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        return Verdict(Outcome.CANNOT_TELL)
    if -margin < low and high < margin:
        return Verdict(Outcome.HOLDS)
    if low >= margin or high <= -margin:
        return Verdict(Outcome.FAILS)
    return Verdict(Outcome.CANNOT_TELL, smallest=max(value - low, high - value))


def not_asked(needs: str) -> Verdict:
    """Nobody asked; what would have to be measured."""
    return Verdict(Outcome.NOT_ASKED, needs=needs)
