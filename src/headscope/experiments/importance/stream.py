"""How does ∂loss/∂α of every layer pass by during the backward pass, and is gone again?

    with Streaming(network, observer) as stream:
        logits = run_network(network, ids, mask).logits
        stream.backward(losses(logits))

Probabilities and their gradients exist inside the attention function alone: nothing [example, head,
query, key] becomes a part of the autograd graph. No gradient is taken of the weights, and none
below the first layer's mixtures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import eager_mask

from headscope.core.reversible import Reversible
from headscope.errors import ModelError
from headscope.model.attend import known_options, probabilities
from headscope.model.instrument import implementation

NAME = "headscope-gradients"


@dataclass(frozen=True)
class LayerGradient:
    """One attention layer in the backward pass of one batch; nothing here may be written into.

    attention  [example, head, query, key]  α
    gradient   [example, head, query, key]  ∂loss/∂α, as if each α could change by itself
    product    [example, head, query]       Σ_key α ∂loss/∂α
    mask       what is added to the scores: [example or 1, head or 1, query, key], 0 where a key
               may be attended to, very negative where not; None: everywhere
    """

    layer: int
    attention: torch.Tensor
    gradient: torch.Tensor
    product: torch.Tensor
    mask: torch.Tensor | None


Observer = Callable[[LayerGradient], None]


class Streaming(Reversible):
    """One forward and one backward pass, of which an observer sees every layer's gradients.

    observer  called with the layers from the last to the first
    network   on transformers' attention registry, and no encoder-decoder; see `eager.following`
    """

    def __init__(self, network: PreTrainedModel, observer: Observer) -> None:
        self.network, self.observer = network, observer
        self.layers = 0
        self._first: tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None] | None
        self._first = None

    def _open(self, stack: ExitStack) -> None:
        """Set the attention function; freeze the weights."""
        stack.enter_context(torch.enable_grad())
        stack.enter_context(frozen(self.network))
        stack.enter_context(implementation(self.network, NAME))
        token = _RUNNING.set(self)
        stack.callback(_RUNNING.reset, token)

    def _forget(self) -> None:
        self._first = None

    def backward(self, loss: torch.Tensor) -> None:
        """Takes the gradient of a sum of losses and shows it, layer by layer."""
        if self._first is None or not loss.requires_grad:
            raise ModelError(
                f"{type(self.network).__name__} did not call the registered attention function, or "
                "its answer does not depend on it: gradients cannot be taken; please report this"
            )
        attention, value, mixed, mask = self._first
        (gradient,) = torch.autograd.grad(loss, [mixed])
        with torch.no_grad():
            self.show(0, attention, gradient @ value.transpose(2, 3), (gradient, mixed), mask)

    def show(
        self,
        layer: int,
        attention: torch.Tensor,
        gradient: torch.Tensor,
        mixed: tuple[torch.Tensor, torch.Tensor],
        mask: torch.Tensor | None,
    ) -> torch.Tensor:
        """[example, head, query] Σ_key α ∂loss/∂α, after the observer has seen it.

        mixed  [example, head, query, dim] the gradient of what the head mixed, and this itself
        """
        product: torch.Tensor = torch.linalg.vecdot(*mixed)  # Σ_key α (g · v) = g · Σ_key α v
        self.observer(LayerGradient(layer, attention, gradient, product, mask))
        return product

    def attend(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
        mask: torch.Tensor | None, options: dict[str, Any],
    ) -> torch.Tensor:  # fmt: skip
        """[example, head, query, dim] what attention mixes."""
        layer, self.layers = self.layers, self.layers + 1
        if query.requires_grad or key.requires_grad or value.requires_grad:
            call = _Call(mask, options, self, layer)
            found: torch.Tensor = _Attend.apply(query, key, value, call)  # type: ignore[no-untyped-call]
            return found
        if self._first is not None:
            raise ModelError(
                f"layer {layer + 1} of {type(self.network).__name__} does not depend on those "
                "below it: gradients of its attention cannot be taken; please report this model"
            )
        with torch.no_grad():
            values = _repeated(value, query)
            attention = probabilities(query, _repeated(key, query), mask, **options)
            mixed = attention @ values
        mixed.requires_grad_()
        self._first = (attention, values, mixed, mask)
        return mixed


@dataclass(frozen=True)
class _Call:
    """What a layer's attention is computed with, beside queries, keys and values."""

    mask: torch.Tensor | None
    options: dict[str, Any]
    stream: Streaming
    layer: int


