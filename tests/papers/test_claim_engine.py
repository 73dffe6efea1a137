"""When is a line reproduced, when does its direction hold, and when is it not run?"""

from __future__ import annotations

import math
from types import MappingProxyType

import pytest

from headscope.papers.claim_engine import PaperClaim, Published, against_published, differences
from headscope.papers.page import untrained_text
from headscope.papers.quantities import Measure, Measured, PaperRuns, Unmeasured
from headscope.papers.run_paper import claim_record

OWN = PaperRuns({}, own=True, absent={})
OTHER = PaperRuns({}, own=False, absent={})


def line(
    answer: Measured | Exception, *published: Published, unit: str = "", parts=()
) -> PaperClaim:
    def measure(results: PaperRuns) -> Measured:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return PaperClaim("key", "Table 1", "a claim", Measure(tuple(parts), measure), published, unit)


def status(answer, *published, results=OWN, **more) -> str:
    return against_published(line(answer, *published, **more), results).verdict


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.93, 0.95, "reproduced"),
        (0.9435, 0.96, "reproduced"),  # 94.3 stands for all that rounds to it
        (0.94351, 0.96, "differs"),
        (0.90, 0.9425, "reproduced"),
        (0.90, 0.94249, "differs"),
    ],
)
def test_a_printed_number_stands_for_all_that_round_to_it(low, high, expected):
    answer = Measured((low + high) / 2, low, high)
    assert status(answer, Published("94.3"), unit="%") == expected


@pytest.mark.parametrize(("value", "expected"), [(0.30, "reproduced"), (0.3051, "differs")])
def test_a_reading_off_a_figure_may_be_wrong_by_its_tolerance(value, expected):
    assert status(Measured(value), Published("0.27", "read", 0.03)) == expected


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("> 50", 50.1, "reproduced"),
        ("> 50", 49.9, "differs"),
        ("≤ 10", 10.0, "reproduced"),
        ("≤ 10", 10.1, "differs"),
        ("32–61", 40.0, "reproduced"),
        ("32–61", 62.0, "differs"),
        ("121,134", 121_134.0, "reproduced"),
        ("121,134", 121_134.4, "differs"),
        ("−0.34", -0.344, "reproduced"),
    ],
)
def test_bounds_ranges_and_counts_are_read_as_they_are_printed(text, value, expected):
    assert status(Measured(value), Published(text)) == expected


def test_an_interval_that_reaches_over_a_bound_does_not_prove_it():
    assert status(Measured(49.0, 40.0, 60.0), Published("> 50")) == "differs"


def test_of_another_model_nothing_is_reproduced_and_only_the_direction_counts():
    exact = Published("0.5")
    assert status(Measured(0.5, holds=True), exact, results=OTHER) == "direction holds"
    assert status(Measured(0.5, holds=False), exact, results=OTHER) == "differs"
    assert status(Measured(0.5), exact, results=OTHER) == "no direction stated"


def test_of_other_data_nothing_is_reproduced_either():
    there = Measured(0.5, holds=True, elsewhere="Universal Dependencies")
    assert status(there, Published("0.5")) == "direction holds"


def test_with_the_papers_model_a_number_outside_is_no_reproduction_but_its_direction_may_hold():
    assert status(Measured(0.9, 0.8, 1.0, holds=True), Published("0.5")) == "direction holds"
    assert status(Measured(0.9, 0.8, 1.0), Published("0.5")) == "differs"
    assert status(Measured(0.9)) == "no direction stated"


def test_of_two_published_values_it_is_told_which_agrees():
    paper, code = Published("82.5"), Published("94.1", "code")
    judged = against_published(line(Measured(0.94, 0.93, 0.95), paper, code, unit="%"), OWN)
    assert judged.verdict == "reproduced"
    assert judged.agrees == (code,)
    assert differences(judged) == pytest.approx([11.5, -0.1])


def test_what_is_missing_is_not_run_and_says_what_it_needs():
    judged = against_published(line(Unmeasured("needs coref: …")), OWN)
    assert (judged.verdict, judged.reason) == ("not run", "needs coref: …")
    absent = PaperRuns({}, own=True, absent={"treebank": "needs treebank: …"})
    assert (
        against_published(line(Measured(1.0), parts=["treebank"]), absent).reason
        == "needs treebank: …"
    )
    assert status(Measured(math.nan), Published("1")) == "not run"
    assert status(Measured(math.nan, holds=False), Published("1")) == "not run"


def test_a_part_that_failed_and_a_line_that_fails_are_told_apart_from_what_is_missing():
    broken = PaperRuns({}, own=True, absent={"coref": "failed: line 3 is malformed"})
    judged = against_published(line(Measured(1.0), parts=["coref"]), broken)
    assert (judged.verdict, judged.reason) == ("failed", "line 3 is malformed")
    assert against_published(line(ZeroDivisionError("x")), OWN).reason == "ZeroDivisionError: x"


@pytest.mark.parametrize("text", ["about 3", "", "50 %"])
def test_what_is_no_value_cannot_be_published(text):
    with pytest.raises(ValueError, match=r".*"):
        Published(text)


class WithControl(PaperRuns):
    """Runs with one network without training."""

    untrained = MappingProxyType({"shuffled": PaperRuns({})})


def judged_beside(own: Measured, other: Measured | Exception, *published, ours=True, unit=""):
    """A line of which a network without training gives another answer."""
    results = WithControl({}, own=ours)

    def read(asked: PaperRuns) -> Measured:
        if asked is results:
            return own
        if isinstance(other, Exception):
            raise other
        return other

    claim = PaperClaim("key", "Table 1", "a claim", Measure((), read), published, unit)
    return against_published(claim, results)


@pytest.mark.parametrize(
    ("other", "names"),
    [
        (Measured(0.2, holds=True), ["shuffled"]),
        (Measured(0.2, holds=False), []),
        (Unmeasured("too few"), None),
        (KeyError("counts"), None),
    ],
)
def test_a_direction_that_a_network_without_training_has_too_says_so(other, names):
    one = judged_beside(Measured(0.94, holds=True), other, ours=False)
    assert one.verdict == "direction holds"
    assert one.untrained is names or list(one.untrained) == names
    assert untrained_text(one) == ("also in an untrained network: 0.20" if names else "")


def test_a_number_alone_is_reproduced_by_a_network_without_training_if_it_agrees_too():
    both = judged_beside(Measured(0.94), Measured(0.9402), Published("94.0"), unit="%")
    assert (both.verdict, list(both.untrained)) == ("reproduced", ["shuffled"])
    assert claim_record(both)["untrained"] == {"shuffled": pytest.approx(94.02)}
    apart = judged_beside(Measured(0.94), Measured(0.5), Published("94.0"), unit="%")
    assert apart.untrained == {}


def test_a_line_that_does_not_hold_is_not_held_against_networks_without_training():
    differs = judged_beside(Measured(0.5, holds=False), Measured(0.94, holds=True))
    assert (differs.verdict, differs.untrained) == ("differs", None)
    assert claim_record(differs)["untrained"] is None
