"""What reads the residual stream of a decoder, and slopes with respect to what a reader is given.

Readers are the queries, keys and values of each head, each feed-forward layer, and the logits. All
heads of a layer are given the same stream; the slope of one is that which goes through its own
queries, keys or values alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import nn

from headscope.errors import ModelError
from headscope.experiments.circuits.discovery.layer_parts import first_of
from headscope.experiments.circuits.discovery.nodes import NodeOutputs, NodePasses
from headscope.model.attention import AttentionCall, listening
from headscope.model.instrument import Reversible
from headscope.model.linears import is_map, used_matrix

VIA = ("q", "k", "v")
_Ran = tuple[nn.Module, torch.Tensor, torch.Tensor]  # a module, what it was given, what it gave


@dataclass
class LayerReads:
    """What a pass leaves of what one layer reads.

    stream   [row, token, model] what the layer is given
    normed   what ran on it before attention
    maps     the linear maps inside attention that ran before it was called
    call     of attention
    before   [row, token, model] what the feed-forward layer reads
    """

    stream: torch.Tensor
    normed: list[_Ran] = field(default_factory=list)
    maps: list[_Ran] = field(default_factory=list)
    call: AttentionCall | None = None
    before: torch.Tensor | None = None


@dataclass(frozen=True)
class HeadColumns:
    """Where the queries, keys or values of heads come from.

    module   a linear map; `at` its place among those of its layer
    columns  [head, dim] the numbers of its outputs
    norm     what the stream passes before it; None: nothing
    """

    at: int
    module: nn.Module
    columns: torch.Tensor
    norm: nn.Module | None

    def matrix(self) -> tuple[torch.Tensor, torch.Tensor | None]:
        """[model, head, dim] what is multiplied by, and [head, dim] what is added."""
        used = used_matrix(self.module)
        assert used is not None
        weight, bias = used
        return weight.detach()[:, self.columns], None if bias is None else bias[self.columns]


class StreamReaders(Reversible):
    """Records what reads the stream in passes of `passes`, which are open, while it is open.

    raises  ModelError, by `slopes`, where the queries, keys or values of heads are no parts of a
            linear map of the normed stream
    """

    def __init__(self, passes: NodePasses) -> None:
        self.passes = passes
        self.reads: list[LayerReads] = []
        self.last: torch.Tensor | None = None
        self._columns: dict[tuple[int, str], HeadColumns] = {}

    def _open(self, stack: ExitStack) -> None:
        passes = self.passes
        stack.enter_context(listening(passes.network, self._attended))
        for layer, (block, part) in enumerate(zip(passes.blocks, passes.parts, strict=True)):
            hook = block.register_forward_pre_hook(self._begin, with_kwargs=True)
            stack.callback(hook.remove)
            attention = passes.attentions[layer]
            inside = set(attention.modules())
            for module in block.modules():
                if not any(module.children()):
                    own = module.register_forward_hook(partial(self._ran, module in inside))
                    stack.callback(own.remove)
            if part.reads is not block:
                own = part.reads.register_forward_pre_hook(self._before)
                stack.callback(own.remove)
        stack.callback(passes.blocks[-1].register_forward_hook(self._end).remove)

    def _forget(self) -> None:
        self.reads, self.last = [], None

    def _begin(self, block: nn.Module, args: Any, kwargs: Any) -> None:
        if block is self.passes.blocks[0]:
            self.reads = []
        self.reads.append(LayerReads(args[0] if args else kwargs["hidden_states"]))

    def _ran(self, inside: bool, module: nn.Module, args: Any, output: Any) -> None:
        if self.reads and self.reads[-1].call is None and args:
            ran = (module, args[0], first_of(output))
            if not inside:
                self.reads[-1].normed.append(ran)
            elif is_map(module):
                self.reads[-1].maps.append(ran)

    def _attended(self, call: AttentionCall) -> None:
        self.reads[-1].call = call

    def _before(self, _module: nn.Module, args: Any) -> None:
        self.reads[-1].before = args[0]

    def _end(self, _block: nn.Module, _args: Any, output: Any) -> None:
        self.last = first_of(output)

    def slopes(
        self, total: torch.Tensor, gave: NodeOutputs, *, common: int
    ) -> Iterator[tuple[torch.Tensor, torch.Tensor | None]]:
        """Yields by layer [via * head, row, token, model] and [row, token, model], the slopes of
        its heads' readers and of its feed-forward layer; in the end those of the logits alone.

        total   of which the slopes are; its graph is used up
        gave    what nodes gave in this pass
        common  first tokens that are left out
        """
        calls = [read.call for read in self.reads]
        assert self.last is not None
        assert None not in calls
        wanted = [
            tensor
            for call, fed in zip(calls, gave.feed_forward, strict=True)
            for tensor in (call.query, call.keys, call.values, fed)  # type: ignore[union-attr]
            if tensor is not None
        ]
        every = iter(torch.autograd.grad(total, [*wanted, self.last], retain_graph=True))
        for layer, fed in enumerate(gave.feed_forward):
            slopes = {via: next(every) for via in VIA}
            of_heads = torch.cat([self._of_heads(layer, *one, common) for one in slopes.items()])
            yield of_heads, None if fed is None else self._of_fed(layer, fed, next(every), common)
        yield next(every)[None, :, common:], None

    def _of_fed(
        self, layer: int, fed: torch.Tensor, slope: torch.Tensor, common: int
    ) -> torch.Tensor:
        read = self.reads[layer]
        before = read.stream if read.before is None else read.before
        (own,) = torch.autograd.grad(fed, before, slope, retain_graph=True)
        return own.view(read.stream.shape)[:, common:]

    def _of_heads(self, layer: int, via: str, slope: torch.Tensor, common: int) -> torch.Tensor:
        """[head, row, token, model] slopes with respect to the stream through one of q, k, v.

        slope  [row, head, token, dim] with respect to the queries, keys or values of each head
        """
        read, at = self.reads[layer], self.columns(layer, via)
        source, (weight, _) = self._source(read, via), at.matrix()
        shared, rows = slope.shape[1] // source.shape[1], list[torch.Tensor]()
        for place in range(shared):
            cotangent, output = slope[:, place::shared], read.maps[at.at][2]
            (own,) = torch.autograd.grad(source, output, cotangent, retain_graph=True)
            rows.append(torch.einsum("rtkd,mkd->krtm", own[:, common:, at.columns], weight))
        through = torch.stack(rows, 1).flatten(0, 1)  # [head, row, token, model]
        if at.norm is None:
            return through
        stream = read.stream.detach()[:, common:].expand(through.shape).requires_grad_()
        with torch.enable_grad():
            return torch.autograd.grad(at.norm(stream), stream, through)[0]

    @staticmethod
    def _source(read: LayerReads, via: str) -> torch.Tensor:
        assert read.call is not None
        return {"q": read.call.query, "k": read.call.key, "v": read.call.value}[via]

    def columns(self, layer: int, via: str) -> HeadColumns:
        """Which outputs of which map make the queries, keys or values of each head: tried in the
        last pass, which has its graph.
        """
        if (layer, via) in self._columns:
            return self._columns[layer, via]
        read = self.reads[layer]
        source, outputs = self._source(read, via), [output for _, _, output in read.maps]
        columns: list[tuple[int, torch.Tensor]] = []
        for head in range(source.shape[1]):
            probe = torch.zeros_like(source)
            probe[:, head] = torch.linspace(1, 2, source.shape[-1], dtype=source.dtype)
            slopes = torch.autograd.grad(
                source, outputs, probe, retain_graph=True, allow_unused=True
            )
            there = [at for at, slope in enumerate(slopes) if slope is not None]
            moved = slopes[there[-1]].flatten(0, -2).abs().sum(0) if there else torch.zeros(0)
            columns.append((there[-1] if there else -1, moved.nonzero()[:, 0]))
        at, of_heads = columns[0][0], [own for _, own in columns]
        one_map = len({at for at, _ in columns}) == 1 and at >= 0
        if not one_map or len({len(own) for own in of_heads}) > 1 or _shared(of_heads):
            raise _unknown(self.passes.network, f"the {via} of its heads are no parts of one map")
        module, inputs, _ = read.maps[at]
        made = HeadColumns(at, module, torch.stack(of_heads), self._norm(read, inputs))
        self._columns[layer, via] = made
        return made

    def _norm(self, read: LayerReads, inputs: torch.Tensor) -> nn.Module | None:
        """The norm between the stream and what a map is given."""
        if inputs is read.stream:
            return None
        for norm, stream, gave in read.normed:
            if gave is inputs and stream is read.stream:
                return norm
        raise _unknown(self.passes.network, "its attention is given more than a norm of the stream")


def _shared(columns: list[torch.Tensor]) -> bool:
    together = torch.cat(columns).tolist()
    return len(set(together)) < len(together)


def _unknown(network: nn.Module, reason: str) -> ModelError:
    return ModelError(
        f"edges of {type(network).__name__} are unknown: {reason}; wanted a decoder whose layers "
        "norm the stream and map it to queries, keys and values. Nodes can be found without edges"
    )
