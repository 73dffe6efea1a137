"""Is the spread of scores over sentences kept as a histogram, and are quantiles read off it?"""

from __future__ import annotations

import numpy as np

from headscope.analyses.frames.measure import QUANTILES, ScoreBins
from headscope.core.accumulators import Counts


def spread_of(scores: np.ndarray, measure: str) -> tuple[np.ndarray, np.ndarray, ScoreBins]:
    """Shares and quantiles of scores [sentence, head] of the second of two layers."""
    bins = ScoreBins.of(measure)
    counts = Counts.zeros(2, scores.shape[1], len(bins))
    bins.add(counts, scores, layer=1)
    assert not counts.counts[0].any()
    return bins.shares(counts)[1], bins.quantiles(counts)[1], bins


def test_shares_are_a_histogram_and_quantiles_good_to_a_thousandth() -> None:
    scores = np.random.default_rng(0).beta(0.7, 3, (501, 2))
    shares, quantiles, bins = spread_of(scores, "attention")
    np.testing.assert_allclose(bins.shown, np.arange(20) / 20)
    for head in range(2):
        wanted, _ = np.histogram(scores[:, head], np.arange(21) / 20)
        np.testing.assert_allclose(shares[head], wanted / 501, rtol=1e-12)
        exact = np.quantile(scores[:, head], QUANTILES, method="inverted_cdf")
        np.testing.assert_allclose(quantiles[head], exact, rtol=0, atol=1e-3)


def test_weighted_norms_fall_into_octaves_and_quantiles_are_good_to_a_32nd_of_one() -> None:
    scores = np.random.default_rng(0).lognormal(-1, 2, (501, 1))
    shares, quantiles, bins = spread_of(scores, "weighted_norm")
    np.testing.assert_allclose(bins.shown, [0, *2.0 ** np.arange(-10, 6)])
    wanted, _ = np.histogram(scores[:, 0], [*bins.shown, np.inf])
    np.testing.assert_allclose(shares[0], wanted / 501, rtol=1e-12)
    exact = np.quantile(scores[:, 0], QUANTILES, method="inverted_cdf")
    np.testing.assert_allclose(quantiles[0], exact, rtol=2 ** (1 / 32) - 1)


def test_the_ends_of_the_range_are_counted_and_nothing_gives_nothing() -> None:
    shares, quantiles, _ = spread_of(np.array([[0.0], [1.0]]), "attention")
    assert shares[0, [0, -1]].tolist() == [0.5, 0.5]
    np.testing.assert_allclose(quantiles[0, [0, -1]], [0, 1], atol=1e-3)
    shares, quantiles, _ = spread_of(np.empty((0, 1)), "attention")
    assert np.isnan(shares).all()
    assert np.isnan(quantiles).all()
