"""Are the gradients that pass by in this very model those that autograd keeps by itself?

Asked once when a run begins, on its two shortest inputs: a family that does something unforeseen
around its attention is refused, not told wrongly.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from headscope.corpus.document import Example
from headscope.errors import ModelError
from headscope.experiments.ablation.sweep import batch_of
from headscope.experiments.importance.gather import Gather
from headscope.experiments.importance.objectives import Objective
from headscope.experiments.importance.stream import Streaming, frozen
from headscope.model.attention import AttentionCall
from headscope.model.families import registered
from headscope.model.instrument import Instrument
from headscope.model.model import Model, run_network

TOLERANCE = 1e-3  # of the largest number of any head; float32 rounding stays well below it


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
    gather = Gather(batch, layers=shape.layers, heads=shape.heads)
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
