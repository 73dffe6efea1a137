"""Scores of edges between nodes by integrated gradients: EAP-IG (Hanna et al. 2024).

An edge goes from a node to a later reader of the stream (`stream_readers`). Its score is what the
node adds more in the clean prompt, times the mean slope of the logit difference with respect to
what the reader alone is given. Edges of one node add up to its own score.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import nn

from headscope.core.accumulators import Bools, Float64
from headscope.core.head_names import HeadNames
from headscope.experiments.circuits.discovery.layer_parts import VIA, HeadColumns
from headscope.experiments.circuits.discovery.node_attribution import SlopePass, passes_along
from headscope.experiments.circuits.discovery.node_names import Nodes
from headscope.experiments.circuits.discovery.nodes import NodeOutputs
from headscope.experiments.circuits.discovery.paired_passes import Pair, PairedPasses
from headscope.model.batch import to_float64


def edge_attribution(paired: PairedPasses, *, steps: int) -> Float64:
    """[prompt, node, reader] by how many logits each edge moves the difference to the answer.

    returns  readers as `reader_keys`; 0 where there is no edge
    raises   ModelError where the queries, keys or values of heads are no parts of a linear map of
             the normed stream
    """
    nodes, count = paired.nodes, len(paired.prompts.clean)
    scores = np.zeros((count, len(nodes), readers_of(nodes)))
    for pair in paired.pairs(copies=steps):
        scores[pair.clean.places] = to_float64(_scores(paired, pair, steps))
    return scores


def readers_of(nodes: Nodes) -> int:
    """How many readers there are."""
    return nodes.layers * (len(VIA) * nodes.heads + 1) + 1


def reader_keys(nodes: Nodes, names: HeadNames) -> list[str]:
    """[reader] `a0.h0<q>`, …, `m0`, …, `logits`: layers by their own numbers."""
    keys: list[str] = []
    for number in map(names.number, range(nodes.layers)):
        keys += [f"a{number}.h{head}<{via}>" for via in VIA for head in range(nodes.heads)]
        keys.append(f"m{number}")
    return [*keys, "logits"]


def real_edges(paired: PairedPasses) -> Bools:
    """[node, reader] whether a node stands before a reader."""
    nodes = paired.nodes
    real = np.zeros((len(nodes), readers_of(nodes)), bool)
    for layer in range(nodes.layers):
        attention, fed = places_of_readers(nodes, layer)
        real[: nodes.head(layer, 0), attention] = True
        real[: senders_of_fed(paired, layer), fed] = True
    real[:, -1] = True
    return real


def senders_of_fed(paired: PairedPasses, layer: int) -> int:
    """How many nodes come before a feed-forward layer; heads beside it do not."""
    part, nodes = paired.passes.parts[layer], paired.nodes
    beside = part.reads is paired.passes.blocks[layer]
    return nodes.head(layer, 0) if beside else nodes.feed_forward(layer)


def places_of_readers(nodes: Nodes, layer: int) -> tuple[slice, int]:
    """The readers of a layer: its heads' queries, keys and values, and its feed-forward layer."""
    many = len(VIA) * nodes.heads
    first = layer * (many + 1)
    return slice(first, first + many), first + many


def _scores(paired: PairedPasses, pair: Pair, steps: int) -> torch.Tensor:
    """[example, node, reader]"""
    nodes = paired.nodes
    with torch.no_grad():
        clean, other = (written(paired, own) for own in (pair.clean_gave, pair.corrupted_gave))
        change = ((clean - other) / steps).transpose(0, 1).contiguous()
    del clean, other
    scores = change.new_zeros(len(change), len(nodes), readers_of(nodes))
    for total, how in passes_along(paired, pair, steps):
        assert how.gave is not None
        moved = _through_norms(paired, change, how.gave).flatten(2)
        for senders, readers, slopes in _slopes(paired, total, how):
            products = moved[:, :senders] @ slopes.flatten(2).mT  # [example, node, reader]
            scores[:, :senders, readers] += products
    return scores


def _through_norms(paired: PairedPasses, change: torch.Tensor, gave: NodeOutputs) -> torch.Tensor:
    """[example, node, token, model] what a small change of each node does to the stream.

    Where attention passes a norm before it is added, that of its heads goes through the norm's
    slope at what attention gives in this pass.
    """
    moved = change
    for layer, part in enumerate(paired.passes.parts):
        if part.post_norm is None:
            continue
        moved = change.clone() if moved is change else moved
        heads = paired.nodes.heads_of(layer)
        whole = before_norm(paired, layer, written_by_heads(paired, layer, gave.heads[layer]))
        moved[:, heads] = _slope_times(part.post_norm, whole[:, None], change[:, heads])
    return moved


