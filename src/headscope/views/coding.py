"""How do maps and vectors become text that a page can hold: small, and exact to a stated error?

Most is coded by the square root, so that small numbers keep more digits than large ones, then
compressed and written in base64:

    maps      8 bits   value = (code / levels)² · scale       error of the root: 1 / (2 · levels)
    weights  16 bits   value = (code / 65535)²                error at most 2e-5
    norms    16 bits   value = code / 65535 · scale           scale: the head's largest
    vectors   8 bits   value = ± (code / 127)² · scale        scale: the token's largest
             16 bits   value = ± (code / 32767)² · scale
"""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
# Steps of a map's code, and how many weights an example may have for them.
LEVELS = ((255.0, 700_000), (127.5, 12_000_000), (51.0, None))
EXACT = 65535
SIGNED: dict[int, type[np.signedinteger[Any]]] = {8: np.int8, 16: np.int16}


def coded_maps(maps: Floats, *, scale: float | Floats, levels: float) -> list[str]:
    """[layer] one text per layer: [head, key, query] bytes, which pack a little better by column.

    maps   [layer, head, query, key] at least 0
    scale  what the largest code stands for: one for all, or [layer, head]
    """
    top = np.broadcast_to(np.asarray(scale, np.float32), maps.shape[:2])  # [layer, head]
    found = []
    for layer, largest in zip(maps, top, strict=True):  # one layer at a time, to hold little
        share = np.clip(layer / largest[:, None, None], 0, 1)  # [head, query, key]
        codes = np.rint(np.sqrt(share) * levels).astype(np.uint8)
        found.append(packed(codes.transpose(0, 2, 1)))  # [head, key, query]
    return found


def coded_head(
    weights: Floats,
    queries: Floats | None,
    keys: Floats | None,
    bias: Floats | None,
    *,
    bits: int = 8,
) -> str:
    """Everything of one head: exact weights, and vectors and bias where there are any.

    weights  [query, key] probabilities
    queries, keys   [query or key, dim]
    bias     [query, key]
    bits     of each number of vectors and bias: 8 or 16
    """
    exact = np.rint(np.sqrt(np.clip(weights, 0, 1)) * EXACT).astype(np.uint16)
    parts: list[npt.NDArray[Any]] = [(exact >> 8).astype(np.uint8), (exact & 255).astype(np.uint8)]
    if queries is not None and keys is not None:
        (q_scale, q), (k_scale, k) = _signed(queries, bits), _signed(keys, bits)
        parts += [q_scale, k_scale, q, k]
    if bias is not None:
        scale, codes = _signed(bias.reshape(1, -1), bits)  # [1], [1, query·key]
        parts += [scale, codes]
    return packed(*parts)


def coded_norms(norms: Floats) -> tuple[str, Floats]:
    """The norms [layer, head, key], and the scale [layer, head] of each head."""
    scale = largest_of(norms[:, :, None])  # as a map of one query
    codes = np.rint(norms / scale[..., None] * EXACT).astype(np.uint16)
    return packed(codes), scale


def levels_for(weights: int) -> float:
    """Steps of the code for an example of so many weights: fewer where a page would be large."""
    return next(levels for levels, most in LEVELS if most is None or weights <= most)


def packed(*arrays: npt.NDArray[Any]) -> str:
    """Arrays one after the other, little endian, in base64 of gzip."""
    raw = b"".join(a.astype(a.dtype.newbyteorder("<"), copy=False).tobytes() for a in arrays)
    # Filtered: in such noise short matches cost more than they save (4 % smaller).
    gzip = zlib.compressobj(7, zlib.DEFLATED, 31, 9, zlib.Z_FILTERED)
    return base64.b64encode(gzip.compress(raw) + gzip.flush()).decode("ascii")


def largest_of(maps: Floats) -> Floats:
    """[layer, head] the largest value of each map; 1 where it is 0."""
    largest = maps.max((2, 3))
    return np.where(largest > 0, largest, 1).astype(np.float32)


def short(values: Floats) -> list[float]:
    """Flat, with as many digits as float32 has."""
    return [float(f"{value:.7g}") for value in values.reshape(-1)]


def _signed(rows: Floats, bits: int) -> tuple[Floats, npt.NDArray[np.signedinteger[Any]]]:
    """[row] scales and [row, column] signed codes."""
    kind = SIGNED[bits]
    scale = np.abs(rows).max(-1)
    scale = np.where(scale > 0, scale, 1).astype(np.float32)
    share = rows / scale[:, None]
    codes = np.rint(np.sign(share) * np.sqrt(np.abs(share)) * np.iinfo(kind).max).astype(kind)
    return scale, codes
