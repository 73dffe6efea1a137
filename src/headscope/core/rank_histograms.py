"""Histograms of frequency rank against a number of each token, and intervals from coarse ones.

A corpus holds billions of tokens, so ranks are taken from histograms with logarithmic bins, which
add and merge. Intervals come from coarser histograms, one per bootstrap replicate: their spread is
placed around the fine value.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headscope.core.accumulators import Estimate, Float64, LogBins, estimate

RANK = LogBins(0, 18, 32)
COARSE_RANK = LogBins(0, 18, 1)


def ranked_cells(
    rank: npt.NDArray[np.int64], values: Float64, bins: LogBins
) -> npt.NDArray[np.int64]:
    """[…] the flat cell of [RANK, bins] that each pair of rank and value falls into."""
    return RANK.index(rank) * len(bins) + bins.index(values)


def ranked_counts(
    rank: npt.NDArray[np.int64], values: Float64, bins: LogBins, counted: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64]:
    """[example, cell] how many tokens of each example fall into each cell of [COARSE_RANK, bins].

    rank, values, counted  [example, token]
    """
    size = len(COARSE_RANK) * len(bins)
    cell = np.where(counted, COARSE_RANK.index(rank) * len(bins) + bins.index(values), size)
    return count_by_example(cell, (len(cell), size + 1))[:, :-1]


def _count(cells: npt.NDArray[np.int64], shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """How often each flat cell of `shape` occurs; cells beyond the shape are dropped."""
    size = int(np.prod(shape))
    return np.bincount(cells.ravel(), minlength=size)[:size].reshape(shape)


def count_by_example(cells: npt.NDArray[np.int64], shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """[example, cell] counts of cells given as [example, …]."""
    row = np.arange(shape[0]).reshape(-1, *[1] * (cells.ndim - 1)) * shape[1]
    return _count(cells + row, shape)


def around(fine: Float64, coarse: Float64, *, documents: int) -> Estimate:
    """The fine value with the coarse replicates' interval, moved so that it lies around it."""
    rough = estimate(coarse, documents=documents)
    low, high = (fine + (end - rough.value) for end in (rough.low, rough.high))
    return Estimate(fine, np.maximum(low, -1), np.minimum(high, 1))
