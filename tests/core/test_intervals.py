"""Are intervals what the closed forms say, and do they hold the true value as often as they say?"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from headscope.core.accumulators import ratio
from headscope.core.intervals import (
    ANY,
    CORRELATION,
    FEWEST,
    POSITIVE,
    SHARE,
    Estimate,
    drawn_anew,
    estimate,
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


def student(draws: np.ndarray) -> tuple[float, float]:
    """The standard error and Student's quantile, as the docs have them; one cell, in a loop."""
    moves = [float(draw - draws[0]) for draw in draws[1:] if draw != draws[0]]
    m = len(moves)
    squares = [move * move for move in moves]
    error = ((m - 1) / m * (sum(squares) + max(squares))) ** 0.5
    freedom = 2 / (sum(s * s for s in squares) / sum(squares) ** 2 - 1 / m)
    return error, stats.t.ppf(0.975, min(max(freedom, 1), m - 1))


def both(found: Estimate) -> list[float]:
    return [float(found.low), float(found.high)]


# --- closed forms ---------------------------------------------------------------------------


def test_the_error_of_a_mean_is_that_of_textbooks_and_the_farthest_document_twice() -> None:
    values = np.random.default_rng(5).normal(3, 1, size=12)
    n, away = len(values), (values - values.mean()) ** 2
    error = np.sqrt((away.sum() + away.max()) / (n * (n - 1)))
    found = estimate(draws_of(values))
    q = student(draws_of(values))[1]
    assert both(found) == pytest.approx([values.mean() - q * error, values.mean() + q * error])


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
    value, (error, q) = draws[0], student(draws)
    slope = (scale(value + 1e-6) - scale(value - 1e-6)) / 2e-6
    half = q * error * slope
    expected = [back(scale(value) - half), back(scale(value) + half)]
    assert both(estimate(draws, bounds=bounds)) == pytest.approx(expected, rel=1e-8)


def test_a_share_has_jeffreys_interval_at_its_effective_number_of_questions() -> None:
    rng = np.random.default_rng(2)
    asked = rng.integers(3, 40, 14)
    right = rng.binomial(asked, rng.beta(4, 2, 14))
    draws, n = draws_of(right, asked), asked.sum()
    p, (error, q) = draws[0], student(draws)
    worth = p * (1 - p) / error**2 * (stats.t.ppf(0.975, n - 1) / q) ** 2
    assert worth < n
    posterior = stats.beta(p * worth + 0.5, (1 - p) * worth + 0.5)
    found = estimate(draws, asked=sums_of(asked))
    assert both(found) == pytest.approx(posterior.ppf([0.025, 0.975]), rel=1e-9)


def test_questions_are_never_worth_more_than_they_are() -> None:
    asked = np.full(12, 8.0)
    draws = draws_of(np.full(12, 4.0) + np.tile([0, 0.01], 6), asked)  # documents hardly differ
    p = draws[0]
    expected = stats.beta(p * 96 + 0.5, (1 - p) * 96 + 0.5).ppf([0.025, 0.975])
    assert both(estimate(draws, asked=sums_of(asked))) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("right", [0, 1])
def test_a_share_that_is_all_or_nothing_has_a_width(right: int) -> None:
    """It used to be printed as "100.0 [100.0, 100.0]" for 28 words."""
    asked = np.full(7, 4.0)
    found = estimate(draws_of(right * asked, asked), asked=sums_of(asked))
    inner = stats.beta(28 * right + 0.5, 28 * (1 - right) + 0.5).ppf([0.025, 0.975][1 - right])
    assert both(found) == pytest.approx([inner, 1] if right else [0, inner])
    assert found.low < found.high


def test_spearmans_correlation_over_heads_leaves_out_heads() -> None:
    one, other = np.random.default_rng(3).normal(size=(2, 20))
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


def test_a_mean_over_heads_leaves_out_heads_and_those_without_a_number() -> None:
    parts = np.array([[1.0, 2], [3, np.nan], [5, 6]])
    np.testing.assert_allclose(left_one_out(parts), [[3, 4], [4, 6], [3, 4], [2, 2]])


def test_corpora_drawn_anew_have_the_jackknifes_covariance() -> None:
    values = np.random.default_rng(4).multivariate_normal([1, 2], [[1, 0.6], [0.6, 2]], 30)
    drawn = drawn_anew(draws_of(values), count=40_000)
    np.testing.assert_allclose(drawn.mean(0), values.mean(0), atol=0.01)
    np.testing.assert_allclose(np.cov(drawn.T), np.cov(values.T) / 30 * (30 / 29), rtol=0.05)


# --- where there is none ----------------------------------------------------------------------


@pytest.mark.parametrize("asked", [None, 1.0])
@pytest.mark.parametrize("documents", [0, 1, 2, FEWEST - 1])
def test_few_documents_have_no_interval(documents: int, asked: float | None) -> None:
    draws = np.ones((documents + 1, 2, 3))
    questions = None if asked is None else np.arange(documents + 1.0)[:, None, None]
    found = estimate(draws, asked=questions)
    assert (found.value == 1).all()
    assert np.isnan(found.low).all()
    assert np.isnan(found.high).all()


def test_documents_without_a_part_in_the_number_do_not_count() -> None:
    values, asked = np.zeros((2, 40))
    asked[: FEWEST - 1] = 9
    values[: FEWEST - 1] = [3, 9, 4, 5]
    for questions in (None, sums_of(asked)):
        assert np.isnan(estimate(draws_of(values, asked), asked=questions).low)
    asked[-1], values[-1] = 9, 2
    for questions in (None, sums_of(asked)):
        assert np.isfinite(estimate(draws_of(values, asked), asked=questions).low)


def test_a_number_that_hangs_on_one_document_has_no_interval() -> None:
    draws = draws_of(np.arange(9.0), np.arange(9) == 3)
    assert np.isnan(draws[4])
    assert np.isnan(both(estimate(draws))).all()


def test_where_documents_do_not_differ_there_is_no_interval_but_for_rounding() -> None:
    draws = np.full(21, 0.3) + np.random.default_rng(0).normal(0, 1e-16, 21)
    assert np.isnan(both(estimate(draws))).all()


def test_an_absent_value_has_an_absent_interval() -> None:
    draws = draws_of(np.random.default_rng(0).normal(size=(20, 2)))
    draws[:, 1] = np.nan
    found = estimate(draws)
    assert np.isnan([found.value[1], found.low[1], found.high[1]]).all()
    assert found.low[0] < found.value[0] < found.high[0]


# --- coverage ---------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.5, 0.9])
@pytest.mark.parametrize("documents", [14, 30])
def test_intervals_of_shares_hold_the_truth(share: float, documents: int) -> None:
    """Documents of unequal length that differ from each other; benchmarks/coverage.py has more."""
    rng = np.random.default_rng(7)
    size = 5 + rng.poisson(20, (documents, 1500))
    right = rng.binomial(size, rng.beta(9 * share, 9 * (1 - share), size.shape))
    asked = sums_of(size)
    found = estimate(sums_of(right) / asked, asked=asked)
    held = (found.low <= share) & (share <= found.high)
    assert 0.93 <= held.mean() <= 0.98


@pytest.mark.parametrize("documents", [8, 30])
def test_intervals_of_skewed_means_hold_the_truth(documents: int) -> None:
    rng = np.random.default_rng(8)
    found = estimate(draws_of(rng.exponential(size=(documents, 1500))), bounds=POSITIVE)
    held = (found.low <= 1) & (found.high >= 1)
    assert 0.92 <= held.mean() <= 0.98
