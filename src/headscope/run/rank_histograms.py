"""Histograms of token statistics by frequency rank, and correlations with intervals.

A corpus holds billions of tokens, so ranks are taken from histograms with logarithmic bins, which
add and merge. Intervals come from coarser histograms, kept apart by groups of documents: how far
their correlation moves without a group is how far the fine one is taken to move.

Ranks are rough where a corpus counts them itself: a word that it holds once may be common. Rough
ranks correlate with less than true ones do (Spearman 1904), by the square root of how well the
ranks of one half of the documents agree with those of the other, and more where words that occur
once are the odd ones. So intervals reach as far as the ends over the whole agreement, and those of
means by octave as far as the octaves beside.
"""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from headscope.core.accumulators import (
    Counts,
    Float64,
    Ints,
    LogBins,
    Sums,
    halves,
    ratio,
    spearman,
)
from headscope.core.intervals import Estimate, estimate_correlation
from headscope.model.batch import Batch
from headscope.run.analysis import AnalysisPart, Scope
from headscope.run.frequency_ranks import corpus_ranks

RANK = LogBins(0, 18, 32)
COARSE_RANK = LogBins(0, 18, 1)
RARE = 2  # ours: a token that occurs no more often may be of any octave
LEAST_AGREEMENT = 0.05  # ours: of halves; below it an interval reaches twenty times as far
BINNED = "in bins, within 0.001 of ranks without"


class RankHistograms(AnalysisPart):
    """Histograms of token occurrences by frequency rank and by several numbers.

    numbers       how many numbers
    bins, coarse  for their values, and for those of every group
    """

    def __init__(self, scope: Scope, numbers: int, bins: LogBins, coarse: LogBins) -> None:
        self.scope, self.bins, self.coarse_bins = scope, bins, coarse
        self.counts = Counts.zeros(numbers, len(RANK), len(bins))
        self.coarse = scope.sums(numbers, len(COARSE_RANK), len(coarse))
        types = 0 if scope.frequency_rank is None else len(scope.frequency_rank)
        self.types = Counts.zeros(2, types)  # occurrences by half of the documents

    def add(self, at: int, values: Float64, counted: npt.NDArray[np.bool_], batch: Batch) -> None:
        """Count the occurrences of a batch for number `at`; values, counted [example, token]."""
        assert self.scope.frequency_rank is not None
        ids = batch.input_ids.cpu().numpy()
        if at == 0:
            half = halves(batch.units, seed=self.scope.seed)[:, None]
            self.types.add((half * self.types.counts.shape[1] + ids)[counted])
        rank = self.scope.frequency_rank[ids]  # [example, token]
        cells = RANK.index(rank) * len(self.bins) + self.bins.index(values)
        self.counts.add(at * len(RANK) * len(self.bins) + cells[counted])
        size = len(COARSE_RANK) * len(self.coarse_bins)
        cells = COARSE_RANK.index(rank) * len(self.coarse_bins) + self.coarse_bins.index(values)
        counts = [
            np.bincount(row[there], minlength=size)
            for row, there in zip(cells, counted, strict=True)
        ]
        self.coarse.add(np.array(counts), batch.groups, at=(at,))

    def correlations(self) -> tuple[Float64, Float64, Float64]:
        """Spearman's [number], and [replicate + 1, number] from the coarse histograms with their
        sizes; the arguments of `around`.
        """
        return spearman(self.counts.counts), *correlated(self.coarse)

    def own_counts(self) -> Ints | None:
        """[type] count of each token; None where ranks are not from these documents."""
        both = self.types.counts.sum(0)
        seen = np.flatnonzero(both)
        if self.scope.frequency_rank is None or len(seen) < 2:
            return None
        scope_ranks, own = corpus_ranks(-self.scope.frequency_rank[seen]), corpus_ranks(both[seen])
        return both if np.array_equal(scope_ranks, own) else None

    def agreement(self) -> float:
        """Agreement of the ranks with those of as many other documents, over tokens.

        1 where the ranks are not of these documents.
        """
        if (both := self.own_counts()) is None:
            return 1.0
        seen = np.flatnonzero(both)
        one, other = (_over_tokens(half[seen], both[seen]) for half in self.types.counts)
        of_halves = float(ratio((one * other).sum(), np.sqrt((one**2).sum() * (other**2).sum())))
        return max(2 * of_halves / (1 + max(of_halves, 0)), LEAST_AGREEMENT)

    def by_octave(self, means: Estimate) -> Estimate:
        """Means by octave of the rank [..., rank_bin], with intervals that include the error of
        ranks.

        Ranks that these documents count are off by an octave, so each interval reaches as far as
        those of the octaves beside it. Ranks of tokens seen once or twice say nothing: they have
        none.
        """
        if (both := self.own_counts()) is None or self.scope.frequency_rank is None:
            return means
        rare = self.scope.frequency_rank[(both > 0) & (both <= RARE)]
        sure = np.arange(len(COARSE_RANK)) < COARSE_RANK.index(rare).min(initial=len(COARSE_RANK))
        low, high = (
            np.where(sure & np.isfinite(end), _of_three(end, extreme), np.nan)
            for end, extreme in ((means.low, np.fmin), (means.high, np.fmax))
        )
        return replace(means, low=low, high=high)


def _of_three(ends: Float64, extreme: np.ufunc) -> Float64:
    """[..., rank_bin] the extreme of each octave's interval end and those of its neighbours."""
    wide = np.pad(ends, [(0, 0)] * (ends.ndim - 1) + [(1, 1)], constant_values=np.nan)
    return np.asarray(extreme.reduce([wide[..., :-2], wide[..., 1:-1], wide[..., 2:]]))


def _over_tokens(counts: npt.NDArray[np.int64], weights: npt.NDArray[np.int64]) -> Float64:
    """[type] centred rank of each type by these counts, weighted by its count."""
    _, place = np.unique(counts, return_inverse=True)
    tied = np.bincount(place, weights)
    middle = np.cumsum(tied) - tied / 2 - tied.sum() / 2
    return np.asarray(middle[place] * np.sqrt(weights))


def correlated(coarse: Sums) -> tuple[Float64, Float64]:
    """[replicate + 1, number] Spearman's from histograms by groups, and their sizes."""
    return spearman(coarse.sums), coarse.sums.sum((-2, -1))


def around(
    fine: Float64, coarse: Float64, sizes: Float64 | None = None, *, agreement: float = 1.0
) -> Estimate:
    """The value from the fine histogram, with the interval of the coarse one shifted to contain it.

    fine       [number]
    coarse     [replicate + 1, number]
    sizes      [replicate + 1, number] of how many tokens, or pairs, it is; None: groups are equal
    agreement  of ranks with true ones: the interval reaches as far as its ends over it
    """
    interval = estimate_correlation(np.clip(fine + (coarse - coarse[0]), -1, 1), sizes)
    low, high = np.minimum(interval.low, interval.low / agreement), interval.high / agreement
    return replace(
        interval, low=np.maximum(low, -1), high=np.minimum(np.maximum(interval.high, high), 1)
    )
