"""The verdict on a claim: it holds, it does not hold, these data cannot tell, or nobody asked.

A claim is compared with a bound by its 95 % interval: it holds where the whole interval lies beyond
the bound, does not hold where none of it does. Else the data cannot tell, and the verdict says how
large an effect they could have shown. A claim without an interval has no verdict either, unless its
number is exact. That something is nothing is said by an equivalence test alone (Schuirmann 1987).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from headscope.core.accumulators import Float64
from headscope.core.confidence import CONFIDENCE, stretch
from headscope.core.intervals import Estimate

SIGNIFICANT = 0.05  # largest p, or q, of a claim that is also beyond_chance against chance


class Outcome(StrEnum):
    """The outcome of a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    CANNOT_TELL = "cannot tell"
    NOT_ASKED = "not asked"

    @property
    def sign(self) -> str:
        """The symbol of the outcome on every page."""
        return SIGNS[self]

    @property
    def kind(self) -> str:
        """The name of its CSS class: `does-not-hold`."""
        return self.replace(" ", "-")


SIGNS = {Outcome.HOLDS: "●", Outcome.FAILS: "○", Outcome.CANNOT_TELL: "◐", Outcome.NOT_ASKED: "–"}
MEANINGS = {
    Outcome.HOLDS: "The whole 95 % interval lies on the claimed side.",
    Outcome.FAILS: "The whole interval lies on the other side.",
    Outcome.CANNOT_TELL: "The interval reaches over both sides, or there is none: these data show "
    "neither; beside it stands the smallest difference that they could show.",
    Outcome.NOT_ASKED: "What it needs is not there; a note says what.",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of a claim, and what is missing for a verdict.

    smallest  where the data cannot tell: the smallest distance from the bound that they could have
              shown, in the unit of the claim; NaN else, or where it is not known
    needs     of what was not asked: what is needed to ask it
    """

    outcome: Outcome
    smallest: float = math.nan
    needs: str = ""

    @property
    def holds(self) -> bool:
        """Whether the claim holds."""
        return self.outcome is Outcome.HOLDS

    @property
    def fails(self) -> bool:
        """Whether the claim does not hold."""
        return self.outcome is Outcome.FAILS


def above(value: float, low: float, high: float, bound: float = 0.0) -> Verdict:
    """Whether a number lies above a bound; low and high are the ends of its 95 % interval."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return Verdict(Outcome.CANNOT_TELL)
    if low > bound:
        return Verdict(Outcome.HOLDS)
    if high <= bound:
        return Verdict(Outcome.FAILS)
    return Verdict(Outcome.CANNOT_TELL, smallest=value - low)


def below(value: float, low: float, high: float, bound: float = 0.0) -> Verdict:
    """Whether a number lies below a bound."""
    return above(-value, -high, -low, -bound)


def differs(value: float, low: float, high: float) -> Verdict:
    """Whether a number differs from 0; equality to 0 is tested by `within`."""
    side = below if value < 0 else above
    verdict = side(value, low, high)
    return replace(verdict, outcome=Outcome.CANNOT_TELL) if verdict.fails else verdict


def within(value: float, low: float, high: float, margin: float) -> Verdict:
    """Whether a number is equivalent to 0: two one-sided tests against a margin.

    low, high  the ends of its 90 % interval, as each test has 5 %; a longer one is stricter
    """
    return between(value, low, high, -margin, margin)


def between(value: float, low: float, high: float, first: float, last: float) -> Verdict:
    """Whether a number lies between two bounds, by both ends of its interval."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return Verdict(Outcome.CANNOT_TELL)
    if first < low and high < last:
        return Verdict(Outcome.HOLDS)
    if low >= last or high <= first:
        return Verdict(Outcome.FAILS)
    return Verdict(Outcome.CANNOT_TELL, smallest=max(value - low, high - value))


def some_above(parts: Estimate, bound: float = 0.0, *, sign: int = 1) -> Verdict:
    """Whether any of several numbers lies above a bound, or with sign −1 below it.

    Intervals are widened to hold for all numbers at once (Bonferroni).
    """
    value, low, high = for_all(parts)
    if sign < 0:
        value, low, high = -value, -high, -low
    if not np.isfinite(low).any():
        return Verdict(Outcome.CANNOT_TELL)
    most, least, top = (float(np.nanmax(part)) for part in (value, low, high))
    verdict = above(most, least, top, sign * bound)
    if np.isnan(low[np.isfinite(value)]).any() and verdict.fails:  # one of which nothing is known
        return Verdict(Outcome.CANNOT_TELL)
    return verdict


def for_all(parts: Estimate) -> tuple[Float64, Float64, Float64]:
    """Values and simultaneous intervals of several numbers (Bonferroni)."""
    far = stretch(max(int(np.isfinite(parts.value).sum()), 1))
    value = parts.value
    return value, value - far * (value - parts.low), value + far * (parts.high - value)


def largest_among(parts: Estimate, wanted: Collection[int]) -> Verdict:
    """Whether the largest of several numbers is one of the wanted ones, by place.

    Any may be the largest whose interval reaches up to the highest lower end.
    """
    might = maybe_largest(parts)
    if not might or (might & set(wanted) and might - set(wanted)):
        return Verdict(Outcome.CANNOT_TELL)
    return known(might <= set(wanted))


def maybe_largest(parts: Estimate) -> set[int]:
    """The places of all numbers that may be the largest; empty without intervals."""
    if not np.isfinite(parts.low).any():
        return set()
    there = np.flatnonzero(parts.high >= np.nanmax(parts.low))
    unknown = np.flatnonzero(np.isfinite(parts.value) & np.isnan(parts.low))
    return {*there.tolist(), *unknown.tolist()}


def first_before(one: Estimate, other: Estimate) -> Verdict:
    """Whether the largest number of one row comes before that of another row."""
    first, then = maybe_largest(one), maybe_largest(other)
    if first and then and max(first) < min(then):
        return Verdict(Outcome.HOLDS)
    fails = bool(first and then) and min(first) >= max(then)
    return Verdict(Outcome.FAILS if fails else Outcome.CANNOT_TELL)


def in_draws(share: float) -> Verdict:
    """Whether a property holds, by the share of resampled corpora with it: 95 % or 5 %."""
    if share >= CONFIDENCE:
        return Verdict(Outcome.HOLDS)
    return Verdict(Outcome.FAILS if share <= 1 - CONFIDENCE else Outcome.CANNOT_TELL)


def known(holds: bool) -> Verdict:
    """The verdict on an exact fact, such as a count of the text."""
    return Verdict(Outcome.HOLDS if holds else Outcome.FAILS)


def beyond_chance(verdict: Verdict, p: float) -> Verdict:
    """The verdict on an effect that must also exceed chance: it holds only if p ≤ SIGNIFICANT."""
    return Verdict(Outcome.CANNOT_TELL) if verdict.holds and p > SIGNIFICANT else verdict


def opposite(verdict: Verdict) -> Verdict:
    """The verdict on the negation."""
    other = {Outcome.HOLDS: Outcome.FAILS, Outcome.FAILS: Outcome.HOLDS}.get(verdict.outcome)
    return verdict if other is None else replace(verdict, outcome=other)


def all_of(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict that all claims hold; one that does not is enough against it."""
    every = list(verdicts)
    for outcome in (Outcome.FAILS, Outcome.NOT_ASKED, Outcome.CANNOT_TELL):
        if some := [one for one in every if one.outcome is outcome]:
            return max(some, key=lambda one: (math.isfinite(one.smallest), one.smallest))
    return Verdict(Outcome.HOLDS)


def any_of(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on whether any of several claims holds."""
    return opposite(all_of(map(opposite, verdicts)))


def not_asked(needs: str) -> Verdict:
    """Not asked; `need` is what would have to be measured."""
    return Verdict(Outcome.NOT_ASKED, needs=needs)


def counts_of(verdicts: Iterable[Verdict]) -> dict[Outcome, int]:
    """Number of claims by outcome, in order."""
    counts = Counter(one.outcome for one in verdicts)
    return {outcome: counts[outcome] for outcome in Outcome}
