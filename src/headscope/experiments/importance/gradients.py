"""Streams the gradient of a loss with respect to attention, layer by layer, and keeps none.

    with following(network, observer, names) as stream:
        logits = run_network(network, ids, mask).logits
        stream.backward(losses(logits))

`Streaming` reduces them layer by layer: probabilities and their gradients exist inside the
attention function alone, nothing [example, head, query, key] becomes a part of the autograd graph,
and no gradient is taken of the weights or below the first layer's mixtures. MPNet and DeBERTa are
not on transformers' registry and hand out their maps as parts of the graph: their gradients are
asked for there (`EagerMaps`), which is slower and takes more memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from headscope.core.head_names import HeadNames
from headscope.errors import ModelError
from headscope.model.attention import AttentionCall, for_each_head, listening, probabilities
from headscope.model.families.sites import find_sites, registered
from headscope.model.instrument import Reversible


@dataclass(frozen=True)
class LayerGradient:
    """One attention layer in the backward pass of one batch; its tensors are read-only.

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
_Given = tuple[torch.Tensor | None, dict[str, Any], Callable[..., torch.Tensor]]  # mask, options


class Streaming(Reversible):
    """One forward and one backward pass that shows an observer every layer's gradients.

    observer  called with the layers from the last to the first
    network   on transformers' attention registry, and no encoder-decoder; see `following`
    """

    def __init__(self, network: PreTrainedModel, observer: Observer, names: HeadNames) -> None:
        self.network, self.observer, self.names = network, observer, names
        self.layers = 0
        self._first: AttentionCall | None = None  # of the layer that depends on no other

    def _open(self, stack: ExitStack) -> None:
        stack.enter_context(torch.enable_grad())
        stack.enter_context(frozen(self.network))
        stack.enter_context(listening(self.network, self.before, alone=True))

    def _forget(self) -> None:
        self._first = None

    def backward(self, loss: torch.Tensor) -> None:
        """Takes the gradient of a sum of losses and shows it, layer by layer."""
        if self._first is None or not loss.requires_grad:
            raise ModelError(
                f"{type(self.network).__name__} did not call the registered attention function, or "
                "its answer does not depend on it: gradients cannot be taken; please report this"
            )
        call, mixed = self._first, self._first.mixed
        assert mixed is not None
        (gradient,) = torch.autograd.grad(loss, [mixed])
        with torch.no_grad():
            of_weights = gradient @ call.values.transpose(2, 3)
            self.show(0, call.attention, of_weights, (gradient, mixed), call.mask)

    def show(
        self,
        layer: int,
        attention: torch.Tensor,
        gradient: torch.Tensor,
        mixed: tuple[torch.Tensor, torch.Tensor],
        mask: torch.Tensor | None,
    ) -> torch.Tensor:
        """[example, head, query] Σ_key α ∂loss/∂α, after the observer has run.

        mixed  [example, head, query, dim] the gradient of what the head mixed, and this itself
        """
        product: torch.Tensor = torch.linalg.vecdot(*mixed)  # Σ_key α (g · v) = g · Σ_key α v
        self.observer(LayerGradient(layer, attention, gradient, product, mask))
        return product

    def before(self, call: AttentionCall) -> None:
        """Mix the values by an operation that yields the weights' gradient; count layers."""
        layer, self.layers = self.layers, self.layers + 1
        if any(isinstance(o, torch.Tensor) and o.requires_grad for o in call.options.values()):
            raise ModelError(
                f"{type(call.module).__name__} adds terms to its scores that depend on the layers "
                "below: gradients of its attention cannot be taken; please report this model"
            )
        inputs = (call.query, call.key, call.value)
        if any(tensor.requires_grad for tensor in inputs):
            options = {**call.options, "scaling": call.scaling}
            settings: _Given = (call.mask, options, partial(self.show, layer))
            call.mixed = _Attend.apply(*inputs, settings)  # type: ignore[no-untyped-call]
            return
        if self._first is not None:
            raise ModelError(
                f"layer {self.names.layer(layer)} of {type(self.network).__name__} does not depend "
                "on those below it: gradients of its attention cannot be taken; please report this "
                "model"
            )
        with torch.no_grad():
            call.mixed = call.mix()
        call.mixed.requires_grad_()
        self._first = call


