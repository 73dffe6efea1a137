"""Stream the gradient of the loss with respect to attention, layer by layer, and keep nothing.

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
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from headscope.core.reversible import Reversible
from headscope.errors import ModelError
from headscope.model.attention import AttentionCall, for_each_head, listening, probabilities


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
        """Listen to the attention function; freeze the weights."""
        stack.enter_context(torch.enable_grad())
        stack.enter_context(frozen(self.network))
        stack.enter_context(listening(self.network, self, alone=True))

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

    def before(self, call: AttentionCall) -> None:
        """Mix the values so that the gradient of the weights passes by, and count the layers."""
        layer, self.layers = self.layers, self.layers + 1
        if any(isinstance(o, torch.Tensor) and o.requires_grad for o in call.options.values()):
            raise ModelError(
                f"{type(call.module).__name__} adds to its scores what depends on the layers "
                "below: gradients of its attention cannot be taken; please report this model"
            )
        inputs = (call.query, call.key, call.value)
        if any(tensor.requires_grad for tensor in inputs):
            options = {**call.options, "scaling": call.scaling}
            given = _Given(call.mask, options, self, layer)
            call.mixed = _Attend.apply(*inputs, given)  # type: ignore[no-untyped-call]
            return
        if self._first is not None:
            raise ModelError(
                f"layer {layer + 1} of {type(self.network).__name__} does not depend on those "
                "below it: gradients of its attention cannot be taken; please report this model"
            )
        with torch.no_grad():
            call.mixed = call.mix()
        call.mixed.requires_grad_()
        self._first = (call.attention, call.values, call.mixed, call.mask)

    def after(self, call: AttentionCall, mixed: torch.Tensor) -> None:
        """Nothing is left to do."""


@dataclass(frozen=True)
class _Given:
    """What a layer's attention is computed with, beside queries, keys and values."""

    mask: torch.Tensor | None
    options: dict[str, Any]
    stream: Streaming
    layer: int


class _Attend(torch.autograd.Function):
    """Attention of a layer whose queries, keys and values depend on the layers below."""

    @staticmethod
    def forward(
        ctx: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, given: _Given
    ) -> torch.Tensor:
        attention = probabilities(query, for_each_head(key, query), given.mask, **given.options)
        mixed = attention @ for_each_head(value, query)
        ctx.save_for_backward(query, key, value, attention, mixed)
        ctx.given = given
        return mixed

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        query, key, value, attention, mixed = ctx.saved_tensors
        of_mixed, given = gradients[0].contiguous(), ctx.given
        values = for_each_head(value, query)
        gradient = of_mixed @ values.transpose(2, 3)  # [example, head, query, key]
        product = given.stream.show(given.layer, attention, gradient, (of_mixed, mixed), given.mask)
        scores = gradient.sub_(product[..., None]).mul_(attention)  # through the softmax
        keys, scaling = for_each_head(key, query), given.options["scaling"]
        if (softcap := given.options.get("softcap")) is not None:
            level = torch.tanh(query @ keys.transpose(2, 3) * (scaling / softcap))
            scores *= 1 - level**2
        to_query = (scores @ keys).mul_(scaling)
        to_key = _gathered((scores.transpose(2, 3) @ query).mul_(scaling), key)
        to_value = _gathered(attention.transpose(2, 3) @ of_mixed, value)
        return to_query, to_key, to_value, None


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
