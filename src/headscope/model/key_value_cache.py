"""Reuse the keys and values of one forward pass in later passes.

What transformers calls them changed with version 5.24: `cache`, before that `past_key_values`.
"""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PreTrainedModel


BEFORE, SINCE = "past_key_values", "cache"


def cache_of(output: Any) -> Any:
    """What a pass has kept; None for nothing."""
    kept = getattr(output, SINCE, None)
    return getattr(output, BEFORE, None) if kept is None else kept


def going_on(network: PreTrainedModel, cache: Any) -> dict[str, Any]:
    """The argument of a pass that goes on from there."""
    return {SINCE if SINCE in signature(network.forward).parameters else BEFORE: cache}
