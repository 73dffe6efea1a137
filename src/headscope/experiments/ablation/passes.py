"""One pass of a network: its layers are kept, skipped, or given their mixtures ready-made.

`Watch` is the pass of the whole model, which keeps what its variants need; `Again` one of several
variants that change the same lowest layer. `shared` says what they are for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import nn
from transformers.pytorch_utils import Conv1D

from headscope.experiments.ablation.replace import StandIn
from headscope.experiments.ablation.variants import Variant, heads_in
from headscope.model.attention import AttentionCall, visible


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


class Pass(Protocol):
    """One forward pass of the network."""

    def layer(self, run: Callable[[], Any], /) -> Any:
        """What the module of the next layer returns; `run` runs it."""

    def mixture(self, call: AttentionCall, /) -> torch.Tensor:
        """[example, query, head, dim] what the attention function gives in this layer."""


class Watch:
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

    def mixture(self, call: AttentionCall) -> torch.Tensor:
        """Computes and keeps it, and what may stand in for it."""
        kept = self.kept
        layer = len(kept.mixtures)
        self.regular &= self._inside and layer == len(kept.outputs)
        self.projections.append([])
        mask = visible(call.mask, call.attention)
        instead = self.stand_in.mixture(layer, slice(None), call.values, mask)
        kept.stand_ins.append(instead.transpose(1, 2))  # [example, query, head, dim]
        kept.mixtures.append(call.mix().transpose(1, 2).contiguous())
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
class Again:
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
                    stack.enter_context(instead_of(module, _nothing(module)))
                return run()
        return run()

    def mixture(self, call: AttentionCall) -> torch.Tensor:
        """In the changed layer the kept mixtures, else computed; with heads switched off."""
        if self.at == self.start:
            return self._ready()
        mixed = call.mix().transpose(1, 2).contiguous()  # [row, query, head, dim]
        mask = visible(call.mask, call.attention)
        rows = mixed.view(len(self.variants), -1, *mixed.shape[1:])  # [variant, example, …]
        by_variant = call.values.view(len(self.variants), -1, *call.values.shape[1:])
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
def instead_of(module: nn.Module, forward: Callable[..., Any]) -> Iterator[None]:
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
