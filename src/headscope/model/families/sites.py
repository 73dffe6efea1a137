"""Find the modules of a model that compute attention, and the modules around each of them.

Families that bypass transformers' registry (MPNet, DeBERTa) are read here too: the model is asked
for its own maps (`output_attentions=True`), and hooks take each layer's map as it leaves the
attention module, and the value vectors as they leave the value projection. Queries and keys are
left out: what these families add to q·k (relative positions) is not theirs alone. Under training
dropout the maps are what is left after it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.pytorch_utils import Conv1D

from headscope.errors import HeadscopeError, ModelError
from headscope.model.families.embeddings import Embeddings, find_embeddings
from headscope.model.families.layout import LAYOUTS, USUAL_PROJECTIONS, Layout
from headscope.model.linears import Norm, OutputProjection

_CROSS = re.compile(r"cross_?attention|cross_attn|encoder_attn|EncDecAttention")
_DECODER = re.compile(r"(^|\.)decoder\.")


@dataclass(frozen=True, eq=False)
class Site:
    """One attention module and its neighbours.

    path        where the attention module is in the model
    stack       "encoder", "decoder" or "cross"
    attention   the module that computes attention
    projection  the module of W_O, or None if it is unknown
    residual    the module whose input is the residual stream, or None
    norm        the LayerNorm of attention plus residual, or None
    final_norm  the LayerNorm that closes the layer, or None
    block       the module of the whole layer, attention, feed-forward and all, or None
    value       the value projection; only where the fallback needs it
    listed      the family is in the table; else the projection is a guess, checked as it runs
    embeddings  what the first layer's queries and keys are made from, where it is known
    """

    path: str
    stack: str
    attention: nn.Module
    projection: nn.Module | None = None
    residual: nn.Module | None = None
    norm: nn.Module | None = None
    final_norm: nn.Module | None = None
    block: nn.Module | None = None
    value: nn.Module | None = None
    listed: bool = False
    embeddings: Embeddings | None = None

    @cached_property
    def output_projection(self) -> OutputProjection | None:
        """W_O cut into heads; None if the projection is unknown or no plain linear map."""
        module = self.projection
        if not isinstance(module, nn.Linear | Conv1D):
            return None
        weight = module.weight.detach()
        by_input = weight if isinstance(module, Conv1D) else weight.T  # [head·dim, model]
        heads = _heads(self.attention)
        bias = None if module.bias is None else module.bias.detach()
        cut = by_input.reshape(heads, -1, by_input.shape[1])  # [head, dim, model]
        return OutputProjection(cut.contiguous(), bias)

    @cached_property
    def post_norm(self) -> Norm | None:
        """γ, ε and β of the LayerNorm of attention plus residual."""
        return _norm(self.norm)

    @cached_property
    def closing_norm(self) -> Norm | None:
        """γ, ε and β of the LayerNorm that closes the layer."""
        return _norm(self.final_norm)

    @cached_property
    def normed_projection(self) -> OutputProjection | None:
        """W_O, then what `post_norm` does to a part of its input; None without one of them."""
        if self.output_projection is None or self.post_norm is None:
            return None
        return self.output_projection.through(self.post_norm)

    @cached_property
    def closed_projection(self) -> OutputProjection | None:
        """`normed_projection`, then `closing_norm`, as if no feed-forward were between them."""
        if self.normed_projection is None or self.closing_norm is None:
            return None
        return self.normed_projection.through(self.closing_norm)


def find_sites(model: PreTrainedModel) -> list[Site]:
    """The attention modules of a model that the table or a guess finds, in order of definition.

    On the registry others may turn up when they are called: see `unlisted_site`. Raises ModelError
    if the family computes attention outside transformers' registry and no layout says how to read
    it there.
    """
    modules = dict(model.named_modules())
    sites = [
        site
        for path, module in modules.items()
        if (site := _listed(path, module, modules) or _guessed(path, module, modules)) is not None
    ]
    if registered(model):
        known = find_embeddings(modules, [site.path for site in sites])
        return [
            replace(site, embeddings=known.get(site.path), block=_block(site.path, modules))
            for site in sites
        ]
    readable = [site for site in sites if site.value is not None]
    if not readable:
        family = getattr(model.config, "model_type", "unknown")
        raise ModelError(
            f"the family {family!r} ({type(model).__name__}) computes attention outside "
            "transformers' attention registry, and headscope has no fallback for it; "
            "use another family, or add a layout as CONTRIBUTING describes"
        )
    return readable


def unlisted_site(model: PreTrainedModel, module: nn.Module) -> Site | None:
    """A site for a module of the model that neither table nor guess found; None if not in it."""
    for path, candidate in model.named_modules():
        if candidate is module:
            return Site(path, _stack(path, module), module)
    return None


def registered(model: PreTrainedModel) -> bool:
    """Whether the model's attention goes through transformers' attention registry."""
    return bool(model._can_set_attn_implementation())


def configurations(model: PreTrainedModel) -> list[Any]:
    """All configurations that the model's modules hold, and those inside them, each once."""
    waiting = [
        c for m in model.modules() if isinstance(c := vars(m).get("config"), PreTrainedConfig)
    ]
    seen: dict[int, PreTrainedConfig] = {}
    while waiting:
        config = waiting.pop()
        if id(config) not in seen:
            seen[id(config)] = config
            inner = (getattr(config, name, None) for name in config.sub_configs)
            waiting += [c for c in inner if isinstance(c, PreTrainedConfig)]
    return list(seen.values())


