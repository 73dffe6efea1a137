"""What does a model answer with heads switched off, without computing anything twice?

A variant that changes layer l is, below l, the whole model. So each batch runs once, keeping what
every layer gave and every head's mixture; then, for the variants of a layer together, the model's
own forward pass runs again, in which the layers below l hand on what was kept, layer l gets its
mixtures ready-made (its queries, keys and values are not computed), and the layers above run as
they are, with all that the model gives them. Nothing here knows a family: what is asked of it is
one attention call in each layer's module, in order. `sweep` holds the outcome against `naive`
before it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol

import torch
from torch import nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import eager_mask
from transformers.pytorch_utils import Conv1D

from headscope.ablation.replace import StandIn, visible
from headscope.ablation.variants import Variant, heads_in
from headscope.attend import known_options, probabilities
from headscope.batch import Batch
from headscope.errors import ModelError
from headscope.families import find_sites
from headscope.instrument import implementation
from headscope.model import forward

NAME = "headscope-ablation"


@dataclass
class Kept:
    """What one batch gave in the whole model.

    logits     [example, output]
    outputs    by layer, what its module returned: the hidden states [example, token, model], or a
               tuple that begins with them
    mixtures   by layer [example, query, head, dim] Σ_j α_ij v_j
    stand_ins  by layer [example, query, head, dim] what may stand in for each head
    """

    logits: torch.Tensor = field(default_factory=lambda: torch.empty(0))
    outputs: list[Any] = field(default_factory=list)
    mixtures: list[torch.Tensor] = field(default_factory=list)
    stand_ins: list[torch.Tensor] = field(default_factory=list)


class SharedPrefix(AbstractContextManager["SharedPrefix"]):
    """Runs the variants of a network while the context is open.

    skip_projections  whether the maps to queries, keys and values of a changed layer are left out
    raises            ModelError if the network's layers are not as they must be
    """

    def __init__(
        self, network: PreTrainedModel, stand_in: StandIn, *, skip_projections: bool = True
    ) -> None:
        self.network, self.stand_in, self.skip = network, stand_in, skip_projections
        sites = find_sites(network)
        if not sites or any(site.block is None for site in sites):
            raise ModelError("the modules of whole layers are not known")
        self.blocks = list(dict.fromkeys(site.block for site in sites if site.block is not None))
        self.attentions = {site.attention for site in sites}
        self._pass: _Pass | None = None
        self._close: ExitStack | None = None

    def __enter__(self) -> SharedPrefix:
        """Set the attention function and take hold of the layers' modules."""
        with ExitStack() as stack:
            stack.enter_context(implementation(self.network, NAME))
            for block in self.blocks:
                stack.enter_context(_instead(block, self._of_block(block.forward)))
            token = _RUNNING.set(self)
            stack.callback(_RUNNING.reset, token)
            self._close = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """The network is as it was."""
        close, self._close, self._pass = self._close, None, None
        if close is not None:
            close.__exit__(kind, error, trace)

    def whole(self, batch: Batch) -> Kept:
        """Run a batch through the whole model and keep what its variants need.

        raises  ModelError unless each layer's module ran its attention once, in order
        """
        watch = _Watch(Kept(), self.stand_in)
        self._pass = watch
        with watch.projections_of(self.attentions):
            answer = forward(self.network, batch.input_ids, batch.mask, batch.segment_ids)
        kept = watch.kept
        if not (watch.regular and len(kept.outputs) == len(kept.mixtures) > 0):
            raise ModelError(
                f"{type(self.network).__name__} ran {len(kept.mixtures)} attentions in "
                f"{len(kept.outputs)} layers; wanted one in each, in order"
            )
        kept.logits = answer.logits
        self.projections = watch.projections
        return kept

    def variants(
        self, batch: Batch, kept: Kept, start: int, variants: Sequence[Variant]
    ) -> torch.Tensor:
        """[variant, example, output] the logits of variants whose lowest layer is `start`."""
        copies = len(variants)
        projections = self.projections[start] if self.skip else []
        self._pass = _Again(kept, self.stand_in, start, variants, projections)
        inputs = (batch.input_ids, batch.mask, batch.segment_ids)
        answer = forward(self.network, *(t.repeat(copies, 1) for t in inputs))
        logits: torch.Tensor = answer.logits
        return logits.view(copies, len(kept.logits), -1)  # [variant, example, output]

    def _of_block(self, own: Callable[..., Any]) -> Callable[..., Any]:
        def forward(*args: Any, **kwargs: Any) -> Any:
            assert self._pass is not None
            return self._pass.layer(lambda: own(*args, **kwargs))

        return forward

    def attend(self, values: torch.Tensor, attention: _Attention) -> torch.Tensor:
        """[example, query, head, dim] the mixtures that the attention function gives."""
        assert self._pass is not None
        return self._pass.mixture(values, attention)


# --- passes ---------------------------------------------------------------------------------

# Gives probabilities [example, head, query, key], and which keys are visible.
_Attention = Callable[[], tuple[torch.Tensor, torch.Tensor]]


class _Pass(Protocol):
    """One forward pass of the network."""

    def layer(self, run: Callable[[], Any], /) -> Any:
        """What the module of the next layer returns; `run` runs it."""

    def mixture(self, values: torch.Tensor, attention: _Attention, /) -> torch.Tensor:
        """What the attention function gives in this layer."""


