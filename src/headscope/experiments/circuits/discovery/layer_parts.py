"""Finds what adds to the residual stream in each layer of a decoder, and what reads it.

A layer gives what it was given, and what attention and one other module add; both may pass a norm
before they are added (Gemma). So no table of families is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import nn

from headscope.errors import ModelError
from headscope.model.linears import rounding


@dataclass(frozen=True)
class LayerParts:
    """The modules of a layer around its attention.

    feed_forward  gives what the feed-forward layer adds; None where there is none
    reads         is the first that is given the stream that the feed-forward layer reads
    post_norm     is what attention passes before it is added; None: nothing
    """

    feed_forward: nn.Module | None
    reads: nn.Module
    post_norm: nn.Module | None


@dataclass
class _Layer:
    """What a pass leaves of a layer: what it was given and gave, what attention and others gave."""

    before: torch.Tensor | None = None
    after: torch.Tensor | None = None
    attention: torch.Tensor | None = None
    others: list[tuple[nn.Module, torch.Tensor, torch.Tensor]] = field(default_factory=list)


def layer_parts(
    blocks: Sequence[nn.Module], attentions: Sequence[nn.Module], run: Callable[[], Any]
) -> list[LayerParts]:
    """[layer] the modules around attention.

    blocks, attentions  [layer] the module of the whole layer, and of its attention
    run                 runs the network once
    raises              ModelError for a layer that adds anything else
    """
    layers = [_Layer() for _ in blocks]
    with ExitStack() as stack, torch.inference_mode():
        for layer, block, attention in zip(layers, blocks, attentions, strict=True):
            inside = set(attention.modules())
            hook = block.register_forward_pre_hook(partial(_begin, layer), with_kwargs=True)
            stack.callback(hook.remove)
            for module in block.modules():
                if module is attention or module not in inside:
                    place = {block: _end, attention: _attended}.get(module, _gave)
                    own = module.register_forward_hook(partial(place, layer))
                    stack.callback(own.remove)
        run()
    return [_parts_of(block, layer) for block, layer in zip(blocks, layers, strict=True)]


def first_of(output: Any) -> torch.Tensor:
    """The hidden states in what a module returns: it, or the first of a tuple."""
    first: torch.Tensor = output[0] if isinstance(output, tuple) else output
    return first


def _begin(layer: _Layer, _module: Any, args: Any, kwargs: Any) -> None:
    layer.before = args[0] if args else kwargs["hidden_states"]


def _end(layer: _Layer, _module: Any, _args: Any, output: Any) -> None:
    layer.after = first_of(output)


def _attended(layer: _Layer, _module: Any, _args: Any, output: Any) -> None:
    layer.attention = first_of(output)


def _gave(layer: _Layer, module: nn.Module, args: Any, output: Any) -> None:
    first, size = first_of(output), layer.before
    if args and size is not None and torch.is_tensor(first) and first.numel() == size.numel():
        layer.others.append((module, args[0], first.reshape(size.shape)))


def _parts_of(block: nn.Module, layer: _Layer) -> LayerParts:
    before, after, own = layer.before, layer.after, layer.attention
    if before is not None and after is not None and own is not None:
        added = after - before
        lost = 16 * torch.finfo(after.dtype).eps * float(after.abs().max())  # in the difference
        allowed = 0.1 * rounding(after.dtype) * float(added.abs().max()) + lost
        near = partial(_near, allowed=allowed)
        normed = [
            (module, gave)
            for module, inputs, gave in layer.others
            if inputs.shape == own.shape and near(inputs, own) and not near(gave, own)
        ]
        for norm, attention in ((None, own), *normed):
            for module, _, gave in reversed(layer.others):
                if near(added - attention, gave):
                    return LayerParts(module, _reader(block, layer, after - gave, near), norm)
            if near(added, attention):
                return LayerParts(None, block, norm)
    raise ModelError(
        f"{type(block).__name__} adds more to the residual stream than attention and one other "
        "module give: its nodes are unknown; wanted a decoder whose layers add attention and an "
        "MLP"
    )


def _reader(
    block: nn.Module, layer: _Layer, stream: torch.Tensor, near: Callable[..., bool]
) -> nn.Module:
    """The first module that is given this stream; where none is, both read what the layer does."""
    for module, inputs, _ in layer.others:
        if inputs.numel() == stream.numel() and near(inputs.reshape(stream.shape), stream):
            return module
    return block


def _near(one: torch.Tensor, other: torch.Tensor, *, allowed: float) -> bool:
    return bool((one - other).abs().max() <= allowed)
