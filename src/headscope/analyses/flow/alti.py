"""How near is what one token gives to what a token becomes, in the L1 distance (ALTI)?

Ferrando et al. (2022), "Measuring the Mixing of Contextual Information in the Transformer": token
j's contribution to y_i is max(0, ‖y_i‖₁ - ‖y_i - g₁(t_ij)‖₁), see `matrices`. Everything is
multiplied by s_i, the standard deviation in the LayerNorm, which no contribution depends on once
rows are divided by their sum.
"""

from __future__ import annotations

import numpy as np
import torch

from headscope.model import kernels
from headscope.model.batch import Batch
from headscope.model.layer import LayerView, compiled

_ROWS = 8  # queries of [query, key, model] at once, where the loop is not compiled


def alti(layer: LayerView, batch: Batch) -> torch.Tensor:
    """[example, query, key] contributions, at least 0, each row on a scale of its own.

    ‖y_i‖₁ - ‖y_i - t‖₁ is summed number by number: exactly 0 where nothing is given.
    """
    assert layer.values is not None
    whole, kept = _whole(layer), layer.kept  # [example, query, model]
    projection = layer.projection
    if layer.norm is not None:
        kept = layer.norm.of_part(kept)
        assert layer.site.normed_projection is not None
        projection = layer.site.normed_projection
    itself = (whole.abs() - (whole - kept).abs()).sum(-1)  # [example, query]
    maps = whole.new_zeros(layer.attention[:, 0].shape)  # [example, query, key]
    weight = projection.weight.to(whole.dtype)
    for example, n in enumerate(batch.lengths.tolist()):  # one at a time, to hold little
        weights = layer.attention[example, :, :n, :n]  # [head, query, key]
        values = layer.values[example, :, :n].to(whole.dtype)  # [head, key, dim]
        maps[example, :n, :n] = nearness(weights, values, weight, whole[example, :n])
    maps.diagonal(dim1=1, dim2=2).copy_(itself)
    return maps.clamp_min(0)


def nearness(
    weights: torch.Tensor, values: torch.Tensor, projection: torch.Tensor, whole: torch.Tensor
) -> torch.Tensor:
    """[query, key] ‖y_i‖₁ - ‖y_i - Σ_h α_ij v_j W_h‖₁ of one example.

    weights [head, query, key], values [head, key, dim], projection [head, dim, model],
    whole [query, model]
    """
    if compiled(weights):
        vectors = projection.transpose(1, 2) @ values.transpose(1, 2)  # [head, model, key]
        out = np.zeros(weights.shape[1:], np.float32)
        given = (weights.contiguous(), vectors.contiguous(), whole.contiguous())
        kernels.nearness(*(t.numpy() for t in given), out)
        return torch.from_numpy(out)
    vectors = values @ projection  # [head, key, model]
    rows = []
    for start in range(0, len(whole), _ROWS):
        y, a = whole[start : start + _ROWS], weights[:, start : start + _ROWS].to(vectors.dtype)
        part = torch.einsum("hqk,hkm->qkm", a, vectors)  # [query, key, model]
        rows.append((y.abs()[:, None] - (y[:, None] - part).abs()).sum(-1))  # [query, key]
    return torch.cat(rows)  # [query, key]


def _whole(layer: LayerView) -> torch.Tensor:
    """[example, query, model] y_i · s_i; the residual stream itself where no norm follows."""
    assert layer.output is not None
    assert layer.residual is not None
    stream = layer.kept.dtype
    total = layer.output.to(stream) + layer.residual.to(stream)
    norm = layer.norm
    if norm is None:
        return total
    centred = norm.of_part(total)
    if norm.shift is None:
        return centred
    deviation = (total.var(-1, correction=0, keepdim=True) + norm.epsilon).sqrt()
    return centred + norm.shift.to(stream) * deviation
