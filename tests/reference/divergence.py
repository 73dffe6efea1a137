"""How differently do two heads attend?

Clark et al. (2019), section 6: Jensen-Shannon divergence between the attention rows of two heads,
    JS(a, b) = 1/2 sum_j a_j ln(a_j / m_j) + 1/2 sum_j b_j ln(b_j / m_j),   m = (a + b) / 2
natural logarithm, no square root: from 0 to ln 2 nats per row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr

Array = NDArray[np.float64]

CLARK_SMOOTHING = 1e-3  # the authors' code: a' = 0.999 a + 0.001 / n


def row_divergence(a: Array, b: Array) -> Array:
    """JS of each row; [..., key] twice -> [...], nats. 0 ln 0 counts as 0."""
    m = (a + b) / 2
    return 0.5 * rel_entr(a, m).sum(axis=-1) + 0.5 * rel_entr(b, m).sum(axis=-1)


def units(attention: Array) -> Array:
    """[layer, head, query, key] -> [unit, query, key], unit = layer * heads + head."""
    return attention.reshape(-1, *attention.shape[2:])  # [unit, query, key]


def divergence_example(maps: Array, *, smoothing: float = 0.0) -> Array:
    """JS of every pair of units for every token of one example.

    maps       [unit, query, key]
    smoothing  s in a' = (1 - s) a + s / n
    returns    [unit, unit, query], nats
    """
    count, n = maps.shape[:2]
    smooth = (1 - smoothing) * maps + smoothing / n
    js = np.zeros((count, count, n))
    for a in range(count):
        for b in range(a + 1, count):
            js[a, b] = js[b, a] = row_divergence(smooth[a], smooth[b])
    return js


def divergence_means(maps: Sequence[Array], *, smoothing: float = 0.0) -> Array:
    """JS averaged over the tokens of an example, then over examples; [unit, unit], nats.

    maps  one [unit, query, key] per example
    """
    return np.mean([divergence_example(m, smoothing=smoothing).mean(-1) for m in maps], axis=0)


def divergence_sums(maps: Sequence[Array], *, smoothing: float = CLARK_SMOOTHING) -> Array:
    """JS summed over all tokens of all examples, as the authors do; [unit, unit], nats."""
    return np.sum([divergence_example(m, smoothing=smoothing).sum(-1) for m in maps], axis=0)
