"""Scores of nodes by integrated gradients: EAP-IG (Hanna et al. 2024) at the level of nodes.

The stream before the first layer goes from that of the corrupted prompt to that of the clean one in
steps k / m, k = 1 … m. A node's score is what it gives more in the clean prompt, times the mean
slope of the logit difference along this way. One step is attribution patching at the clean prompt.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn

from headscope.core.accumulators import Float64
from headscope.experiments.circuits.discovery.node_names import Nodes
from headscope.experiments.circuits.discovery.nodes import NodeOutputs, NodePass
from headscope.experiments.circuits.discovery.paired_passes import Pair, PairedPasses
from headscope.experiments.importance.gradients import frozen
from headscope.model.attention import AttentionCall
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
    sums = [torch.zeros_like(own) for own in pair.clean_gave.tensors()]
    for total, how in passes_along(paired, pair, steps):
        for whole, slope in zip(sums, torch.autograd.grad(total, how.nodes()), strict=True):
            whole.add_(slope, alpha=1 / steps)
    return sums


@dataclass
class SlopePass(NodePass):
    """A pass that begins with another stream, and keeps what slopes are taken with respect to.

    start    [row, token, model] the stream before the first layer; it asks for its gradient
    streams  by layer [row, token, model] what it is given
    outputs  by module what maps to queries, keys and values give
    calls    by layer, of attention
    fed      by layer [row, token, model] what its feed-forward layer alone reads
    end      [row, token, model] what the logits read
    """

    start: torch.Tensor
    streams: list[torch.Tensor] = field(default_factory=list)
    outputs: dict[nn.Module, torch.Tensor] = field(default_factory=dict)
    calls: list[AttentionCall] = field(default_factory=list)
    fed: dict[int, torch.Tensor] = field(default_factory=dict)
    end: torch.Tensor | None = None

    def stream(self, layer: int, own: torch.Tensor) -> torch.Tensor:
        """The other stream before the first layer."""
        self.streams.append(own if layer else self.start)
        return super().stream(layer, self.streams[-1])

    def mapped(self, layer: int, module: nn.Module, own: torch.Tensor) -> torch.Tensor:
        """As it is."""
        self.outputs[module] = own
        return own

    def attend(self, layer: int, call: AttentionCall) -> None:
        """As it is."""
        self.calls.append(call)

    def read(self, layer: int, own: torch.Tensor) -> torch.Tensor:
        """The same numbers, in a tensor that nothing else reads."""
        self.fed[layer] = own.view_as(own)
        return self.fed[layer]

    def last(self, own: torch.Tensor) -> torch.Tensor:
        """As it is."""
        self.end = own
        return own

    def nodes(self) -> list[torch.Tensor]:
        """What nodes gave."""
        assert self.gave is not None
        return list(self.gave.tensors())


def passes_along(
    paired: PairedPasses, pair: Pair, steps: int
) -> Iterator[tuple[torch.Tensor, SlopePass]]:
    """Yields at each step along the way the sum of the logit differences, with its graph, and the
    pass: one step at a time, so that memory holds one graph.
    """
    clean, corrupted = pair.clean_gave.stream, pair.corrupted_gave.stream
    for step in range(1, steps + 1):
        with torch.no_grad():
            start = corrupted + step / steps * (clean - corrupted)  # [example, token, model]
        how = SlopePass(start.requires_grad_())
        with torch.enable_grad(), frozen(paired.language.model.network):
            total = paired.answers(pair.clean, how).sum()
        yield total, how
        del total, how  # before the next step


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
