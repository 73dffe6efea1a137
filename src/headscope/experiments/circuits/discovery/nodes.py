"""The nodes of a decoder, and passes in which some of them give something else.

A node is what adds to the residual stream: the stream before the first layer (`input`), each head,
each feed-forward layer. A pass can take down what every node gives, replace it, or follow the slope
of a number back to it. Heads are replaced before W_O, so that a norm after attention sees what it
would see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from transformers import PreTrainedModel

from headscope.errors import ModelError
from headscope.experiments.circuits.discovery.layer_parts import first_of, layer_parts
from headscope.experiments.circuits.discovery.node_names import Nodes
from headscope.model.attention import AttentionCall, listening
from headscope.model.families.sites import find_sites
from headscope.model.instrument import Reversible


@dataclass
class NodeOutputs:
    """What every node gives in a pass of a batch.

    stream        [example, token, model] the residual stream before the first layer
    heads         by layer [example, query, head, dim] the mixtures Σ_j α_ij v_j
    feed_forward  by layer [example, token, model]; None where there is no feed-forward layer
    """

    stream: torch.Tensor
    heads: list[torch.Tensor] = field(default_factory=list)
    feed_forward: list[torch.Tensor | None] = field(default_factory=list)

    def tensors(self) -> Iterator[torch.Tensor]:
        """All tensors there are: the stream, then the heads and the feed-forward of each layer."""
        yield self.stream
        for mixed, fed in zip(self.heads, self.feed_forward, strict=True):
            yield mixed
            if fed is not None:
                yield fed

    def filled(self, tensors: Sequence[torch.Tensor]) -> NodeOutputs:
        """Others in their places, in the order of `tensors`."""
        every = iter(tensors)
        made = NodeOutputs(next(every))
        for fed in self.feed_forward:
            made.heads.append(next(every))
            made.feed_forward.append(None if fed is None else next(every))
        return made


class NodePass:
    """A pass that takes down what the nodes give, and changes none of them."""

    def __init__(self) -> None:
        self.gave: NodeOutputs | None = None

    def attend(self, layer: int, call: AttentionCall) -> None:
        """Change what a layer attends by, before it is mixed."""

    def stream(self, own: torch.Tensor) -> torch.Tensor:
        """The stream before the first layer."""
        self.gave = NodeOutputs(own)
        return own

    def heads(self, layer: int, own: torch.Tensor) -> torch.Tensor:
        """[example, query, head, dim] the mixtures of a layer."""
        assert self.gave is not None
        self.gave.heads.append(own)
        self.gave.feed_forward.append(None)
        return own

    def feed_forward(self, layer: int, own: torch.Tensor) -> torch.Tensor:
        """[example, token, model] what a feed-forward layer gives."""
        assert self.gave is not None
        self.gave.feed_forward[layer] = own
        return own


@dataclass
class SlopePass(NodePass):
    """A pass that begins with another stream, and records slopes.

    start  [row, token, model] the stream before the first layer; it asks for its gradient
    """

    start: torch.Tensor

    def stream(self, own: torch.Tensor) -> torch.Tensor:
        """That stream."""
        return super().stream(self.start)


@dataclass
class ReplacingPass(NodePass):
    """A pass of several copies of a batch, in each of which some nodes give something else.

    instead   what they give instead; sizes of 1 are repeated
    replaced  [copy, node] whether they do
    nodes     which node is where
    """

    instead: NodeOutputs
    replaced: torch.Tensor
    nodes: Nodes

    def stream(self, own: torch.Tensor) -> torch.Tensor:
        """As it is or replaced, by copy."""
        return self._chosen(own, self.instead.stream, self.replaced[:, 0])

    def heads(self, layer: int, own: torch.Tensor) -> torch.Tensor:
        """Likewise."""
        first = self.nodes.head(layer, 0)
        some = self.replaced[:, first : first + self.nodes.heads]
        return self._chosen(own, self.instead.heads[layer], some)

    def feed_forward(self, layer: int, own: torch.Tensor) -> torch.Tensor:
        """Likewise."""
        instead = self.instead.feed_forward[layer]
        assert instead is not None
        return self._chosen(own, instead, self.replaced[:, self.nodes.feed_forward(layer)])

    @staticmethod
    def _chosen(own: torch.Tensor, instead: torch.Tensor, where: torch.Tensor) -> torch.Tensor:
        rows = own.view(len(where), -1, *own.shape[1:])  # [copy, example, token, …]
        there = where.view(len(where), 1, 1, *where.shape[1:], 1)
        return torch.where(there, instead, rows).flatten(0, 1)


class NodePasses(Reversible):
    """Runs passes of a decoder in which nodes are taken down or replaced, while it is open.

    run     runs the network once on some input, so that its feed-forward layers are seen
    raises  ModelError for a network whose layers add something else than attention and one module
    """

    def __init__(self, network: PreTrainedModel, run: Callable[[], Any]) -> None:
        self.network = network
        self.sites = sites = find_sites(network)
        if not sites or any(site.block is None for site in sites):
            raise ModelError(
                f"the modules of whole layers of {type(network).__name__} are not known; wanted a "
                "decoder that is made of layers"
            )
        self.blocks = [site.block for site in sites if site.block is not None]
        self.attentions = [site.attention for site in sites]
        self.parts = layer_parts(self.blocks, self.attentions, run)
        self._pass, self._layer, self._size = NodePass(), 0, torch.Size()

    def _open(self, stack: ExitStack) -> None:
        stack.enter_context(listening(self.network, self._attend, alone=True))
        hook = self.blocks[0].register_forward_pre_hook(self._begin, with_kwargs=True)
        stack.callback(hook.remove)
        for layer, part in enumerate(self.parts):
            if part.feed_forward is not None:
                own = part.feed_forward.register_forward_hook(partial(self._fed, layer))
                stack.callback(own.remove)

    def _forget(self) -> None:
        self._pass = NodePass()

    def run(self, how: NodePass, run: Callable[[], Any]) -> Any:
        """What `run` returns, in this pass."""
        self._pass = how
        try:
            return run()
        finally:
            self._pass = NodePass()  # so that other passes of the network leave this one alone

    def _begin(self, _block: Any, args: Any, kwargs: Any) -> Any:
        own = args[0] if args else kwargs["hidden_states"]
        made = self._pass.stream(own)
        self._layer, self._size = 0, own.shape
        return ((made, *args[1:]), kwargs) if args else (args, kwargs | {"hidden_states": made})

    def _attend(self, call: AttentionCall) -> None:
        self._pass.attend(self._layer, call)
        mixed = call.mix().transpose(1, 2)  # [row, query, head, dim]
        call.mixed = self._pass.heads(self._layer, mixed).transpose(1, 2)
        self._layer += 1

    def _fed(self, layer: int, _module: Any, _args: Any, output: Any) -> Any:
        own, size = first_of(output), self._size
        made = self._pass.feed_forward(layer, own.view(size)).view(own.shape)
        return (made, *output[1:]) if isinstance(output, tuple) else made
