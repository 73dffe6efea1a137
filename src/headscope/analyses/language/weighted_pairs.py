"""Weighted sums over chosen pairs of tokens of a batch, without the whole map."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from scipy.sparse import csr_array

from headscope.core.accumulators import Float64, Ints
from headscope.model.batch import Batch, to_float64
from headscope.model.layer import LayerView


@dataclass(frozen=True)
class WeightedPairs:
    """Which pairs count how much for which sum.

    pairs   [axis, pair] example, query, key
    counts  [sum, pair] how much each pair counts for each sum
    """

    pairs: Ints
    counts: csr_array

    @classmethod
    def of(cls, pairs: Ints, cell: Ints, weight: Float64, *, size: int) -> Self:
        """From pairs that each count for one sum; cell, weight [pair], of `size` sums."""
        place = np.arange(len(cell))
        return cls(pairs, csr_array((weight, (cell, place)), shape=(size, len(cell))))

    @classmethod
    def between_words(cls, batch: Batch, rows: Ints, query: Ints, key: Ints) -> Self:
        """From one word to the other: the sum over the tokens of the key, mean over the query's.

        rows, query, key  [sum] the examples, and places in them
        """
        count, end = batch.words.pieces, np.cumsum(batch.words.pieces, 1)
        queries, keys = count[rows, query], count[rows, key]  # [sum] how many tokens
        size = queries * keys
        of = np.repeat(np.arange(len(rows)), size)  # [pair]
        at = np.arange(len(of)) - np.repeat(np.cumsum(size) - size, size)
        first = (end - count)[rows[of], np.stack([query[of], key[of]])]  # [query or key, pair]
        tokens = first + np.stack([at // keys[of], at % keys[of]])
        pairs = np.concatenate([rows[of][None], tokens])
        return cls.of(pairs, of, 1 / queries[of], size=len(rows))

    def sums(self, layer: LayerView, batch: Batch, *, measure: str) -> Float64:
        """[sum, head] of what the queries give to the keys."""
        pairs = torch.from_numpy(self.pairs).to(batch.mask.device)
        values = to_float64(layer.pairs(*pairs, measure=measure))  # [pair, head]
        return np.asarray(self.counts @ values)

    def even(self, batch: Batch) -> Float64:
        """[sum] the same where each token gives all tokens of its input as much."""
        return np.asarray(self.counts @ (1 / batch.lengths[self.pairs[0]]))
