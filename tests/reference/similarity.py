"""How alike are the maps of two models, in float64 and from the definitions alone?"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from reference.extraction import attention_maps, float64_copy

Array = NDArray[np.float64]


def cosine(first: Array, second: Array) -> Array:
    """[layer, head] of maps [layer, head, query, key], flattened."""
    flat = [maps.reshape(*maps.shape[:2], -1) for maps in (first, second)]
    sizes = [np.sqrt((part**2).sum(-1)) for part in flat]
    return (flat[0] * flat[1]).sum(-1) / (sizes[0] * sizes[1])


def divergence(first: Array, second: Array) -> Array:
    """[layer, head] Jensen-Shannon divergence of each query's row in nats, mean over queries."""
    middle = (first + second) / 2
    parts = [_relative(maps, middle) for maps in (first, second)]
    return (parts[0] + parts[1]).mean(-1) / 2


def _relative(maps: Array, middle: Array) -> Array:
    """[..., query] Kullback-Leibler divergence of the rows of `maps` from those of `middle`."""
    ratio = np.divide(maps, middle, out=np.ones_like(maps), where=maps > 0)
    return (maps * np.log(ratio)).sum(-1)


def padded_maps(model: Any, input_ids: Array, *, tokens: int, pad: int) -> Array:
    """[layer, head, tokens, tokens] stock attention of one input that padding fills up."""
    ids = torch.full((1, tokens), pad)
    ids[0, : len(input_ids)] = torch.from_numpy(input_ids)
    mask = (torch.arange(tokens) < len(input_ids)).long()[None]
    with torch.no_grad():
        found = float64_copy(model)(input_ids=ids, attention_mask=mask, output_attentions=True)
    return np.stack([layer[0].numpy() for layer in found.attentions])


def maps_of(model: Any, input_ids: Array, segment_ids: Array) -> Array:
    """[layer, head, query, key] stock attention of one input without padding."""
    return attention_maps(float64_copy(model), input_ids, segment_ids)
