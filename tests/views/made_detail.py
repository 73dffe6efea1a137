"""Payloads whose heads have vectors: queries, keys and biases that are known, coded by hand."""

from __future__ import annotations

import base64
import gzip

import numpy as np

from views.made import coded, make_side, make_tokens, packed, softmax

DETAILED = ((0, 1), (1, 2), (2, 0))


def signed(rows, bits=8):
    """[row] scale and [row, column] code: value = ± (code / largest code)² · scale of its row."""
    scale = np.abs(rows).max(-1).astype("<f4")
    share = np.sign(rows) * np.sqrt(np.abs(rows) / scale[:, None])
    return scale, np.round(share * (2 ** (bits - 1) - 1)).astype(f"<i{bits // 8}")


def make_block(rng, n, m, d, *, scaling, causal, bias, softcap, window, bits):
    """One head: its weights, and the block that codes it."""
    q, k = rng.normal(0, 1.4, (n, d)), rng.normal(0, 1.4, (m, d))
    scores = scaling * q @ k.T
    if softcap:
        scores = softcap * np.tanh(scores / softcap)
    added = rng.normal(0, 1, (n, m))
    if bias:
        scores = scores + added
    away = np.arange(n)[:, None] - np.arange(m)[None, :]
    scores[(causal & (away < 0)) | (np.abs(away) >= window)] = -np.inf
    weights = softmax(scores)
    code = np.round(np.sqrt(weights) * 65535).astype(np.uint16)
    arrays = [(code >> 8).astype("u1"), (code & 255).astype("u1")]
    (q_scale, q_code), (k_scale, k_code) = signed(q, bits), signed(k, bits)
    arrays += [q_scale, k_scale, q_code, k_code]
    if bias:
        arrays += signed(added.reshape(1, -1), bits)
    return weights, packed(*arrays)


def make_stack(
    tokens,
    *,
    d=16,
    layers=3,
    heads=4,
    causal=False,
    bias=False,
    softcap=None,
    window=10**6,
    scaling=0.25,
    detailed=DETAILED,
    vectors=True,
    why="",
    importance=False,
    bits=8,
    name="self",
    queries=0,
    keys=0,
):
    rng = np.random.default_rng(8)
    n, m = len(tokens[queries]), len(tokens[keys])
    options = {
        "causal": causal,
        "bias": bias,
        "softcap": softcap,
        "window": window,
        "scaling": scaling,
        "bits": bits,
    }
    maps = np.full((layers, heads, n, m), 1 / m)
    blocks = []
    for place in detailed:
        maps[place], block = make_block(rng, n, m, d, **options)
        blocks.append(block)
    detail = {
        "heads": [list(place) for place in detailed],
        "dim": d,
        "vectors": vectors,
        "bias": bias,
        "scaling": [scaling] * layers,
        "softcap": softcap,
        "why": why,
        "blocks": blocks,
        "bits": bits,
    }
    if importance:
        detail["importance"] = rng.uniform(0, 1, (len(detailed), d)).tolist()
    attention = coded(maps, scale=1.0, name="attention", label="attention", unit="probability")
    return {
        "name": name,
        "label": name,
        "layers": layers,
        "heads": heads,
        "causal": causal,
        "queries": queries,
        "keys": keys,
        "labels": [[""] * heads] * layers,
        "measures": [attention],
        "detail": detail if detailed else None,
    }


def make_payload(n=14, *, tokens=None, pair=True, **options):
    """One stack of `options`, see `make_stack`; heads DETAILED have blocks."""
    tokens = make_tokens(n) if tokens is None else tokens
    side = make_side(tokens, pair=pair and not options.get("causal"))
    return wrapped([side], [make_stack([tokens], **options)])


def wrapped(sides, stacks):
    return {
        "version": 2,
        "title": "The cat sat",
        "model": {"name": "made"},
        "left_out": "",
        "precision": "Weights are stored in 255 steps.",
        "sides": sides,
        "stacks": stacks,
    }


def read_block(payload, place=0, stack=0):
    """What the block of a head holds, decoded apart from the page: weight, q, k, bias."""
    shape = payload["stacks"][stack]
    detail = shape["detail"]
    n, m = (len(payload["sides"][shape[axis]]["tokens"]) for axis in ("queries", "keys"))
    raw = gzip.decompress(base64.b64decode(detail["blocks"][place]))
    cut = 0

    def take(kind, *size):
        nonlocal cut
        found = np.frombuffer(raw, kind, int(np.prod(size)), cut).reshape(size).astype(float)
        cut += found.size * np.dtype(kind).itemsize
        return found

    high, low = take("u1", n, m), take("u1", n, m)
    q_scale, k_scale = take("<f4", n, 1), take("<f4", m, 1)
    kind, most = f"<i{detail['bits'] // 8}", 2 ** (detail["bits"] - 1) - 1
    q, k = take(kind, n, detail["dim"]), take(kind, m, detail["dim"])
    found = {
        "weight": ((high * 256 + low) / 65535) ** 2,
        "q": np.sign(q) * (q / most) ** 2 * q_scale,
        "k": np.sign(k) * (k / most) ** 2 * k_scale,
    }
    if detail["bias"]:
        scale, code = take("<f4", 1), take(kind, n, m)
        found["bias"] = np.sign(code) * (code / most) ** 2 * scale
    return found
