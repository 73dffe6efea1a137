"""Claims of papers: what is claimed, how it is read off runs, and the verdict on it.

A claim is held against a bound ("above one half") or against the published value:

bound      holds, does not hold, unclear (the bound lies within the interval), cannot be asked
published  reproduced, direction holds, differs, no direction stated, not run, failed
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from headscope.core.results import json_number
from headscope.core.wording import fixed
from headscope.papers.own_models import OwnModel
from headscope.papers.quantities import Measure, Measured, PaperRuns, Unmeasured

# How a published value is known.
MARKS = {
    "text": "in the paper’s text or tables",
    "code": "in what the authors released with their code",
    "read": "read off a figure, or the image of a table",
}
QUOTED = "quoted"  # words that no number is compared with
# Verdicts on a claim that has a bound.
HOLDS, FAILS, UNCLEAR, UNASKED = "holds", "does not hold", "unclear", "cannot be asked"
TESTS = {"above": ">", "below": "<", "near": "within ±"}
SIGNIFICANT = 0.05  # largest p of a claim that is also tested against chance
# Verdicts on a claim that is compared with what was published.
REPRODUCED, DIRECTION, DIFFERS = "reproduced", "direction holds", "differs"
NO_DIRECTION, NOT_RUN, FAILED = "no direction stated", "not run", "failed"
STATUSES = {  # in their order, with their signs
    REPRODUCED: "●", DIRECTION: "▲", DIFFERS: "✕", NO_DIRECTION: "·", NOT_RUN: "–", FAILED: "!",
}  # fmt: skip

COUNT_DIGITS = 5  # whole numbers of so many digits are exact counts
_NUMBER = r"−?\d+(?:,\d{3})*(?:\.\d+)?"
_BOUND = re.compile(rf"([<>≤≥])\s*({_NUMBER})")
_RANGE = re.compile(rf"({_NUMBER})–({_NUMBER})")


# --- what is claimed ------------------------------------------------------------------------


@dataclass(frozen=True)
class Published:
    """A value as it was printed: `94.3`, `−0.34`, `32–61`, `> 50`.

    text       in the unit of the claim; a number stands for all that round to it
    mark       one of MARKS, or QUOTED for words that are only shown
    tolerance  how far a reading off a figure may be wrong, in the same unit
    where      where it stands, if not where the claim is from
    """

    text: str
    mark: str = "text"
    tolerance: float = 0.0
    where: str = ""

    def __post_init__(self) -> None:
        if self.mark == QUOTED:
            return
        if self.mark not in MARKS:
            raise ValueError(f"mark {self.mark!r}; wanted one of {', '.join(MARKS)}")
        _ = self.limits

    @property
    def limits(self) -> tuple[float, float]:
        """The smallest and the largest value that the text stands for."""
        if bound := _BOUND.fullmatch(self.text):
            value = _number(bound[2])
            ends = (value, math.inf) if bound[1] in ">≥" else (-math.inf, value)
            return ends[0] - self.tolerance, ends[1] + self.tolerance
        both = _RANGE.fullmatch(self.text)
        first, last = (both[1], both[2]) if both else (self.text, self.text)
        slack = self.tolerance + _rounding(first)
        return _number(first) - slack, _number(last) + slack

    @property
    def value(self) -> float:
        """The number itself; NaN for a range, a bound or words."""
        plain = re.fullmatch(_NUMBER, self.text)
        return _number(self.text) if plain else math.nan


def _number(text: str) -> float:
    return float(text.replace("−", "-").replace(",", ""))


def _rounding(text: str) -> float:
    """Half a unit of the last digit; 0 for counts."""
    _, point, decimals = text.partition(".")
    if not point and len(text.replace(",", "")) >= COUNT_DIGITS:
        return 0.0
    return 0.5 * 10.0 ** -len(decimals)


@dataclass(frozen=True, slots=True)
class Bound:
    """Where the number of a claim must lie.

    test   a key of TESTS: on which side of the value; near: |number| below it
    value  in the unit of the claim, shares as such
    by     who set it
    """

    test: str
    value: float
    by: str


@dataclass(frozen=True)
class PaperClaim:
    """One claim of a paper.

    key        unique in its list of claims
    place      who claimed it, or where it stands in the paper: "Table 1", "§3.2"
    text       what is claimed
    published  values; none where the claim has no number
    unit       "%" or "share", "points" (a difference of shares), "heads", "nats", "1" or ""
    direction  in words, what `Measured.holds` asks; "" where the claim states none
    data       the key of the data it is about; see `PaperRuns.others`
    number     in words, what the number is
    bound      where the number must lie, of a claim that is held against a bound
    headline   how a sentence goes on after "In 4 of 5 models"; "" for none
    model      which of the paper's models it is about, where it has several
    """

    key: str
    place: str
    text: str
    measure: Measure
    published: tuple[Published, ...] = ()
    unit: str = ""
    direction: str = ""
    data: str = ""
    number: str = ""
    bound: Bound | None = None
    headline: str = ""
    model: str = ""

    @property
    def published_text(self) -> str:
        """All published values: `94.3`, `82.5 / 94.1`; "" where there is none."""
        return " / ".join(value.text for value in self.published)


@dataclass(frozen=True)
class PaperFigure:
    """A figure of a run that stands beside claims.

    run          name of the run
    figure       name of the figure
    counterpart  the task that it is about, or what it is in the paper: "Figure 2"
    """

    run: str
    figure: str
    counterpart: str = ""


@dataclass(frozen=True)
class ClaimGroup:
    """Claims that belong together: a section of a paper, or of the zoo's table."""

    id: str
    title: str
    text: str
    claims: tuple[PaperClaim, ...]
    figures: tuple[PaperFigure, ...] = ()


