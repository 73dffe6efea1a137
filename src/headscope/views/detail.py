"""Which heads come with everything: exact weights, and the vectors that the weights come from?

That takes much more room than a map: there are the heads that are asked for, or as many as fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headscope.errors import InputError
from headscope.views.coding import coded_head, short
from headscope.views.example import Side, Stack

FINE = 300_000  # numbers of vectors that are kept with 16 bits each; more take 8
Heads = Sequence[tuple[int, int]]
Detail = str | Heads


def detail_of(
    stack: Stack, sides: Sequence[Side], asked: Detail, *, room: int, least: int
) -> dict[str, Any]:
    """The heads with everything, see `views.page`.

    asked  heads (layer, head); "all", "none", or "auto": as many as fit, the plainest first
    room   characters that they may take, where "auto"; `least` heads are there in any case
    """
    bits = _bits(stack, asked)
    heads, blocks = _chosen(stack, sides, asked, bits=bits, room=room, least=least)
    layers, count = stack.attention.shape[:2]
    vectors = stack.vectors
    why = "" if vectors else stack.why_none
    if vectors and len(heads) < layers * count:
        why = (
            f"The vectors of {len(heads) or 'none'} of {layers * count} heads are on this page, to "
            "keep it small; detail (--detail 3-9,5-1 or all) puts others on it."
        )
    return {
        "heads": [list(head) for head in heads],
        "dim": vectors.queries.shape[-1] if vectors else 0,
        "vectors": vectors is not None,
        "bias": vectors is not None and vectors.bias is not None,
        "scaling": short(vectors.scaling) if vectors else [],
        "softcap": vectors.softcap if vectors else None,
        "bits": bits,
        "importance": _importance(stack, heads),
        "why": why,
        "blocks": blocks,
    }


def _chosen(
    stack: Stack, sides: Sequence[Side], asked: Detail, *, bits: int, room: int, least: int
) -> tuple[list[tuple[int, int]], list[str]]:
    layers, count = stack.attention.shape[:2]
    if not isinstance(asked, str):
        given = [(int(layer), int(head)) for layer, head in asked]
        for layer, head in given:
            if not (0 <= layer < layers and 0 <= head < count):
                raise InputError(
                    f"found detail for L{layer + 1}·H{head + 1} (layer {layer}, head {head} from "
                    f"0); there are {layers} layers × {count} heads"
                )
        return given, [_block(stack, head, bits) for head in given]
    if asked not in ("auto", "all", "none"):
        raise InputError(f"detail is {asked!r}; wanted auto, all, none, or heads (layer, head)")
    if asked == "none":
        return [], []
    heads, blocks, size = list[tuple[int, int]](), list[str](), 0
    for place in plainest(stack, sides):
        block = _block(stack, place, bits)
        size += len(block)
        if asked == "auto" and size > room and len(heads) >= least:
            break
        heads.append(place)
        blocks.append(block)
    return heads, blocks


def plainest(stack: Stack, sides: Sequence[Side]) -> list[tuple[int, int]]:
    """All heads (layer, head): first those with the largest weights between ordinary tokens."""
    rows, columns = ~sides[stack.queries].special, ~sides[stack.keys].special
    between = stack.attention[:, :, rows][..., columns]
    if stack.queries == stack.keys:  # a token to itself tells little
        between = between * ~np.eye(between.shape[-1], dtype=bool)
    strength = between.max(-1, initial=0).mean(-1) if rows.any() else np.zeros(between.shape[:2])
    order = np.argsort(-strength, axis=None, kind="stable")
    layer, head = np.unravel_index(order, strength.shape)
    return list(zip(layer.tolist(), head.tolist(), strict=True))


def _bits(stack: Stack, asked: Detail) -> int:
    """Of each number of a vector: 16 where there is room, else 8."""
    if stack.vectors is None:
        return 8
    layers, heads, queries, dim = stack.vectors.queries.shape
    count = layers * heads if isinstance(asked, str) else len(asked)
    return 16 if count * (queries + stack.vectors.keys.shape[2]) * dim <= FINE else 8


def _block(stack: Stack, place: tuple[int, int], bits: int) -> str:
    vectors = stack.vectors
    if vectors is None:
        return coded_head(stack.attention[place], None, None, None, bits=bits)
    bias = None if vectors.bias is None else vectors.bias[place]
    q, k = vectors.queries[place], vectors.keys[place]
    return coded_head(stack.attention[place], q, k, bias, bits=bits)


def _importance(stack: Stack, heads: Heads) -> list[list[float]] | None:
    """[head][neuron] of a corpus, where an atlas gave it."""
    if stack.importance is None:
        return None
    return [[float(f"{v:.4g}") for v in stack.importance[place]] for place in heads]
