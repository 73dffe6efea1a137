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


def head_inputs_of_all(network: Any, projections: list[Any], ids: Any) -> list[torch.Tensor]:
    """[token, head · dim] by layer: what W_O is given."""
    kept: list[torch.Tensor] = []
    hooks = [p.register_forward_pre_hook(lambda _, a: kept.append(a[0][0])) for p in projections]
    difference(network, ids, 0, 0)
    for hook in hooks:
        hook.remove()
    return kept


def difference(network: Any, ids: Any, right: int, wrong: int) -> float:
    """The logit of one next token less that of another."""
    with torch.no_grad():
        logits = network(input_ids=torch.as_tensor(ids)[None]).logits[0, -1]
    return float(logits[right] - logits[wrong])


def patched(
    network: Any,
    projection: Any,
    ids: Any,
    answers: tuple[int, int],
    head: int,
    heads: int,
    at: Any,
    instead: torch.Tensor,
) -> float:
    """The same where W_O of one layer is given other numbers of one head, at some positions."""

    def change(_module: Any, args: tuple[torch.Tensor]) -> tuple[torch.Tensor]:
        given = args[0].clone()
        size = given.shape[-1] // heads
        own = slice(head * size, (head + 1) * size)
        given[0, at, own] = instead[at, own]
        return (given,)

    hook = projection.register_forward_pre_hook(change)
    try:
        return difference(network, ids, *answers)
    finally:
        hook.remove()
