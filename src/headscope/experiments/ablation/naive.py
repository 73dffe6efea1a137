"""What does a model answer with heads switched off, each time from its first layer on?

The plain way, by the instrument's interventions: one full forward pass for every variant. It serves
the families for which `shared` does not, and is what that is held against.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import PreTrainedModel

from headscope.experiments.ablation.replace import StandIn
from headscope.experiments.ablation.variants import Variant
from headscope.model.batch import Batch
from headscope.model.instrument import Instrument
from headscope.model.model import forward


def naive(
    network: PreTrainedModel, batch: Batch, variants: Sequence[Variant], stand_in: StandIn
) -> torch.Tensor:
    """[variant + 1, example, output] the logits; first those of the whole model."""
    found = []
    for variant in (frozenset(), *variants):
        off = [stand_in.switching_off(variant)] if variant else []
        with Instrument(network, interventions=off):
            answer = forward(network, batch.input_ids, batch.mask, batch.segment_ids)
        found.append(answer.logits.detach())
    return torch.stack(found)  # [variant + 1, example, output]
