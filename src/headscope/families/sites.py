"""Which modules of this model compute attention, and what surrounds each of them?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from headscope.errors import ModelError
from headscope.families.layout import LAYOUTS, Layout
from headscope.layer import Norm, OutputProjection

_CROSS = re.compile(r"crossattention|cross_attn|encoder_attn|EncDecAttention")
_DECODER = re.compile(r"(^|\.)decoder\.")
# Where families that are not in the table usually keep W_O.
_USUAL_PROJECTIONS = ("o_proj", "out_proj", "out_lin", "c_proj", "dense", "Wo", "o", "wo")


@dataclass(frozen=True, eq=False)
class Site:
    """One attention module and its neighbours.

    path        where the attention module is in the model
    stack       "encoder", "decoder" or "cross"
    attention   the module that computes attention
    projection  the module of W_O, or None if it is unknown
    residual    the module whose input is the residual stream, or None
    norm        the LayerNorm of attention plus residual, or None
    value       the value projection; only where the fallback needs it
    """

    path: str
    stack: str
    attention: nn.Module
    projection: nn.Module | None
    residual: nn.Module | None
    norm: nn.Module | None
    value: nn.Module | None

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
        """γ and ε of the LayerNorm of attention plus residual."""
        if not isinstance(self.norm, nn.LayerNorm) or self.norm.weight is None:
            return None
        return Norm(self.norm.weight.detach(), float(self.norm.eps))


def find_sites(model: PreTrainedModel) -> list[Site]:
    """All attention modules of a model, in the order in which they are defined.

    Raises ModelError if there are none, or if the family computes attention outside transformers'
    registry and no layout says how to read it there.
    """
    modules = dict(model.named_modules())
    found = [
        _site(path, module, layout, modules)
        for path, module in modules.items()
        if (layout := _layout_of(module)) is not None
    ]
    family = getattr(model.config, "model_type", type(model).__name__)
    if not registered(model) and not any(site.value for site in found):
        raise ModelError(
            f"the family {family!r} ({type(model).__name__}) computes attention outside "
            "transformers' attention registry, and headscope has no fallback for it; "
            "use another family, or add a layout as CONTRIBUTING describes"
        )
    if not found:
        raise ModelError(f"no attention module was found in {type(model).__name__} ({family!r})")
    return found


def registered(model: PreTrainedModel) -> bool:
    """Whether the model's attention goes through transformers' attention registry."""
    return bool(model._can_set_attn_implementation())


def _layout_of(module: nn.Module) -> Layout | None:
    """The table's row for a module; a guess for other modules that look like attention."""
    name = type(module).__name__
    for layout in LAYOUTS:
        if name.endswith(layout.attention):
            return layout
    if name.endswith("Attention"):
        for projection in _USUAL_PROJECTIONS:
            if isinstance(getattr(module, projection, None), nn.Linear | Conv1D):
                return Layout((name,), projection)
    return None


def _site(path: str, module: nn.Module, layout: Layout, modules: dict[str, nn.Module]) -> Site:
    def at(where: str | None) -> nn.Module | None:
        if where is None:
            return None
        return modules.get(_absolute(path, where.format(name=path.rpartition(".")[2])))

    return Site(
        path=path,
        stack=_stack(path, module),
        attention=module,
        projection=at(layout.projection),
        residual=at(layout.residual),
        norm=at(layout.norm),
        value=at(layout.value),
    )


def _absolute(path: str, where: str) -> str:
    """Resolves "." (the module itself), "^" (its parent) and child names to a full path."""
    if where == ".":
        return path
    if where.startswith("^"):
        parent = path.rpartition(".")[0]
        return ".".join(part for part in (parent, where[1:].lstrip(".")) if part)
    return ".".join(part for part in (path, where) if part)


def _stack(path: str, module: nn.Module) -> str:
    if _CROSS.search(path):
        return "cross"
    causal = getattr(module, "is_causal", False) or getattr(module, "is_decoder", False)
    return "decoder" if causal or _DECODER.search(path) else "encoder"


def _heads(attention: nn.Module) -> int:
    """Number of query heads of an attention module."""
    for name in ("num_attention_heads", "num_heads", "n_heads"):
        if isinstance(found := getattr(attention, name, None), int):
            return found
    config = getattr(attention, "config", None)
    if config is not None and hasattr(config, "num_attention_heads"):
        return int(config.num_attention_heads)
    raise ModelError(f"the number of heads of {type(attention).__name__} is unknown")
