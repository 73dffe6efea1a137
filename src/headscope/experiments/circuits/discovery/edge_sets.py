"""Sets of edges as circuits: what the network answers with all other edges cut.

Along an edge that is cut, the reader is given what the node adds in the corrupted prompt; other
readers still get what it adds now. So each head has a stream of its own for its queries, its keys
and its values. Where attention passes a norm before it is added (Gemma 2 and 3), each reader gets
the norm of what heads give to it. Where heads share keys, the network runs once for each head of a
group, and each takes the keys and values that were made for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn

from headscope.core.accumulators import Bools, Float64
from headscope.errors import ModelError
from headscope.experiments.circuits.discovery.edge_attribution import (
    before_norm,
    places_of_readers,
    senders_of_fed,
    written,
    written_by_heads,
)
from headscope.experiments.circuits.discovery.layer_parts import VIA, HeadColumns
from headscope.experiments.circuits.discovery.nodes import NodePass
from headscope.experiments.circuits.discovery.paired_passes import PairedPasses
from headscope.model.attention import AttentionCall
from headscope.model.batch import to_float64

MOST = 2**27  # ours: numbers of what all nodes add in a pass


def answers_of_edges(paired: PairedPasses, sets: Bools | Float64) -> Float64:
    """[prompt, set] the logit difference with all edges cut that are not in a set.

    sets    [set, node, reader] whether it is, or how far; what is no edge counts for nothing
    raises  ModelError as `edge_attribution`, or where a feed-forward layer shares its norm with
            heads
    """
    if paired.beside:
        raise ModelError(
            f"edges of {type(paired.passes.network).__name__} cannot be cut: its feed-forward "
            "layers read what its heads read; wanted a decoder whose feed-forward layers come "
            "after attention"
        )
    answers = np.zeros((len(paired.prompts.clean), len(sets)))
    shared = paired.nodes.heads // len(paired.passes.columns(0)["k"].columns)
    for pair in paired.pairs():
        rows, tokens = pair.real.shape
        with torch.no_grad():
            other = written(paired, pair.corrupted_gave)
            fit = paired.batch_tokens // (rows * tokens * shared)
            at_once = max(1, min(fit, MOST // other.numel()))
            for start in range(0, len(sets), at_once):
                some = 1 - torch.from_numpy(sets[start : start + at_once]).to(other)
                how = EdgePass(paired, shared, other, some)
                rows_of = paired.answers(pair.clean, how, copies=shared * len(some))
                own = to_float64(rows_of[: len(some)]).T
                answers[pair.clean.places, start : start + len(some)] = own
    return answers


@dataclass
class EdgePass(NodePass):
    """A pass of several copies of a batch, in each of which some edges are cut.

    shared  heads that share keys
    other   [node, example, token, model] what nodes give in the corrupted prompt, as `written`
    cut     [copy, node, reader] 1 where an edge is cut
    whole   by layer whose attention passes a norm: [row, token, model] what it gives before
    """

    paired: PairedPasses
    shared: int
    other: torch.Tensor
    cut: torch.Tensor
    changes: torch.Tensor = field(init=False)
    known: int = field(default=0, init=False)
    layer_stream: torch.Tensor = field(init=False)
    whole: dict[int, torch.Tensor] = field(default_factory=dict, init=False)

    def stream(self, layer: int, own: torch.Tensor) -> torch.Tensor:
        """As it is; before the first layer it is a node."""
        if not layer:
            self.changes = self.other.repeat(1, len(self.cut), 1, 1)  # [node, row, token, model]
            self._add(own[None])
        self.layer_stream = own
        return own

    def mapped(self, layer: int, module: nn.Module, own: torch.Tensor) -> torch.Tensor:
        """The outputs of a map, each head's made of the stream that it has."""
        base, nodes, made = self.base(len(own)), self.paired.nodes, own.clone()
        blocks = made.view(self.shared, base, *made.shape[1:])  # [head of a group, row, …]
        readers, _ = places_of_readers(nodes, layer)
        for place, via in enumerate(VIA):
            at = self.paired.passes.columns(layer)[via]
            if at.module is not module:
                continue
            first = readers.start + place * nodes.heads
            stream = self.corrected(slice(first, first + nodes.heads), nodes.head(layer, 0))
            stream = stream + self.layer_stream[:base]
            normed = stream if at.norm is None else at.norm.forward(stream)
            for head, column, numbers in _by_head(normed, at):
                where = slice(None) if via == "q" else slice(head % self.shared, None, self.shared)
                blocks[where][..., column] = numbers
        return made

    def attend(self, layer: int, call: AttentionCall) -> None:
        """Give each head the keys and values that were made for it."""
        if self.shared > 1:
            call.keys, call.values = (
                own.view(self.shared, -1, *own.shape[1:])
                .movedim(0, 2)
                .flatten(1, 2)
                .repeat(self.shared, 1, 1, 1)
                for own in (call.key, call.value)
            )

    def heads(self, layer: int, own: torch.Tensor) -> torch.Tensor:
        """As they are."""
        heads, part = written_by_heads(self.paired, layer, own), self.paired.passes.parts[layer]
        self._add(heads)
        if part.post_norm is not None:
            self.whole[layer] = before_norm(self.paired, layer, heads[:, : self.base(len(own))])
        if part.feed_forward is None:
            self.known += 1  # it adds nothing, in the corrupted prompt neither
        return own

    def read(self, layer: int, own: torch.Tensor) -> torch.Tensor:
        """What the feed-forward layer reads."""
        _, place = places_of_readers(self.paired.nodes, layer)
        return own + self._more(slice(place, place + 1), senders_of_fed(self.paired, layer))

    def feed_forward(self, layer: int, own: torch.Tensor) -> torch.Tensor:
        """As it is."""
        self._add(own[None])
        return own

    def last(self, own: torch.Tensor) -> torch.Tensor:
        """What the logits read."""
        return own + self._more(slice(-1, None), len(self.paired.nodes))

    def _add(self, own: torch.Tensor) -> None:
        """own  [node, row, token, model] what the next nodes add."""
        self.changes[self.known : self.known + len(own)] -= own[:, : self.base(own.shape[1])]
        self.known += len(own)

    def base(self, rows: int) -> int:
        """How many rows there are but for heads that share keys."""
        return rows // self.shared

    def corrected(self, readers: slice, senders: int) -> torch.Tensor:
        """[reader, row, token, model] what is added to the stream of each reader."""
        changes = self.changes[:senders]
        size = changes.shape[2:]
        by_copy = changes.view(senders, len(self.cut), -1, *size)  # [node, copy, example, …]
        cut = self.cut[:, :senders, readers]

        def moved(some: slice | list[int]) -> torch.Tensor:
            change = torch.einsum("cnr,ncetd->rcetd", cut[:, some], by_copy[some])
            return change.flatten(1, 2)

        heads = {layer: self.paired.nodes.heads_of(layer) for layer in self.whole}
        normed = {at for own in heads.values() for at in range(own.start, own.stop)}
        more = moved([at for at in range(senders) if at not in normed] if normed else slice(None))
        for layer, whole in self.whole.items():
            norm = self.paired.passes.parts[layer].post_norm
            assert norm is not None
            more = more + norm.forward(whole + moved(heads[layer])) - norm.forward(whole)
        return more

    def _more(self, reader: slice, senders: int) -> torch.Tensor:
        """[row, token, model] what is added for one reader, in all rows."""
        return self.corrected(reader, senders)[0].repeat(self.shared, 1, 1)


def _by_head(
    normed: torch.Tensor, at: HeadColumns
) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
    """Each head, the outputs that are its own, and [row, token, dim] what they are."""
    weight, bias = at.matrix()
    shared = len(normed) // len(at.columns)
    for head, own in enumerate(normed):
        place = head // shared
        numbers = own @ weight[:, place].to(own)
        yield head, at.columns[place], numbers if bias is None else numbers + bias[place]
