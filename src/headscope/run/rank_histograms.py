"""Histograms of frequency rank against numbers of each token, and intervals from coarse ones.

A corpus holds billions of tokens, so ranks are taken from histograms with logarithmic bins, which
add and merge. Intervals come from coarser histograms, kept apart by groups of documents: how far
their correlation moves without a group is how far the fine one is taken to move.
"""

import numpy as np
import numpy.typing as npt

from headscope.core.accumulators import Counts, Float64, LogBins, spearman
from headscope.core.intervals import Estimate, estimate_correlation
from headscope.model.batch import Batch
from headscope.run.analysis import AnalysisPart, Scope

RANK = LogBins(0, 18, 32)
COARSE_RANK = LogBins(0, 18, 1)


class RankHistograms(AnalysisPart):
    """Frequency rank of token occurrences against some numbers of each.

    numbers       how many numbers
    bins, coarse  for their values, and for those of every group
    """

    def __init__(self, scope: Scope, numbers: int, bins: LogBins, coarse: LogBins) -> None:
        self.scope, self.bins, self.coarse_bins = scope, bins, coarse
        self.counts = Counts.zeros(numbers, len(RANK), len(bins))
        self.coarse = scope.sums(numbers, len(COARSE_RANK), len(coarse))

    def add(self, at: int, values: Float64, counted: npt.NDArray[np.bool_], batch: Batch) -> None:
        """Count the occurrences of a batch by number `at`; values, counted [example, token]."""
        assert self.scope.frequency_rank is not None
        rank = self.scope.frequency_rank[batch.input_ids.cpu().numpy()]  # [example, token]
        cells = RANK.index(rank) * len(self.bins) + self.bins.index(values)
        self.counts.add(at * len(RANK) * len(self.bins) + cells[counted])
        size = len(COARSE_RANK) * len(self.coarse_bins)
        cells = COARSE_RANK.index(rank) * len(self.coarse_bins) + self.coarse_bins.index(values)
        counts = [
            np.bincount(row[there], minlength=size)
            for row, there in zip(cells, counted, strict=True)
        ]
        self.coarse.add(np.array(counts), batch.groups, at=(at,))

    def correlations(self) -> tuple[Float64, Float64]:
        """Spearman's: [number], and [replicate + 1, number] from the coarse histograms."""
        return spearman(self.counts.counts), spearman(self.coarse.sums)


def around(fine: Float64, coarse: Float64) -> Estimate:
    """The fine value, with the interval that it has if it moves as the coarse one does.

    fine    [number]
    coarse  [replicate + 1, number]
    """
    return estimate_correlation(np.clip(fine + (coarse - coarse[0]), -1, 1))
