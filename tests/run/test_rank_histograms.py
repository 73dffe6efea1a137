"""Do intervals of correlations with frequency ranks know how rough ranks are?"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import rankdata, spearmanr

from headscope.core.accumulators import LogBins, correlation
from headscope.core.intervals import estimate_correlation
from headscope.run.analysis import Scope
from headscope.run.frequency_ranks import corpus_ranks
from headscope.run.rank_histograms import RankHistograms, around

BINS = LogBins(-4, 4, 16)
RNG = np.random.default_rng(5)


def counted(by_half, ranks=None) -> RankHistograms:
    """Histograms of a corpus whose halves hold each token so often."""
    ranks = corpus_ranks(np.sum(by_half, 0)) if ranks is None else ranks
    found = RankHistograms(Scope(1, 1, frequency_rank=ranks, replicates=6), 1, BINS, BINS)
    found.types.counts[:] = by_half
    return found


def test_agreement_is_that_of_the_halves_over_tokens_by_spearman_and_brown() -> None:
    by_half = RNG.poisson(RNG.lognormal(0, 1, 300), (2, 300))
    tokens = np.repeat(np.arange(300), by_half.sum(0))
    of_halves = spearmanr(*by_half[:, tokens]).statistic
    expected = 2 * of_halves / (1 + of_halves)
    assert counted(by_half).agreement() == pytest.approx(expected, abs=1e-9)
    assert 0.5 < expected < 0.95


def test_ranks_of_another_corpus_are_taken_as_they_are() -> None:
    by_half = RNG.poisson(2, (2, 300))
    assert counted(by_half, ranks=np.arange(300) + 1.0).agreement() == 1
    same = np.tile(np.arange(300), (2, 1))
    assert counted(same).agreement() == pytest.approx(1)


def test_an_interval_reaches_as_far_as_its_ends_over_the_agreement() -> None:
    coarse = np.clip(0.4 + RNG.normal(0, 0.01, (21, 1)), -1, 1)
    plain = estimate_correlation(coarse)
    for sign in (1, -1):
        found, alone = (
            around(sign * coarse[0], sign * coarse, 0.8),
            around(sign * coarse[0], sign * coarse),
        )
        far = max(abs(plain.low[0]), abs(plain.high[0])) / 0.8
        assert max(abs(found.low[0]), abs(found.high[0])) == pytest.approx(far, rel=1e-6)
        near = min(abs(alone.low[0]), abs(alone.high[0]))
        assert min(abs(found.low[0]), abs(found.high[0])) == pytest.approx(near)


def test_correlations_with_ranks_of_few_documents_are_held() -> None:
    """They err to one side; the plain interval held the truth in 60 to 80 % of draws."""
    frequency = 1 / np.arange(1, 3001)
    value = np.exp(0.25 * rankdata(frequency) / 3000 + RNG.normal(0, 0.1, 3000))
    many = RNG.choice(3000, 200_000, p=frequency / frequency.sum())
    truth = spearmanr(-np.bincount(many, minlength=3000)[many], value[many]).statistic
    held, plainly = [], []
    for _ in range(150):
        documents = RNG.choice(3000, (14, 120), p=frequency / frequency.sum())
        by_half = [np.bincount(documents[at::2].ravel(), minlength=3000) for at in range(2)]
        counts = np.sum(by_half, 0)
        kept = [documents, *(np.delete(documents, at, 0) for at in range(14))]
        draws = np.array([
            correlation(rankdata(-counts[some.ravel()]), rankdata(value[some.ravel()]))
            for some in kept
        ])[:, None]  # fmt: skip
        for into, agreement in ((held, counted(by_half).agreement()), (plainly, 1.0)):
            found = around(draws[0], draws, agreement)
            into.append(found.low[0] <= truth <= found.high[0])
    assert np.mean(held) >= 0.88
    assert np.mean(plainly) < np.mean(held) - 0.1
