"""How broadly does each head spread its attention, in nats?

Clark et al. (2019), section 3.3 and figure 4.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

CLARK_SMOOTHING = 1e-4  # the authors' code: p' = 0.9999 p + 0.0001 / n


def row_entropy(attention: Array, *, smoothing: float = 0.0) -> Array:
    """Shannon entropy of each query's attention, nats; [..., query, key] -> [..., query].

    smoothing   s in p' = (1 - s) p + s / n, taken before the logarithm. 0 log 0 counts as 0.
    """
    n = attention.shape[-1]
    p = (1 - smoothing) * attention + smoothing / n
    log_p = np.zeros_like(p)
    log_p[p > 0] = np.log(p[p > 0])
    return -(p * log_p).sum(axis=-1)


def entropy_means(attentions: Sequence[Array], *, smoothing: float = 0.0) -> dict[str, Array]:
    """Entropy of every head, as {"all", "cls"} -> [layer, head], nats.

    attentions  one [layer, head, query, key] per example
    returns     all: mean over rows; cls: row 0 only; each then an unweighted mean over examples
    """
    rows = [row_entropy(attention, smoothing=smoothing) for attention in attentions]
    return {
        "all": np.mean([entropy.mean(axis=2) for entropy in rows], axis=0),
        "cls": np.mean([entropy[:, :, 0] for entropy in rows], axis=0),
    }


def uniform_entropy(lengths: Sequence[int]) -> float:
    """Entropy of attending to all n tokens alike: mean over examples of ln n, nats."""
    return float(np.mean([np.log(n) for n in lengths]))
