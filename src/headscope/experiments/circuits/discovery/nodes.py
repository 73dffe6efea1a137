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
from torch import nn
from transformers import PreTrainedModel

from headscope.errors import ModelError
from headscope.experiments.circuits.discovery.layer_parts import HeadColumns, first_of, layer_parts
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

    def stream(self, layer: int, own: torch.Tensor) -> torch.Tensor:
        """[example, token, model] what a layer is given; before the first it is a node."""
        if not layer:
            self.gave = NodeOutputs(own)
        return own

    def mapped(self, layer: int, module: nn.Module, own: torch.Tensor) -> torch.Tensor:
        """What a map to queries, keys or values gives."""
        return own

    def attend(self, layer: int, call: AttentionCall) -> None:
        """Change what a layer attends by, before it is mixed."""

    def heads(self, layer: int, own: torch.Tensor) -> torch.Tensor:
        """[example, query, head, dim] the mixtures of a layer."""
        assert self.gave is not None
        self.gave.heads.append(own)
        self.gave.feed_forward.append(None)
        return own

    def read(self, layer: int, own: torch.Tensor) -> torch.Tensor:
        """What a feed-forward layer reads, unless it is what its layer is given."""
        return own

    def feed_forward(self, layer: int, own: torch.Tensor) -> torch.Tensor:
        """[example, token, model] what a feed-forward layer gives."""
        assert self.gave is not None
        self.gave.feed_forward[layer] = own
        return own

    def last(self, own: torch.Tensor) -> torch.Tensor:
        """[example, token, model] what the logits read."""
        return own


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

    def stream(self, layer: int, own: torch.Tensor) -> torch.Tensor:
        """As it is or replaced, by copy."""
        return own if layer else self._chosen(own, self.instead.stream, self.replaced[:, 0])

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
        self.parts = layer_parts(network, self.blocks, [site.attention for site in sites], run)
        self._pass, self._layer, self._size = NodePass(), 0, torch.Size()

    def _open(self, stack: ExitStack) -> None:
        stack.enter_context(listening(self.network, self._attend, alone=True))
        keep = stack.callback
        for layer, (block, part) in enumerate(zip(self.blocks, self.parts, strict=True)):
            begin = partial(self._begin, layer)
            keep(block.register_forward_pre_hook(begin, with_kwargs=True).remove)
            columns = part.columns if isinstance(part.columns, dict) else {}
            for module in dict.fromkeys(one.module for one in columns.values()):
                keep(module.register_forward_hook(partial(self._mapped, layer)).remove)
            if part.feed_forward is not None:
                keep(part.feed_forward.register_forward_hook(partial(self._fed, layer)).remove)
            if part.reads is not block:
                keep(part.reads.register_forward_pre_hook(partial(self._read, layer)).remove)
        keep(self.blocks[-1].register_forward_hook(self._end).remove)

    def _forget(self) -> None:
        self._pass = NodePass()

    def run(self, how: NodePass, run: Callable[[], Any]) -> Any:
        """What `run` returns, in this pass."""
        self._pass = how
        try:
            return run()
        finally:
            self._pass = NodePass()  # so that other passes of the network leave this one alone

    def columns(self, layer: int) -> dict[str, HeadColumns]:
        """Where the queries, keys and values of a layer come from; ModelError if unknown."""
        columns = self.parts[layer].columns
        if isinstance(columns, dict):
            return columns
        raise ModelError(
            f"edges of {type(self.network).__name__} are unknown: {columns}; wanted a decoder "
            "whose layers norm the stream and map it to queries, keys and values. Nodes can be "
            "found without edges"
        )

    def _begin(self, layer: int, _block: Any, args: Any, kwargs: Any) -> Any:
        own = args[0] if args else kwargs["hidden_states"]
        made = self._pass.stream(layer, own)
        self._layer, self._size = layer, own.shape
        return ((made, *args[1:]), kwargs) if args else (args, kwargs | {"hidden_states": made})

    def _mapped(self, layer: int, module: nn.Module, _args: Any, output: torch.Tensor) -> Any:
        return self._pass.mapped(layer, module, output)

    def _attend(self, call: AttentionCall) -> None:
        self._pass.attend(self._layer, call)
        mixed = call.mix().transpose(1, 2)  # [row, query, head, dim]
        call.mixed = self._pass.heads(self._layer, mixed).transpose(1, 2)

    def _read(self, layer: int, _module: Any, args: Any) -> Any:
        return (self._pass.read(layer, args[0].view(self._size)).view(args[0].shape), *args[1:])

    def _fed(self, layer: int, _module: Any, _args: Any, output: Any) -> Any:
        own, size = first_of(output), self._size
        return _with_first(output, self._pass.feed_forward(layer, own.view(size)).view(own.shape))

    def _end(self, _block: Any, _args: Any, output: Any) -> Any:
        return _with_first(output, self._pass.last(first_of(output)))


def _with_first(output: Any, made: torch.Tensor) -> Any:
    return (made, *output[1:]) if isinstance(output, tuple) else made
