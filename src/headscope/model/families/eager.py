"""Read attention from the maps a model returns, for models that bypass the registry.

The model is asked for its maps (`output_attentions=True`), and hooks take each map as it leaves the
attention module, with what leaves the value projection. Only a weight from each token to each token
is taken: other shapes, and rows that do not sum to 1, are refused by name. Queries and keys are
left out: what such families add to q·k (relative positions) is not theirs alone. Under training
dropout the maps are what is left after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import transformers
from torch import nn

from headscope.errors import ModelError
from headscope.model.families.sites import Site, configurations

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Take = Callable[[Site, torch.Tensor, list[torch.Tensor]], None]
CORES = 4  # into which CodeGen cuts its heads, with queries, values and keys of each together
_HALF = (torch.float16, torch.bfloat16)
_MAPS = ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions")


@contextmanager
def read_eagerly(model: PreTrainedModel, sites: Sequence[Site], take: Take) -> Iterator[None]:
    """Inside the context, `take(site, attention, values)` is called as each layer computes.

    attention  [example, head, query, key]
    values     [example, head, key, dim] each: what the values may be, see `same_values`
    """
    outputs: dict[Site, Any] = {}
    tokens: list[int] = []  # of the latest input

    def ask(_model: nn.Module, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        named = (kwargs.get(name) for name in ("input_ids", "inputs_embeds"))
        first = next((one for one in (*args[:1], *named) if isinstance(one, torch.Tensor)), None)
        tokens[:] = [] if first is None or first.ndim < 2 else [first.shape[1]]
        return args, {**kwargs, "output_attentions": True}

    def keep(site: Site, _module: nn.Module, _args: Any, output: Any) -> None:
        outputs[site] = output

    def show(site: Site, _module: nn.Module, _args: Any, kwargs: Any, output: Any) -> None:
        if site.returns == "band":
            attention = unrolled(output[1:], kwargs["is_index_global_attn"])
            n = tokens[0] if tokens else attention.shape[2]  # filled up to whole windows
            attention = attention[:, :, :n, :n]
        else:
            attention = map_in(output, site)
        take(site, attention, _values(site, outputs.pop(site, None), attention))

    with ExitStack() as stack:
        stack.enter_context(_stock(model))
        for module in model.modules():
            # One inside another may be run by itself.
            if isinstance(module, transformers.PreTrainedModel):
                stack.callback(module.register_forward_pre_hook(ask, with_kwargs=True).remove)
        for site in sites:
            shown = site.attention.register_forward_hook(partial(show, site), with_kwargs=True)
            stack.callback(shown.remove)
            if site.value is not None:
                stack.callback(site.value.register_forward_hook(partial(keep, site)).remove)
        yield


@contextmanager
def _stock(model: PreTrainedModel) -> Iterator[None]:
    """Inside the context nothing is fused: some families return maps from their own code only."""
    fused = [c for c in configurations(model) if c._attn_implementation_internal == "sdpa"]
    try:
        for config in fused:
            config._attn_implementation_internal = "eager"
        yield
    finally:
        for config in fused:
            config._attn_implementation_internal = "sdpa"


def map_in(output: Any, site: Site) -> torch.Tensor:
    """The [example, head, query, key] weights among what an attention module returned.

    raises  ModelError where no tensor gives each query weights that sum to 1
    """
    shapes = []
    for part in _tensors(output):
        if site.returns == "scores" and part.ndim == 4:
            return part.softmax(-1)
        for one in (part, part.permute(2, 3, 0, 1)) if part.ndim == 4 else ():
            square = one.shape[2] == one.shape[3] or site.stack == "cross"
            if square and (site.attention.training or _sums_to_one(one)):
                return one
        shapes.append(" × ".join(map(str, part.shape)))
    raise ModelError(
        f"{site.path} ({type(site.attention).__name__}) returned no attention map that can be read "
        f"(found tensors of {', '.join(shapes) or 'nothing'}); wanted one weight from each token "
        "to each token, summing to 1 over the keys: use another family"
    )


def unrolled(returned: Sequence[torch.Tensor], everywhere: torch.Tensor) -> torch.Tensor:
    """[example, head, query, key] whole maps of attention within windows (Longformer).

    returned    [example, query, head, column]: the tokens that all attend to, then the window
                around the query; and where there are such tokens, [example, head, token, key] the
                weights of their own
    everywhere  [example, token] bool: those tokens
    """
    band = returned[0].transpose(1, 2)  # [example, head, query, column]
    most = int(everywhere.sum(1).max())
    examples, heads, tokens, columns = band.shape
    width = columns - most
    places = torch.arange(tokens)[:, None] + torch.arange(width)  # [query, column]
    wide = band.new_zeros(examples, heads, tokens, tokens + width - 1)
    wide.scatter_(3, places.to(band.device).expand(examples, heads, -1, -1), band[..., most:])
    whole = wide[..., width // 2 : width // 2 + tokens]
    for row, of_all in enumerate(everywhere if most else ()):
        at = of_all.nonzero()[:, 0]
        whole[row][..., at] += band[row, ..., : len(at)]
        whole[row][:, at] = returned[1][row, :, : len(at)]
    return whole


def maps_returned(output: Any) -> int | None:
    """How many maps a model returned; None where its output does not say."""
    fields = [getattr(output, name, None) for name in _MAPS]
    if not any(isinstance(maps, tuple) for maps in fields):
        return None
    return sum(one is not None for maps in fields if isinstance(maps, tuple) for one in maps)


def same_values(
    attention: torch.Tensor, values: Sequence[torch.Tensor], projected: torch.Tensor
) -> torch.Tensor | None:
    """The values that, weighted and summed, are the input of the output projection; else None.

    values     [example, head, key, dim] each
    projected  [example, query, head·dim] the input of the projection; further queries fill up a
               whole window
    """
    projected = projected[:, : attention.shape[2]]
    for one in values:
        mixed = (attention.to(one.dtype) @ one).transpose(1, 2).flatten(2)  # [example, query, …]
        if mixed.shape == projected.shape:
            size = float(projected.abs().max().clamp_min(1e-30))
            close = 2e-2 if projected.dtype in _HALF else 1e-4
            if float((mixed - projected).abs().max()) <= close * size:
                return one
    return None


def _values(site: Site, output: object, attention: torch.Tensor) -> list[torch.Tensor]:
    """What an output of the value projection may mean: alone, or beside queries and keys."""
    if not isinstance(output, torch.Tensor) or output.ndim != 3:
        return []
    examples, heads, _, keys = attention.shape
    output = output.transpose(0, 1) if "value" in site.swapped else output
    output = output[:, :keys] if site.returns == "band" else output  # without filled up windows
    if output.shape[:2] != (examples, keys):
        return []
    if output.shape[2] % (heads + 2) == 0:  # one key and one value for all heads (Falcon)
        shared = output[..., -(output.shape[2] // (heads + 2)) :]
        of_all = [shared[:, None].expand(-1, heads, -1, -1)]  # [example, head, key, dim]
    else:
        of_all = []
    if output.shape[2] % heads:
        return of_all
    by_head = (examples, keys, heads, -1)  # [example, key, head, dim]
    readings = [output.reshape(by_head)]
    if output.shape[2] % (3 * heads) == 0:
        readings.append(output.chunk(3, -1)[2].reshape(by_head))
        readings.append(output.reshape(examples, keys, heads, 3, -1)[:, :, :, 2])
        if isinstance(bias := getattr(site.attention, "v_bias", None), torch.Tensor):  # DeBERTa
            readings.append(readings[-1] + bias.view(heads, -1))
        if heads % CORES == 0:
            readings.append(
                output.reshape(examples, keys, CORES, 3, -1)[:, :, :, 1].reshape(by_head)
            )
    return [*(one.transpose(1, 2) for one in readings), *of_all]


def _sums_to_one(attention: torch.Tensor) -> bool:
    """Whether all rows do, but for rows that are 0 throughout, as those of padding may be."""
    if not attention.is_floating_point() or not attention.numel():
        return False
    wide = attention.detach().float()
    sums = wide.sum(-1)
    off = torch.minimum((sums - 1).abs(), sums.abs()).max()
    return bool(off <= (2e-2 if attention.dtype in _HALF else 1e-3) and wide.min() >= 0)


def _tensors(output: Any) -> Iterator[torch.Tensor]:
    if isinstance(output, torch.Tensor):
        yield output
    elif isinstance(output, tuple | list | dict):
        for part in output.values() if isinstance(output, dict) else output:
            yield from _tensors(part)
