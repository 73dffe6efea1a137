"""Sets of edges as circuits: what the network answers with all other edges cut.

Along an edge that is cut, the reader is given what the node adds in the corrupted prompt; other
readers still get what it adds now. So each head has a stream of its own for its queries, its keys
and its values. Where heads share keys, the network runs once for each head of a group, and each
takes the keys and values that were made for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from headscope.core.accumulators import Bools, Float64
from headscope.errors import ModelError
from headscope.experiments.circuits.discovery.edge_attribution import (
    places_of_readers,
    readers_of,
    senders_of_fed,
    written,
    written_by_heads,
)
from headscope.experiments.circuits.discovery.layer_parts import first_of
from headscope.experiments.circuits.discovery.node_attribution import pass_along
from headscope.experiments.circuits.discovery.nodes import NodePass
from headscope.experiments.circuits.discovery.paired_passes import PairedPasses
from headscope.experiments.circuits.discovery.stream_readers import (
    VIA,
    HeadColumns,
    StreamReaders,
)
from headscope.model.attention import AttentionCall
from headscope.model.batch import to_float64
from headscope.model.instrument import Reversible

MOST = 2**27  # ours: numbers of what all nodes add in a pass


def answers_of_edges(paired: PairedPasses, sets: Bools | Float64) -> Float64:
    """[prompt, set] the logit difference with all edges cut that are not in a set.

    sets    [set, node, reader] whether it is, or how far; what is no edge counts for nothing
    raises  ModelError as `StreamReaders`, or where a feed-forward layer shares its norm with heads
    """
    answers = np.zeros((len(paired.prompts.clean), len(sets)))
    pairs = list(paired.pairs())
    runner = EdgeRunner(paired, _columns(paired, pairs[0]))
    with runner, torch.no_grad():
        for pair in pairs:
            rows, tokens = pair.clean.batch.input_ids.shape
            other = written(paired, pair.corrupted_gave, 0)
            fit = paired.batch_tokens // (rows * tokens * runner.shared)
            at_once = max(1, min(fit, MOST // other.numel()))
            for start in range(0, len(sets), at_once):
                some = 1 - torch.from_numpy(sets[start : start + at_once]).to(other)
                how = EdgePass(runner, other, some)
                rows_of = paired.answers(pair.clean, how, copies=runner.shared * len(some))
                own = to_float64(rows_of[: len(some)]).T
                answers[pair.clean.places, start : start + len(some)] = own
    return answers


def _columns(paired: PairedPasses, pair: Any) -> list[dict[str, HeadColumns]]:
    """[layer] where the queries, keys and values of heads come from."""
    with StreamReaders(paired.passes) as readers:
        pass_along(paired, pair, 1)
        return [
            {via: readers.columns(layer, via) for via in VIA}
            for layer in range(paired.nodes.layers)
        ]


@dataclass
class EdgePass(NodePass):
    """A pass of several copies of a batch, in each of which some edges are cut.

    other  [node, example, token, model] what nodes add in the corrupted prompt
    cut    [copy, node, reader] 1 where an edge is cut
    """

    runner: EdgeRunner
    other: torch.Tensor
    cut: torch.Tensor
    changes: torch.Tensor = field(init=False)
    known: int = field(default=0, init=False)

    def stream(self, own: torch.Tensor) -> torch.Tensor:
        """As it is; it is a node."""
        self.runner.now, self.known = self, 0
        self.changes = self.other.repeat(1, len(self.cut), 1, 1)  # [node, row, token, model]
        self._add(own[None])
        return own

    def attend(self, layer: int, call: AttentionCall) -> None:
        """Give each head the keys and values that were made for it."""
        if (shared := self.runner.shared) > 1:
            call.keys, call.values = (
                own.view(shared, -1, *own.shape[1:])
                .movedim(0, 2)
                .flatten(1, 2)
                .repeat(shared, 1, 1, 1)
                for own in (call.key, call.value)
            )

    def heads(self, layer: int, own: torch.Tensor) -> torch.Tensor:
        """As they are."""
        self._add(written_by_heads(self.runner.paired, layer, own))
        if self.runner.paired.passes.parts[layer].feed_forward is None:
            self.known += 1  # it adds nothing, in the corrupted prompt neither
        return own

    def feed_forward(self, layer: int, own: torch.Tensor) -> torch.Tensor:
        """As it is."""
        self._add(own[None])
        return own

    def _add(self, own: torch.Tensor) -> None:
        """own  [node, row, token, model] what the next nodes add."""
        self.changes[self.known : self.known + len(own)] -= own[:, : self.base(own.shape[1])]
        self.known += len(own)

    def base(self, rows: int) -> int:
        """How many rows there are but for heads that share keys."""
        return rows // self.runner.shared

    def corrected(self, readers: slice, senders: int) -> torch.Tensor:
        """[reader, row, token, model] what is added to the stream of each reader."""
        changes = self.changes[:senders]
        size = changes.shape[2:]
        by_copy = changes.view(senders, len(self.cut), -1, *size)  # [node, copy, example, …]
        cut = self.cut[:, :senders, readers]
        return torch.einsum("cnr,ncetd->rcetd", cut, by_copy).flatten(1, 2)


class EdgeRunner(Reversible):
    """Gives readers their own streams in an `EdgePass`, while it is open."""

    def __init__(self, paired: PairedPasses, columns: Sequence[dict[str, HeadColumns]]) -> None:
        self.paired, self.columns = paired, columns
        heads = paired.nodes.heads
        self.shared = heads // len(columns[0]["k"].columns)
        self.now: EdgePass | None = None
        self._streams: dict[int, torch.Tensor] = {}

    def _open(self, stack: ExitStack) -> None:
        passes = self.paired.passes
        for layer, (block, part) in enumerate(zip(passes.blocks, passes.parts, strict=True)):
            hook = block.register_forward_pre_hook(partial(self._begin, layer), with_kwargs=True)
            stack.callback(hook.remove)
            for module in dict.fromkeys(self.columns[layer][via].module for via in VIA):
                own = module.register_forward_hook(partial(self._mapped, layer))
                stack.callback(own.remove)
            if part.feed_forward is None:
                continue
            if part.reads is block:
                raise ModelError(
                    f"edges of {type(passes.network).__name__} cannot be cut: its feed-forward "
                    "layers read what its heads read; wanted a decoder whose feed-forward layers "
                    "come after attention"
                )
            own = part.reads.register_forward_pre_hook(partial(self._fed, layer))
            stack.callback(own.remove)
        stack.callback(passes.blocks[-1].register_forward_hook(self._end).remove)

    def _forget(self) -> None:
        self.now = None
        self._streams = {}

    def _begin(self, layer: int, _block: nn.Module, args: Any, kwargs: Any) -> None:
        self._streams[layer] = args[0] if args else kwargs["hidden_states"]

    def _mapped(self, layer: int, module: nn.Module, _args: Any, output: torch.Tensor) -> Any:
        """The outputs of a map, each head's made of the stream that it has."""
        if self.now is None:
            return None
        made = output.clone()
        base, nodes = self.now.base(len(output)), self.paired.nodes
        blocks = made.view(self.shared, base, *made.shape[1:])  # [head of a group, row, …]
        readers, _ = places_of_readers(nodes, layer)
        for place, via in enumerate(VIA):
            at = self.columns[layer][via]
            if at.module is not module:
                continue
            first = readers.start + place * nodes.heads
            own = self.now.corrected(slice(first, first + nodes.heads), nodes.head(layer, 0))
            own = own + self._streams[layer][:base]
            normed = own if at.norm is None else at.norm.forward(own)
            for head, column, numbers in self._by_head(normed, at):
                where = slice(None) if via == "q" else slice(head % self.shared, None, self.shared)
                blocks[where][..., column] = numbers
        return made

    def _by_head(
        self, normed: torch.Tensor, at: HeadColumns
    ) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
        """Each head, the outputs that are its own, and [row, token, dim] what they are."""
        weight, bias = at.matrix()
        shared = len(normed) // len(at.columns)
        for head, own in enumerate(normed):
            place = head // shared
            numbers = own @ weight[:, place].to(own)
            yield head, at.columns[place], numbers if bias is None else numbers + bias[place]

    def _fed(self, layer: int, _module: nn.Module, args: Any) -> Any:
        """What the feed-forward layer reads."""
        if self.now is None:
            return None
        nodes = self.paired.nodes
        _, place = places_of_readers(nodes, layer)
        senders = senders_of_fed(self.paired, layer)
        own = self.now.corrected(slice(place, place + 1), senders)[0]
        more = own.repeat(self.shared, 1, 1).view(args[0].shape)
        return (args[0] + more, *args[1:])

    def _end(self, _block: nn.Module, _args: Any, output: Any) -> Any:
        """What the logits read."""
        if self.now is None:
            return None
        nodes = self.paired.nodes
        last = slice(readers_of(nodes) - 1, None)
        own = self.now.corrected(last, len(nodes))[0].repeat(self.shared, 1, 1)
        made = first_of(output) + own
        return (made, *output[1:]) if isinstance(output, tuple) else made