class _Attend(torch.autograd.Function):
    """Attention of a layer whose queries, keys and values depend on the layers below."""

    @staticmethod
    def forward(
        ctx: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, call: _Call
    ) -> torch.Tensor:
        attention = probabilities(query, _repeated(key, query), call.mask, **call.options)
        mixed = attention @ _repeated(value, query)
        ctx.save_for_backward(query, key, value, attention, mixed)
        ctx.call = call
        return mixed

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        query, key, value, attention, mixed = ctx.saved_tensors
        given = gradients[0].contiguous()
        gradient = given @ _repeated(value, query).transpose(2, 3)  # [example, head, query, key]
        call: _Call = ctx.call
        product = call.stream.show(call.layer, attention, gradient, (given, mixed), call.mask)
        scores = gradient.sub_(product[..., None]).mul_(attention)  # through the softmax
        keys, scaling = _repeated(key, query), call.options["scaling"]
        if (softcap := call.options.get("softcap")) is not None:
            level = torch.tanh(query @ keys.transpose(2, 3) * (scaling / softcap))
            scores *= 1 - level**2
        to_query = (scores @ keys).mul_(scaling)
        to_key = _gathered((scores.transpose(2, 3) @ query).mul_(scaling), key)
        to_value = _gathered(attention.transpose(2, 3) @ given, value)
        return to_query, to_key, to_value, None


def _repeated(of_keys: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
    """[example, head, key, dim] keys or values, each for the query heads that share it."""
    groups = query.shape[1] // of_keys.shape[1]
    return of_keys if groups == 1 else of_keys.repeat_interleave(groups, dim=1)


def _gathered(gradient: torch.Tensor, of_keys: torch.Tensor) -> torch.Tensor:
    """[example, key-value head, key, dim] the sum over query heads that share a key head."""
    heads = of_keys.shape[1]
    if gradient.shape[1] == heads:
        return gradient
    return gradient.view(len(gradient), heads, -1, *gradient.shape[2:]).sum(2)


@contextmanager
def frozen(network: nn.Module) -> Iterator[None]:
    """Inside the context no parameter asks for a gradient."""
    asking = [p for p in network.parameters() if p.requires_grad]
    try:
        for parameter in asking:
            parameter.requires_grad = False
        yield
    finally:
        for parameter in asking:
            parameter.requires_grad_()


# --- the attention function -----------------------------------------------------------------

_RUNNING: ContextVar[Streaming] = ContextVar("headscope_streaming")


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
    """Attention as eager transformers compute it, in evaluation mode."""
    del dropout
    options = known_options(module, other)
    if any(isinstance(o, torch.Tensor) and o.requires_grad for o in options.values()):
        raise ModelError(
            f"{type(module).__name__} adds to its scores what depends on the layers below: "
            "gradients of its attention cannot be taken; please report this model"
        )
    options["scaling"] = query.shape[-1] ** -0.5 if scaling is None else scaling
    mask = attention_mask
    if mask is not None and mask.shape[-1] != key.shape[2]:
        mask = mask[..., : key.shape[2]]
    mixed = _RUNNING.get().attend(query, key, value, mask, options)
    return mixed.transpose(1, 2).contiguous(), None  # [example, query, head, dim]


AttentionInterface.register(NAME, _attention)
AttentionMaskInterface.register(NAME, eager_mask)
