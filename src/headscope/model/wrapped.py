"""Finds the network in what others wrap around it."""

from __future__ import annotations

from typing import Any

import transformers

# Where pipelines, and TransformerLens's bridge, have their network.
WRAPPED = ("original_model", "model")


def network_in(model: Any) -> transformers.PreTrainedModel | None:
    """The transformers network that something is or wraps; None for anything else."""
    inside = (model, *(getattr(model, name, None) for name in WRAPPED))
    return next((one for one in inside if isinstance(one, transformers.PreTrainedModel)), None)
