"""Claims of papers: what is claimed, how it is read off runs, and the verdict on it.

A claim has a bound ("above one half"), a direction in words whose verdict its measure gives, or a
published value alone. A published value is reproduced where our whole interval lies within what was
printed, widened by `margin`, and differs where none of it does: one rule for few documents and for
many, so that more of them never turn what held into its contrary, but by chance.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from headscope.claims.bibliography import Source
from headscope.claims.verdict import (
    Outcome,
    Verdict,
    above,
    all_of,
    any_of,
    below,
    beyond_chance,
    not_asked,
    opposite,
    within,
)
from headscope.core.results import json_number
from headscope.core.wording import fixed
from headscope.papers.checkpoints import check_checkpoints, of_a_part
from headscope.papers.own_models import OwnModel
from headscope.papers.plates import Plate
from headscope.papers.published import Published, scale_of
from headscope.papers.quantities import NETWORK, RULE, Measure, Measured, PaperRuns, Unmeasured
from headscope.run.store import Run

Test = Callable[[float, float, float, float], Verdict]
TESTS: dict[str, tuple[str, Test]] = {
    "above": (">", above),
    "below": ("<", below),
    "near": ("within ±", within),
}
FAILED = "failed: "  # how the reason begins why a run is missing that went wrong
BEYOND = {  # how a claim holds, by whether it does beyond networks without training
    Outcome.HOLDS: "hold beyond an untrained network",
    Outcome.FAILS: "hold, also in an untrained network",
    Outcome.CANNOT_TELL: "hold, perhaps also in an untrained network",
    Outcome.NOT_ASKED: "hold, compared with no untrained network",
}
UNCOMPARED = not_asked("a network without training")
TALLY = dict.fromkeys(BEYOND.values(), Outcome.HOLDS) | {  # words of a summary
    "do not hold": Outcome.FAILS,
    "cannot tell": Outcome.CANNOT_TELL,
    "not asked": Outcome.NOT_ASKED,
}


def agreeing(count: int, words: str) -> str:
    """`1 does not hold`, `2 do not hold`."""
    single = {"do not hold": "does not hold", "hold": "holds"}
    verb = next((verb for verb in single if words.startswith(verb)), "")
    return f"{count} {single[verb] + words.removeprefix(verb) if verb and count == 1 else words}"


# --- what is claimed ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bound:
    """The range in which the number of a claim must lie.

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
    data       the key of the data it is about, "" for text; see `PaperRuns.others`
    number     in words, what the number is
    bound      where the number must lie, of a claim with a bound
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
    """A paper with all its published claims, in order.

    source  where it stands
    model   the model that is taken by itself
    own     the models that the paper looked at
    doubt   what is not known about it
    decoder  whether it asks for a decoder with its language-model head
    makers  of runs that no other paper asks for: (workspace, name) -> the run
    plates  its figures and tables, in its order
    """

    name: str
    title: str
    source: Source
    model: str
    own: tuple[OwnModel, ...]
    groups: tuple[ClaimGroup, ...]
    doubt: str = ""
    decoder: bool = False
    makers: Mapping[str, Callable[[Any, str], Run]] = field(default_factory=dict)
    plates: tuple[Plate, ...] = ()

    @property
    def claims(self) -> list[PaperClaim]:
        """All claims in order."""
        return [claim for group in self.groups for claim in group.claims]

    @property
    def prints_numbers(self) -> bool:
        """Whether it has a published number for any line."""
        return any(claim.published for claim in self.claims)

    @property
    def runs(self) -> list[str]:
        """Names of all runs that claims, figures or plates need, in order."""
        names = [name for claim in self.claims for name in claim.measure.runs]
        names += [figure.run for group in self.groups for figure in group.figures]
        names += [panel.run for plate in self.plates for panel in plate.panels]
        return list(dict.fromkeys(names))


@dataclass(frozen=True)
class ClaimOutcome:
    """A claim with our number and the verdict.

    measured   None where there is no number
    reproduced  the published values that our number is, within their margin
    group      id of the claim's group
    beyond     of a claim that holds, whether it holds beyond networks without training
    untrained  the numbers of those of which it holds too, by name
    failed     whether a fault kept it from being asked
    """

    claim: PaperClaim
    verdict: Verdict
    measured: Measured | None = None
    reproduced: tuple[Published, ...] = ()
    group: str = ""
    beyond: Verdict = UNCOMPARED
    untrained: Mapping[str, Measured] = field(default_factory=dict)
    failed: bool = False

    @property
    def outcome(self) -> Outcome:
        """What is found of the claim."""
        return self.verdict.outcome

    @property
    def untrained_value(self) -> float:
        """The number of the first network of which it holds too; NaN without any."""
        return next((one.value for one in self.untrained.values()), math.nan)


def judge(claim: PaperClaim, runs: PaperRuns, group: str = "") -> ClaimOutcome:
    """Hold a claim against runs; a claim that cannot be asked says what it needs."""
    try:
        measured = _measured(claim, runs)
    except Unmeasured as error:
        needs = " ".join((error.brief if claim.bound else str(error)).split())
        unasked = not_asked(needs.removeprefix(FAILED))
        return ClaimOutcome(claim, unasked, group=group, failed=needs.startswith(FAILED))
    measured = replace(measured, elsewhere=measured.elsewhere or runs.others.get(claim.data, ""))
    verdict = _verdict(claim, measured, own=runs.own)
    verdict, measured = of_a_part(verdict, measured, claim.measure, runs)
    alike = runs.own and not measured.elsewhere and claim.bound is None
    values = claim.published if alike else ()
    same = tuple(one for one in values if one.verdict(measured, claim.unit).holds)
    outcome = ClaimOutcome(claim, verdict, measured, same, group)
    return _held_against_untrained(outcome, runs) if verdict.holds else outcome


