"""The tokens, or pairs of tokens, of each kind in a batch: the largest of each kind counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from headscope.core.accumulators import Bools, Float64, Ints
from headscope.model.batch import to_float64


@dataclass(frozen=True)
class Groups:
    """Entries of a batch, of which only the largest of every example and kind counts.

    entries  [axis, entry] the example, then its token, or its query and its key; entries of one
             group stand together
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
    def present(self) -> Bools:
        """[example, kind] whether the example has any entry of the kind."""
        return np.isin(np.arange(np.prod(self.size)), self.cell).reshape(self.size)

    def members(self) -> list[tuple[int, Ints]]:
        """The cell of each group, and its entries without the example [axis, entry]."""
        entries = np.split(self.entries[1:], self.start[1:], 1)
        return [*zip(self.cell.tolist(), entries, strict=False)]  # of no groups there is one part

    def largest(self, values: torch.Tensor) -> Float64:
        """[example, head, kind] the largest of values [example, head, token] ≥ 0; 0 for none."""
        example, token = torch.from_numpy(self.entries).to(values.device)
        return self.largest_of(values[example, :, token])

    def largest_of(self, picked: torch.Tensor) -> Float64:
        """[example, head, kind] the largest of what was picked at the entries [entry, head] ≥ 0."""
        examples, kinds = self.size
        most = np.zeros((examples * kinds, picked.shape[1]))
        if len(self.start):
            most[self.cell] = np.maximum.reduceat(to_float64(picked), self.start)  # [group, head]
        return most.reshape(examples, kinds, -1).swapaxes(1, 2)  # [example, head, kind]