def _listed(path: str, module: nn.Module, modules: dict[str, nn.Module]) -> Site | None:
    names = {base.__name__ for base in type(module).__mro__}
    for layout in LAYOUTS:
        if names.isdisjoint(layout.attention) or not _holds(layout, module):
            continue

        def at(where: str | None) -> nn.Module | None:
            if where is None:
                return None
            return modules.get(_absolute(path, where.format(name=path.rpartition(".")[2])))

        return Site(
            path, _stack(path, module), module, at(layout.projection), at(layout.residual),
            at(layout.norm), at(layout.final_norm), value=at(layout.value), listed=True,
        )  # fmt: skip
    return None


def _holds(layout: Layout, module: nn.Module) -> bool:
    if layout.when is None:
        return True
    name, wanted = layout.when
    value = getattr(module, name, getattr(getattr(module, "config", None), name, None))
    return bool(value == wanted)


def _guessed(path: str, module: nn.Module, modules: dict[str, nn.Module]) -> Site | None:
    for ending, where in USUAL_PROJECTIONS:
        projection = modules.get(_absolute(path, where))
        if type(module).__name__.endswith(ending) and isinstance(projection, nn.Linear | Conv1D):
            return Site(path, _stack(path, module), module, projection)
    return None


def _block(path: str, modules: Mapping[str, nn.Module]) -> nn.Module | None:
    """The module of the whole layer: transformers marks it, or it is one of a numbered list."""
    above = [path.rsplit(".", up)[0] for up in range(1, path.count(".") + 1)]  # innermost first
    marked = [p for p in above if isinstance(modules[p], GradientCheckpointingLayer)]
    numbered = [p for p in above if p.rpartition(".")[2].isdecimal()]
    return modules[(marked or numbered)[0]] if marked or numbered else None


def _norm(module: nn.Module | None) -> Norm | None:
    if not isinstance(module, nn.LayerNorm) or module.weight is None:
        return None
    shift = None if module.bias is None else module.bias.detach()
    return Norm(module.weight.detach(), float(module.eps), shift)


def _absolute(path: str, where: str) -> str:
    """Resolves "." (the module itself), "^" (its parent, "^^" its parent) and child names."""
    if where == ".":
        return path
    if where.startswith("^"):
        return _absolute(path.rpartition(".")[0], where[1:].lstrip(".") or ".")
    return ".".join(part for part in (path, where) if part)


def _stack(path: str, module: nn.Module) -> str:
    if _CROSS.search(path) or getattr(module, "is_cross_attention", False):
        return "cross"
    causal = getattr(module, "is_causal", False) or getattr(module, "is_decoder", False)
    return "decoder" if causal or _DECODER.search(path) else "encoder"


def _heads(attention: nn.Module) -> int:
    for name in ("num_attention_heads", "num_heads", "n_heads"):
        if isinstance(number := getattr(attention, name, None), int):
            return number
    stated = getattr(getattr(attention, "config", None), "num_attention_heads", None)
    if stated is not None:
        return int(stated)
    raise ModelError(f"the number of heads of {type(attention).__name__} is unknown")


Take = Callable[[Site, torch.Tensor, torch.Tensor | None], None]


@contextmanager
def read_eagerly(model: nn.Module, sites: Sequence[Site], take: Take) -> Iterator[None]:
    """Inside the context, `take(site, attention, values)` is called as each layer computes.

    attention  [example, head, query, key]
    values     [example, head, key, dim], or None if the value projection is unknown
    """
    values: dict[Site, torch.Tensor] = {}

    def ask(_model: nn.Module, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return args, {**kwargs, "output_attentions": True}

    def keep(site: Site, _module: nn.Module, _args: Any, output: torch.Tensor) -> None:
        values[site] = output

    def show(site: Site, _module: nn.Module, _args: Any, output: Any) -> None:
        attention, value = _map_in(output, site), values.pop(site, None)
        if value is not None:
            examples, heads = attention.shape[:2]
            value = value.reshape(examples, attention.shape[3], heads, -1).transpose(1, 2)
        take(site, attention, value)

    with ExitStack() as stack:
        for module in model.modules():
            if isinstance(module, PreTrainedModel):  # one inside another may be run by itself
                stack.callback(module.register_forward_pre_hook(ask, with_kwargs=True).remove)
        for site in sites:
            stack.callback(site.attention.register_forward_hook(partial(show, site)).remove)
            if site.value is not None:
                stack.callback(site.value.register_forward_hook(partial(keep, site)).remove)
        yield


def _map_in(output: Any, site: Site) -> torch.Tensor:
    for part in output if isinstance(output, tuple) else (output,):
        if isinstance(part, torch.Tensor) and part.ndim == 4 and part.shape[2] == part.shape[3]:
            return part
    raise HeadscopeError(f"{site.path} returned no attention map; please report this model")