def failure(reason: str) -> str:
    """Why a run is missing, where it failed and did not merely lack data."""
    return FAILED + reason


def _measured(claim: PaperClaim, runs: PaperRuns) -> Measured:
    """The number of a claim; raises Unmeasured where there is nothing to judge."""
    if claim.model and runs.model and claim.model != runs.model:
        raise Unmeasured(f"needs another model of the paper’s: --model {claim.model}")
    for name in claim.measure.runs:
        runs.run(name)
    if claim.measure.about == NETWORK:
        check_checkpoints(runs, claim.measure.runs)
    measured = claim.measure.read(runs)
    if not measured.exists:
        raise Unmeasured(measured.detail or "the number does not exist here", "nothing to measure")
    return measured


def _verdict(claim: PaperClaim, measured: Measured, *, own: bool) -> Verdict:
    if claim.bound is not None:
        return bound_verdict(claim.bound, measured)
    if measured.verdict is not None:
        return measured.verdict
    if not claim.published:
        return not_asked("neither a direction nor a number was published")
    if not own or measured.elsewhere:
        needs = (
            "a model of the paper’s" if not own else f"the paper’s data, not {measured.elsewhere}"
        )
        return not_asked(f"needs {needs}: a number alone was published")
    return any_of(published.verdict(measured, claim.unit) for published in claim.published)


def bound_verdict(bound: Bound, measured: Measured) -> Verdict:
    """On which side of the bound the interval lies; a number with a p is also tested."""
    verdict = TESTS[bound.test][1](measured.value, *measured.ends, bound.value)
    return beyond_chance(verdict, measured.p)


def _held_against_untrained(outcome: ClaimOutcome, runs: PaperRuns) -> ClaimOutcome:
    """With whether the claim holds of no network without training; one about a rule has none."""
    claim = outcome.claim
    verdicts, also = list[Verdict](), dict[str, Measured]()
    for name, network in runs.untrained.items() if claim.measure.about != RULE else ():
        try:
            measured = claim.measure.read(network)
        except Exception:  # what their sample cannot tell takes nothing away
            continue
        if measured.exists:
            verdicts.append(_verdict(claim, measured, own=runs.own))
            also |= {name: measured} if verdicts[-1].holds else {}
    if not verdicts:
        return outcome
    return replace(outcome, beyond=all_of(map(opposite, verdicts)), untrained=also)


def tally(outcomes: Iterable[ClaimOutcome]) -> dict[str, int]:
    """How many claims have each outcome, in the words of TALLY."""
    counts = dict.fromkeys(TALLY, 0)
    other = {outcome: words for words, outcome in TALLY.items()}
    for one in outcomes:
        counts[BEYOND[one.beyond.outcome] if one.verdict.holds else other[one.outcome]] += 1
    return counts


def claim_record(outcome: ClaimOutcome) -> dict[str, Any]:
    """A claim as plain values, in its unit; missing values are None."""
    claim, measured = outcome.claim, outcome.measured or Measured()
    scale = scale_of(claim.unit)
    apart = differences(outcome) or [math.nan] * len(claim.published)
    return {
        "key": claim.key,
        "section": outcome.group,
        "place": claim.place,
        "claim": claim.text,
        "unit": claim.unit,
        "ours": json_number(scale * measured.value),
        "ci_low": json_number(scale * measured.low),
        "ci_high": json_number(scale * measured.high),
        "n": measured.n,
        "published": [
            {
                "text": p.text,
                "value": json_number(p.value),
                "mark": p.mark,
                "tolerance": p.tolerance,
                "where": p.where,
                "agrees": p in outcome.reproduced,
                "difference": json_number(difference),
            }
            for p, difference in zip(claim.published, apart, strict=True)
        ],
        "direction": claim.direction,
        "status": str(outcome.outcome),
        "reason": outcome.verdict.needs,
        "failed": outcome.failed,
        "smallest": json_number(scale * outcome.verdict.smallest),
        "shown": measured.detail,
        "other_data": measured.elsewhere,
        "beyond_untrained": str(outcome.beyond.outcome) if outcome.verdict.holds else "",
        "untrained": untrained_record(outcome, scale=scale),
    }


def untrained_record(outcome: ClaimOutcome, *, scale: float = 1.0) -> dict[str, Any] | None:
    """The number of each network without training of which the same is true; None if not asked."""
    if outcome.beyond.outcome is Outcome.NOT_ASKED:
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


def signed(value: float, digits: int = 1) -> str:
    """A difference with its sign; none before 0."""
    text = fixed(value, digits)
    return f"+{text}" if value > 0 and float(text) else text


def differences(outcome: ClaimOutcome) -> list[float]:
    """Ours less each published value, in the unit of the claim; NaN for ranges and bounds."""
    if outcome.measured is None:
        return []
    ours = scale_of(outcome.claim.unit) * outcome.measured.value
    return [ours - published.value for published in outcome.claim.published]
