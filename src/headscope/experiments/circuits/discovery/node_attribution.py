"""Scores of nodes by integrated gradients: EAP-IG (Hanna et al. 2024) at the level of nodes.

The stream before the first layer goes from that of the corrupted prompt to that of the clean one in
steps k / m, k = 1 … m. A node's score is what it gives more in the clean prompt, times the mean
slope of the logit difference along this way. One step is attribution patching at the clean prompt.
"""

from __future__ import annotations

import numpy as np
import torch

from headscope.core.accumulators import Float64
from headscope.experiments.circuits.discovery.node_names import Nodes
from headscope.experiments.circuits.discovery.nodes import NodeOutputs, SlopePass
from headscope.experiments.circuits.discovery.paired_passes import Pair, PairedPasses
from headscope.experiments.importance.gradients import frozen
from headscope.model.batch import to_float64


def node_attribution(paired: PairedPasses, *, steps: int) -> Float64:
    """[prompt, node] by how many logits each node moves the difference towards the answer."""
    scores = np.zeros((len(paired.prompts.clean), len(paired.nodes)))
    for pair in paired.pairs(copies=steps):
        scores[pair.clean.places] = to_float64(_scores(paired, pair, steps))
    return scores


def _scores(paired: PairedPasses, pair: Pair, steps: int) -> torch.Tensor:
    """[example, node]"""
    slopes = mean_slopes(paired, pair, steps)
    sides = zip(pair.clean_gave.tensors(), pair.corrupted_gave.tensors(), slopes, strict=True)
    with torch.no_grad():
        products = [(clean - other) * slope for clean, other, slope in sides]
    return node_sums(pair.clean_gave.filled(products), paired.nodes)


def mean_slopes(paired: PairedPasses, pair: Pair, steps: int) -> list[torch.Tensor]:
    """The mean slope of the logit difference along the way, for each of `NodeOutputs.tensors`."""
    total, gave = pass_along(paired, pair, steps)
    slopes = torch.autograd.grad(total, list(gave.tensors()))
    return [slope.view(steps, -1, *slope.shape[1:]).mean(0) for slope in slopes]


def pass_along(paired: PairedPasses, pair: Pair, steps: int) -> tuple[torch.Tensor, NodeOutputs]:
    """The logit differences along the way, their sum, with its graph; and what nodes gave.

    returns  the outputs of all steps, [step * example, …]
    """
    clean, corrupted = pair.clean_gave.stream, pair.corrupted_gave.stream
    with torch.no_grad():
        parts = torch.arange(1, steps + 1, dtype=clean.dtype, device=clean.device) / steps
        way = corrupted + parts.view(-1, 1, 1, 1) * (clean - corrupted)  # [step, example, …]
    how = SlopePass(way.flatten(0, 1).requires_grad_())
    with torch.enable_grad(), frozen(paired.language.model.network):
        answers = paired.answers(pair.clean, how, copies=steps)
    assert how.gave is not None
    return answers.sum(), how.gave


def node_sums(products: NodeOutputs, nodes: Nodes) -> torch.Tensor:
    """[example, node] sums of what belongs to each node; 0 where there is no feed-forward layer."""
    stream = products.stream
    sums = stream.new_zeros(len(stream), len(nodes))
    sums[:, 0] = stream.sum((1, 2))
    for layer, (heads, fed) in enumerate(zip(products.heads, products.feed_forward, strict=True)):
        first, last = nodes.head(layer, 0), nodes.feed_forward(layer)
        sums[:, first:last] = heads.sum((1, 3))
        if fed is not None:
            sums[:, last] = fed.sum((1, 2))
    return sums
