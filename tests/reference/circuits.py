"""What a head writes into a logit difference: from the inputs of W_O and the norms' formulas."""

from __future__ import annotations

from typing import Any

import torch


def head_inputs(network: Any, projections: list[Any], ids: list[int]) -> list[torch.Tensor]:
    """[head · dim] by layer: what W_O is given at the last token."""
    kept: list[torch.Tensor] = []
    hooks = [
        p.register_forward_pre_hook(lambda _, a: kept.append(a[0][0, -1])) for p in projections
    ]
    try:
        with torch.no_grad():
            network(input_ids=torch.tensor([ids]))
    finally:
        for hook in hooks:
            hook.remove()
    return kept


def normed(
    x: torch.Tensor, whole: torch.Tensor, scale: torch.Tensor, *, centred: bool, epsilon: float
):
    """What a LayerNorm, or an RMSNorm, of the whole makes of its part x; without β."""
    if centred:
        x, whole = x - x.mean(-1, keepdim=True), whole - whole.mean()
    return scale * x / (whole.square().mean() + epsilon).sqrt()
