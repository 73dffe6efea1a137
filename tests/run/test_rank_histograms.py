"""Do intervals of correlations with frequency ranks know how rough ranks are?"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import rankdata, spearmanr

from headscope.core.accumulators import LogBins, correlation, ratio
from headscope.core.intervals import POSITIVE, Estimate, estimate, estimate_correlation
from headscope.run.analysis import Scope
from headscope.run.frequency_ranks import corpus_ranks
from headscope.run.rank_histograms import COARSE_RANK, RankHistograms, around

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


def test_correlations_know_how_many_tokens_each_document_has() -> None:
    rng = np.random.default_rng(6)
    histograms = counted(rng.poisson(2, (2, 300)))
    tokens = histograms.coarse.by_group
    tokens[:] = rng.poisson(rng.lognormal(0, 1, (6, 1, 1, 1)), tokens.shape)
    _, draws, sizes = histograms.correlations()
    of_document = tokens.sum((2, 3))
    assert sizes[0] == of_document.sum(0)
    np.testing.assert_array_equal(sizes[0] - sizes[1:], of_document)
    found, even = around(draws[0], draws, sizes), around(draws[0], draws)
    assert found.high - found.low > even.high - even.low


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
            around(sign * coarse[0], sign * coarse, agreement=0.8),
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
        draws = np.array(
            [
                correlation(rankdata(-counts[some.ravel()]), rankdata(value[some.ravel()]))
                for some in kept
            ]
        )[:, None]
        for into, agreement in ((held, counted(by_half).agreement()), (plainly, 1.0)):
            found = around(draws[0], draws, agreement=agreement)
            into.append(found.low[0] <= truth <= found.high[0])
    assert np.mean(held) >= 0.88
    assert np.mean(plainly) < np.mean(held) - 0.1


def test_an_octave_reaches_as_far_as_those_beside_it_and_rare_tokens_have_no_interval() -> None:
    counts = np.array([*[90, 80, 70, 60, 50, 40, 30, 20], *[2] * 20, *[1] * 40, 0])
    plain = np.full((2, 2, len(COARSE_RANK)), np.nan)
    plain[:, :, 1:7] = np.arange(24).reshape(2, 2, 6)  # ranks 1, 2 and 3, …, 8; then rare ones
    means = Estimate(plain[0], plain[0] - 1, plain[1])
    own = counted([counts // 2, counts - counts // 2]).by_octave(means)
    assert own.low[0, 1:7].tolist() == pytest.approx([-1, -1, 0, 1, np.nan, np.nan], nan_ok=True)
    assert own.high[0, 1:7].tolist() == pytest.approx([13, 14, 15, 16, np.nan, np.nan], nan_ok=True)
    other = counted([counts, counts], ranks=np.arange(len(counts)) + 1.0).by_octave(means)
    assert other is means


@pytest.mark.parametrize("documents", [14, 30])
def test_means_by_octave_of_ranks_of_few_documents_are_held(documents: int) -> None:
    """Words of other octaves come in between: the plain interval hardly ever holds the truth."""
    words = np.arange(3000)
    frequency = 1 / (words + 1)
    frequency /= frequency.sum()
    value = np.log2(words + 2) + RNG.normal(0, 0.2, 3000)
    octave = COARSE_RANK.index(words + 1.0)
    sums, sizes = (
        np.bincount(octave, of, len(COARSE_RANK)) for of in (frequency * value, frequency)
    )
    truth = ratio(sums, sizes)
    held, plainly = [], []
    for _ in range(60):
        drawn = RNG.choice(3000, (documents, 100), p=frequency)
        by_half = [np.bincount(drawn[at::2].ravel(), minlength=3000) for at in range(2)]
        histograms = counted(by_half)
        places = COARSE_RANK.index(histograms.scope.frequency_rank)[drawn]
        sums, sizes = (
            np.array([np.bincount(*row, len(COARSE_RANK)) for row in zip(places, of, strict=True)])
            for of in (value[drawn], np.ones(drawn.shape))
        )
        sums, sizes = (np.concatenate([of.sum(0)[None], of.sum(0) - of]) for of in (sums, sizes))
        plain = estimate(ratio(sums, sizes), bounds=POSITIVE, sizes=sizes)
        for into, means in ((held, histograms.by_octave(plain)), (plainly, plain)):
            there = np.isfinite(means.low)
            into.append(((means.low <= truth) & (truth <= means.high))[there].mean())
    assert np.mean(held) >= 0.95
    assert np.mean(plainly) < 0.8
