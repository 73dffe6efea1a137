"""Do intervals over seeds and examples hold the truth, and rates of replication what they say?"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy.stats import beta, t

from headscope.core.accumulators import left_out, means_over
from headscope.core.intervals import DIFFERENCE, Estimate, estimate
from headscope.experiments.study.over_seeds import (
    estimated_mean,
    paired_mean,
    replication,
    with_seeds,
)

TRIALS, EXAMPLES = 400, 60


def drawn(*, seeds, of_seed, shared, own):
    """[seed] estimates [trial] of a mean whose truth is 0, each over the same examples."""
    rng = np.random.default_rng(0)
    common = shared * rng.standard_normal((EXAMPLES, TRIALS))
    kept = left_out(list(map(str, range(EXAMPLES))), replicates=50)
    each = (of_seed * rng.standard_normal(TRIALS) for _ in range(seeds))
    return [
        estimate(means_over(kept, one + common + own * rng.standard_normal((EXAMPLES, TRIALS))))
        for one in each
    ]


def covered(way, **how):
    """The share of trials in which the interval holds the truth, 0."""
    mean = way(drawn(**how))
    return np.mean((mean.low <= 0) & (mean.high >= 0))


@pytest.mark.parametrize("seeds", [2, 3, 5])
@pytest.mark.parametrize(
    ("of_seed", "shared", "own"), [(0.3, 1, 0.3), (0, 1, 1), (0.5, 0.1, 1), (0.1, 2, 0)]
)
def test_the_interval_holds_the_truth_95_times_in_100(seeds, of_seed, shared, own):
    how = {"seeds": seeds, "of_seed": of_seed, "shared": shared, "own": own}
    assert covered(partial(paired_mean, interval=estimate), **how) >= 0.93
    assert covered(estimated_mean, **how) >= 0.93


def test_an_interval_over_seeds_or_over_examples_alone_is_too_short():
    shared = {"seeds": 3, "of_seed": 0.01, "shared": 2, "own": 0.1}
    seeds = {"seeds": 3, "of_seed": 1, "shared": 0.1, "own": 0.1}

    def over_seeds(some):
        return with_seeds(np.array([one.value for one in some]))

    def over_examples(some):
        return estimate(np.mean([one.draws for one in some], axis=0))

    assert covered(over_seeds, **shared) < 0.6
    assert covered(over_examples, **seeds) < 0.6


def test_without_examples_the_interval_is_student_s():
    values = np.array([[0.1, 1.0], [0.4, 1.0], [0.2, 1.0]])
    mean = with_seeds(values)
    low, high = t.interval(0.95, 2, values[:, 0].mean(), values[:, 0].std(ddof=1) / 3**0.5)
    np.testing.assert_allclose([mean.low[0], mean.high[0]], [low, high])
    assert mean.value[1] == 1
    assert np.isnan([mean.low[1], mean.high[1]]).all()  # seeds that agree tell no spread
    of_examples = with_seeds(values, np.array([0.0, 0.2]), np.array([0.0, 0.1]))
    np.testing.assert_allclose([of_examples.low[1], of_examples.high[1]], [0.8, 1.1])


def test_both_parts_add_as_squares_and_stay_within_bounds():
    values = np.array([0.5, 0.7])
    seeds = with_seeds(values)
    both = with_seeds(values, np.array(0.3), np.array(0.4))
    half = seeds.high - seeds.value
    np.testing.assert_allclose(both.value - both.low, np.hypot(half, 0.3))
    np.testing.assert_allclose(both.high - both.value, np.hypot(half, 0.4))
    assert with_seeds(values, bounds=DIFFERENCE).high == 1


def test_one_seed_has_no_interval_and_none_has_nothing():
    one = with_seeds(np.array([[0.5, 0.2]]), np.array([0.1, 0.1]), np.array([0.1, 0.1]))
    assert one.value.tolist() == [0.5, 0.2]
    assert np.isnan([one.low, one.high]).all()
    assert np.isnan(with_seeds(np.empty((0, 2))).value).all()


def test_intervals_of_which_draws_are_unknown_are_as_if_all_errors_were_one():
    some = [Estimate(np.array(v), np.array(v - 0.1), np.array(v + 0.3)) for v in (0.5, 0.5)]
    mean = estimated_mean(some)
    np.testing.assert_allclose([mean.low, mean.high], [0.4, 0.8])


def test_the_rate_of_replication_has_the_interval_of_clopper_and_pearson():
    holds = np.array([[1, 0, 1], [1, 0, 0], [1, 0, 1]], bool)
    rate = replication(holds)
    np.testing.assert_allclose(rate.value, [1, 0, 2 / 3])
    np.testing.assert_allclose(rate.low, [beta.ppf(0.025, 3, 1), 0, beta.ppf(0.025, 2, 2)])
    np.testing.assert_allclose(rate.high, [1, beta.ppf(0.975, 1, 3), beta.ppf(0.975, 3, 1)])
    assert np.isnan(replication(np.empty((0, 2), bool)).value).all()
