"""What is kept of each example's gradients, once the maps are gone?

Sums over edges (a query and a key that it may attend to) by the category of the key, and how many
edges there were: means are formed at the very end, over all examples together.
"""

from __future__ import annotations

import numpy as np
import torch

from headscope.core.accumulators import Float64
from headscope.experiments.importance.stream import LayerGradient
from headscope.model.attention import visible
from headscope.model.batch import CATEGORIES, Batch, to_float64
from headscope.run.store import State


class Gather:
    """An observer of one batch's gradients; padding is weight 0, and so are edges that are masked.

    magnitude  [example, layer, head, category]  Σ |∂loss/∂α| over the edges to such keys
    attention  [example, layer, head, category]  Σ α over the same
    edges      [example, layer, category]        how many these are
    product    [example, layer, head]            Σ α ∂loss/∂α over all edges, signed
    even       [example, layer, head]            the same with 1/n for α, n being the keys that a
                                                 query may attend to
    """

    def __init__(self, batch: Batch, *, layers: int, heads: int) -> None:
        self.batch = batch
        size, count = len(batch.examples), len(CATEGORIES)
        self.magnitude = np.zeros((size, layers, heads, count))
        self.attention = np.zeros((size, layers, heads, count))
        self.edges = np.zeros((size, layers, count))
        self.product, self.even = (np.zeros((size, layers, heads)) for _ in range(2))
        self._masks: dict[int, tuple[torch.Tensor | None, torch.Tensor | None, Float64]] = {}

    def __call__(self, layer: LayerGradient) -> None:
        """Add one layer."""
        at, real = layer.layer, self.batch.mask
        size = layer.gradient.abs()  # [example, head, query, key]
        seen, edges = self._seen(layer)
        if seen is not None:
            size *= seen
        self.magnitude[:, at] = self._by_category(size)
        self.attention[:, at] = self._by_category(layer.attention)
        self.edges[:, at] = edges
        self.product[:, at] = to_float64((layer.product * real[:, None]).sum(-1))
        self.even[:, at] = to_float64(self._evenly(layer.gradient, seen))

    def state(self) -> State:
        """The arrays by name."""
        names = ("magnitude", "attention", "edges", "product", "even")
        return {name: getattr(self, name) for name in names}

    def _by_category(self, values: torch.Tensor) -> Float64:
        """[example, head, category] sums over real queries and the keys of each category."""
        dtype = torch.promote_types(values.dtype, torch.float32)
        queries = self.batch.mask[:, None, None].to(dtype)  # [example, 1, 1, query]
        columns = queries @ values.to(dtype)  # [example, head, 1, key]
        return to_float64(columns @ self.batch.categories[:, None].to(dtype))[:, :, 0]

    def _evenly(self, gradient: torch.Tensor, seen: torch.Tensor | None) -> torch.Tensor:
        """[example, head] Σ ∂loss/∂α / n over the edges, n being the keys that a query sees."""
        real = self.batch.mask.to(gradient.dtype)  # [example, token]
        if seen is not None:
            rows = (gradient * seen).sum(-1) / seen.sum(-1).clamp_min(1)  # [example, head, query]
            return (rows * real[:, None]).sum(-1)
        columns = (real[:, None, None] @ gradient)[:, :, 0]  # [example, head, key]
        return (columns * real[:, None]).sum(-1) / real.sum(-1, keepdim=True)

    def _seen(self, layer: LayerGradient) -> tuple[torch.Tensor | None, Float64]:
        """[example, 1, query, key] 1 for an edge, or None where only padding is masked; edges."""
        key = id(layer.mask)
        if key not in self._masks:  # layers share masks; kept, so that no other gets its id
            real = self.batch.mask
            seen = visible(layer.mask, layer.attention)[:, 0] & real[:, None]  # [example, q, k]
            there = seen & real[..., None]
            more = bool((there != real[..., None] & real[:, None]).any())
            weights = there.to(torch.float64).sum(1, keepdim=True)  # [example, 1, key]
            edges = to_float64(weights @ self.batch.categories.double())[:, 0]
            kept = there[:, None].to(layer.gradient.dtype) if more else None
            self._masks[key] = (layer.mask, kept, edges)
        return self._masks[key][1:]
