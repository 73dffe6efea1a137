"""Keep the few records of highest score in each cell, whatever order they come in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from headscope.core.accumulators import Array, Float64, same_cells


@dataclass
class TopRecords:
    """The few best records of each cell, in whatever order they came.

    rows    [*cell, rank, byte] uint8  the records, the best first
    record  their dtype: "score" (float64, above 0; 0 is an empty place), "key" (uint64, which
            decides between equal scores: the lower comes first), and what else is to be kept
    """

    rows: npt.NDArray[np.uint8]
    record: np.dtype[np.void]
    nothing: ClassVar[float] = 0

    @classmethod
    def zeros(cls, *cell: int, record: np.dtype[np.void]) -> TopRecords:
        """Nothing kept yet; the last of the cell's sizes is how many are kept."""
        return cls(np.zeros((*cell, record.itemsize), np.uint8), record)

    @property
    def array(self) -> Array:
        """The whole state."""
        return self.rows

    @property
    def records(self) -> Array:
        """[*cell, rank] the same, as records."""
        return self.rows.view(self.record)[..., 0]  # [*cell, rank]

    def wanted(self, scores: Float64, key: int) -> Array:
        """[cell, axis] the cells in which a record of these scores [*cell] would be kept."""
        last = self.records[..., -1]
        better = scores > last["score"]
        return np.argwhere(
            better | ((scores == last["score"]) & (scores > 0) & (key < last["key"]))
        )

    def put(self, cell: tuple[int, ...], record: Array) -> None:
        """Keep a record that is `wanted` in this cell, and no longer the last of those there."""
        there = self.records[cell]
        there[-1] = record
        there[:] = there[_ranks(there)]

    def merge(self, other: TopRecords) -> None:
        """Keep the best of what both have kept."""
        same_cells(self.rows, other.rows)
        both = np.concatenate([self.records, other.records], axis=-1)  # [*cell, 2·rank]
        ranks = _ranks(both)[..., : self.rows.shape[-2]]
        self.records[...] = np.take_along_axis(both, ranks, axis=-1)


def _ranks(records: Array) -> npt.NDArray[np.intp]:
    """[*cell, rank] places of the records, the highest score first, then the lowest key."""
    return np.lexsort((records["key"], -records["score"]), axis=-1)
