"""Finds what adds to the residual stream in each layer of a decoder, and what reads it.

A layer gives what it was given, and what attention and one other module add; both may pass a norm
before they are added (Gemma). Queries, keys and values are parts of linear maps of the stream, or
of a norm of it. All this is seen in one pass, so no table of families is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from headscope.errors import ModelError
from headscope.experiments.importance.gradients import frozen
from headscope.model.attention import AttentionCall, listening
from headscope.model.linears import is_map, rounding, used_matrix

VIA = ("q", "k", "v")


@dataclass(frozen=True)
class HeadColumns:
    """Where the queries, keys or values of heads come from.

    module   a linear map
    columns  [head, dim] the numbers of its outputs; one row for heads that share keys
    norm     what the stream passes before it; None: nothing
    """

    module: nn.Module
    columns: torch.Tensor
    norm: nn.Module | None

    def matrix(self) -> tuple[torch.Tensor, torch.Tensor | None]:
        """[model, head, dim] what is multiplied by, and [head, dim] what is added."""
        used = used_matrix(self.module)
        assert used is not None
        weight, bias = used
        own = weight.detach()
        if self.side_by_side is None:
            rows = own[:, self.columns]
        else:
            rows = own[:, self.side_by_side].view(-1, *self.columns.shape)
        return rows, None if bias is None else bias[self.columns]

    @cached_property
    def side_by_side(self) -> slice | None:
        """The columns of all heads, where these lie side by side: then their matrix is no copy."""
        every = self.columns.flatten().tolist()
        there = every == list(range(every[0], every[0] + len(every)))
        return slice(every[0], every[-1] + 1) if there else None


@dataclass(frozen=True)
class LayerParts:
    """The modules of a layer that add to the stream, and those that read it.

    feed_forward  gives what the feed-forward layer adds; None where there is none
    reads         is the first that is given the stream that the feed-forward layer reads
    post_norm     is what attention passes before it is added; None: nothing
    columns       where queries, keys and values come from, by VIA; or why that is not known
    """

    feed_forward: nn.Module | None
    reads: nn.Module
    post_norm: nn.Module | None
    columns: dict[str, HeadColumns] | str


_Ran = tuple[nn.Module, torch.Tensor, torch.Tensor]  # a module, what it was given, what it gave


@dataclass
class _Layer:
    """What a pass leaves of a layer: what it was given and gave, what attention and others gave.

    others  modules around attention that ran
    maps    linear maps inside attention that ran
    """

    before: torch.Tensor | None = None
    after: torch.Tensor | None = None
    attention: torch.Tensor | None = None
    others: list[_Ran] = field(default_factory=list)
    maps: list[_Ran] = field(default_factory=list)


def layer_parts(
    network: PreTrainedModel,
    blocks: Sequence[nn.Module],
    attentions: Sequence[nn.Module],
    run: Callable[[], Any],
) -> list[LayerParts]:
    """[layer] the modules around attention.

    blocks, attentions  [layer] the module of the whole layer, and of its attention
    run                 runs the network once
    raises              ModelError for a layer that adds anything else
    """
    layers, calls = [_Layer() for _ in blocks], list[AttentionCall]()
    with ExitStack() as stack, torch.enable_grad(), frozen(network):
        stack.enter_context(listening(network, calls.append, alone=True))
        for layer, block, attention in zip(layers, blocks, attentions, strict=True):
            inside = set(attention.modules())
            hook = block.register_forward_pre_hook(partial(_begin, layer), with_kwargs=True)
            stack.callback(hook.remove)
            for module in block.modules():
                usual = _mapped if module in inside else _gave
                place: Any = {block: _end, attention: _attended}.get(module, usual)
                own = module.register_forward_hook(partial(place, layer))
                stack.callback(own.remove)
        run()
    parts = [_adding(block, layer) for block, layer in zip(blocks, layers, strict=True)]
    reading = map(_columns, layers, calls)
    return [LayerParts(*own, columns) for own, columns in zip(parts, reading, strict=True)]


def first_of(output: Any) -> torch.Tensor:
    """The hidden states in what a module returns: it, or the first of a tuple."""
    first: torch.Tensor = output[0] if isinstance(output, tuple) else output
    return first


def _begin(layer: _Layer, _module: Any, args: Any, kwargs: Any) -> Any:
    own = args[0] if args else kwargs["hidden_states"]
    layer.before = own.detach().requires_grad_()
    made = {} if args else {"hidden_states": layer.before}
    return (layer.before, *args[1:]) if args else (), kwargs | made


def _end(layer: _Layer, _module: Any, _args: Any, output: Any) -> None:
    layer.after = first_of(output)


def _attended(layer: _Layer, _module: Any, _args: Any, output: Any) -> None:
    layer.attention = first_of(output)


def _mapped(layer: _Layer, module: nn.Module, args: Any, output: Any) -> None:
    if is_map(module):
        layer.maps.append((module, args[0], output))


def _gave(layer: _Layer, module: nn.Module, args: Any, output: Any) -> None:
    first, size = first_of(output), layer.before
    if args and size is not None and torch.is_tensor(first) and first.numel() == size.numel():
        layer.others.append((module, args[0], first))


# --- what adds --------------------------------------------------------------------------------


@torch.no_grad()
def _adding(block: nn.Module, layer: _Layer) -> tuple[Any, nn.Module, Any]:
    """The feed-forward layer, what reads for it, and the norm after attention: see `LayerParts`."""
    before, after, own = layer.before, layer.after, layer.attention
    if before is not None and after is not None and own is not None:
        added = after - before
        lost = 16 * torch.finfo(after.dtype).eps * float(after.abs().max())  # in the difference
        allowed = 0.1 * rounding(after.dtype) * float(added.abs().max()) + lost

        def near(one: torch.Tensor, other: torch.Tensor) -> bool:
            return bool((one.reshape(other.shape) - other).abs().max() <= allowed)

        normed = [
            (module, gave)
            for module, inputs, gave in layer.others
            if inputs.shape == own.shape and near(inputs, own) and not near(gave, own)
        ]
        for norm, attention in ((None, own), *normed):
            for module, _, gave in reversed(layer.others):
                if near(gave, added - attention):
                    stream = after - gave.reshape(after.shape)
                    reading = (
                        module
                        for module, inputs, _ in layer.others
                        if inputs.numel() == stream.numel() and near(inputs, stream)
                    )
                    return module, next(reading, block), norm
            if near(added, attention):
                return None, block, norm
    raise ModelError(
        f"{type(block).__name__} adds more to the residual stream than attention and one other "
        "module give: its nodes are unknown; wanted a decoder whose layers add attention and an "
        "MLP"
    )


# --- what reads -------------------------------------------------------------------------------


def _columns(layer: _Layer, call: AttentionCall) -> dict[str, HeadColumns] | str:
    """Which outputs of which map make the queries, keys or values of each head; or why that is not
    known.
    """
    outputs, seen = [output for _, _, output in layer.maps], dict[str, HeadColumns]()
    for via, source in zip(VIA, (call.query, call.key, call.value), strict=True):
        moved = [_moved(source, head, outputs) for head in range(source.shape[1])]
        maps, sizes = {at for at, _ in moved}, {len(own) for _, own in moved}
        every = torch.cat([own for _, own in moved])
        if len(maps) > 1 or -1 in maps or len(sizes) > 1 or len(set(every.tolist())) < len(every):
            return f"the {via} of its heads are no parts of one map"
        module, inputs, _ = layer.maps[maps.pop()]
        norms = [one for one in layer.others if one[1] is layer.before and one[2] is inputs]
        if inputs is not layer.before and not norms:
            return "its attention is given more than a norm of the stream"
        norm = norms[0][0] if norms else None
        seen[via] = HeadColumns(module, torch.stack([own for _, own in moved]), norm)
    return seen


def _moved(
    source: torch.Tensor, head: int, outputs: list[torch.Tensor]
) -> tuple[int, torch.Tensor]:
    """The last map that a head of `source` follows from, and which of its outputs; or -1."""
    if not (outputs and source.requires_grad):
        return -1, torch.zeros(0)
    probe = torch.zeros_like(source)
    probe[:, head] = torch.linspace(1, 2, source.shape[-1], dtype=source.dtype)
    slopes = torch.autograd.grad(source, outputs, probe, retain_graph=True, allow_unused=True)
    there = [(at, slope) for at, slope in enumerate(slopes) if slope is not None]
    at, slope = there[-1] if there else (-1, probe[:0])
    return at, slope.flatten(0, -2).abs().sum(0).nonzero()[:, 0]
