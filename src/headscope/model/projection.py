"""The output projection of a layer, cut into heads, and the LayerNorm after it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch

from headscope.model.linears import Product


@dataclass(frozen=True)
class Norm:
    """A LayerNorm after a sum; scale γ [model], variance offset, shift β [model] or None."""

    scale: torch.Tensor
    epsilon: float
    shift: torch.Tensor | None = None

    def of_part(self, vectors: torch.Tensor) -> torch.Tensor:
        """[…, model] γ ⊙ (v - mean(v)): a part of the sum, but for the sum's standard deviation."""
        scale = self.scale.to(vectors.dtype)
        return (vectors - vectors.mean(-1, keepdim=True)) * scale


class OutputProjection:
    """W_O of one layer, cut into heads.

    weight  [head, dim, model]  float; f_h(x) = value_h @ weight[h]
    bias    [model] or None
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
        self.weight, self.bias = weight, bias
        self._dtype = torch.promote_types(weight.dtype, torch.float32)

    def through(self, norm: Norm) -> OutputProjection:
        """W_O, then what a LayerNorm does to a part of its input; see `Norm.of_part`."""
        return OutputProjection(norm.of_part(self.weight.double()).to(self._dtype), None)

    @cached_property
    def factor(self) -> torch.Tensor:
        """[head, dim, dim] R with ‖v @ weight[h]‖ = ‖v @ R[h]‖: Wᵀ = QRᵀ, so lengths are kept."""
        _, upper = torch.linalg.qr(self.weight.double().transpose(1, 2))  # [head, dim, dim]
        factor: torch.Tensor = upper.transpose(1, 2).to(self._dtype)
        return factor

    @cached_property
    def lengths(self) -> list[Product]:
        """For each head, v -> v @ factor: [row, dim] -> [row, dim]."""
        return [Product(factor) for factor in self.factor]

    @cached_property
    def products(self) -> list[Product]:
        """For each head g, v -> v @ [W_g W_0ᵀ, …, W_g W_gᵀ]: [row, dim] -> [row, (g+1)·dim]."""
        blocks = torch.einsum("gdm,hem->ghde", self.weight.double(), self.weight.double())
        return [
            Product(blocks[g, : g + 1].permute(1, 0, 2).flatten(1).to(self._dtype))  # [dim, h·dim]
            for g in range(len(blocks))
        ]
