"""Which tokens are sinks (Gu et al. 2025), and which numbers of a stream are massive (Sun 2024)?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def received(attention: Array, *, causal: bool, tokens: int = 64) -> Array:
    """[..., query, key] -> [..., key] a_k: the mean over the queries that see key k.

    Of the first tokens in a causal map; there NaN for a key that fewer than half of them see.
    """
    n = min(attention.shape[-1], tokens) if causal else attention.shape[-1]
    out = np.full((*attention.shape[:-2], n), np.nan)
    for key in range(n):
        queries = range(key if causal else 0, n)
        if len(queries) >= n / 2:
            out[..., key] = sum(attention[..., query, key] for query in queries) / len(queries)
    return out


def has_sink(a: Array, keys: NDArray[np.bool_], *, threshold: float = 0.3) -> NDArray[np.bool_]:
    """[..., key] -> [...] whether one of the keys [key] is above the threshold."""
    return (np.nan_to_num(a)[..., keys[: a.shape[-1]]] > threshold).any(-1)


def massive(stream: Array) -> list[tuple[int, int]]:
    """[token, dimension] -> (token, dimension) of every massive number."""
    sizes = np.abs(stream)
    middle = np.sort(sizes, axis=None)[(sizes.size - 1) // 2]  # the lower of two
    found = np.argwhere((sizes > 100) & (sizes > 1000 * middle))
    return [(int(token), int(dimension)) for token, dimension in found]
