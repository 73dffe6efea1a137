"""How does one number per layer go with another?"""

from __future__ import annotations

import numpy as np
from scipy.stats import permutation_test, rankdata

from headscope.core.accumulators import Float64, generator

DRAWS = 9999  # permutations; of seven layers or fewer all are tried


def rank_correlation(first: Float64, second: Float64) -> Float64:
    """[...] Spearman's correlation over the last axis, broadcast; NaN where one is constant."""
    x, y = (_centred_ranks(part) for part in (first, second))
    products = (x * y).sum(-1)
    size = np.sqrt((x * x).sum(-1) * (y * y).sum(-1))
    out = np.full(np.shape(products), np.nan)
    np.divide(products, size, out=out, where=size > 0)
    return out


def chance_of(first: Float64, second: Float64, *, seed: int = 0) -> float:
    """How often layers in random order go together as closely, whichever way round.

    NaN where one of both is constant.
    """
    if not np.isfinite(rank_correlation(first, second)):
        return float("nan")

    def closeness(dealt: Float64, axis: int = -1) -> Float64:
        return rank_correlation(np.moveaxis(dealt, axis, -1), second)

    found = permutation_test(
        (first,), closeness, permutation_type="pairings", n_resamples=DRAWS, vectorized=True,
        rng=generator(seed, "layers"),
    )  # fmt: skip
    return float(found.pvalue)


def _centred_ranks(values: Float64) -> Float64:
    ranks = rankdata(values, axis=-1)
    centred: Float64 = ranks - ranks.mean(-1, keepdims=True)
    return centred
