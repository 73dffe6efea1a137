"""When does a line hold, when does it not, when can it not be told, and when is it not asked?"""

from __future__ import annotations

import math
from types import MappingProxyType

import pytest

from headscope.claims.verdict import Outcome, Verdict, above, known
from headscope.papers.claim_engine import (
    PaperClaim,
    agreeing,
    claim_record,
    differences,
    judge,
    tally,
)
from headscope.papers.page import also_text, ours_text
from headscope.papers.published import Published
from headscope.papers.quantities import NETWORK, RULE, Measure, Measured, PaperRuns, Unmeasured

OWN = PaperRuns({}, own=True, absent={})
OTHER = PaperRuns({}, own=False, absent={})
HOLDS, FAILS, CANNOT_TELL, NOT_ASKED = Outcome
YES, NO = known(True), known(False)


def line(
    answer: Measured | Exception, *published: Published, unit: str = "", parts=(), about=NETWORK
) -> PaperClaim:
    def measure(results: PaperRuns) -> Measured:
        if isinstance(answer, Exception):
            raise answer
        return answer

    which = Measure(tuple(parts), measure, about)
    return PaperClaim("key", "Table 1", "a claim", which, published, unit)


def status(answer, *published, results=OWN, **more) -> Outcome:
    return judge(line(answer, *published, **more), results).outcome


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.93, 0.95, HOLDS),
        (0.8926, 0.9934, HOLDS),  # five points about all that rounds to 94.3
        (0.80, 0.99, CANNOT_TELL),
        (0.8924, 0.95, CANNOT_TELL),
        (0.70, 0.8924, FAILS),
        (0.996, 0.999, FAILS),
    ],
)
def test_a_number_is_the_published_one_where_the_whole_interval_lies_within_the_margin(
    low, high, expected
):
    answer = Measured((low + high) / 2, low, high)
    assert status(answer, Published("94.3"), unit="%") is expected


def test_more_documents_never_turn_a_number_that_held_into_one_that_differs():
    """An interval that holds the truth holds it at any size; so no two verdicts contradict."""
    for truth in (0.85, 0.89, 0.9, 0.92, 0.943, 0.98):
        found = {
            status(Measured(truth, truth - half, truth + half), Published("94.3"), unit="%")
            for half in (0.3, 0.1, 0.05, 0.02, 0.001)
        }
        assert not {HOLDS, FAILS} <= found


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("2", 1.95, HOLDS),  # which rounds to it
        ("2", 2.51, FAILS),
        ("992", 992.0, HOLDS),
        ("992", 993.0, FAILS),
        ("121,134", 121_134.0, HOLDS),
        ("121,134", 121_134.4, FAILS),
        ("32–61", 40.0, HOLDS),
        ("32–61", 62.0, FAILS),
        ("> 50", 50.1, HOLDS),
        ("> 50", 49.9, FAILS),
        ("≤ 10", 10.0, HOLDS),
        ("≤ 10", 10.1, FAILS),
        ("−0.34", -0.344, HOLDS),
    ],
)
def test_exact_numbers_are_held_against_all_that_rounds_to_the_printed_one(text, value, expected):
    assert status(Measured(value, exact=True), Published(text)) is expected


def test_an_exact_number_that_is_not_whole_is_not_written_as_if_it_were():
    found = judge(line(Measured(1.95, exact=True), Published("2")), OWN)
    assert ours_text(found) == ("1.95", "")
    whole = judge(line(Measured(2.0, 2.0, 2.0), Published("4")), OWN)
    assert ours_text(whole) == ("2", "")  # no sample moves it: an interval would say nothing


def test_a_small_change_is_not_written_as_none():
    found = judge(line(Measured(0.00021, 0.00011, 0.00031, verdict=YES)), OWN)
    assert ours_text(found) == ("0.00021", "[0.00011, 0.00031]")


