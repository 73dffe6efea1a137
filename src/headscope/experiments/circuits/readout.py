"""The output head of a decoder, the norm before it, and norms that are linear at a given scale.

A logit is u · norm(x) + b, x being the residual stream after the last layer. LayerNorm and RMSNorm
are γ ⊙ (x - mean(x)) / s + β, or the same without mean and β: given the scale s that the whole of x
had, they are linear, so each part of x has its own share of a logit (Elhage et al. 2021). What a
norm multiplies by and whether it centres is measured with a few vectors, so that (1 + w) of
Gemma and others need no table; it is then compared with its outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import nn
from transformers import PreTrainedModel

from headscope.core.accumulators import Ints
from headscope.errors import ModelError
from headscope.model.batch import Batch
from headscope.model.language_model import LanguageModel, TokenLoss
from headscope.model.linears import equal_but_for_rounding
from headscope.model.placement import held

_LARGE = 1e3  # probes of this size make a norm's ε too small to matter


def decoder_of(model: LanguageModel) -> PreTrainedModel:
    """The network of a decoder; ModelError for an encoder, which predicts no next token."""
    if model.kind != "causal":
        raise ModelError(
            f"{model.model.name!r} is a masked language model, an encoder; wanted a decoder, "
            "which predicts the next token"
        )
    return model.model.network


def asking_last(clean: Sequence[Any], right: Sequence[Ints]) -> TokenLoss:
    """The objective at the token after each prompt: the output head computes only that row."""
    return TokenLoss(
        "next token",
        [np.array([len(one) - 1]) for one in clean],
        [ids[:1] for ids in right],
    )


@dataclass(frozen=True)
class FrozenNorm:
    """A norm at the scale of given vectors: linear, apart from its shift.

    gain     [row, model] what a part is multiplied by
    centred  whether the part's mean is taken off first
    shift    [model] what is added, whatever the parts
    """

    gain: torch.Tensor
    centred: bool
    shift: torch.Tensor

    @classmethod
    def of(cls, norm: nn.Module, inputs: torch.Tensor, answer: torch.Tensor) -> FrozenNorm | None:
        """The norm that a module applied to vectors [row, model]; None if it is not such a norm."""
        width, wide = inputs.shape[-1], torch.promote_types(inputs.dtype, torch.float32)
        probe = torch.linspace(_LARGE, 2 * _LARGE, width, dtype=wide, device=inputs.device)
        probe[::2] *= -1  # about half of them: no number is near their mean
        probe = probe.to(inputs.dtype).to(wide)
        shift = norm.forward(torch.zeros_like(inputs[0])).to(wide)
        raw, moved = (norm.forward((probe + more).to(inputs)) for more in (0, _LARGE))
        centred = equal_but_for_rounding(moved, raw)
        base = probe - probe.mean() * centred
        scale = (raw - shift) * base.square().mean().sqrt() / base  # [model] γ
        parts = scale * (inputs.to(wide) - inputs.to(wide).mean(-1, keepdim=True) * centred)
        own = answer.to(wide) - shift
        size = (own * parts).sum(-1, keepdim=True) / parts.square().sum(-1, keepdim=True)
        there = bool(scale.isfinite().all())
        there = there and equal_but_for_rounding(parts * size, own.to(answer.dtype))
        return cls(scale * size, centred, shift) if there else None

    def back(self, direction: torch.Tensor) -> torch.Tensor:
        """[row, model] the direction before the norm that corresponds to this one after it."""
        before = direction * self.gain
        return before - before.mean(-1, keepdim=True) if self.centred else before


def norm_before_head(
    network: PreTrainedModel, blocks: Sequence[nn.Module], run: Callable[[], object]
) -> nn.Module | None:
    """The module whose output the output head reads; None where it reads that of a layer.

    blocks  the layers
    run     runs the network once
    """
    head, seen = output_head(network), list[tuple[nn.Module, torch.Tensor, torch.Tensor]]()

    def keep(module: nn.Module, args: Any, output: Any) -> None:
        if args and torch.is_tensor(output) and (module is head or args[0].shape == output.shape):
            seen.append((module, args[0].detach(), output.detach()))

    inside = {module for block in blocks for module in block.modules()}
    with ExitStack() as stack:
        for module in network.modules():
            if module not in inside and not any(module.children()):
                stack.callback(module.register_forward_hook(keep).remove)
        run()
    read = next(inputs for module, inputs, _ in seen if module is head)
    return next((m for m, _, out in reversed(seen) if equal_but_for_rounding(out, read)), None)


def output_head(network: PreTrainedModel) -> nn.Module:
    """The module that returns the logits; ModelError without one."""
    head = network.get_output_embeddings()  # type: ignore[no-untyped-call]
    if head is None or held(head, "weight") is None:
        raise ModelError(
            f"{type(network).__name__} has no language-model head; wanted a decoder saved with "
            "its head, such as gpt2"
        )
    return cast(nn.Module, head)


def asked_places(batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows, and the positions of the last real tokens."""
    device = batch.mask.device
    last = torch.from_numpy(batch.lengths - 1).to(device)
    return torch.arange(len(last), device=device), last
