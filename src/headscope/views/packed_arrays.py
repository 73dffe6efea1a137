"""Pack maps and vectors as text for a page: small, and exact to a stated error.

Most is coded by the square root, so that small numbers keep more digits than large ones, then
compressed and written in base64:

    maps      8 bits   value = (code / levels)² · scale       error of the root: 1 / (2 · levels)
    weights  16 bits   value = (code / 65535)²                error at most 2e-5
    norms    16 bits   value = code / 65535 · scale           scale: the head's largest
    vectors   8 bits   value = ± (code / 127)² · scale        scale: the token's largest
             16 bits   value = ± (code / 32767)² · scale

A page has the maps of all heads, but exact weights and vectors of some only, as they take much more
room: the heads that are asked for, or as many as fit.
"""

import base64
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from headscope.core.accumulators import Array
from headscope.core.head_names import Head
from headscope.core.wording import grid_size
from headscope.errors import InputError
from headscope.views.captured_example import Floats, StackMaps, TokenSide

# Steps of a map's code, and how many weights an example may have for them.
LEVELS = ((255.0, 700_000), (127.5, 12_000_000), (51.0, None))
EXACT = 65535
FINE = 300_000  # numbers of vectors that are kept with 16 bits each; more take 8
LONG = 1_000_000  # bytes; a layer of twelve heads has them at 290 tokens
SIGNED: dict[int, type[np.signedinteger[Any]]] = {8: np.int8, 16: np.int16}
Heads = Sequence[tuple[int, int]]
Detail = str | Heads
Pack = Callable[..., Any]  # of arrays, what stands for them in the data of a page; see `packed`


def packed(*arrays: Array) -> str:
    """Join arrays, little endian, compress them with gzip and write them in base64."""
    raw = joined(*arrays)
    # Filtered: in such noise short matches cost more than they save (4 % smaller). To look for runs
    # only takes a tenth of the time, for 3 % more; in small pages that are 5 %.
    strategy = zlib.Z_FILTERED if len(raw) < LONG else zlib.Z_RLE
    gzip = zlib.compressobj(7, zlib.DEFLATED, 31, 9, strategy)
    compressed = gzip.compress(raw) + gzip.flush()
    return base64.b64encode(compressed).decode("ascii")


def joined(*arrays: Array) -> bytes:
    """The bytes of arrays one after the other, little endian."""
    return b"".join(a.astype(a.dtype.newbyteorder("<"), copy=False).tobytes() for a in arrays)


def coded_maps(
    maps: Floats, *, scale: float | Floats, levels: float, pack: Pack = packed
) -> list[Any]:
    """Pack maps into one text per layer: [head, key, query] bytes, as columns pack a little better.

    maps   [layer, head, query, key] at least 0
    scale  the value of the largest code: one for all, or [layer, head]
    """
    top = np.broadcast_to(np.asarray(scale, np.float32), maps.shape[:2])  # [layer, head]
    layers = []
    for layer, largest in zip(maps, top, strict=True):  # one layer at a time, to hold little
        share = np.clip(layer / largest[:, None, None], 0, 1)  # [head, query, key]
        codes = np.rint(np.sqrt(share) * levels).astype(np.uint8)
        layers.append(pack(codes.transpose(0, 2, 1)))  # [head, key, query]
    return layers


def coded_head(
    weights: Floats,
    queries: Floats | None,
    keys: Floats | None,
    bias: Floats | None,
    *,
    bits: int = 8,
    pack: Pack = packed,
) -> Any:
    """Pack one head: its exact weights, and its vectors and bias where it has them.

    weights  [query, key] probabilities
    queries, keys   [query or key, dim]
    bias     [query, key]
    bits     of each number of vectors and bias: 8 or 16
    """
    exact = np.rint(np.sqrt(np.clip(weights, 0, 1)) * EXACT).astype(np.uint16)
    parts: list[Array] = [(exact >> 8).astype(np.uint8), (exact & 255).astype(np.uint8)]
    if queries is not None and keys is not None:
        (q_scale, q), (k_scale, k) = _signed(queries, bits), _signed(keys, bits)
        parts += [q_scale, k_scale, q, k]
    if bias is not None:
        scale, codes = _signed(bias.reshape(1, -1), bits)  # [1], [1, query·key]
        parts += [scale, codes]
    return pack(*parts)


def coded_norms(norms: Floats, *, pack: Pack = packed) -> tuple[Any, Floats]:
    """Pack norms [layer, head, key]; returns the text and the scale of each head [layer, head]."""
    scale = largest_of(norms[:, :, None])  # as a map of one query
    codes = np.rint(norms / scale[..., None] * EXACT).astype(np.uint16)
    return pack(codes), scale


def levels_for(weights: int) -> float:
    """Number of code levels for an example of `weights` weights; fewer for large pages."""
    return next(levels for levels, most in LEVELS if most is None or weights <= most)


def largest_of(maps: Floats) -> Floats:
    """The largest value of each map, [layer, head]; 1 where it is 0."""
    largest = maps.max((2, 3))
    return np.where(largest > 0, largest, 1).astype(np.float32)


def short(values: Floats) -> list[float]:
    """The values as a flat list, rounded to the digits of float32."""
    return [float(f"{value:.7g}") for value in values.reshape(-1)]


