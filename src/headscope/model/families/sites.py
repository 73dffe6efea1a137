"""Find the attention modules of a model, and the modules around each of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import transformers
from torch import nn
from transformers.pytorch_utils import Conv1D

from headscope.errors import ModelError
from headscope.model.families.embeddings import Embeddings, find_embeddings
from headscope.model.families.layout import (
    LAYOUTS,
    NOT_WHOLE,
    USUAL_PROJECTIONS,
    USUAL_VALUES,
    Layout,
)
from headscope.model.linears import Norm, OutputProjection, is_map, used_matrix
from headscope.model.placement import held

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

_CROSS = re.compile(r"cross_?attention|cross_attn|encoder_attn|EncDecAttention")
_TOWER = re.compile(r"(?:^|\.)(text|vision|audio|speech)_(?:model|tower|encoder)\.")
_DECODER = re.compile(r"(^|\.)decoder\.")


@dataclass(frozen=True, eq=False)
class Site:
    """One attention module and its neighbours.

    path        where the attention module is in the model
    stack       "encoder", "decoder" or "cross"; "text", "vision" and so on where there are two
    attention   the module that computes attention
    projection  the module of W_O, or None if it is unknown
    residual    the module whose input is the residual stream, or None
    norm        the LayerNorm of attention plus residual, or None
    final_norm  the LayerNorm that closes the layer, or None
    block       the module of the whole layer, attention, feed-forward and all, or None
    value       the value projection; only where the model's own maps are read
    returns     what its own map holds, see `Layout`
    swapped     whose inputs and outputs are [token, example, …], see `Layout`
    eager       the family bypasses the registry here: its own map is read
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
    returns: str = "weights"
    swapped: tuple[str, ...] = ()
    eager: bool = False
    listed: bool = False
    embeddings: Embeddings | None = None

    @cached_property
    def output_projection(self) -> OutputProjection | None:
        """W_O as it is used, cut into heads; None if the projection is unknown or no linear map."""
        module = self.projection
        used = used_matrix(module) if is_map(module) else None
        if used is None:
            return None
        by_input, bias = used  # [head·dim, model]
        cut = by_input.reshape(self.heads, -1, by_input.shape[1])  # [head, dim, model]
        return OutputProjection(cut.contiguous(), bias, module)

    @property
    def heads(self) -> int:
        """How many heads the model says that it has."""
        return _heads(self.attention)

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
    if nothing in a model that bypasses transformers' registry looks like attention.
    """
    modules = dict(model.named_modules())
    sites = [
        site
        for path, module in modules.items()
        if (site := _listed(path, module, modules) or _guessed(path, module, modules)) is not None
    ]
    if registered(model):
        known = find_embeddings(modules, [site.path for site in sites])
        return _apart(
            [
                replace(
                    site,
                    embeddings=known.get(site.path),
                    block=_block(site.path, modules),
                    eager=site.value is not None,
                )
                for site in sites
            ]
        )
    by_path = {site.path: site for site in sites}
    readable = [
        replace(site, stack=stack, value=site.value or _usual_value(path, modules), eager=True)
        for path, stack in _off_registry(model, modules)
        for site in (by_path.get(path) or Site(path, stack, modules[path]),)
    ]
    if not readable:
        family = getattr(model.config, "model_type", "unknown")
        raise ModelError(
            f"the family {family!r} ({type(model).__name__}) has no attention that headscope can "
            "find; wanted a model whose layers attend from token to token"
        )
    return readable


def _apart(sites: list[Site]) -> list[Site]:
    """Two towers side by side (CLIP) are two stacks, and have the towers' names."""
    towers = [match and match[1] for match in (_TOWER.search(site.path) for site in sites)]
    if len(set(filter(None, towers))) < 2:
        return sites
    pairs = zip(sites, towers, strict=True)
    return [replace(site, stack=tower) if tower else site for site, tower in pairs]


def refuse_not_whole(model: PreTrainedModel, stacks: Collection[str] | None) -> None:
    """Raises ModelError where one of these stacks has no weight from each token to each token."""
    for path, module in model.named_modules():
        reason = NOT_WHOLE.get(type(module).__name__)
        if reason is not None and (stacks is None or _stack(path, module) in stacks):
            family = getattr(model.config, "model_type", "unknown")
            raise ModelError(
                f"the family {family!r} ({type(model).__name__}) has no whole attention maps: "
                f"{type(module).__name__} {reason}; wanted one weight from each token to each token"
            )


def other_layers(
    model: nn.Module, attentions: Sequence[str], calls: int
) -> tuple[tuple[int, ...], dict[int, str]]:
    """Where some layers of a stack attend and others do not: the numbers of those that do, and
    what the others mix tokens by. Empty where all attend, or layers are in no numbered list.

    attentions  paths of the attention modules, as they were called
    calls       how many there were: a module may be called for several layers
    """
    lists = {re.split(r"\.\d+\.", path, maxsplit=1)[0] for path in attentions}
    home = dict(model.named_modules()).get(next(iter(lists))) if len(lists) == 1 else None
    if not isinstance(home, nn.ModuleList):
        return (), {}
    called = {model.get_submodule(path) for path in attentions}
    attend = [at for at, block in enumerate(home) if called & set(block.modules())]
    if len(attend) != calls or calls == len(home):
        return (), {}
    usual = {type(part) for at in attend for part in home[at].modules()}
    others = {}
    for at in sorted(set(range(len(home))) - set(attend)):
        inside = (type(part) for part in home[at].modules() if part is not home[at])
        others[at] = next((kind for kind in inside if kind not in usual), type(home[at])).__name__
    return tuple(attend), others


