"""How would one compute gradients of attention, plainly, in float64? One example at a time.

transformers' own eager attention, which hands out its maps; everything else is written anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

Loss = Callable[[torch.Tensor], torch.Tensor]  # logits [1, output] -> the loss of the example


def maps_and_gradients(
    network: Any, ids: np.ndarray[Any, Any], loss: Loss
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """By layer [head, query, key] α and ∂loss/∂α of one example, without any padding.

    network  eager, float64, in evaluation mode
    """
    given = torch.from_numpy(ids)[None]
    answer = network(input_ids=given, attention_mask=torch.ones_like(given), output_attentions=True)
    for maps in answer.attentions:
        maps.retain_grad()
    network.zero_grad()
    loss(answer.logits).backward()
    gradients = [maps.grad[0] for maps in answer.attentions]
    return [maps.detach()[0] for maps in answer.attentions], gradients


def mean_magnitude(
    gradients: list[torch.Tensor], kinds: np.ndarray[Any, Any], *, causal: bool = False
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """[layer, head, kind] Σ |∂loss/∂α| over edges to keys of each kind, and [kind] their number.

    kinds  [key] from 0
    """
    size = len(kinds)
    edges = np.tril(np.ones((size, size))) if causal else np.ones((size, size))
    of_kind = np.eye(kinds.max() + 1)[kinds]  # [key, kind]
    sums = [np.abs(g.numpy()) * edges @ of_kind for g in gradients]  # [head, query, kind]
    return np.stack([s.sum(1) for s in sums]), (edges @ of_kind).sum(0)


def with_a_mask_on_heads(
    network: Any, ids: np.ndarray[Any, Any], loss: Loss, projections: list[Any], *, heads: int
) -> np.ndarray[Any, Any]:
    """[layer, head] ∂loss/∂ξ at ξ = 1, where what each head hands to W_O is multiplied by its ξ."""
    mask = torch.ones(len(projections), heads, dtype=torch.float64, requires_grad=True)
    hooks = []
    for layer, projection in enumerate(projections):

        def faded(_module: Any, args: Any, layer: int = layer) -> Any:
            by_head = args[0].unflatten(-1, (heads, -1))  # [example, token, head, dim]
            return (by_head * mask[layer][:, None]).flatten(-2)

        hooks.append(projection.register_forward_pre_hook(faded))
    given = torch.from_numpy(ids)[None]
    loss(network(input_ids=given, attention_mask=torch.ones_like(given)).logits).backward()
    for hook in hooks:
        hook.remove()
    assert mask.grad is not None
    return mask.grad.numpy()


def attribution(
    network: Any, ids: np.ndarray[Any, Any], answer: Loss, modules: list[Any], *, steps: int
) -> list[torch.Tensor]:
    """By layer [head, query, key] the attributions of Hao et al. (2021), step by step.

    Riemann sums by the middle of each step.

    modules  attention modules that call `eager_attention_forward` in their own file
    answer   logits -> F
    """
    import transformers.models.bert.modeling_bert as bert

    own, found = bert.eager_attention_forward, []
    given = torch.from_numpy(ids)[None]
    for grown in modules:
        kept: dict[str, torch.Tensor] = {}

        def attend(module: Any, query: Any, key: Any, value: Any, mask: Any, **more: Any) -> Any:
            mixed, maps = own(module, query, key, value, mask, **more)
            if module is not grown:  # noqa: B023
                return mixed, maps
            kept.setdefault("maps", maps.detach())  # noqa: B023
            kept["scaled"] = (kept["maps"] * kept["scale"]).requires_grad_()  # noqa: B023
            return (kept["scaled"] @ value).transpose(1, 2), maps  # noqa: B023

        bert.eager_attention_forward = attend
        try:
            total = 0.0
            for step in range(steps):
                kept["scale"] = torch.tensor((step + 0.5) / steps, dtype=torch.float64)
                logits = network(input_ids=given, attention_mask=torch.ones_like(given)).logits
                (slope,) = torch.autograd.grad(answer(logits), [kept["scaled"]])
                total = total + slope / steps
        finally:
            bert.eager_attention_forward = own
        found.append((kept["maps"] * total)[0])
    return found