def _signed(rows: Floats, bits: int) -> tuple[Floats, npt.NDArray[np.signedinteger[Any]]]:
    """[row] scales and [row, column] signed codes."""
    kind = SIGNED[bits]
    scale = np.abs(rows).max(-1)
    scale = np.where(scale > 0, scale, 1).astype(np.float32)
    share = rows / scale[:, None]
    codes = np.rint(np.sign(share) * np.sqrt(np.abs(share)) * np.iinfo(kind).max).astype(kind)
    return scale, codes


def detail_of(
    stack: StackMaps,
    sides: Sequence[TokenSide],
    detail: Detail,
    *,
    room: int,
    least: int,
    opened: Head | None = None,
) -> dict[str, Any]:
    """The heads that a page shows with exact weights and vectors, as plain values for JSON.

    detail  heads (layer, head); "all", "none", or "auto": as many as fit, see `plainest`
    room    characters that they may take, where "auto"; `least` heads are there in any case
    opened  the head that comes first of as many as fit
    raises  InputError for heads that are not there, or another word
    """
    bits = _bits(stack, detail)
    order = plainest(stack, sides)
    order.sort(key=lambda place: place != opened)
    heads, blocks, untrained = _chosen(stack, order, detail, bits=bits, room=room, least=least)
    layers, count = stack.attention.shape[:2]
    vectors = stack.vectors
    why = "" if vectors else stack.why_none
    if vectors and len(heads) < layers * count:
        why = (
            f"The vectors of {len(heads) or 'none'} of {layers * count} heads are on this page, to "
            "keep it small; detail (--detail 3-9,5-1 or all) puts others on it."
        )
    importance = None
    if stack.importance is not None:
        chosen = (stack.importance[place] for place in heads)
        importance = [[float(f"{value:.4g}") for value in row] for row in chosen]
    return {
        "heads": [list(head) for head in heads],
        "dim": vectors.queries.shape[-1] if vectors else 0,
        "vectors": vectors is not None,
        "bias": vectors is not None and vectors.bias is not None,
        "scaling": short(vectors.scaling) if vectors else [],
        "softcap": vectors.softcap if vectors else None,
        "bits": bits,
        "importance": importance,
        "why": why,
        "blocks": blocks,
        **({"untrained": untrained} if any(untrained) else {}),
    }


def _chosen(
    stack: StackMaps, order: Heads, detail: Detail, *, bits: int, room: int, least: int
) -> tuple[list[tuple[int, int]], list[str], list[str]]:
    """The heads with their blocks, and those of an untrained network, "" without one."""
    layers, count = stack.attention.shape[:2]
    if not isinstance(detail, str):
        places = [(int(layer), int(head)) for layer, head in detail]
        for layer, head in places:
            if not (0 <= layer < layers and 0 <= head < count):
                raise InputError(
                    f"found detail for {stack.names.both(layer, head)}; there are "
                    f"{grid_size(layers, count)}"
                )
        both = [_blocks(stack, head, bits=bits) for head in places]
        return places, [one for one, _ in both], [other for _, other in both]
    if detail not in ("auto", "all", "none"):
        raise InputError(f"detail is {detail!r}; wanted auto, all, none, or heads (layer, head)")
    if detail == "none":
        return [], [], []
    heads, blocks, untrained, size = list[tuple[int, int]](), list[str](), list[str](), 0
    for place in order:
        block, other = _blocks(stack, place, bits=bits)
        size += len(block) + len(other)
        if detail == "auto" and size > room and len(heads) >= least:
            break
        heads.append(place)
        blocks.append(block)
        untrained.append(other)
    return heads, blocks, untrained


def _blocks(stack: StackMaps, place: tuple[int, int], *, bits: int) -> tuple[str, str]:
    other = stack.untrained
    beside = "" if other is None or other.vectors is None else block_of(other, place, bits=bits)
    return block_of(stack, place, bits=bits), beside


def plainest(stack: StackMaps, sides: Sequence[TokenSide]) -> list[tuple[int, int]]:
    """All heads (layer, head), those with the largest weights between ordinary tokens first."""
    rows, columns = ~sides[stack.queries].special, ~sides[stack.keys].special
    strength = np.zeros(stack.attention.shape[:2])  # [layer, head]
    for place, maps in enumerate(stack.attention if rows.any() else ()):  # to hold little
        between = maps[:, rows][..., columns]  # [head, query, key], a copy
        if stack.queries == stack.keys:  # a token to itself tells little
            between[:, *np.diag_indices(between.shape[-1])] = 0
        strength[place] = between.max(-1, initial=0).mean(-1)
    order = np.argsort(-strength, axis=None, kind="stable")
    layer, head = np.unravel_index(order, strength.shape)
    return list(zip(layer.tolist(), head.tolist(), strict=True))


def _bits(stack: StackMaps, detail: Detail) -> int:
    """Bits per number of a vector: 16 where there is room, else 8."""
    if stack.vectors is None:
        return 8
    layers, heads, queries, dim = stack.vectors.queries.shape
    count = layers * heads if isinstance(detail, str) else len(detail)
    return 16 if count * (queries + stack.vectors.keys.shape[2]) * dim <= FINE else 8


def block_of(stack: StackMaps, place: tuple[int, int], *, bits: int, pack: Pack = packed) -> Any:
    """`coded_head` of one head (layer, head) of a stack."""
    weights, vectors = stack.attention[place], stack.vectors
    if vectors is None:
        return coded_head(weights, None, None, None, bits=bits, pack=pack)
    bias = None if vectors.bias is None else vectors.bias[place]
    queries, keys = vectors.queries[place], vectors.keys[place]
    return coded_head(weights, queries, keys, bias, bits=bits, pack=pack)