@dataclass(frozen=True)
class Paper:
    """A paper with everything that it published, in its order.

    source  its citation in terms.SOURCES
    model   the model that is taken by itself
    own     the models that the paper looked at
    doubt   what is not known about it
    decoder  whether it asks for a decoder with its language-model head
    """

    name: str
    title: str
    source: str
    model: str
    own: tuple[OwnModel, ...]
    groups: tuple[ClaimGroup, ...]
    doubt: str = ""
    decoder: bool = False

    @property
    def claims(self) -> list[PaperClaim]:
        """All claims in order."""
        return [claim for group in self.groups for claim in group.claims]

    @property
    def runs(self) -> list[str]:
        """Names of all runs that claims or figures ask for, in order."""
        asked = [name for claim in self.claims for name in claim.measure.runs]
        asked += [figure.run for group in self.groups for figure in group.figures]
        return list(dict.fromkeys(asked))


@dataclass(frozen=True)
class ClaimOutcome:
    """A claim with our number and the verdict.

    verdict   see the module
    measured  None where there is no number
    reason    then why
    agrees    the published values that our number agrees with
    group     id of the claim's group
    untrained  the numbers of networks without training of which the same is true, by name; None
              where the runs have no control
    """

    claim: PaperClaim
    verdict: str
    measured: Measured | None = None
    reason: str = ""
    agrees: tuple[Published, ...] = ()
    group: str = ""
    untrained: Mapping[str, Measured] | None = None

    @property
    def untrained_value(self) -> float:
        """The number of the first such network; NaN without any."""
        return next((one.value for one in (self.untrained or {}).values()), math.nan)


def against_bound(claim: PaperClaim, runs: PaperRuns, group: str = "") -> ClaimOutcome:
    """Holds a claim of a group against its bound."""
    try:
        measured = claim.measure.read(runs)
    except Unmeasured as error:
        return ClaimOutcome(claim, UNASKED, reason=error.brief, group=group)
    if not math.isfinite(measured.value):
        return ClaimOutcome(claim, UNASKED, reason="nothing to measure", group=group)
    verdict = bound_verdict(claim, measured)

    def same(other: Measured) -> bool:
        return math.isfinite(other.value) and bound_verdict(claim, other) == HOLDS

    also = _also_untrained(claim, runs, same) if verdict == HOLDS else None
    return ClaimOutcome(claim, verdict, measured, group=group, untrained=also)


def untrained_record(outcome: ClaimOutcome, *, scale: float = 1.0) -> dict[str, Any] | None:
    """The number of each network without training of which the same is true; None without any."""
    if outcome.untrained is None:
        return None
    return {name: json_number(scale * one.value) for name, one in outcome.untrained.items()}


def untrained_columns(record: Mapping[str, Any] | None) -> dict[str, Any]:
    """The same in two columns: the networks, "none" or "", and the number of the first."""
    if record is None:
        return {"untrained": "", "untrained_value": None}
    return {
        "untrained": ", ".join(record) or "none",
        "untrained_value": next(iter(record.values()), None),
    }


def _also_untrained(
    claim: PaperClaim, runs: PaperRuns, same: Callable[[Measured], bool]
) -> dict[str, Measured] | None:
    """What networks without training have, where the same is true of it; None without any."""
    found: dict[str, Measured] = {}
    asked = False
    for name, network in runs.untrained.items():
        try:
            measured = claim.measure.read(network)
        except Exception:  # what their sample cannot tell takes nothing away
            continue
        asked = True
        if same(measured):
            found[name] = measured
    return found if asked else None


