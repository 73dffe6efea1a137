"""Payloads of the views, made by hand: maps of known values, coded as the page reads them."""

from __future__ import annotations

import base64
import gzip

import numpy as np

FIRST = ("[CLS]", "the", "cat", "sat", "on", "the", "mat", "because", "it", "was", "warm", "[SEP]")
SECOND = ("the", "dog", "looked", "at", "it", "for", "##ever", ".", "[SEP]")


def make_tokens(n):
    middle = (FIRST + SECOND)[1:-1]
    return [FIRST[0], *(middle[place % len(middle)] for place in range(n - 2)), SECOND[-1]]


def make_maps(n, layers, heads, *, causal=False):
    """Rows sum to one: previous token, next token, first, separator-like, broad, local."""
    rng = np.random.default_rng(4)
    place = np.arange(n)
    away = place[:, None] - place[None, :]  # [query, key]
    maps = np.empty((layers, heads, n, n))
    for layer in range(layers):
        for head in range(heads):
            kind = (layer * 5 + head) % 6
            scores = rng.normal(0, 1.2, (n, n))
            scores += (
                5.0 * (away == 1), 5.0 * (away == -1), 5.0 * (place == 0)[None, :],
                5.0 * (place == n - 1)[None, :], 0 * away, -np.abs(away) / 2,
            )[kind]  # fmt: skip
            if causal:
                scores[away < 0] = -np.inf
            weights = np.exp(scores)
            maps[layer, head] = weights / weights.sum(-1, keepdims=True)
    return maps


def coded(maps, **names):
    scale = maps.max(axis=(-2, -1))  # [layer, head]
    share = np.sqrt(maps / scale[..., None, None])
    raw = np.round(share * 255).astype(np.uint8).tobytes()
    data = base64.b64encode(gzip.compress(raw, mtime=0)).decode()
    return {**names, "scale": scale.ravel().tolist(), "data": data}


def read_back(measure, shape):
    """Values as the page has them, decoded apart from it."""
    raw = np.frombuffer(gzip.decompress(base64.b64decode(measure["data"])), np.uint8)
    share = raw.reshape(shape) / 255  # [layer, head, query, key]
    return share**2 * np.reshape(measure["scale"], shape[:2])[..., None, None]


def make_payload(n=22, layers=3, heads=12, *, tokens=None, causal=False, title="The cat sat"):
    tokens = make_tokens(n) if tokens is None else tokens
    n = len(tokens)
    maps = make_maps(n, layers, heads, causal=causal)
    norms = maps * np.linspace(0.4, 2.5, n)[None, None, None, :]
    boundary = None if causal else n // 2 + 1
    return {
        "version": 1,
        "title": title,
        "model": {"name": "bert-made", "layers": layers, "heads": heads, "causal": causal},
        "tokens": tokens,
        "special": [token in {"[CLS]", "[SEP]"} for token in tokens],
        "segment": [int(boundary is not None and place >= boundary) for place in range(n)],
        "word": list(range(n)),
        "boundary": boundary,
        "measures": [
            coded(maps, name="attention", label="attention", unit="probability"),
            coded(norms, name="weighted_norm", label="weighted norm", unit="1"),
        ],
        "labels": [
            [("previous token", "next token", "", "to [SEP]", "broad", "")[(layer * 5 + head) % 6]
             for head in range(heads)] for layer in range(layers)
        ],
    }  # fmt: skip
