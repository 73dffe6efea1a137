"""The largest value of each group of tokens, or of each group of pairs of tokens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from headscope.core.accumulators import Float64
from headscope.model.batch import to_float64

Ints = npt.NDArray[np.int64]
UNITS = {"attention": "probability", "weighted_norm": "1"}


@dataclass(frozen=True)
class Groups:
    """Entries of a batch, of which only the largest of every example and kind counts.

    entries  [axis, entry] what to read from an array [example, head, *axis]: the example, then its
             token, or its query and its key; entries of one group stand together
    start    [group] the first entry of each group
    cell     [group] example · kinds + kind
    size     examples and kinds
    """

    entries: Ints
    start: Ints
    cell: Ints
    size: tuple[int, int]

    @classmethod
    def of(cls, kind: Ints, entries: Ints, *, size: tuple[int, int]) -> Groups:
        """Groups of entries in any order; kind [entry]."""
        cell = entries[0] * size[1] + kind
        order = np.argsort(cell, kind="stable")
        cell, start = np.unique(cell[order], return_index=True)
        return cls(entries[:, order], start, cell, size)

    @property
    def present(self) -> npt.NDArray[np.bool_]:
        """[example, kind] whether the example has any entry of the kind."""
        found = np.zeros(self.size, bool)
        found.reshape(-1)[self.cell] = True
        return found

    def largest(self, values: torch.Tensor) -> Float64:
        """[example, head, kind] the largest entry; 0 where there is none.

        values  [example, head, *axis] at least 0
        """
        examples, kinds = self.size
        found = np.zeros((examples * kinds, values.shape[1]))
        if len(self.start):
            example, *axes = torch.from_numpy(self.entries).to(values.device)
            picked = to_float64(values[(example, slice(None), *axes)])  # [entry, head]
            found[self.cell] = np.maximum.reduceat(picked, self.start)  # [group, head]
        return found.reshape(examples, kinds, -1).swapaxes(1, 2)  # [example, head, kind]