def bound_verdict(claim: PaperClaim, measured: Measured) -> str:
    """On which side of the bound the interval lies; the value where there is no interval.

    A value on the bound is not beyond it. A number with a p holds only if p ≤ SIGNIFICANT.
    """
    if claim.bound is None:
        raise ValueError(f"the claim {claim.key} has no bound")
    test, bound = claim.bound.test, claim.bound.value
    low, high = measured.ends
    if test == "above":
        holds, fails = low > bound, high <= bound
    elif test == "below":
        holds, fails = high < bound, low >= bound
    else:
        holds, fails = -bound < low and high < bound, low >= bound or high <= -bound
    if holds and measured.p > SIGNIFICANT:
        return UNCLEAR
    return HOLDS if holds else FAILS if fails else UNCLEAR


def against_published(claim: PaperClaim, runs: PaperRuns, group: str = "") -> ClaimOutcome:
    """Holds a claim against its published values; a claim without a number says why.

    With the paper's own model and data of its kind it is reproduced where a published value lies
    within our 95 % interval, widened by how far the reading of a figure may be wrong; else its
    direction holds, or it differs. With another model or other data only the direction counts.
    """
    if claim.model and runs.model and claim.model != runs.model:
        reason = f"needs another model of the paper’s: --model {claim.model}"
        return ClaimOutcome(claim, NOT_RUN, None, reason, (), group)
    try:
        for name in claim.measure.runs:
            runs.run(name)
        measured = claim.measure.read(runs)
    except Unmeasured as error:
        reason = str(error)
        verdict = FAILED if reason.startswith(failure("")) else NOT_RUN
        return ClaimOutcome(claim, verdict, None, reason.removeprefix(failure("")), (), group)
    except Exception as error:  # a fault in one claim leaves the others
        reason = f"{type(error).__name__}: {str(error)[:200]}"
        return ClaimOutcome(claim, FAILED, None, reason, (), group)
    if math.isnan(measured.value) and (measured.holds is None or not measured.detail):
        reason = measured.detail or "the number does not exist here"
        return ClaimOutcome(claim, NOT_RUN, None, reason, (), group)
    other = measured.elsewhere or runs.others.get(claim.data, "")
    agreeing = tuple(p for p in claim.published if agrees(p, measured, claim.unit))
    verdict = _published_verdict(claim, measured, runs.own and not other, agreeing)
    comparable = runs.own and not other

    def same(untrained: Measured) -> bool:
        if measured.holds is not None:
            return untrained.holds is True
        return comparable and any(agrees(one, untrained, claim.unit) for one in agreeing)

    also = _also_untrained(claim, runs, same) if verdict in (REPRODUCED, DIRECTION) else None
    measured = replace(measured, elsewhere=other)
    return ClaimOutcome(claim, verdict, measured, "", agreeing, group, also)


def failure(reason: str) -> str:
    """Why a run is missing, if it failed rather than lacked data."""
    return f"{FAILED}: {reason}"


def _published_verdict(
    claim: PaperClaim, measured: Measured, comparable: bool, agreeing: tuple[Published, ...]
) -> str:
    if comparable and agreeing:
        return REPRODUCED
    if measured.holds is not None:
        return DIRECTION if measured.holds else DIFFERS
    return DIFFERS if comparable and claim.published else NO_DIRECTION


def agrees(published: Published, measured: Measured, unit: str) -> bool:
    """Whether the interval, or the value where there is none, meets what was printed.

    A bound ("> 50") is met by the value itself: an interval reaching over it would prove nothing.
    """
    if math.isnan(measured.value):
        return False
    scale = scale_of(unit)
    first, last = published.limits
    if math.isinf(first) or math.isinf(last):
        return first <= scale * measured.value <= last
    low, high = measured.ends
    grain = 1e-9 * max(1.0, abs(first), abs(last))  # of binary fractions, at the boundary
    return scale * low <= last + grain and scale * high >= first - grain


def signed(value: float, digits: int = 1) -> str:
    """A difference with its sign; none before 0."""
    text = fixed(value, digits)
    return f"+{text}" if value > 0 and float(text) else text


def scale_of(unit: str) -> float:
    """What a share is multiplied by to be in the unit of its claim."""
    return 100.0 if unit in ("%", "points") else 1.0


def differences(outcome: ClaimOutcome) -> list[float]:
    """Ours less each published value, in the unit of the claim; NaN for ranges and bounds."""
    if outcome.measured is None:
        return []
    ours = scale_of(outcome.claim.unit) * outcome.measured.value
    return [ours - published.value for published in outcome.claim.published]