def test_a_reading_off_a_figure_may_be_wrong_by_its_tolerance_too():
    read = Published("0.27", "read", 0.03)
    assert status(Measured(0.35, 0.345, 0.354), read) is HOLDS
    assert status(Measured(0.37, 0.36, 0.38), read) is FAILS


def test_a_number_without_an_interval_cannot_be_told():
    assert status(Measured(0.943), Published("94.3"), unit="%") is CANNOT_TELL


def test_an_interval_that_reaches_over_a_bound_tells_nothing_of_it():
    assert status(Measured(49.0, 40.0, 60.0), Published("> 50")) is CANNOT_TELL


def test_a_direction_decides_even_where_the_published_number_lies_within():
    unsure = above(0.02, -0.01, 0.05)
    found = judge(line(Measured(0.02, -0.01, 0.05, verdict=unsure), Published("0.0")), OWN)
    assert found.outcome is CANNOT_TELL
    assert found.verdict.smallest == pytest.approx(0.03)


def test_of_another_model_only_a_direction_counts_and_a_number_alone_is_not_asked():
    exact = Published("0.5")
    assert status(Measured(0.5, verdict=YES), exact, results=OTHER) is HOLDS
    assert status(Measured(0.5, verdict=NO), exact, results=OTHER) is FAILS
    alone = judge(line(Measured(0.5, 0.49, 0.51), exact), OTHER)
    assert alone.outcome is NOT_ASKED
    assert alone.measured.value == 0.5
    assert "a model of the paper’s" in alone.verdict.needs


def test_of_other_data_nothing_is_reproduced_either():
    there = Measured(0.5, 0.49, 0.51, verdict=YES, elsewhere="Universal Dependencies")
    found = judge(line(there, Published("0.5")), OWN)
    assert (found.outcome, found.reproduced) == (HOLDS, ())
    alone = Measured(0.5, 0.49, 0.51, elsewhere="Universal Dependencies")
    assert "Universal Dependencies" in judge(line(alone, Published("0.5")), OWN).verdict.needs


def test_of_two_published_values_it_is_told_which_agrees():
    paper, code = Published("82.5"), Published("94.1", "code")
    found = judge(line(Measured(0.94, 0.93, 0.95), paper, code, unit="%"), OWN)
    assert (found.outcome, found.reproduced) == (HOLDS, (code,))
    assert differences(found) == pytest.approx([11.5, -0.1])


def test_what_is_missing_is_not_asked_and_says_what_it_needs():
    found = judge(line(Unmeasured("needs coref: …")), OWN)
    assert found.verdict == Verdict(NOT_ASKED, needs="needs coref: …")
    absent = PaperRuns({}, own=True, absent={"treebank": "needs treebank: …"})
    assert judge(line(Measured(1.0), parts=["treebank"]), absent).verdict.needs == (
        "needs treebank: …"
    )
    assert status(Measured(math.nan), Published("1")) is NOT_ASKED
    assert status(Measured(math.nan, verdict=NO), Published("1")) is NOT_ASKED


def test_a_part_that_failed_is_told_apart_from_what_is_missing():
    broken = PaperRuns({}, own=True, absent={"coref": "failed: line 3 is malformed"})
    found = judge(line(Measured(1.0), parts=["coref"]), broken)
    assert (found.failed, found.verdict.needs) == (True, "line 3 is malformed")
    assert not judge(line(Unmeasured("needs coref")), OWN).failed


@pytest.mark.parametrize("text", ["about 3", "", "50 %"])
def test_what_is_no_value_cannot_be_published(text):
    with pytest.raises(ValueError, match=r".*"):
        Published(text)


def test_a_count_of_what_a_limit_leaves_is_no_count_of_the_whole():
    counted = Measured(312.0, exact=True)
    limited = PaperRuns({}, own=True, limit=20)
    judged = judge(line(counted, Published("1696"), about=RULE), limited)
    assert judged.outcome is CANNOT_TELL
    assert judged.measured.detail == "counted in 20 documents at most (--limit)"
    assert status(counted, Published("1696"), about=RULE) is FAILS


