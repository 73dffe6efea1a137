"""Read the attention of families that bypass transformers' registry (MPNet, DeBERTa).

The model is asked for its own maps (`output_attentions=True`); hooks take each layer's map as it
leaves the attention module, and the value vectors as they leave the value projection. Queries and
keys are left out: what these families add to q·k (relative positions) is not theirs alone. Under
training dropout the maps are what is left after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from headscope.errors import HeadscopeError
from headscope.model.families.sites import Site

Take = Callable[[Site, torch.Tensor, torch.Tensor | None], None]


@contextmanager
def read_eagerly(model: nn.Module, sites: Sequence[Site], take: Take) -> Iterator[None]:
    """Inside the context, `take(site, attention, values)` is called as each layer computes.

    attention  [example, head, query, key]
    values     [example, head, key, dim], or None if the value projection is unknown
    """
    values: dict[int, torch.Tensor] = {}

    def ask(_model: nn.Module, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return args, {**kwargs, "output_attentions": True}

    def keep(site: Site) -> Callable[..., None]:
        def hook(_module: nn.Module, _args: Any, output: torch.Tensor) -> None:
            values[id(site.attention)] = output

        return hook

    def show(site: Site) -> Callable[..., None]:
        def hook(_module: nn.Module, _args: Any, output: Any) -> None:
            attention = _map_in(output, site)
            value = values.pop(id(site.attention), None)
            if value is not None:
                examples, heads = attention.shape[:2]
                value = value.reshape(examples, attention.shape[3], heads, -1).transpose(1, 2)
            take(site, attention, value)

        return hook

    with ExitStack() as stack:
        for module in model.modules():
            if isinstance(module, PreTrainedModel):  # one inside another may be run by itself
                stack.callback(module.register_forward_pre_hook(ask, with_kwargs=True).remove)
        for site in sites:
            stack.callback(site.attention.register_forward_hook(show(site)).remove)
            if site.value is not None:
                stack.callback(site.value.register_forward_hook(keep(site)).remove)
        yield


def _map_in(output: Any, site: Site) -> torch.Tensor:
    """The [example, head, query, key] tensor among what an attention module returned."""
    for part in output if isinstance(output, tuple) else (output,):
        if isinstance(part, torch.Tensor) and part.ndim == 4 and part.shape[2] == part.shape[3]:
            return part
    raise HeadscopeError(f"{site.path} returned no attention map; please report this model")
