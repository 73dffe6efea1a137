"""How far do heads look, and what do the first and the latest tokens get together?

The distance of a query i and a key j is |i - j| tokens. Streaming: Xiao et al. (2024), who keep the
first S and the last W keys of each query.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def by_distance(attention: Array) -> Array:
    """[..., query, key] -> [..., distance] attention at each distance, mean over queries."""
    n = attention.shape[-1]
    out = np.zeros((*attention.shape[:-2], n))
    for query in range(n):
        for key in range(n):
            out[..., abs(query - key)] += attention[..., query, key] / n
    return out


def binned(profile: Array, edges: list[int]) -> Array:
    """[..., distance] -> [..., bin]: from each edge up to below the next, the last without end."""
    bins = [
        profile[..., start:stop].sum(-1)
        for start, stop in zip(edges, [*edges[1:], None], strict=True)
    ]
    return np.stack(bins, -1)


def mean_distance(profile: Array) -> Array:
    """[..., distance] -> [...]"""
    return (profile * np.arange(profile.shape[-1])).sum(-1) / profile.sum(-1)


def reach(profile: Array, share: float) -> Array:
    """[..., distance] -> [...] the smallest distance within which at least the share stays."""
    out = np.full(profile.shape[:-1], -1.0)
    for cell in np.ndindex(out.shape):
        total = 0.0
        for distance, mass in enumerate(profile[cell]):
            total += mass
            if out[cell] < 0 and total >= share * profile[cell].sum() - 1e-7:
                out[cell] = distance
    return out


def before(attention: Array) -> Array:
    """[..., query, key] -> what goes to tokens before, mean over queries."""
    return np.tril(attention, -1).sum((-1, -2)) / attention.shape[-1]


def streaming(attention: Array, first: int, last: int) -> Array:
    """[..., query, key] -> [...] what the first and last keys of a query get together.

    Mean over the queries that see more than twice as many keys, in a causal map; NaN where none is.
    """
    n = attention.shape[-1]
    shares = [
        attention[..., query, :first].sum(-1)
        + attention[..., query, query - last + 1 : query + 1].sum(-1)
        for query in range(n)
        if query + 1 > 2 * (first + last)
    ]
    return np.mean(shares, axis=0) if shares else np.full(attention.shape[:-2], np.nan)


def uniform(n: int, *, causal: bool) -> Array:
    """[query, key] attention that gives every key that may be seen the same."""
    seen = np.tril(np.ones((n, n))) if causal else np.ones((n, n))
    return seen / seen.sum(-1, keepdims=True)
