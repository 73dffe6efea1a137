"""How is a head switched off for good, so that any other program runs the model without it?

What a head gives reaches the model through its rows of the output projection W_O alone. With these
set to 0 the head adds nothing: the checkpoint stays as large and loads everywhere, and answers as
with the head replaced by `zero`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from headscope.errors import ModelError
from headscope.experiments.ablation.naive import naive
from headscope.experiments.ablation.replace import StandIn
from headscope.experiments.ablation.variants import Variant, heads_in
from headscope.model.batch import Batch
from headscope.model.families import find_sites, registered
from headscope.model.model import forward

TOLERANCE = 1e-4  # of the largest logit


def projections_of(network: PreTrainedModel, *, layers: int) -> list[nn.Linear | Conv1D]:
    """[layer] the output projections.

    raises  ModelError where a head cannot be switched off in one layer alone, or its projection is
            not known
    """
    sites = find_sites(network) if registered(network) else []
    found = [s.projection for s in sites if isinstance(s.projection, nn.Linear | Conv1D)]
    if len(found) == layers == len({id(projection) for projection in found}):
        return found
    shares = 0 < len(sites) < layers
    why = "shares weights between layers" if shares else "has output projections of its own kind"
    raise ModelError(
        f"{type(network).__name__} {why}: its heads cannot be switched off for good; `headscope "
        "ablate` can switch them off while the model runs"
    )


def disable(network: PreTrainedModel, heads: Variant, *, layers: int, per_layer: int) -> None:
    """Sets the heads' part of the output projections to 0, in place.

    per_layer  heads of a layer
    """
    for layer, projection in enumerate(projections_of(network, layers=layers)):
        _switch_off(projection, heads_in(heads, layer), per_layer)


@contextmanager
def disabled(
    network: PreTrainedModel, heads: Variant, *, layers: int, per_layer: int
) -> Iterator[None]:
    """Inside the context the heads are switched off; afterwards the weights are what they were."""
    projections = projections_of(network, layers=layers)
    changed = [(p, layer) for layer, p in enumerate(projections) if heads_in(heads, layer)]
    before = [projection.weight.detach().clone() for projection, _ in changed]
    try:
        for projection, layer in changed:
            _switch_off(projection, heads_in(heads, layer), per_layer)
        yield
    finally:
        with torch.no_grad():
            for (projection, _), weight in zip(changed, before, strict=True):
                projection.weight.copy_(weight)


def check_disabled(
    network: PreTrainedModel, batch: Batch, heads: Variant, *, layers: int, per_layer: int
) -> None:
    """Raises ModelError unless the model without the heads answers as with them replaced by 0."""
    wanted = naive(network, batch, [heads], StandIn("zero"))[1]
    with disabled(network, heads, layers=layers, per_layer=per_layer):
        found = forward(network, batch.input_ids, batch.mask, batch.segment_ids).logits
    gap = float((found - wanted).abs().max())
    if not gap <= TOLERANCE * max(float(wanted.abs().max()), 1.0):
        raise ModelError(
            f"{type(network).__name__} without these heads answers differently by {gap:.1e} from "
            "one whose heads add nothing: its output projection is not what headscope takes for "
            "it; please report this model"
        )


def _switch_off(projection: nn.Linear | Conv1D, heads: list[int], per_layer: int) -> None:
    weight = projection.weight.data
    model = weight.shape[1 if isinstance(projection, Conv1D) else 0]
    if isinstance(projection, Conv1D):
        weight.view(per_layer, -1, model)[heads] = 0  # [head, dim, model]
    else:
        weight.view(model, per_layer, -1)[:, heads] = 0  # [model, head, dim]
