"""Tell whether tokens reach each other by other ways than attention."""

from collections.abc import Callable
from typing import Any

import torch
from transformers import PreTrainedModel

from headscope.model.families.sites import find_sites
from headscope.model.instrument import AttentionCall, Instrument
from headscope.model.placement import input_device

REACHED = 1e-2  # of the largest number of a state; rounding in half precision is less


def mixes_beside_attention(network: PreTrainedModel, forward: Callable[..., Any]) -> bool:
    """Whether a token still reaches another when each attends to itself alone.

    So it is where a layer adds a recurrence to its attention (Falcon-H1), or embeddings take in
    their neighbours (MobileBERT). False where attention cannot be changed, off the registry.

    forward  runs a network on ids and mask [example, token]; of an encoder-decoder the encoder
    """
    if any(site.eager for site in find_sites(network)):
        return False

    def alone(call: AttentionCall) -> None:
        call.attention = torch.eye(2).to(call.attention).expand_as(call.attention)

    padding = getattr(network.config, "pad_token_id", None)
    one, other = [token for token in range(3) if token != padding][:2]
    ids = torch.tensor([[one, one], [other, one]], device=input_device(network))
    body = network if network.config.is_encoder_decoder else network.base_model
    with Instrument(network, interventions=[alone]):
        output = forward(body, ids, torch.ones_like(ids))
    states = getattr(output, "last_hidden_state", None)
    if states is None or states.shape[:2] != ids.shape:
        return False
    last = states[:, 1].float()
    return bool((last[0] - last[1]).abs().max() > REACHED * last.abs().max())
