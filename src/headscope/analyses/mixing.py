"""How much of what leaves an attention layer comes from other tokens?

For each token i the layer's output is split into what came from i itself and from all others; the
ratio is ‖others‖ / (‖others‖ + ‖self‖), averaged over all tokens (Kobayashi et al. 2021, "Incorporating
Residual and Normalization Layers into Analysis of Masked Language Models", §3-4). Five methods:

    attn_w       1 - mean over heads of α_ii                (weights alone)
    attn_n       vectors Σ_h α f(x_j)                       (norms)
    attnres_w    half of attn_w                             (the residual counts as attention to self)
    attnres_n    as attn_n, with x_i added to token i's own part
    attnresln_n  as attnres_n, after the LayerNorm's centring and scale γ

The biases b_O and β belong to no token and are left out. Models that normalise before attention
have no attnresln_n; models that change attention before adding it have no attnres_n either: NaN.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
import xarray as xr

from headscope.analysis import Analysis, Scope, analysis
from headscope.batch import Batch, to_float64
from headscope.layer import LayerView, Norm
from headscope.result import Variable, labelled

METHODS = ("attn_w", "attn_n", "attnres_w", "attnres_n", "attnresln_n")


@analysis
class Mixing(Analysis):
    """Mixing ratio of every layer by five methods."""

    name: ClassVar[str] = "mixing"
    needs: ClassVar[frozenset[str]] = frozenset({"attention", "values", "projection"})
    summary: ClassVar[str] = "how much of a token's output comes from other tokens"
    source: ClassVar[str] = "Kobayashi et al. 2021, §3-4"

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope)
        self.total = self.sums(scope.layers, len(METHODS))
        self.count = self.sums(scope.layers, len(METHODS))

    def observe(self, layer: LayerView, batch: Batch) -> None:
        """Add the ratios of all real tokens that have one, method by method."""
        ratios = mixing_ratios(layer)
        values, counts = np.zeros((2, len(batch.lengths), len(METHODS)))
        for index, method in enumerate(METHODS):
            if method in ratios:
                counted = batch.mask & ~ratios[method].isnan()  # 0/0: nothing reaches the token
                values[:, index] = to_float64(ratios[method].where(counted, 0).sum(-1))
                counts[:, index] = to_float64(counted.sum(-1))
        self.total.add(values, batch.bootstrap, at=(layer.index,))
        self.count.add(counts, batch.bootstrap, at=(layer.index,))

    def result(self) -> xr.Dataset:
        """ratio[layer, method] in 0 … 1."""
        ratio = Variable(
            self.mean(self.total, self.count), ("layer", "method"),
            "mixing ratio: share of a token's output that comes from other tokens", "1",
            self.source,
        )  # fmt: skip
        return labelled({"ratio": ratio}, coords={"method": METHODS})


def mixing_ratios(layer: LayerView) -> dict[str, torch.Tensor]:
    """The ratio of every token by each method that this model has: {method: [example, query]}."""
    assert layer.values is not None
    own_weight = layer.attention.diagonal(dim1=2, dim2=3)  # [example, head, query]
    own = layer.project(layer.values * own_weight[..., None])  # [example, query, model]
    bias = layer.projection.bias
    assert layer.output is not None
    whole = layer.output if bias is None else layer.output - bias
    others = whole - own
    by_weight = 1 - own_weight.mean(1)
    ratios = {"attn_w": by_weight, "attn_n": _ratio(others, own)}
    if layer.residual is not None:
        own = own + layer.residual
        ratios |= {"attnres_w": by_weight / 2, "attnres_n": _ratio(others, own)}
        if layer.norm is not None:
            # Both parts are divided by the same standard deviation, which the ratio cancels.
            normed = (_centred(part, layer.norm) for part in (others, own))
            ratios["attnresln_n"] = _ratio(*normed)
    return ratios


def _ratio(others: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
    far, near = (torch.linalg.vector_norm(part, dim=-1) for part in (others, own))
    return far / (far + near)


def _centred(vectors: torch.Tensor, norm: Norm) -> torch.Tensor:
    """γ ⊙ (y - mean(y)): the linear part of LayerNorm, up to the division."""
    return (vectors - vectors.mean(-1, keepdim=True)) * norm.scale