def _slope_times(norm: nn.Module, at: torch.Tensor, changes: torch.Tensor) -> torch.Tensor:
    """What a norm makes of small changes, of their shape, by its slope at some vectors.

    The slope of a slope that goes back, as torch's own way forward warns that it is deprecated.
    """
    at = at.detach().expand(changes.shape).requires_grad_()
    back = torch.zeros_like(at).requires_grad_()
    with torch.enable_grad():
        (slope,) = torch.autograd.grad(norm.forward(at), at, back, create_graph=True)
    return torch.autograd.grad(slope, back, changes)[0]


def _slopes(
    paired: PairedPasses, total: torch.Tensor, how: SlopePass
) -> Iterator[tuple[int, slice, torch.Tensor]]:
    """Yields how many nodes stand before some readers, which these are, and [row, reader, token,
    model] the slopes of `total` with respect to what each of them alone reads.

    total  of a pass along the way; its graph is used up
    """
    assert how.gave is not None
    assert how.end is not None
    columns = [paired.passes.columns(layer) for layer in range(paired.nodes.layers)]
    gave, wanted = how.gave.feed_forward, list[torch.Tensor]()
    for layer, call in enumerate(how.calls):
        wanted += [call.query, call.keys, call.values]
        fed = how.fed.get(layer, gave[layer])
        wanted += [] if fed is None else [fed]
    every = iter(torch.autograd.grad(total, [*wanted, how.end], retain_graph=True))
    for layer, call in enumerate(how.calls):
        attention, place = places_of_readers(paired.nodes, layer)
        sources = zip(VIA, (call.query, call.key, call.value), strict=True)
        of_heads = [
            _of_heads(how, layer, columns[layer][via], source, next(every))
            for via, source in sources
        ]
        yield paired.nodes.head(layer, 0), attention, torch.cat(of_heads, 1)
        if (fed := gave[layer]) is not None:
            slope = next(every)
            if layer not in how.fed:  # it reads what its heads read
                (slope,) = torch.autograd.grad(fed, how.streams[layer], slope, retain_graph=True)
            yield senders_of_fed(paired, layer), slice(place, place + 1), slope[:, None]
    yield len(paired.nodes), slice(-1, None), next(every)[:, None]


def _of_heads(
    how: SlopePass, layer: int, at: HeadColumns, source: torch.Tensor, slope: torch.Tensor
) -> torch.Tensor:
    """[row, head, token, model] slopes with respect to the stream through one of q, k, v.

    source  [row, head, token, dim] these, one for heads that share keys
    slope   [row, head, token, dim] with respect to those of each head
    """
    shared, rows = slope.shape[1] // source.shape[1], list[torch.Tensor]()
    weight, _ = at.matrix()
    for place in range(shared):
        cotangent, output = slope[:, place::shared], how.outputs[at.module]
        (own,) = torch.autograd.grad(source, output, cotangent, retain_graph=True)
        rows.append(torch.einsum("rtkd,mkd->rktm", own[..., at.columns], weight))
    through = torch.stack(rows, 2).flatten(1, 2)  # [row, head, token, model]
    if at.norm is None:
        return through
    stream = how.streams[layer].detach()[:, None].expand(through.shape).requires_grad_()
    with torch.enable_grad():
        return torch.autograd.grad(at.norm(stream), stream, through)[0]


def written(paired: PairedPasses, gave: NodeOutputs) -> torch.Tensor:
    """[node, example, token, model] what each node adds to the stream; heads, before the norm that
    attention passes, where it passes one.
    """
    made = [gave.stream[None]]
    for layer, (mixed, fed) in enumerate(zip(gave.heads, gave.feed_forward, strict=True)):
        heads = written_by_heads(paired, layer, mixed)
        made += [heads, torch.zeros_like(heads[:1]) if fed is None else fed[None]]
    return torch.cat(made)


def written_by_heads(paired: PairedPasses, layer: int, mixed: torch.Tensor) -> torch.Tensor:
    """[head, row, token, model] what W_O makes of the mixtures of each head of a layer."""
    projection = paired.passes.sites[layer].output_projection
    assert projection is not None
    return torch.einsum("rthd,hdm->hrtm", mixed, projection.weight.to(mixed))


def before_norm(paired: PairedPasses, layer: int, heads: torch.Tensor) -> torch.Tensor:
    """[row, token, model] what attention gives, before a norm, of what its heads give."""
    projection = paired.passes.sites[layer].output_projection
    assert projection is not None
    return heads.sum(0) + (0 if projection.bias is None else projection.bias)
