"""Where is attention read and changed? In one function, registered with transformers.

    with Instrument(model, observers=[look]) as instrument:
        model(input_ids=..., attention_mask=...)

Inside the context the model's attention runs through `_attention`; every layer's queries, keys,
values and probabilities pass to the observers as a `LayerView`, once the layer's output projection
has run. Leaving it restores the attention implementation and removes all hooks. Families that do
not use transformers' attention registry are read through their own eager maps (`families.fallback`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any

import torch
from torch import nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import eager_mask

from headscope.errors import HeadscopeError, ModelError
from headscope.families import Site, find_sites, registered
from headscope.families.fallback import read_eagerly
from headscope.layer import LayerView

NAME = "headscope"
Observer = Callable[[LayerView], None]
Intervention = Callable[["Call"], None]

# What transformers hands to an attention function beside q, k, v and the mask, and which of it
# changes nothing here: the mask already holds causality and windows.
_WITHOUT_EFFECT = frozenset(
    "is_causal sliding_window position_ids output_attentions output_hidden_states use_cache "
    "cache_position encoder_hidden_states encoder_attention_mask past_key_values return_dict "
    "position_embeddings cu_seq_lens_q cu_seq_lens_k max_length_q max_length_k "
    "num_items_in_batch deterministic token_type_ids labels".split()
)


class Call:
    """One call of the attention function, as an intervention may change it.

    attention  [example, head, query, key]   probabilities, before dropout
    values     [example, head, key, dim]     repeated to the query heads
    """

    def __init__(self, site: Site, layer: int, attention: torch.Tensor, values: torch.Tensor):
        self.site, self.layer, self.attention, self.values = site, layer, attention, values


class Instrument(AbstractContextManager["Instrument"]):
    """Reads, and on request changes, every attention layer of a model while the context is open.

    model           any transformers model on the attention registry, or of a fallback family
    observers       called with a LayerView for every layer of every forward pass, in order
    interventions   called with a Call before the values are mixed; may replace its tensors
    stacks          which attention to show: "encoder", "decoder", "cross"; all by default
    raises          ModelError if the family is unknown off the registry
    """

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        observers: Sequence[Observer] = (),
        interventions: Sequence[Intervention] = (),
        stacks: Sequence[str] = ("encoder", "decoder", "cross"),
    ) -> None:
        self.model, self.observers, self.interventions = model, observers, interventions
        self.stacks = frozenset(stacks)
        self.sites = find_sites(model)
        self.fallback = not registered(model)
        if self.fallback and interventions:
            raise ModelError(
                f"{type(model).__name__} computes attention outside transformers' registry: "
                "it can be read, not changed; use a model on the registry"
            )
        self._by_module = {id(site.attention): site for site in self.sites}
        self._calls: dict[str, int] = {}
        self._residual: dict[int, torch.Tensor] = {}
        self._pending: dict[int, LayerView] = {}
        self._outputs: dict[int, torch.Tensor] = {}

    def __enter__(self) -> Instrument:
        """Open the context: set the attention implementation, add the hooks."""
        with ExitStack() as stack:
            self._add_hooks(stack)
            if self.fallback:
                stack.enter_context(read_eagerly(self.model, self.sites, self._take_eager))
            else:
                stack.enter_context(_implementation(self.model, NAME))
                stack.enter_context(_active(self))
            self._close = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the context: whatever happened, the model is as it was."""
        self._forget()
        self._close.__exit__(kind, error, trace)

    # --- hooks ------------------------------------------------------------------------------

    def _add_hooks(self, stack: ExitStack) -> None:
        keep = stack.callback
        keep(self.model.register_forward_pre_hook(self._begin).remove)
        keep(self.model.register_forward_hook(self._end).remove)
        sites_of: dict[int, tuple[nn.Module, Site]] = {}
        for site in self.sites:
            if site.residual is not None:
                hook = self._residual_hook(site)
                keep(site.residual.register_forward_pre_hook(hook, with_kwargs=True).remove)
            if site.projection is not None:
                sites_of[id(site.projection)] = (site.projection, site)
        for projection, site in sites_of.values():
            keep(projection.register_forward_hook(self._projection_hook(site)).remove)

    def _forget(self) -> None:
        for kept in (self._calls, self._residual, self._pending, self._outputs):
            kept.clear()

    def _begin(self, *_: Any) -> None:
        self._forget()

    def _end(self, *_: Any) -> None:
        called = bool(self._calls)
        self._forget()
        if not called:
            raise HeadscopeError(
                f"{type(self.model).__name__} ran without calling the registered attention "
                "function: its attention cannot be read; please report this model"
            )

    def _residual_hook(self, site: Site) -> Callable[..., None]:
        def hook(_module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            self._residual[id(site.attention)] = args[0] if args else kwargs["hidden_states"]

        return hook

    def _projection_hook(self, site: Site) -> Callable[..., None]:
        def hook(_module: nn.Module, _args: tuple[Any, ...], output: torch.Tensor) -> None:
            view = self._pending.pop(id(site.attention), None)
            if view is None:  # the fallback shows its map after the projection has run
                self._outputs[id(site.attention)] = output.detach()
            else:
                self._show(view, output.detach())

        return hook

    # --- what the attention function calls --------------------------------------------------

    def site_of(self, module: nn.Module) -> Site:
        """The site of the module that calls the attention function; raises if it is unknown."""
        site = self._by_module.get(id(module))
        if site is None:
            raise HeadscopeError(
                f"{type(module).__name__} calls the attention function but was not found in "
                f"{type(self.model).__name__}; please report this model"
            )
        return site

    def number(self, site: Site) -> int:
        """The layer's number within its stack, by order of calls (ALBERT reuses one module)."""
        layer = self._calls.get(site.stack, 0)
        self._calls[site.stack] = layer + 1
        return layer

    def took(self, view: LayerView) -> None:
        """Keep a layer until its output projection has run; show it at once if there is none."""
        key = id(view.site.attention)
        residual = self._residual.pop(key, None)
        view.residual = None if residual is None else residual.detach()
        if view.site.projection is None or key in self._outputs:
            self._show(view, self._outputs.pop(key, None))
        else:
            self._pending[key] = view

    def _take_eager(
        self, site: Site, attention: torch.Tensor, values: torch.Tensor | None
    ) -> None:
        seen = None if values is None else values.detach()
        layer = self.number(site)
        self.took(LayerView(layer, site.stack, attention.detach(), None, None, seen, site))

    def _show(self, view: LayerView, output: torch.Tensor | None) -> None:
        if output is not None:
            view.output = output.reshape(len(view.attention), -1, output.shape[-1])
        if view.stack in self.stacks:
            with torch.no_grad():
                for observer in self.observers:
                    observer(view)


# --- the attention function -----------------------------------------------------------------

_ACTIVE: ContextVar[Instrument | None] = ContextVar("headscope_instrument", default=None)


@contextmanager
def _active(instrument: Instrument) -> Iterator[None]:
    """Makes an instrument the one that the attention function reports to; they may be nested."""
    token = _ACTIVE.set(instrument)
    try:
        yield
    finally:
        _ACTIVE.reset(token)


@contextmanager
def _implementation(model: PreTrainedModel, name: str) -> Iterator[None]:
    """Switches the attention implementation of a model and of all models inside it."""
    configs = {id(m.config): m.config for m in model.modules() if isinstance(m, PreTrainedModel)}
    before = {key: config._attn_implementation for key, config in configs.items()}
    try:
        for config in configs.values():
            config._attn_implementation = name
        yield
    finally:
        for key, config in configs.items():
            config._attn_implementation = before[key]


def _attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    scaling: float | None = None,
    dropout: float = 0.0,
    **other: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention as eager transformers compute it, shown to the active instrument.

    query [example, head, query, dim]; key, value [example, key-value head, key, dim]
    """
    instrument = _ACTIVE.get()
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = (t.repeat_interleave(groups, dim=1) for t in (key, value))
    scores = _scores(module, query, key, attention_mask, scaling, other)
    attention = _softmax(scores).to(query.dtype)
    if instrument is not None:
        site = instrument.site_of(module)
        layer = instrument.number(site)
        if instrument.interventions:
            call = Call(site, layer, attention, value)
            for intervene in instrument.interventions:
                intervene(call)
            attention, value = call.attention, call.values
        seen = (t.detach() for t in (attention, query, key, value))
        instrument.took(LayerView(layer, site.stack, *seen, site))
    mixed = nn.functional.dropout(attention, p=dropout, training=module.training) @ value
    return mixed.transpose(1, 2).contiguous(), attention  # [example, query, head, dim]


def _scores(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    mask: torch.Tensor | None,
    scaling: float | None,
    other: dict[str, Any],
) -> torch.Tensor:
    """[example, head, query, key] scores, mask and biases added."""
    unknown = [
        name for name, value in other.items()
        if value is not None and name not in _WITHOUT_EFFECT | {"softcap", "position_bias"}
    ]
    if unknown:
        raise ModelError(
            f"{type(module).__name__} passes {', '.join(unknown)} to its attention, which headscope "
            "does not know: refusing to show numbers that may be wrong; please report this model"
        )
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    scores = (query * scale) @ key.transpose(2, 3)
    if other.get("softcap") is not None:
        scores = torch.tanh(scores / other["softcap"]) * other["softcap"]
    for bias in (other.get("position_bias"), mask):
        if bias is not None:
            bias = bias[..., : scores.shape[-1]]
            scores = scores + bias if scores.requires_grad else scores.add_(bias)
    return scores


def _softmax(scores: torch.Tensor) -> torch.Tensor:
    """Softmax over keys, in place where no gradient is recorded, in float32 at least."""
    if scores.requires_grad:
        wide = torch.promote_types(scores.dtype, torch.float32)
        return scores.softmax(-1, dtype=wide)
    if scores.dtype in (torch.float16, torch.bfloat16):
        return scores.softmax(-1, dtype=torch.float32)
    return torch.softmax(scores, -1, out=scores)


AttentionInterface.register(NAME, _attention)
AttentionMaskInterface.register(NAME, eager_mask)  # without it padding would silently be attended
