"""How many positions does a model have, and what says so? Told without importing torch."""

from collections.abc import Mapping
from typing import Any, NamedTuple

_UNLIMITED = 1 << 20  # tokenizers without a limit say 1e30; nothing here needs more than this
_ROPE = ("rope_parameters", "rope_scaling")  # under which configurations have their scaling
FIELDS = ("max_position_embeddings", "rope_theta", *_ROPE)  # that `limit_of` reads


class Limit(NamedTuple):
    """The longest input, in tokens, special ones included, and what sets it, in words."""

    tokens: int
    source: str


def limit_of(config: Mapping[str, Any], tokenizer: Any, *, learned: int | None = None) -> Limit:
    """The least of what a configuration and a tokenizer's `model_max_length` allow.

    learned  positions that a network has vectors for, where it has such
    """
    known = [
        Limit(learned, "its position embeddings") if learned else _of_config(config),
        Limit(_whole(tokenizer), "model_max_length of its tokenizer"),
    ]
    stated = [one for one in known if 0 < one.tokens < _UNLIMITED]
    return min(stated, default=Limit(_UNLIMITED, "nothing limits it"))


def _of_config(config: Mapping[str, Any]) -> Limit:
    """What a configuration allows, with the scaling of rotary positions (RoPE).

    "linear" and "dynamic" multiply what it states; "yarn" what the model was trained with, where
    that is more than what it states; of "llama3" and "longrope" it states what scaling gives.
    """
    stated, said = _whole(config.get("max_position_embeddings")), "max_position_embeddings"
    rope: Mapping[str, Any] = next((config[name] for name in _ROPE if config.get(name)), {})
    if not rope and config.get("rope_theta") is None:
        return Limit(stated, f"{said} of its config")
    kind = rope.get("rope_type") or rope.get("type") or "default"
    if "rope_type" not in rope and any(isinstance(one, dict) for one in rope.values()):
        by_layer = {one.get("rope_type") or "default" for one in rope.values()}
        kind = " and ".join(sorted(by_layer - {"default"})) or "default"  # it states the whole
    if kind == "default":
        return Limit(
            stated, f"{said} of its config, without scaling of rotary positions: rope_parameters "
            "in its config.json may set one, say yarn"
        )  # fmt: skip
    trained = _whole(rope.get("original_max_position_embeddings")) or stated
    scaled = int(trained * float(rope.get("factor") or 1))
    if kind in ("linear", "dynamic", "yarn") and scaled > stated:
        return Limit(
            scaled, f"{kind} scaling of rotary positions, {scaled / trained:g} x {trained}"
        )
    more = f", from {trained}" if trained < stated else ""
    return Limit(stated, f"{said} of its config, with {kind} scaling of rotary positions{more}")


def _whole(stated: Any) -> int:
    """A number of tokens; 0 for anything else."""
    return int(stated) if isinstance(stated, int | float) and 0 < stated < _UNLIMITED else 0
