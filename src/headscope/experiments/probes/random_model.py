"""What is left of a model when all but its embeddings is drawn anew?"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from headscope.experiments.probes.training import drawn_with
from headscope.model.checkpoint import parameters_sha256
from headscope.model.model import Model


def randomised(model: Model, *, seed: int) -> Model:
    """The same network with random weights, as its family begins a training with.

    Kept are all embeddings: of words, of positions, and of segments, of which single sentences use
    one (Clark et al. 2019, §5, name words and positions).
    """
    with drawn_with(seed, "random model"):
        network: PreTrainedModel = type(model.network)(copy.deepcopy(model.network.config))
    moved: Any = network  # whose `to` is typed for no call
    moved.to(device=model.device, dtype=model.network.dtype).eval()
    with torch.no_grad():
        for name, module in model.network.named_modules():
            if isinstance(module, nn.Embedding):
                fresh = network.get_submodule(name)
                assert isinstance(fresh, nn.Embedding)
                fresh.weight.copy_(module.weight)
    return Model(network, model.tokenizer, model.name, "", parameters_sha256(network))
