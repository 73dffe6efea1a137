"""Do verdicts say what intervals show, and no more?"""

import math

import numpy as np
import pytest
from scipy.stats import norm

from headscope.claims.verdict import (
    SIGNS,
    Outcome,
    Verdict,
    above,
    all_of,
    any_of,
    below,
    between,
    beyond_chance,
    differs,
    first_before,
    in_draws,
    known,
    largest_among,
    not_asked,
    opposite,
    some_above,
    within,
)
from headscope.core.intervals import Estimate

HOLDS, FAILS, CANNOT_TELL, NOT_ASKED = Outcome
NAN = math.nan


def parts(value, half) -> Estimate:
    value = np.asarray(value, float)
    return Estimate(value, value - half, value + half)


def test_every_outcome_has_one_sign_and_a_class():
    assert list(SIGNS) == list(Outcome)
    assert len(set(SIGNS.values())) == 4
    assert FAILS.kind == "does-not-hold"


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [(0.1, 0.3, HOLDS), (-0.3, 0.0, FAILS), (-0.1, 0.3, CANNOT_TELL), (NAN, NAN, CANNOT_TELL)],
)
def test_a_number_lies_above_a_bound_only_by_its_whole_interval(low, high, wanted):
    assert above(0.0, low, high, 0.0).outcome is wanted
    assert below(0.0, -high, -low, 0.0).outcome is wanted


def test_what_cannot_be_told_names_the_smallest_distance_that_could():
    assert above(0.1, -0.1, 0.4).smallest == pytest.approx(0.2)
    assert differs(-0.1, -0.4, 0.2).smallest == pytest.approx(0.3)
    assert within(0.0, -0.02, 0.01, 0.015).smallest == pytest.approx(0.02)


def test_nothing_is_called_nothing_without_an_equivalence_test():
    assert differs(0.0, -0.001, 0.001).outcome is CANNOT_TELL
    assert within(0.0, -0.001, 0.001, 0.01).outcome is HOLDS
    assert within(0.02, 0.015, 0.025, 0.01).outcome is FAILS
    assert between(0.5, 0.4, 0.7, 0.0, 0.6).outcome is CANNOT_TELL


def test_the_largest_of_many_numbers_that_are_none_lies_seldom_above():
    """Of 72 heads without any effect one lies above 0 in about 2.5 % of runs, not in 84 %."""
    rng = np.random.default_rng(0)
    half = norm.ppf(0.975)
    runs = [some_above(parts(rng.standard_normal(72), half)) for _ in range(1000)]
    assert 5 <= sum(one.holds for one in runs) <= 45
    assert not any(one.fails for one in runs)
    assert some_above(parts([-3.0, -9.0], 0.1)).fails
    assert some_above(parts([-3.0, 9.0], 0.1), sign=-1).holds
    assert some_above(Estimate(*np.array([[-3.0, -1], [-4, NAN], [-2, NAN]]))).outcome is (
        CANNOT_TELL
    )


def test_a_peak_lies_where_every_number_lies_that_may_be_the_largest():
    curve = parts([0.1, 0.5, 0.48, 0.2], 0.03)
    assert largest_among(curve, {1, 2}).holds
    assert largest_among(curve, {1}).outcome is CANNOT_TELL
    assert largest_among(curve, {0, 3}).fails
    assert largest_among(parts([0.1, 0.2], NAN), {1}).outcome is CANNOT_TELL
    early, late = parts([0.9, 0.1, 0.1], 0.1), parts([0.1, 0.1, 0.9], 0.1)
    assert first_before(early, late).holds
    assert first_before(late, early).fails
    assert first_before(curve, early).fails
    assert first_before(curve, parts([0.1, 0.2, 0.19, 0.1], 0.03)).outcome is CANNOT_TELL


def test_chance_must_be_beaten_and_takes_nothing_else_away():
    assert beyond_chance(known(True), 0.05).holds
    assert beyond_chance(known(True), 0.06).outcome is CANNOT_TELL
    assert beyond_chance(known(True), NAN).holds
    assert beyond_chance(known(False), 0.5).fails
    assert [in_draws(x).outcome for x in (0.96, 0.5, 0.04, NAN)] == [
        HOLDS,
        CANNOT_TELL,
        FAILS,
        CANNOT_TELL,
    ]


def test_claims_are_joined_as_logic_has_it():
    unsure, unasked = Verdict(CANNOT_TELL, smallest=0.2), not_asked("trees")
    assert all_of([known(True), unsure, known(False)]).fails
    assert all_of([known(True), unsure, Verdict(CANNOT_TELL)]) is unsure
    assert all_of([known(True), unasked, unsure]) is unasked
    assert any_of([known(False), unsure, known(True)]).holds
    assert any_of([known(False), unsure]).outcome is CANNOT_TELL
    assert opposite(unasked) is unasked


@pytest.mark.parametrize("truth", [-0.02, 0.0, 0.004, 0.05, 0.3])
def test_few_and_many_documents_hardly_ever_say_the_contrary(truth):
    """Of the verdicts at 20, 40, 200 and 2,000 documents of one corpus; 200 corpora."""
    rng = np.random.default_rng(1)
    contrary = 0
    for _ in range(200):
        drawn = truth + rng.standard_normal(2000)
        found = set()
        for n in (20, 40, 200, 2000):
            mean, error = drawn[:n].mean(), drawn[:n].std(ddof=1) / math.sqrt(n)
            found.add(above(mean, mean - 2.1 * error, mean + 2.1 * error).outcome)
        contrary += {HOLDS, FAILS} <= found
    assert contrary <= 6
