"""Do intervals that are made again and again hold all together?"""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from headscope.core.accumulators import left_out, means_over
from headscope.core.confidence import TAIL, boundary, holding_at_every_look, tail
from headscope.core.intervals import estimate


def test_the_boundary_is_that_of_the_package_confseq():
    """Its test of the two-sided normal mixture, tuned for a variance of 100, has 30.35209 there."""
    assert boundary(100, tuned=100) * math.sqrt(100) == pytest.approx(30.35209, abs=1e-5)


@pytest.mark.parametrize("documents", [3, 128, 40_000])
def test_on_the_boundary_the_mixture_of_likelihood_ratios_is_one_in_alpha(documents):
    """Ville's inequality for ∫ exp(λ S − λ² n / 2) dN(λ; 0, ρ²): the definition, by quadrature."""
    rho = math.sqrt((2 * math.log(20) + math.log(1 + 2 * math.log(20))) / 128)
    total = boundary(documents) * math.sqrt(documents)

    def ratio(slope):
        return math.exp(slope * total - slope**2 * documents / 2) * norm.pdf(slope, scale=rho)

    peak = total / (documents + rho**-2)
    around = [peak - 12 / math.sqrt(documents), peak, peak + 12 / math.sqrt(documents)]
    mixed = quad(ratio, around[0], around[2], points=[peak])[0]
    assert mixed == pytest.approx(20, rel=1e-6)


def test_random_walks_leave_the_boundary_less_often_than_one_in_twenty():
    """As the fixed interval is left at some time by more than a third of them."""
    random, times = np.random.default_rng(0), 2.0 ** np.arange(0, 16, 0.25)
    steps = np.sqrt(np.diff(times, prepend=0)) * random.standard_normal((4000, len(times)))
    sizes = np.abs(steps.cumsum(1)) / np.sqrt(times)
    assert (sizes > [boundary(at) for at in times]).any(1).mean() < 0.05
    assert (sizes > 1.96).any(1).mean() > 0.3


def test_inside_a_look_intervals_are_wider_and_afterwards_as_before():
    values = np.random.default_rng(1).standard_normal(60)
    draws = means_over(left_out([f"{at}" for at in range(60)], replicates=200), values)[:, None]
    once = estimate(draws)
    with holding_at_every_look(60):
        assert norm.isf(tail(np.array(60), 60)) == pytest.approx(boundary(60))
        always = estimate(draws)
    assert tail(np.array(60), 60) == TAIL
    assert always.low < once.low < once.high < always.high
    assert estimate(draws).low == once.low


def test_documents_without_a_part_in_a_number_do_not_count_at_a_look():
    """Of 3,000 documents in 200 groups at random, some have the relation."""
    group = np.random.default_rng(2).integers(0, 200, 3000)
    having = np.array([5, 40, 300, 3000])
    parts = np.array([len(set(group[:documents])) for documents in having])
    with holding_at_every_look(3000):
        expected = np.maximum(boundary(having), boundary(3000))  # never shorter than of all
        np.testing.assert_allclose(norm.isf(tail(parts, 200)), expected, rtol=0.01)
    with holding_at_every_look(60):  # each in a group of its own; there may be empty ones
        for groups in (60, 200):
            np.testing.assert_allclose(norm.isf(tail(having[:2], groups)), boundary(having[:2]))
