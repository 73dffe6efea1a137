"""Reuse the keys and values of one forward pass in later passes.

What transformers calls them changed with version 5.24: `cache`, before that `past_key_values`.
"""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any

from transformers import DynamicCache

if TYPE_CHECKING:
    from transformers import PreTrainedModel


BEFORE, SINCE = "past_key_values", "cache"


def cache_of(output: Any) -> Any:
    """What a pass has kept; None for nothing."""
    kept = getattr(output, SINCE, None)
    return getattr(output, BEFORE, None) if kept is None else kept


def whole_cache(output: Any) -> Any:
    """What a pass has kept, if that is all keys of all layers, so that it can be cut; else None."""
    cache = cache_of(output)
    kinds = {type(layer).__name__ for layer in getattr(cache, "layers", ())}
    return cache if kinds == {"DynamicLayer"} else None


def cut(cache: DynamicCache, tokens: int) -> None:
    """Leave the first tokens only."""
    cache.crop(tokens - cache.get_seq_length())


def going_on(network: PreTrainedModel, cache: Any) -> dict[str, Any]:
    """The argument of a pass that goes on from there."""
    return {SINCE if SINCE in signature(network.forward).parameters else BEFORE: cache}


def first_tokens(cache: DynamicCache, tokens: int, rows: Sequence[int]) -> DynamicCache:
    """The keys and values of the first tokens of one input, the same in several rows.

    rows  [layer] how many
    """
    layers: Any = cache.layers
    return DynamicCache(
        [
            tuple(part[:, :, :tokens].expand(own, -1, -1, -1) for part in (one.keys, one.values))
            for one, own in zip(layers, rows, strict=True)
        ]
    )
