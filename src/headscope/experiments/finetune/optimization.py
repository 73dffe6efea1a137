"""Parameter groups with their learning rates, and the order of training examples."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import Sampler
from transformers import PreTrainedModel

from headscope.core.accumulators import generator
from headscope.errors import InputError

WEIGHT_DECAY = 0.01  # BERT's own (Devlin et al. 2019, appendix A.2)


@dataclass(frozen=True)
class ParameterGroup:
    """A part of the network: the embeddings, one layer, the task's head, or the layers after the
    stack.

    name   "embeddings", "layer", "head" (with the pooler before it) or "rest"
    layer  0-based number; None for the others
    """

    name: str
    layer: int | None = None


def parts_of(network: PreTrainedModel) -> dict[ParameterGroup, dict[str, nn.Parameter]]:
    """Every parameter once, by part and name, from the embeddings to the head.

    A layer is what stands under the first number in a parameter's path. A network that uses one
    layer again and again (ALBERT) has one layer here.
    """
    embeddings = {
        f"{path}.weight" for path, m in network.named_modules() if isinstance(m, nn.Embedding)
    }
    groups: dict[ParameterGroup, dict[str, nn.Parameter]] = {}
    for name, parameter in network.named_parameters():
        part = _part(name, network.base_model_prefix, embeddings)
        groups.setdefault(part, {})[name] = parameter
    order = {"embeddings": 0, "layer": 1, "rest": 2, "head": 3}
    ordered = sorted(groups, key=lambda part: (order[part.name], part.layer or 0))
    return {part: groups[part] for part in ordered}


def _part(name: str, base: str, embeddings: set[str]) -> ParameterGroup:
    if not name.startswith(f"{base}.") or "pooler" in name:
        return ParameterGroup("head")
    numbers = [int(step) for step in name.split(".") if step.isdigit()]
    if numbers:
        return ParameterGroup("layer", numbers[0])
    return ParameterGroup("embeddings" if name in embeddings or "embed" in name else "rest")


def freeze(parts: Mapping[ParameterGroup, Mapping[str, nn.Parameter]], layers: int) -> None:
    """Keep the first layers, and the embeddings below them, as they are: without gradients.

    raises  InputError for more layers than there are
    """
    known = sum(part.layer is not None for part in parts)
    if layers > known:
        raise InputError(f"found freeze={layers}; wanted at most {known}, the layers of the model")
    for part, parameters in parts.items():
        below = part.name == "embeddings" or (part.layer is not None and part.layer < layers)
        for parameter in parameters.values():
            parameter.requires_grad_(not (layers and below))


def rates(
    parts: Mapping[ParameterGroup, object], *, rate: float, decay: float
) -> dict[ParameterGroup, float]:
    """Learning rate of each part: `rate` for the head, then `decay` times less for each layer
    below.

    The last layer learns at rate·decay, the one before it at rate·decay², the embeddings below the
    first layer once more slowly (Howard & Ruder 2018, section 3.2, "discriminative fine-tuning").
    With decay = 1 all parts learn alike.
    """
    layers = sorted(part.layer for part in parts if part.layer is not None)
    below = {layer: len(layers) - at for at, layer in enumerate(layers)}

    def steps(part: ParameterGroup) -> int:
        if part.layer is not None:
            return below[part.layer]
        return {"embeddings": len(layers) + 1, "rest": 1, "head": 0}[part.name]

    return {part: rate * decay ** steps(part) for part in parts}


def optimizer(
    parts: Mapping[ParameterGroup, Mapping[str, nn.Parameter]],
    speeds: Mapping[ParameterGroup, float],
) -> torch.optim.AdamW:
    """AdamW with a learning rate for each part; biases and norms (vectors) have no weight decay."""
    groups: list[dict[str, Any]] = []
    for part, parameters in parts.items():
        for decays in (True, False):
            chosen = [p for p in parameters.values() if (p.ndim > 1) == decays]
            weight_decay = WEIGHT_DECAY if decays else 0.0
            if chosen:
                groups.append({"params": chosen, "lr": speeds[part], "weight_decay": weight_decay})
    return torch.optim.AdamW(groups)


def norm(tensors: Mapping[str, torch.Tensor]) -> float:
    """The Euclidean norm of all tensors together, summed in float64."""
    squares = [
        torch.linalg.vector_norm(t.detach(), dtype=torch.float64) ** 2 for t in tensors.values()
    ]
    return float(torch.stack(squares).sum().sqrt()) if squares else 0.0


def gradient_norm(parameters: Mapping[str, nn.Parameter]) -> float:
    """The Euclidean norm of all gradients that exist."""
    return norm({name: p.grad for name, p in parameters.items() if p.grad is not None})


def relative_change(before: Mapping[str, torch.Tensor], after: Mapping[str, torch.Tensor]) -> float:
    """‖after - before‖ / ‖before‖ over all tensors of a part."""
    moved = {name: after[name].detach().cpu() - before[name] for name in before}
    start = norm(before)
    return norm(moved) / start if start > 0 else float("nan")


# Batches that are cut from one pool of examples in order of length: few enough that every epoch
# mixes examples, enough that those of a batch are alike (a third to a half of all padding).
POOL = 16


class Batches(Sampler[list[int]]):
    """Batches of an epoch: shuffle, pool, sort by length, cut, and shuffle again.

    The order depends on the seed and the epoch only, so that a training that goes on sees what it
    would have seen.

    lengths      [example] tokens
    steps_done   how many batches were trained on so far, in all epochs
    """

    def __init__(
        self, lengths: Sequence[int], *, size: int, seed: int, steps_done: Callable[[], int]
    ) -> None:
        self.lengths = np.asarray(lengths)
        self.size, self.seed, self.steps_done = size, seed, steps_done

    def __len__(self) -> int:
        return math.ceil(len(self.lengths) / self.size)

    def __iter__(self) -> Iterator[list[int]]:
        epoch = self.steps_done() // len(self)
        random = generator(self.seed, "order of training", str(epoch))
        order = random.permutation(len(self.lengths))
        batches: list[list[int]] = []
        for start in range(0, len(order), POOL * self.size):
            pool = order[start : start + POOL * self.size]
            pool = pool[np.argsort(self.lengths[pool], kind="stable")]
            batches += [pool[at : at + self.size].tolist() for at in range(0, len(pool), self.size)]
        for at in random.permutation(len(batches)):
            yield batches[at]