class _Attend(torch.autograd.Function):
    """Attention of a layer whose queries, keys and values depend on the layers below."""

    @staticmethod
    def forward(
        ctx: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, settings: _Given
    ) -> torch.Tensor:
        mask, options, _ = ctx.given = settings
        attention = probabilities(query, for_each_head(key, query), mask, **options)
        mixed = attention @ for_each_head(value, query)
        ctx.save_for_backward(query, key, value, attention, mixed)
        return mixed

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        query, key, value, attention, mixed = ctx.saved_tensors
        of_mixed, (mask, options, show) = gradients[0].contiguous(), ctx.given
        values = for_each_head(value, query)
        gradient = of_mixed @ values.transpose(2, 3)  # [example, head, query, key]
        product = show(attention, gradient, (of_mixed, mixed), mask)
        scores = gradient.sub_(product[..., None]).mul_(attention)  # through the softmax
        keys, scaling = for_each_head(key, query), options["scaling"]
        if (softcap := options.get("softcap")) is not None:
            level = torch.tanh(query @ keys.transpose(2, 3) * (scaling / softcap))
            scores *= 1 - level**2
        to_query = (scores @ keys).mul_(scaling)
        to_key = _gathered((scores.transpose(2, 3) @ query).mul_(scaling), key)
        to_value = _gathered(attention.transpose(2, 3) @ of_mixed, value)
        return to_query, to_key, to_value, None


def _gathered(gradient: torch.Tensor, of_keys: torch.Tensor) -> torch.Tensor:
    """[example, key-value head, key, dim] the sum over query heads that share a key-value head."""
    if gradient.shape[1] == of_keys.shape[1]:
        return gradient
    heads = of_keys.shape[1]
    return gradient.view(len(gradient), heads, -1, *gradient.shape[2:]).sum(2)


@contextmanager
def frozen(network: nn.Module) -> Iterator[None]:
    """Inside the context no parameter requires a gradient."""
    asking = [p for p in network.parameters() if p.requires_grad]
    try:
        network.requires_grad_(False)
        yield
    finally:
        for parameter in asking:
            parameter.requires_grad_()


# --- families that bypass the registry --------------------------------------------------------


def following(
    network: PreTrainedModel, observer: Observer, names: HeadNames
) -> Streaming | EagerMaps:
    """A context for one forward and one backward pass whose gradients the observer sees.

    raises  ModelError for encoder-decoders, and families that cannot be read
    """
    if network.config.is_encoder_decoder:
        raise ModelError(
            f"{type(network).__name__} is an encoder-decoder; wanted an encoder or a decoder for "
            "the gradients of its attention"
        )
    if not registered(network):
        return EagerMaps(network, observer)
    return Streaming(network, observer, names)


class EagerMaps(Reversible):
    """As `Streaming`, for families that compute attention themselves."""

    def __init__(self, network: PreTrainedModel, observer: Observer) -> None:
        self.network, self.observer = network, observer
        self.sites = find_sites(network)
        self._maps: tuple[torch.Tensor, ...] = ()

    def _open(self, stack: ExitStack) -> None:
        stack.enter_context(torch.enable_grad())
        stack.enter_context(frozen(self.network))

        def keep(_network: nn.Module, _args: Any, output: Any) -> None:
            self._maps = tuple(output.attentions or ())

        embeddings: Any = self.network.get_input_embeddings()
        for hook in (
            embeddings.register_forward_hook(lambda *call: call[2].requires_grad_()),
            self.network.register_forward_pre_hook(
                lambda _, args, keywords: (args, {**keywords, "output_attentions": True}),
                with_kwargs=True,
            ),
            self.network.register_forward_hook(keep),
        ):
            stack.callback(hook.remove)

    def _forget(self) -> None:
        self._maps = ()

    def backward(self, loss: torch.Tensor) -> None:
        """Takes the gradient of a sum of losses and shows it, layer by layer."""
        recorded = [maps for maps in self._maps if maps.requires_grad]
        if len(recorded) != len(self.sites) or not loss.requires_grad:
            raise ModelError(
                f"{type(self.network).__name__} gave {len(recorded)} maps of {len(self.sites)} "
                "layers that a loss depends on: gradients cannot be taken; please report this"
            )
        gradients = torch.autograd.grad(loss, recorded)
        with torch.no_grad():
            for layer in reversed(range(len(recorded))):
                maps, gradient = recorded[layer].detach(), gradients[layer]
                product = (maps * gradient).sum(-1)  # [example, head, query]
                self.observer(LayerGradient(layer, maps, gradient, product, None))
