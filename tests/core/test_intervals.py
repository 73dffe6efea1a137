"""Are intervals what the closed forms say, and do they hold the true value as often as they say?"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from headscope.core.accumulators import ratio
from headscope.core.confidence import holding_at_every_look
from headscope.core.intervals import (
    ANY,
    CORRELATION,
    FEWEST,
    LEFT_OUT,
    POSITIVE,
    SHARE,
    Estimate,
    drawn_anew,
    estimate,
    estimate_correlation,
    estimate_difference,
    estimate_share,
    even,
    left_one_out,
    spearman_over_units,
)


def draws_of(above, below=None) -> np.ndarray:
    """[document + 1, *cell] Σ above / Σ below over all documents, then without each."""
    above = np.asarray(above, np.float64)
    below = np.ones(len(above)) if below is None else np.asarray(below, np.float64)
    kept = [np.ones(len(above), bool), *~np.eye(len(above), dtype=bool)]
    return np.array([ratio(above[rows].sum(0), below[rows].sum(0)) for rows in kept])


def sums_of(values) -> np.ndarray:
    """[document + 1, *cell] sums over all documents, then without each."""
    values = np.asarray(values, np.float64)
    return np.concatenate([values.sum(0)[None], values.sum(0) - values])


def halves(draws: np.ndarray, sizes=None, *, twice: bool = True) -> tuple[float, float]:
    """How far Student's interval reaches down and up, as the docs have it; one cell, in a loop.

    sizes  of the documents, where they are known
    """
    moves = [float(draw - draws[0]) for draw in draws[1:] if draw != draws[0]]
    m = len(moves)
    squares = [move * move for move in moves]
    variance = (m - 1) / m * (sum(squares) + (max(squares) if twice else 0))
    freedom = min(2 / (sum(s * s for s in squares) / sum(squares) ** 2 - 1 / m), m - 1)
    if sizes is not None:
        freedom = min(freedom, sum(sizes) ** 2 / sum(size * size for size in sizes) - 1)
        if twice:
            variance *= 1 + 0.15 * np.var(sizes) / np.mean(sizes) ** 2
    half = stats.t.ppf(0.975, max(freedom, 1)) * variance**0.5
    side = np.tanh(-np.mean(np.power(moves, 3)) / np.mean(squares) ** 1.5)
    longer, shorter = 1 + 0.5 * abs(side), 1 - 0.2 * abs(side)
    return (half * shorter, half * longer) if side > 0 else (half * longer, half * shorter)


MADE = [
    lambda draws, sizes: estimate(draws, sizes=sizes),
    estimate_share,
    estimate_difference,
]


def both(found: Estimate) -> list[float]:
    return [float(found.low), float(found.high)]


def both_at(made, above: np.ndarray, below: np.ndarray) -> list[float]:
    """The ends at a look after these documents."""
    with holding_at_every_look(len(above)):
        return both(made(draws_of(above, below), sums_of(below)))


# --- closed forms ---------------------------------------------------------------------------


def test_the_error_of_a_mean_is_that_of_textbooks_and_the_farthest_document_twice() -> None:
    values = np.random.default_rng(5).normal(3, 1, size=12)
    n, away = len(values), (values - values.mean()) ** 2
    error = np.sqrt((away.sum() + away.max()) / (n * (n - 1)))
    found = estimate(draws_of(values))
    unequal = (away**2).sum() / away.sum() ** 2 - 1 / n
    q = stats.t.ppf(0.975, min(2 / unequal, n - 1))
    skew = np.tanh(stats.skew(values))
    down, up = (1 + (0.5 if side > 0 else 0.2) * side for side in (-skew, skew))
    expected = [values.mean() - q * error * down, values.mean() + q * error * up]
    assert both(found) == pytest.approx(expected)


@pytest.mark.parametrize("bounds", [ANY, POSITIVE, SHARE, CORRELATION, (1.0, np.inf)])
def test_an_interval_is_students_on_a_scale_without_bounds(bounds) -> None:
    """The delta method, with derivatives taken numerically."""
    rng = np.random.default_rng(1)
    below = rng.integers(1, 30, 14)
    draws = draws_of(rng.uniform(0.2, 0.7, 14) * below, below) + (1 if bounds[0] == 1 else 0)
    scale, back = {
        ANY: (lambda x: x, lambda x: x),
        POSITIVE: (np.log, np.exp),
        SHARE: (lambda x: np.log(x / (1 - x)), lambda x: 1 / (1 + np.exp(-x))),
        CORRELATION: (np.arctanh, np.tanh),
        (1.0, np.inf): (lambda x: np.log(x - 1), lambda x: 1 + np.exp(x)),
    }[bounds]
    value = draws[0]
    slope = (scale(value + 1e-6) - scale(value - 1e-6)) / 2e-6
    for sizes in (None, below):
        down, up = halves(draws, sizes)
        expected = [back(scale(value) - slope * down), back(scale(value) + slope * up)]
        given = None if sizes is None else sums_of(sizes)
        found = estimate(draws, bounds=bounds, sizes=given)
        assert both(found) == pytest.approx(expected, rel=1e-8)


def test_a_share_has_jeffreys_interval_at_its_effective_number_of_questions() -> None:
    rng = np.random.default_rng(2)
    asked = rng.integers(3, 40, 14)
    right = rng.binomial(asked, rng.beta(4, 2, 14))
    draws, n = draws_of(right, asked), asked.sum()
    p, expected = draws[0], []
    for tail, half in zip([0.025, 0.975], halves(draws, asked, twice=False), strict=True):
        worth = p * (1 - p) * (stats.t.ppf(0.975, n - 1) / half) ** 2
        assert worth < n
        expected.append(stats.beta(p * worth + 0.5, (1 - p) * worth + 0.5).ppf(tail))
    assert both(estimate_share(draws, sums_of(asked))) == pytest.approx(expected, rel=1e-9)


def test_a_difference_of_shares_is_students_and_a_share_where_documents_agree() -> None:
    rng = np.random.default_rng(3)
    asked = rng.integers(3, 40, 14)
    draws = draws_of(rng.binomial(asked, 0.6) - rng.binomial(asked, 0.4), asked)
    down, up = halves(draws, asked, twice=False)
    found = estimate_difference(draws, sums_of(asked))
    assert both(found) == pytest.approx([draws[0] - down, draws[0] + up], rel=1e-9)
    same = estimate_difference(np.zeros(15), sums_of(asked))
    half = asked.sum() / 2 + 0.5
    expected = 2 * stats.beta(half, half).ppf([0.025, 0.975]) - 1
    assert both(same) == pytest.approx(expected, rel=1e-9)


def test_one_odd_document_of_many_makes_no_long_interval_of_a_share() -> None:
    """Its error is all the error there is: known to two degrees of freedom, it was [.68, 1.00]."""
    right, asked = np.ones(70), np.ones(70)
    right[7] = 0
    low, high = both(estimate_share(draws_of(right, asked), sums_of(asked)))
    expected = stats.beta(69.5, 1.5).ppf([0.025, 0.975])
    assert (low, high) == pytest.approx(tuple(expected), rel=1e-9)


@pytest.mark.parametrize("made", MADE)
def test_at_a_look_a_rare_relation_has_the_interval_of_its_own_documents(made) -> None:
    """As if the others had not been read; 6 of 60 documents have it."""
    rng = np.random.default_rng(4)
    asked = np.where(np.arange(60) < 6, rng.integers(3, 40, 60), 0)
    right = rng.binomial(asked, 0.6)
    among_all, alone = (both_at(made, right[:read], asked[:read]) for read in (60, 6))
    assert among_all == pytest.approx(alone, rel=1e-9)
    once = both(made(draws_of(right, asked), sums_of(asked)))
    assert among_all[0] < once[0] < once[1] < among_all[1]


@pytest.mark.filterwarnings("error")
def test_no_interval_reaches_beyond_what_is_possible() -> None:
    """One document of six decides: of a difference of shares; of a mean close to its bound."""
    asked = np.array([9.0, 1, 1, 1, 1, 1])
    right = np.array([[9, 0, 0, 0, 0, 1], [0, 1, 1, 1, 1, 0.0]])
    low, high = both(estimate_difference(draws_of(right[0] - right[1], asked), sums_of(asked)))
    assert (low, high) == (-1, 1)
    shares = 1 - np.array([1e-9, 0, 0, 1e-5, 0, 1e-7])
    low, high = both(estimate(draws_of(shares, np.ones(6)), bounds=(0, 1)))
    assert 0 <= low < high <= 1


@pytest.mark.parametrize("unequal", [False, True])
def test_a_correlation_is_students_on_fishers_scale(unequal: bool) -> None:
    """Of documents where one is nearly all, few degrees of freedom are left."""
    one, other = np.random.default_rng(9).normal(size=(2, 12)).cumsum(1)
    draws = spearman_over_units(one, other)
    size = np.array([20.0, *[5] * 11]) if unequal else np.ones(12)
    moves = draws[1:] - draws[0]
    m, squares = (moves != 0).sum(), moves**2
    freedom = min(2 / ((squares**2).sum() / squares.sum() ** 2 - 1 / m), m - 1)
    kish = size.sum() ** 2 / (size**2).sum() - 1
    assert (kish < freedom) == unequal
    freedom = min(freedom, kish)
    half = stats.t.ppf(0.975, freedom) * np.sqrt((m - 1) / m * squares.sum())
    z, slope = np.arctanh(draws[0]), 1 / (1 - draws[0] ** 2)
    expected = np.tanh([z - half * slope, z + half * slope])
    found = estimate_correlation(draws, sums_of(size) if unequal else None)
    assert both(found) == pytest.approx(expected, rel=1e-9)


def test_questions_are_never_worth_more_than_they_are() -> None:
    asked = np.full(12, 8.0)
    draws = draws_of(np.full(12, 4.0) + np.tile([0, 0.01], 6), asked)  # documents hardly differ
    p = draws[0]
    expected = stats.beta(p * 96 + 0.5, (1 - p) * 96 + 0.5).ppf([0.025, 0.975])
    assert both(estimate_share(draws, sums_of(asked))) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("right", [0, 1])
def test_a_share_that_is_all_or_nothing_has_a_width(right: int) -> None:
    """It used to be printed as "100.0 [100.0, 100.0]" for 28 words."""
    asked = np.full(7, 4.0)
    found = estimate_share(draws_of(right * asked, asked), sums_of(asked))
    inner = stats.beta(28 * right + 0.5, 28 * (1 - right) + 0.5).ppf([0.025, 0.975][1 - right])
    assert both(found) == pytest.approx([inner, 1] if right else [0, inner])
    assert found.low < found.high


def test_spearmans_correlation_over_heads_leaves_out_heads() -> None:
    one, other = np.random.default_rng(3).normal(size=(2, 2 * LEFT_OUT + 9)).round(1)
    other[4] = np.nan
    there = np.flatnonzero(np.isfinite(other))
    found = spearman_over_units(one, other)
    assert found[0] == pytest.approx(stats.spearmanr(one[there], other[there]).statistic)
    for unit in there:
        rest = there[there != unit]
        expected = stats.spearmanr(one[rest], other[rest]).statistic
        assert found[1 + unit] == pytest.approx(expected)
    assert found[5] == found[0]
    assert np.isnan(spearman_over_units(one[:3], other[:3])).all()


@pytest.mark.parametrize(("heads", "shown"), [(9, False), (10, True)])
def test_a_correlation_over_few_heads_has_no_interval(heads: int, shown: bool) -> None:
    found = estimate_correlation(
        spearman_over_units(*np.random.default_rng(3).normal(size=(2, heads)))
    )
    assert np.isfinite(found.value)
    assert np.isfinite(both(found)).all() == shown


def test_a_mean_over_heads_leaves_out_heads_and_those_without_a_number() -> None:
    parts = np.array([[1.0, 2], [3, np.nan], [5, 6]])
    np.testing.assert_allclose(left_one_out(parts), [[3, 4], [4, 6], [3, 4], [2, 2]])


def test_corpora_drawn_anew_have_the_jackknifes_covariance() -> None:
    values = np.random.default_rng(4).multivariate_normal([1, 2], [[1, 0.6], [0.6, 2]], 30)
    drawn = drawn_anew(draws_of(values), count=40_000)
    np.testing.assert_allclose(drawn.mean(0), values.mean(0), atol=0.01)
    np.testing.assert_allclose(np.cov(drawn.T), np.cov(values.T) / 30 * (30 / 29), rtol=0.05)


# --- where there is none ----------------------------------------------------------------------


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("documents", [0, 1, 2, FEWEST - 1])
def test_few_documents_have_no_interval(documents: int, made) -> None:
    draws = np.ones((documents + 1, 2, 3))
    found = made(draws, np.arange(documents + 1.0)[:, None, None])
    assert (found.value == 1).all()
    assert np.isnan(found.low).all()
    assert np.isnan(found.high).all()


def test_documents_without_a_part_in_the_number_do_not_count() -> None:
    values, asked = np.zeros((2, 40))
    asked[: FEWEST - 1] = 9
    values[: FEWEST - 1] = [3, 9, 4, 5]
    for made in MADE:
        assert np.isnan(made(draws_of(values, asked), sums_of(asked)).low)
    asked[-1], values[-1] = 9, 2
    for made in MADE:
        assert np.isfinite(made(draws_of(values, asked), sums_of(asked)).low)


def test_a_number_that_hangs_on_one_document_has_no_interval() -> None:
    draws = draws_of(np.arange(9.0), np.arange(9) == 3)
    assert np.isnan(draws[4])
    assert np.isnan(both(estimate(draws))).all()


@pytest.mark.parametrize("bounds", [ANY, POSITIVE])
def test_a_number_without_bounds_and_without_spread_has_no_interval(bounds) -> None:
    """Nothing is known of the documents that were not read."""
    draws = np.full(21, 0.3) + np.random.default_rng(0).normal(0, 1e-16, 21)
    assert np.isnan(both(estimate(draws, bounds=bounds))).all()


def test_an_absent_value_has_an_absent_interval() -> None:
    draws = draws_of(np.random.default_rng(0).normal(size=(20, 2)))
    draws[:, 1] = np.nan
    found = estimate(draws)
    assert np.isnan([found.value[1], found.low[1], found.high[1]]).all()
    assert found.low[0] < found.value[0] < found.high[0]


# --- without spread -----------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", [SHARE, (0.0, np.log(2)), CORRELATION])
@pytest.mark.parametrize("place", [0.0, 0.25, 1.0])
def test_a_number_that_is_the_same_in_all_documents_leaves_room_for_unseen_ones(
    place: float, bounds
) -> None:
    """Of 30 like it the others are at most so many that 30 draws miss them; they may be anything.

    "Previous token 100 %" in all documents had no interval, and the head no label.
    """
    least, most = bounds
    others = stats.beta(0.5, 30.5).ppf(0.975)
    value = least + place * (most - least)
    found = estimate(np.full(31, value), bounds=bounds, sizes=sums_of(np.full(30, 7.0)))
    expected = [(1 - others) * value + others * end for end in bounds]
    assert both(found) == pytest.approx(expected)
    assert 2 / 30 < others < 3.69 / 30  # the rule of three, of both tails


@pytest.mark.parametrize("documents", [100, 1000, 10_000, 100_000, 1_000_000])
def test_more_documents_never_lose_the_interval_of_a_saturated_share(documents: int) -> None:
    """Some leak a little, as float32 leaves it or much more; there are 200 groups at most."""
    rng, replicates = np.random.default_rng(documents), min(documents, 200)
    group = np.arange(documents) % replicates
    for leak in (0, 1e-8, 1e-6, 1e-4, 1e-3):
        size = rng.integers(10, 400, documents)
        mass = size * (1 - leak * rng.exponential(size=documents) * rng.integers(0, 2, documents))
        asked, right = (np.bincount(group, each) for each in (size, mass))
        found = estimate(sums_of(right) / sums_of(asked), bounds=SHARE, sizes=sums_of(asked))
        assert found.low <= found.value <= found.high + 1e-12
        assert found.low > 0.95
        assert found.high <= 1


def test_the_interval_of_a_share_without_spread_grows_shorter_with_documents() -> None:
    draws = [np.ones(n + 1) for n in (6, 14, 30, 100, 200)]
    lows = [float(estimate(each, bounds=SHARE, sizes=even(each)).low) for each in draws]
    assert lows == sorted(lows)
    assert lows[-1] > 0.985


def test_unequal_documents_without_spread_are_worth_fewer() -> None:
    equal, unequal = np.full(30, 5.0), np.r_[np.full(29, 1.0), 121.0]
    low = [
        float(estimate(np.ones(31), bounds=SHARE, sizes=sums_of(size)).low)
        for size in (equal, unequal)
    ]
    assert low[1] < low[0]


def test_what_few_documents_have_gets_no_interval_by_being_the_same_in_them() -> None:
    """The relation occurs in four of forty documents, and is always found."""
    asked = np.zeros(40)
    asked[:4] = 9
    draws = draws_of(asked, asked)
    assert draws[0] == 1
    assert np.isnan(both(estimate(draws, bounds=SHARE, sizes=sums_of(asked)))).all()
    assert np.isnan(both(estimate(draws, bounds=SHARE))).all()  # it might be so
    asked[4] = 9
    found = estimate(draws_of(asked, asked), bounds=SHARE, sizes=sums_of(asked))
    assert np.isfinite(both(found)).all()


# --- coverage ---------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.5, 0.9])
@pytest.mark.parametrize("documents", [14, 30])
def test_intervals_of_shares_hold_the_truth(share: float, documents: int) -> None:
    """Documents of unequal length that differ from each other; benchmarks/coverage.py has more."""
    rng = np.random.default_rng(7)
    size = 5 + rng.poisson(20, (documents, 1500))
    right = rng.binomial(size, rng.beta(9 * share, 9 * (1 - share), size.shape))
    asked = sums_of(size)
    found = estimate_share(sums_of(right) / asked, asked)
    held = (found.low <= share) & (share <= found.high)
    assert 0.93 <= held.mean() <= 0.98


@pytest.mark.parametrize("documents", [14, 30])
def test_intervals_of_means_of_unequal_documents_hold_the_truth(documents: int) -> None:
    """Few long documents decide a skewed number: Student's plain interval holds it 83 to 86 %."""
    rng = np.random.default_rng(9)
    size = rng.lognormal(0, 1, (documents, 1500))
    value = np.exp(rng.normal(-0.5, 1, size.shape))
    draws = sums_of(value * size) / sums_of(size)
    found = estimate(draws, bounds=POSITIVE, sizes=sums_of(size))
    held = (found.low <= 1) & (found.high >= 1)
    assert held.mean() >= 0.93
    moves = draws[1:] - draws[0]
    plain = stats.t.ppf(0.975, documents - 1) * np.sqrt((moves**2).sum(0))
    assert (np.abs(draws[0] - 1) <= plain).mean() < 0.9


@pytest.mark.parametrize("documents", [8, 30])
def test_intervals_of_skewed_means_hold_the_truth(documents: int) -> None:
    rng = np.random.default_rng(8)
    found = estimate(draws_of(rng.exponential(size=(documents, 1500))), bounds=POSITIVE)
    held = (found.low <= 1) & (found.high >= 1)
    assert 0.92 <= held.mean() <= 0.98


def test_places_of_the_last_axis_keep_the_draws_and_sizes_of_their_interval():
    rng = np.random.default_rng(0)
    weights = np.array([1.0, 5, 2, 2, 3, 1])
    sums, sizes = sums_of(rng.binomial(weights.astype(int), 0.3, (4, 6)).T), sums_of(weights)
    draws = ratio(sums, sizes[:, None])
    for shared in (sizes[:, None], np.repeat(sizes[:, None], 4, 1)):
        whole = estimate_share(draws, shared)
        for which in (-1, slice(2), slice(1, 3)):
            one = whole.last(which)
            again = estimate_share(one.draws, one.sizes)
            for end in ("value", "low", "high"):
                np.testing.assert_array_equal(getattr(one, end), getattr(whole, end)[..., which])
                np.testing.assert_allclose(getattr(again, end), getattr(one, end))
