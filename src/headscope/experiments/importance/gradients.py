"""Takes the gradients of attention of one batch and keeps their sums by category of the key.

Families on transformers' registry are followed by `stream`. MPNet and DeBERTa hand out their maps
as parts of the autograd graph: their gradients are asked for there (`EagerMaps`), which is slower
and takes more memory. When a run begins, the gradients of its two shortest inputs are compared with
those that plain autograd keeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import PreTrainedModel

from headscope.core.accumulators import Float64
from headscope.core.reversible import Reversible
from headscope.corpus.document import Example
from headscope.errors import ModelError
from headscope.experiments.ablation.variant_answers import batch_of
from headscope.experiments.importance.objectives import Objective
from headscope.experiments.importance.stream import LayerGradient, Observer, Streaming, frozen
from headscope.model.attention import AttentionCall, visible
from headscope.model.batch import CATEGORIES, Batch, to_float64
from headscope.model.families import find_sites, registered
from headscope.model.instrument import Instrument
from headscope.model.model import Model, run_network
from headscope.run.store import State

TOLERANCE = 1e-3  # of the largest number of any head; float32 rounding stays well below it


# --- sums of one batch ------------------------------------------------------------------------


class GradientSums:
    """An observer of one batch's gradients; padding is weight 0, and so are edges that are masked.

    magnitude  [example, layer, head, category]  Σ |∂loss/∂α| over the edges to such keys
    attention  [example, layer, head, category]  Σ α over the same
    edges      [example, layer, category]        how many these are
    product    [example, layer, head]            Σ α ∂loss/∂α over all edges, signed
    even       [example, layer, head]            the same with 1/n for α, n being the keys that a
                                                 query may attend to
    """

    def __init__(self, batch: Batch, *, layers: int, heads: int) -> None:
        self.batch = batch
        size, count = len(batch.examples), len(CATEGORIES)
        self.magnitude = np.zeros((size, layers, heads, count))
        self.attention = np.zeros((size, layers, heads, count))
        self.edges = np.zeros((size, layers, count))
        self.product, self.even = (np.zeros((size, layers, heads)) for _ in range(2))
        self._masks: dict[int, tuple[torch.Tensor | None, torch.Tensor | None, Float64]] = {}

    def __call__(self, layer: LayerGradient) -> None:
        """Add one layer."""
        at, real = layer.layer, self.batch.mask
        size = layer.gradient.abs()  # [example, head, query, key]
        seen, edges = self._seen(layer)
        if seen is not None:
            size *= seen
        self.magnitude[:, at] = self._by_category(size)
        self.attention[:, at] = self._by_category(layer.attention)
        self.edges[:, at] = edges
        self.product[:, at] = to_float64((layer.product * real[:, None]).sum(-1))
        self.even[:, at] = to_float64(self._evenly(layer.gradient, seen))

    def state(self) -> State:
        """The arrays by name."""
        names = ("magnitude", "attention", "edges", "product", "even")
        return {name: getattr(self, name) for name in names}

    def _by_category(self, values: torch.Tensor) -> Float64:
        """[example, head, category] sums over real queries and the keys of each category."""
        dtype = torch.promote_types(values.dtype, torch.float32)
        queries = self.batch.mask[:, None, None].to(dtype)  # [example, 1, 1, query]
        columns = queries @ values.to(dtype)  # [example, head, 1, key]
        return to_float64(columns @ self.batch.categories[:, None].to(dtype))[:, :, 0]

    def _evenly(self, gradient: torch.Tensor, seen: torch.Tensor | None) -> torch.Tensor:
        """[example, head] Σ ∂loss/∂α / n over the edges, n being the keys that a query sees."""
        real = self.batch.mask.to(gradient.dtype)  # [example, token]
        if seen is not None:
            rows = (gradient * seen).sum(-1) / seen.sum(-1).clamp_min(1)  # [example, head, query]
            return (rows * real[:, None]).sum(-1)
        columns = (real[:, None, None] @ gradient)[:, :, 0]  # [example, head, key]
        return (columns * real[:, None]).sum(-1) / real.sum(-1, keepdim=True)

    def _seen(self, layer: LayerGradient) -> tuple[torch.Tensor | None, Float64]:
        """[example, 1, query, key] 1 for an edge, or None where only padding is masked; edges."""
        key = id(layer.mask)
        if key not in self._masks:  # layers share masks; kept, so that no other gets its id
            real = self.batch.mask
            seen = visible(layer.mask, layer.attention)[:, 0] & real[:, None]  # [example, q, k]
            there = seen & real[..., None]
            more = bool((there != real[..., None] & real[:, None]).any())
            weights = there.to(torch.float64).sum(1, keepdim=True)  # [example, 1, key]
            edges = to_float64(weights @ self.batch.categories.double())[:, 0]
            kept = there[:, None].to(layer.gradient.dtype) if more else None
            self._masks[key] = (layer.mask, kept, edges)
        return self._masks[key][1:]


# --- families that bypass the registry --------------------------------------------------------


def following(network: PreTrainedModel, observer: Observer) -> Streaming | EagerMaps:
    """A context for one forward and one backward pass, whose gradients the observer sees.

    raises  ModelError for encoder-decoders, and families that cannot be read
    """
    if network.config.is_encoder_decoder:
        raise ModelError(
            f"{type(network).__name__} is an encoder-decoder; wanted an encoder or a decoder for "
            "the gradients of its attention"
        )
    return (Streaming if registered(network) else EagerMaps)(network, observer)


class EagerMaps(Reversible):
    """As `Streaming`, for families that compute attention by themselves."""

    def __init__(self, network: PreTrainedModel, observer: Observer) -> None:
        self.network, self.observer = network, observer
        self.sites = find_sites(network)
        self._maps: tuple[torch.Tensor, ...] = ()

    def _open(self, stack: ExitStack) -> None:
        """Ask for maps, and for gradients down to the embedded tokens."""
        embeddings: Any = self.network.get_input_embeddings()
        stack.enter_context(torch.enable_grad())
        stack.enter_context(frozen(self.network))
        for hook in (
            embeddings.register_forward_hook(_asking),
            self.network.register_forward_pre_hook(_with_maps, with_kwargs=True),
            self.network.register_forward_hook(self._keep),
        ):
            stack.callback(hook.remove)

    def _forget(self) -> None:
        self._maps = ()

    def backward(self, loss: torch.Tensor) -> None:
        """Takes the gradient of a sum of losses and shows it, layer by layer."""
        asked = [maps for maps in self._maps if maps.requires_grad]
        if len(asked) != len(self.sites) or not loss.requires_grad:
            raise ModelError(
                f"{type(self.network).__name__} gave {len(asked)} maps of {len(self.sites)} "
                "layers that a loss depends on: gradients cannot be taken; please report this"
            )
        gradients = torch.autograd.grad(loss, asked)
        with torch.no_grad():
            for layer in reversed(range(len(asked))):
                maps, gradient = asked[layer].detach(), gradients[layer]
                product = (maps * gradient).sum(-1)  # [example, head, query]
                self.observer(LayerGradient(layer, maps, gradient, product, None))

    def _keep(self, _network: nn.Module, _args: Any, output: Any) -> None:
        self._maps = tuple(output.attentions or ())


def _asking(_embeddings: nn.Module, _args: Any, output: torch.Tensor) -> torch.Tensor:
    return output.requires_grad_()


def _with_maps(
    _network: nn.Module, args: Any, kwargs: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    return args, {**kwargs, "output_attentions": True}


# --- the check when a run begins --------------------------------------------------------------


def check_gradients(model: Model, examples: Sequence[Example], objective: Objective) -> None:
    """Raises ModelError unless Σ α ∂loss/∂α of every head is what plain autograd gives.

    Families off the registry are followed by plain autograd anyway.
    """
    if not registered(model.network) or model.network.config.is_encoder_decoder:
        return
    places = sorted(range(len(examples)), key=lambda at: len(examples[at]))[:2]
    shape, network = model.shape, model.network
    batch = batch_of(model, [examples[at] for at in places])
    inputs = (batch.input_ids, batch.mask, batch.segment_ids)
    gather = GradientSums(batch, layers=shape.layers, heads=shape.heads)
    maps: list[torch.Tensor] = []

    def ask(call: AttentionCall) -> None:
        if not call.attention.requires_grad:
            call.attention = call.attention.clone().requires_grad_()
        maps.append(call.attention)

    with objective.asking(network, places):
        with Streaming(network, gather) as stream:
            logits = run_network(network, *inputs).logits
            check_layers(stream.layers, model)
            stream.backward(objective.losses(logits, places).sum())
        with torch.enable_grad(), frozen(network), Instrument(network, interventions=[ask]):
            loss = objective.losses(run_network(network, *inputs).logits, places).sum()
            gradients = torch.autograd.grad(loss, maps)
    products = [
        ((a.detach() * g).sum(-1) * batch.mask[:, None]).sum(-1)
        for a, g in zip(maps, gradients, strict=True)
    ]
    wanted = torch.stack(products, 1).double().cpu()  # [example, layer, head]
    if not wanted.isfinite().all():
        return  # the loss itself is not: said where it is computed
    gap = float((torch.from_numpy(gather.product) - wanted).abs().max())
    allowed = max(TOLERANCE, 16 * torch.finfo(network.dtype).eps)
    if not gap <= allowed * float(wanted.abs().max()):
        raise ModelError(
            f"the gradients of {type(network).__name__} are {gap:.1e} away from what autograd "
            f"gives (largest: {float(wanted.abs().max()):.1e}); refusing to show numbers that may "
            "be wrong; please report this model"
        )


def check_layers(found: int, model: Model) -> None:
    """Raises ModelError unless attention ran once in every layer."""
    if found != model.shape.layers:
        raise ModelError(
            f"{type(model.network).__name__} ran {found} attentions in {model.shape.layers} "
            "layers; wanted one in each, in order: please report this model"
        )
