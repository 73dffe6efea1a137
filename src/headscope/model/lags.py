"""Attention by the distance from query to key: sums over diagonals, block by block."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch

from headscope.core.accumulators import Ints
from headscope.model.compiled_loops import threaded
from headscope.model.kernels import compiled

Diagonals = tuple[tuple[int, ...], int]  # the cuts of `Lags`, and how many first keys


@dataclass(frozen=True)
class Lags:
    """Sums over the queries of ranges: those before the first cut, and from each cut on.

    cuts    first queries of the ranges after the first
    by_lag  [range, example, head, lag]  key j of query i at lag j - i + tokens - 1
    first   [range, example, head, key]  what the first few keys get; 0 in the first range
    """

    cuts: tuple[int, ...]
    by_lag: torch.Tensor
    first: torch.Tensor

    @classmethod
    def of(cls, cuts: tuple[int, ...], first: int, like: torch.Tensor, *shape: int) -> "Lags":
        """Nothing added yet; of examples, heads and tokens."""
        *cells, tokens = (len(cuts) + 1, *shape)
        sizes = (2 * tokens - 1, min(first, tokens))
        return cls(cuts, *(like.new_zeros(*cells, size) for size in sizes))

    @classmethod
    def together(cls, some: Sequence["Lags"]) -> "Lags":
        """Those of several examples, one behind the other."""
        return cls(
            some[0].cuts,
            *(torch.cat([getattr(one, name) for one in some], 1) for name in ("by_lag", "first")),
        )

    def add(
        self,
        weights: torch.Tensor,
        lengths: Ints,
        *,
        example: int = 0,
        head: int = 0,
        query: int = 0,
        key: int = 0,
    ) -> None:
        """Add a block of maps.

        weights  [example, head, query, key]
        lengths  [example] real tokens of each input
        example, head, query, key  where the block begins
        """
        examples, heads, rows, keys = weights.shape
        tokens = (self.by_lag.shape[-1] + 1) // 2
        there = slice(example, example + examples), slice(head, head + heads)
        few = max(0, min(self.first.shape[-1] - key, keys))
        for at, (start, stop) in enumerate(pairwise((0, *self.cuts, tokens))):
            low, high = max(start - query, 0), min(stop - query, rows)
            if low >= high:
                continue
            part = weights[:, :, low:high]
            moved = key - query - low + tokens - 1  # the lag of the first weight
            if compiled(weights):
                corner = (example, head, query, key, low, high)
                lag_sums(weights.numpy(), lengths, *corner, self.by_lag[at].numpy())
            else:
                part = part * _real(lengths, (query + low, key), part)
                step = high - low
                turned = torch.nn.functional.pad(part.flip(2), (0, step)).flatten(2)
                by_lag = turned[..., :-step].view(*turned.shape[:2], step, -1).sum(2)
                self.by_lag[at][there][..., moved - step + 1 :][..., : keys + step - 1] += by_lag
            if at and few:
                part = part[..., :few] * _real(lengths, (query + low, key), part[..., :few])
                self.first[at][there][..., key : key + few] += part.sum(2)


def _real(lengths: Ints, corner: tuple[int, int], part: torch.Tensor) -> torch.Tensor:
    """[example, 1, query, key] bool: which of a block that begins at a corner are no padding."""
    n = torch.from_numpy(lengths).to(part.device)[:, None]
    rows, keys = (
        torch.arange(start, start + size, device=part.device) < n
        for start, size in zip(corner, part.shape[2:], strict=True)
    )
    return rows[:, None, :, None] & keys[:, None, None]


@threaded(lambda weights, *_: weights.shape[0] * weights.shape[1])
def lag_sums(  # type: ignore[no-untyped-def]  # noqa: PLR0917
    begin, stop, weights, lengths, example, head, query, key, low, high, by_lag
):
    """Attention by how far the key stands from the query, summed over queries.

    weights   [example, head, query, key] float32, a block of maps; which begins at the example,
              head, query and key given
    lengths   [example] int64  keys and queries of the maps from lengths on are padding
    low, high of the block's queries, which are read
    by_lag    [example, head, lag] float32 out, added to: key j of query i at j - i + tokens - 1
    """
    heads, keys = weights.shape[1], weights.shape[3]
    middle = by_lag.shape[2] // 2
    for row in range(begin, stop):
        b = row // heads
        h = row - b * heads
        n = min(keys, lengths[b] - key)
        for i in range(low, min(high, lengths[b] - query)):
            a, total = weights[b, h, i], by_lag[example + b, head + h, middle + key - query - i :]
            for j in range(n):
                total[j] += a[j]
