"""How does an example become the data of a page: small, exact enough to read, and harmless?

Maps are stored as bytes of square roots: value = (byte / 255)² · scale, so that small weights keep
more digits than large ones; the error is below 0.4 % of a head's largest value. Weighted norms are
not stored: the page multiplies the weights by the norms of the keys.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from headscope.errors import InputError
from headscope.views.example import Shown

VERSION = 1
MOST_TOKENS = 512
TOP = 255


def payload(shown: Shown, *, labels: Sequence[Sequence[str]] | None = None) -> dict[str, Any]:
    """Everything that a page draws, as plain values for JSON.

    labels  [layer][head] what a head does, '' where nothing is telling
    raises  InputError for more than MOST_TOKENS tokens
    """
    if len(shown.tokens) > MOST_TOKENS:
        raise InputError(
            f"the example has {len(shown.tokens)} tokens; wanted at most {MOST_TOKENS}: "
            "shorten the text"
        )
    layers, heads = shown.attention.shape[:2]
    data, scale = encoded(shown.attention)
    measures: list[dict[str, Any]] = [
        {
            "name": "attention", "label": "attention α", "unit": "probability",
            "scale": scale, "data": data,
        },
    ]  # fmt: skip
    if shown.value_norm is not None and (weighted := shown.weighted_norm) is not None:
        measures.append({
            "name": "weighted_norm", "label": "weighted norm ‖αf(x)‖", "unit": "1",
            "scale": _short(_scales(weighted)), "norm": _short(shown.value_norm.reshape(-1)),
        })  # fmt: skip
    return {
        "version": VERSION,
        "title": " ".join(t for t, s in zip(shown.tokens, shown.special, strict=True) if not s),
        "model": {
            "name": Path(shown.model).name, "layers": layers, "heads": heads,
            "causal": shown.causal,
        },
        "tokens": list(shown.tokens),
        "special": shown.special.tolist(),
        "segment": shown.segment.tolist(),
        "word": shown.word.tolist(),
        "boundary": shown.boundary,
        "measures": measures,
        "labels": [list(row) for row in labels] if labels else [[""] * heads] * layers,
    }  # fmt: skip


def encoded(maps: npt.NDArray[np.float32]) -> tuple[str, list[float]]:
    """The maps as base64 of gzip of bytes, and the scale of each.

    maps     [layer, head, query, key] at least 0
    returns  the text, and [layer·head] the largest value of each map (1 where it is 0)
    """
    flat = maps.reshape(-1, *maps.shape[2:])  # [unit, query, key]
    scale = _scales(maps)
    codes = np.rint(np.sqrt(flat / scale[:, None, None]) * TOP).astype(np.uint8)
    packed = gzip.compress(codes.tobytes(), compresslevel=9, mtime=0)
    return base64.b64encode(packed).decode("ascii"), _short(scale)


def _scales(maps: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """[layer·head] the largest value of each map; 1 where it is 0."""
    largest = maps.max((2, 3)).reshape(-1)  # [unit]
    return np.where(largest > 0, largest, 1).astype(np.float32)


def _short(values: npt.NDArray[np.float32]) -> list[float]:
    """As many digits as float32 has."""
    return [float(f"{value:.7g}") for value in values]
