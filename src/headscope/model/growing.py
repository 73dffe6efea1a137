"""Lets one input grow into copies in the layers in which they begin to differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from headscope.errors import ModelError
from headscope.model.families.sites import find_sites


@contextmanager
def growing(network: PreTrainedModel, layers: Sequence[int]) -> Iterator[None]:
    """Inside the context one pass over one input has a further row from each of `layers` on, which
    begins as row 0: below the layer that changes it, a copy costs nothing.

    layers  [copy] from 0, ascending
    raises  ModelError where the modules of whole layers are not known, or too few ran
    """
    sites, ran = find_sites(network), 0
    if any(site.block is None for site in sites):
        raise ModelError("the modules of whole layers are not known")

    def grow(_block: nn.Module, args: Any, kwargs: Any) -> Any:
        nonlocal ran
        new, ran = layers.count(ran), ran + 1
        if not new:
            return None
        hidden = args[0] if args else kwargs["hidden_states"]  # [row, token, model]
        rows = torch.cat([hidden, hidden[:1].expand(new, -1, -1)])
        if args:
            return (rows, *args[1:]), kwargs
        return args, {**kwargs, "hidden_states": rows}

    with ExitStack() as stack:
        for block in dict.fromkeys(site.block for site in sites if site.block is not None):
            stack.callback(block.register_forward_pre_hook(grow, with_kwargs=True).remove)
        yield
    if layers and ran <= max(layers):
        raise ModelError(f"{ran} modules of whole layers ran; wanted {max(layers) + 1} or more")