def test_an_interval_shorter_than_the_published_digits_shows_its_width():
    judged = judge(line(Measured(0.0412, 0.0391, 0.0433), Published("0.27")), OWN)
    assert ours_text(judged) == ("0.041", "[0.039, 0.043]")


class WithControl(PaperRuns):
    """Runs with one network without training."""

    untrained = MappingProxyType({"shuffled": PaperRuns({})})


def judged_beside(
    own: Measured, other: Measured | Exception, *published, ours=True, unit="", about=NETWORK
):
    """A line of which a network without training gives another answer."""
    results = WithControl({}, own=ours)

    def read(asked: PaperRuns) -> Measured:
        if asked is results:
            return own
        if isinstance(other, Exception):
            raise other
        return other

    claim = PaperClaim("key", "Table 1", "a claim", Measure((), read, about), published, unit)
    return judge(claim, results)


MINE = Measured(0.94, verdict=YES)


@pytest.mark.parametrize(
    ("other", "beyond", "words"),
    [
        (Measured(0.2, verdict=YES), FAILS, "also in an untrained network: 0.20"),
        (Measured(0.2, verdict=NO), HOLDS, ""),
        (
            Measured(0.2, verdict=Verdict(CANNOT_TELL)),
            CANNOT_TELL,
            "perhaps also in an untrained network",
        ),
        (Unmeasured("too few"), NOT_ASKED, ""),
        (KeyError("counts"), NOT_ASKED, ""),
    ],
)
def test_what_holds_is_held_against_networks_without_training(other, beyond, words):
    one = judged_beside(MINE, other, ours=False)
    assert one.outcome is HOLDS
    assert one.beyond.outcome is beyond
    assert also_text(one) == words


def test_a_number_alone_is_also_that_of_a_network_without_training_if_it_is_the_published_one():
    near, far = Measured(0.94, 0.93, 0.95), Measured(0.5, 0.4, 0.6)
    both = judged_beside(near, near, Published("94.0"), unit="%")
    assert (both.outcome, both.beyond.outcome) == (HOLDS, FAILS)
    assert claim_record(both)["untrained"] == {"shuffled": pytest.approx(94.0)}
    apart = judged_beside(near, far, Published("94.0"), unit="%")
    assert (apart.beyond.outcome, apart.untrained) == (HOLDS, {})


def test_a_line_about_a_rule_is_held_against_no_network():
    rule = judged_beside(MINE, MINE, about=RULE)
    assert (rule.outcome, rule.beyond.outcome) == (HOLDS, NOT_ASKED)
    assert also_text(rule) == ""


def test_a_line_that_does_not_hold_is_not_held_against_networks_without_training():
    fails = judged_beside(Measured(0.5, verdict=NO), MINE)
    assert (fails.outcome, fails.beyond.outcome) == (FAILS, NOT_ASKED)
    assert claim_record(fails)["untrained"] is None


def test_the_summary_splits_what_holds_by_whether_an_untrained_network_does_it_too():
    lines = [
        judged_beside(MINE, MINE),
        judged_beside(MINE, Measured(0.1, verdict=NO)),
        judged_beside(MINE, MINE, about=RULE),
        judged_beside(Measured(0.1, verdict=NO), MINE),
        judge(line(Unmeasured("needs coref")), OWN),
    ]
    assert {words: count for words, count in tally(lines).items() if count} == {
        "hold beyond an untrained network": 1,
        "hold, also in an untrained network": 1,
        "hold, compared with no untrained network": 1,
        "do not hold": 1,
        "not asked": 1,
    }


@pytest.mark.parametrize(
    ("count", "words", "says"),
    [
        (1, "do not hold", "1 does not hold"),
        (0, "do not hold", "0 do not hold"),
        (1, "hold, also in an untrained network", "1 holds, also in an untrained network"),
        (2, "hold", "2 hold"),
        (1, "not asked", "1 not asked"),
    ],
)
def test_the_words_of_a_count_agree_with_it(count, words, says):
    assert agreeing(count, words) == says