class _Watch:
    """The pass of the whole model.

    regular      whether attention k was called while layer k ran, so far
    projections  by layer, the linear maps inside attention that ran before its function was called
    """

    def __init__(self, kept: Kept, stand_in: StandIn) -> None:
        self.kept, self.stand_in = kept, stand_in
        self.regular = True
        self.projections: list[list[nn.Linear | Conv1D]] = [[]]
        self._inside = False

    def layer(self, run: Callable[[], Any]) -> Any:
        """Runs and keeps it."""
        self._inside = True
        self.kept.outputs.append(run())
        self._inside = False
        return self.kept.outputs[-1]

    def mixture(self, values: torch.Tensor, attention: _Attention) -> torch.Tensor:
        """Computes and keeps it, and what may stand in for it."""
        kept = self.kept
        layer = len(kept.mixtures)
        self.regular &= self._inside and layer == len(kept.outputs)
        self.projections.append([])
        weights, mask = attention()
        instead = self.stand_in.mixture(layer, slice(None), values, mask)
        kept.stand_ins.append(instead.transpose(1, 2))  # [example, query, head, dim]
        kept.mixtures.append((weights @ values).transpose(1, 2).contiguous())
        return kept.mixtures[-1]

    @contextmanager
    def projections_of(self, attentions: set[nn.Module]) -> Iterator[None]:
        """Inside the context the linear maps that run in these modules are noted."""

        def note(module: Any, _args: Any, _output: Any) -> None:
            if self._inside and len(self.kept.mixtures) == len(self.kept.outputs):
                self.projections[-1].append(module)

        inside = {m for a in attentions for m in a.modules() if isinstance(m, nn.Linear | Conv1D)}
        with ExitStack() as stack:
            for module in inside:
                stack.callback(module.register_forward_hook(note).remove)
            yield


@dataclass
class _Again:
    """A pass of several variants at once: [variant * example] rows, from layer `start` up."""

    kept: Kept
    stand_in: StandIn
    start: int
    variants: Sequence[Variant]
    projections: Sequence[nn.Linear | Conv1D]
    at: int = -1

    def layer(self, run: Callable[[], Any]) -> Any:
        """Below the changed layer, what was kept; in it, without the projections; above, as is."""
        self.at += 1
        if self.at < self.start:
            return self._repeated(self.kept.outputs[self.start - 1])
        if self.at == self.start:
            with ExitStack() as stack:
                for module in self.projections:
                    stack.enter_context(_instead(module, _nothing(module)))
                return run()
        return run()

    def mixture(self, values: torch.Tensor, attention: _Attention) -> torch.Tensor:
        """In the changed layer the kept mixtures, else computed; with heads switched off."""
        if self.at == self.start:
            return self._ready()
        weights, mask = attention()
        mixed = (weights @ values).transpose(1, 2).contiguous()  # [row, query, head, dim]
        rows = mixed.view(len(self.variants), -1, *mixed.shape[1:])  # [variant, example, …]
        by_variant = values.view(len(self.variants), -1, *values.shape[1:])
        masks = mask.expand(len(mixed), -1, -1, -1).view(*rows.shape[:2], *mask.shape[1:])
        for at, variant in enumerate(self.variants):
            if heads := heads_in(variant, self.at):
                own, seen = by_variant[at][:, heads], masks[at]
                instead = self.stand_in.mixture(self.at, heads, own, seen)
                rows[at][:, :, heads] = instead.transpose(1, 2)  # [example, query, head, dim]
        return mixed

    def _ready(self) -> torch.Tensor:
        """[row, query, head, dim] the mixtures of the changed layer."""
        mixed, instead = self.kept.mixtures[self.start], self.kept.stand_ins[self.start]
        rows = mixed.repeat(len(self.variants), 1, 1, 1, 1)  # [variant, example, query, head, dim]
        for at, variant in enumerate(self.variants):
            heads = heads_in(variant, self.start)
            rows[at][:, :, heads] = instead[:, :, heads]
        return rows.flatten(0, 1)  # [row, query, head, dim]

    def _repeated(self, output: Any) -> Any:
        """What a layer returned, for every variant."""
        if isinstance(output, tuple):
            return (self._repeated(output[0]), *output[1:])
        hidden: torch.Tensor = output
        return hidden.repeat(len(self.variants), 1, 1)  # [row, token, model]


@contextmanager
def _instead(module: nn.Module, forward: Callable[..., Any]) -> Iterator[None]:
    """Inside the context the module runs as this function."""
    state = vars(module)
    before = {"forward": state["forward"]} if "forward" in state else {}
    state["forward"] = forward
    try:
        yield
    finally:
        del state["forward"]
        state.update(before)


def _nothing(module: nn.Linear | Conv1D) -> Callable[[torch.Tensor], torch.Tensor]:
    """A linear map's stand-in: zeros of the right size that take no room and no time."""
    size = int(module.weight.shape[1 if isinstance(module, Conv1D) else 0])

    def forward(inputs: torch.Tensor) -> torch.Tensor:
        return inputs.new_zeros(()).expand(*inputs.shape[:-1], size)

    return forward


# --- the attention function -----------------------------------------------------------------

_RUNNING: ContextVar[SharedPrefix] = ContextVar("headscope_shared_prefix")


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
) -> tuple[torch.Tensor, None]:
    """Attention as eager transformers compute it, or what `SharedPrefix` has ready."""
    del dropout  # variants are run in evaluation mode
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = (t.repeat_interleave(groups, dim=1) for t in (key, value))
    options = known_options(module, other)
    mask = None if attention_mask is None else attention_mask[..., : key.shape[2]]

    def weights() -> tuple[torch.Tensor, torch.Tensor]:
        found = probabilities(query, key, mask, scaling=scaling, **options)
        return found, visible(mask, found)

    return _RUNNING.get().attend(value, weights), None


AttentionInterface.register(NAME, _attention)
AttentionMaskInterface.register(NAME, eager_mask)
