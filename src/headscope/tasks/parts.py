"""To which part of a network does a parameter belong, and how fast may each part learn?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

WEIGHT_DECAY = 0.01  # BERT's own (Devlin et al. 2019, appendix A.2)


@dataclass(frozen=True)
class Part:
    """The embeddings, one layer, the head of the task, or what closes the stack.

    name   "embeddings", "layer", "head" (with the pooler before it) or "rest"
    layer  0-based number; None for the others
    """

    name: str
    layer: int | None = None

    @property
    def label(self) -> str:
        """As it is printed: layers count from 1."""
        return self.name if self.layer is None else f"layer {self.layer + 1}"


def parts_of(network: PreTrainedModel) -> dict[Part, dict[str, nn.Parameter]]:
    """Every parameter once, by part and name, from the embeddings to the head.

    A layer is what stands under the first number in a parameter's path. A network that uses one
    layer again and again (ALBERT) has one layer here.
    """
    embeddings = {
        f"{path}.weight" for path, m in network.named_modules() if isinstance(m, nn.Embedding)
    }
    found: dict[Part, dict[str, nn.Parameter]] = {}
    for name, parameter in network.named_parameters():
        part = _part(name, network.base_model_prefix, embeddings)
        found.setdefault(part, {})[name] = parameter
    order = {"embeddings": 0, "layer": 1, "rest": 2, "head": 3}
    ordered = sorted(found, key=lambda part: (order[part.name], part.layer or 0))
    return {part: found[part] for part in ordered}


def _part(name: str, base: str, embeddings: set[str]) -> Part:
    if not name.startswith(f"{base}.") or "pooler" in name:
        return Part("head")
    numbers = [int(step) for step in name.split(".") if step.isdigit()]
    if numbers:
        return Part("layer", numbers[0])
    return Part("embeddings" if name in embeddings or "embed" in name else "rest")


def rates(parts: Mapping[Part, object], *, rate: float, decay: float) -> dict[Part, float]:
    """How fast each part learns: the head at `rate`, each layer below it at `decay` times less.

    The last layer learns at rate·decay, the one before it at rate·decay², the embeddings below the
    first layer once more slowly (Howard & Ruder 2018, section 3.2, "discriminative fine-tuning").
    With decay = 1 all parts learn alike.
    """
    layers = sorted(part.layer for part in parts if part.layer is not None)
    below = {layer: len(layers) - at for at, layer in enumerate(layers)}

    def steps(part: Part) -> int:
        if part.layer is not None:
            return below[part.layer]
        return {"embeddings": len(layers) + 1, "rest": 1, "head": 0}[part.name]

    return {part: rate * decay ** steps(part) for part in parts}


def optimizer(
    parts: Mapping[Part, Mapping[str, nn.Parameter]], speeds: Mapping[Part, float]
) -> torch.optim.AdamW:
    """AdamW with each part's own rate; biases and norms, which are vectors, do not decay."""
    groups: list[dict[str, Any]] = []
    for part, parameters in parts.items():
        for decays in (True, False):
            chosen = [p for p in parameters.values() if (p.ndim > 1) == decays]
            weight_decay = WEIGHT_DECAY if decays else 0.0
            if chosen:
                groups.append({"params": chosen, "lr": speeds[part], "weight_decay": weight_decay})
    return torch.optim.AdamW(groups)


def norm(tensors: Mapping[str, torch.Tensor]) -> float:
    """The Euclidean norm of all of them together, summed in float64."""
    squares = [
        torch.linalg.vector_norm(t.detach(), dtype=torch.float64) ** 2 for t in tensors.values()
    ]
    return float(torch.stack(squares).sum().sqrt()) if squares else 0.0


def gradient_norm(parameters: Mapping[str, nn.Parameter]) -> float:
    """The Euclidean norm of the gradients that are there."""
    return norm({name: p.grad for name, p in parameters.items() if p.grad is not None})


def relative_change(before: Mapping[str, torch.Tensor], after: Mapping[str, torch.Tensor]) -> float:
    """‖after - before‖ / ‖before‖ over all tensors of a part."""
    moved = {name: after[name].detach().cpu() - before[name] for name in before}
    start = norm(before)
    return norm(moved) / start if start > 0 else float("nan")
