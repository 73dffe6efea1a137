"""How do queries, keys and masks become attention probabilities?

Exactly as transformers' eager functions do it, operation by operation, so that the maps are equal
to the last bits; but without copies of the [example, head, query, key] tensor where no gradient is
recorded, and refusing what it does not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from headscope.errors import ModelError

# What transformers hands to an attention function beside q, k, v and the mask.
_USED = frozenset({"softcap", "position_bias"})
# Changes nothing here: the mask already holds causality and windows.
_WITHOUT_EFFECT = frozenset(
    {
        "is_causal",
        "sliding_window",
        "position_ids",
        "output_attentions",
        "output_hidden_states",
        "use_cache",
        "cache_position",
        "encoder_hidden_states",
        "encoder_attention_mask",
        "past_key_values",
        "return_dict",
        "position_embeddings",
        "cu_seq_lens_q",
        "cu_seq_lens_k",
        "max_length_q",
        "max_length_k",
        "num_items_in_batch",
        "deterministic",
        "token_type_ids",
        "labels",
    }
)


def probabilities(
    query: torch.Tensor,
    key: torch.Tensor,
    mask: torch.Tensor | None,
    *,
    scaling: float | None,
    softcap: float | None = None,
    position_bias: torch.Tensor | None = None,
) -> torch.Tensor:
    """[example, head, query, key] softmax(cap(scaling · q·k) + position bias + mask).

    query, key            [example, head, query or key, dim]
    mask, position_bias   broadcast to the scores; 0 where attended, very negative where not
    scaling               1/√dim if None
    """
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    biases = [b[..., : key.shape[2]] for b in (position_bias, mask) if b is not None]
    if torch.is_grad_enabled() and any(t.requires_grad for t in (query, key, *biases)):
        scores = query @ key.transpose(2, 3) * scale  # [example, head, query, key]
        if softcap is not None:
            scores = torch.tanh(scores / softcap) * softcap
        for bias in biases:
            scores = scores + bias
        wide = torch.promote_types(scores.dtype, torch.float32)
        return scores.softmax(-1, dtype=wide).to(query.dtype)
    return _in_place(query @ key.transpose(2, 3), biases, scale, softcap)


def _in_place(
    scores: torch.Tensor, biases: list[torch.Tensor], scale: float, softcap: float | None
) -> torch.Tensor:
    """The same, in one buffer: half the time of the above on long inputs."""
    scores.mul_(scale)
    if softcap is not None:
        scores.div_(softcap).tanh_().mul_(softcap)
    for bias in biases:
        scores.add_(bias)
    if scores.dtype in (torch.float16, torch.bfloat16):
        return scores.softmax(-1, dtype=torch.float32).to(scores.dtype)
    if scores.device.type != "cpu":  # only there is writing into its own input known to be right
        return scores.softmax(-1)
    return torch.softmax(scores, -1, out=scores)


def known_options(module: nn.Module, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that matter among those that a module passes; ModelError for unknown ones."""
    unknown = [
        name
        for name, value in options.items()
        if value is not None and name not in _WITHOUT_EFFECT | _USED
    ]
    if unknown:
        raise ModelError(
            f"{type(module).__name__} passes {', '.join(unknown)} to its attention, which "
            "headscope does not know: refusing to show numbers that may be wrong; "
            "please report this model"
        )
    return {name: options[name] for name in _USED if options.get(name) is not None}