def unlisted_site(model: PreTrainedModel, module: nn.Module) -> Site | None:
    """A site for a module of the model that neither table nor guess found; None if not in it."""
    for path, candidate in model.named_modules():
        if candidate is module:
            return Site(path, _stack(path, module), module)
    return None


def _off_registry(
    model: PreTrainedModel, modules: Mapping[str, nn.Module]
) -> list[tuple[str, str]]:
    """(path, stack) of the innermost modules that are named after attention."""
    named = [path for path, module in modules.items() if "Attention" in type(module).__name__]
    inner = [path for path in named if not any(other.startswith(f"{path}.") for other in named)]
    causal = _reads_leftwards(model.config)
    stacks = [(path, _stack(path, modules[path])) for path in inner]
    return [(path, "decoder" if causal and s == "encoder" else s) for path, s in stacks]


def _reads_leftwards(config: Any) -> bool:
    """Whether a family predicts the next token, and hides it (XLNet sees both sides)."""
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    )

    family = getattr(config, "model_type", None)
    both = family in MODEL_FOR_MASKED_LM_MAPPING_NAMES or getattr(config, "attn_type", "") == "bi"
    split = getattr(config, "is_encoder_decoder", False)
    return family in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and not both and not split


def registered(model: PreTrainedModel) -> bool:
    """Whether the model's attention goes through transformers' attention registry."""
    return bool(model._can_set_attn_implementation())


def configurations(model: PreTrainedModel) -> list[Any]:
    """All configurations that the model's modules hold, and those inside them, each once."""
    waiting = [
        c
        for m in model.modules()
        if isinstance(c := vars(m).get("config"), transformers.PreTrainedConfig)
    ]
    seen: dict[int, PreTrainedConfig] = {}
    while waiting:
        config = waiting.pop()
        if id(config) not in seen:
            seen[id(config)] = config
            inner = (getattr(config, name, None) for name in config.sub_configs)
            waiting += [c for c in inner if isinstance(c, transformers.PreTrainedConfig)]
    return list(seen.values())


@cache
def _layouts(bases: tuple[type, ...]) -> tuple[Layout, ...]:
    """The rows that name one of a class and its bases."""
    names = {
        name
        for base in bases
        for name in (base.__name__, f"{base.__module__.rpartition('.')[2]}.{base.__name__}")
    }
    return tuple(layout for layout in LAYOUTS if not names.isdisjoint(layout.attention))


def _listed(path: str, module: nn.Module, modules: dict[str, nn.Module]) -> Site | None:
    for layout in _layouts(type(module).__mro__):
        if not _holds(layout, module):
            continue

        def at(where: str | None) -> nn.Module | None:
            if where is None:
                return None
            return modules.get(_absolute(path, where.format(name=path.rpartition(".")[2])))

        return Site(
            path,
            _stack(path, module),
            module,
            at(layout.projection),
            at(layout.residual),
            at(layout.norm),
            at(layout.final_norm),
            value=at(layout.value),
            returns=layout.returns,
            swapped=layout.swapped,
            listed=True,
        )
    return None


def _holds(layout: Layout, module: nn.Module) -> bool:
    if layout.when is None:
        return True
    name, wanted = layout.when
    value = getattr(module, name, getattr(getattr(module, "config", None), name, None))
    return bool(value == wanted)


def _guessed(path: str, module: nn.Module, modules: dict[str, nn.Module]) -> Site | None:
    for ending, where in USUAL_PROJECTIONS:
        if type(module).__name__.endswith(ending):
            projection = modules.get(_absolute(path, where))
            if isinstance(projection, nn.Linear | Conv1D):
                return Site(path, _stack(path, module), module, projection)
    return None


def _usual_value(path: str, modules: Mapping[str, nn.Module]) -> nn.Module | None:
    """What may be the value projection of attention that is in no table."""
    usual = (modules.get(f"{path}.{name}") for name in USUAL_VALUES)
    return next((module for module in usual if module is not None), None)


def _block(path: str, modules: Mapping[str, nn.Module]) -> nn.Module | None:
    """The module of the whole layer: transformers marks it, or it is one of a numbered list."""
    from transformers.modeling_layers import GradientCheckpointingLayer

    above = [path.rsplit(".", up)[0] for up in range(1, path.count(".") + 1)]  # innermost first
    marked = [p for p in above if isinstance(modules[p], GradientCheckpointingLayer)]
    numbered = [p for p in above if p.rpartition(".")[2].isdecimal()]
    return modules[(marked or numbered)[0]] if marked or numbered else None


def _norm(module: nn.Module | None) -> Norm | None:
    scale = held(module, "weight") if isinstance(module, nn.LayerNorm) else None
    if scale is None:
        return None
    assert isinstance(module, nn.LayerNorm)
    return Norm(scale, float(module.eps), held(module, "bias"))


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
    for name in ("num_attention_heads", "num_heads", "n_heads", "n_head", "num_attn_heads"):
        if isinstance(number := getattr(attention, name, None), int):
            return number
    stated = getattr(getattr(attention, "config", None), "num_attention_heads", None)
    if stated is not None:
        return int(stated)
    raise ModelError(f"the number of heads of {type(attention).__name__} is unknown")
