"""How much does each token contribute to the attention output, once its vector's size counts?

Kobayashi et al. (2020): y_i = sum_h sum_j alpha^h_ij f^h(x_j) + b_O; compare alpha, ||f(x)||,
||alpha f(x)|| and ||sum_h alpha^h f^h(x)||. Norms are Euclidean.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]


def value_norm(f: Array) -> Array:
    """||f(x_j)||; f [layer, head, token, d] -> [layer, head, token]."""
    return np.sqrt((f * f).sum(axis=-1))


def weighted_norm(attention: Array, f: Array) -> Array:
    """||alpha_ij f(x_j)|| = alpha_ij ||f(x_j)||, since alpha >= 0; [layer, head, query, key]."""
    return attention * value_norm(f)[:, :, None, :]


def summed_vectors(attention: Array, f: Array) -> Array:
    """sum_h alpha^h_ij f^h(x_j) of ONE layer: [head, query, key], [head, token, d] -> [i, j, d]."""
    by_key = attention.transpose(2, 1, 0) @ f.transpose(1, 0, 2)  # [key, query, d]
    return by_key.swapaxes(0, 1)


def layer_weighted_norm(attention: Array, f: Array) -> Array:
    """||sum_h alpha^h_ij f^h(x_j)||, the norm of the sum, of every layer; [layer, query, key]."""
    norms = []
    for layer in range(len(f)):
        vectors = summed_vectors(attention[layer], f[layer])  # [query, key, d]
        norms.append(np.sqrt(np.einsum("qkd,qkd->qk", vectors, vectors)))
    return np.stack(norms)


def category_sum(maps: Sequence[Array], category: Sequence[Flags]) -> Array:
    """Mean over queries of the SUM over the category's keys, then mean over examples.

    maps      one [..., query, key] per example: attention, weighted_norm or layer_weighted_norm
    category  one [key] per example; an example without the category counts as 0
    returns   [...]
    """
    sums = [
        m[..., flags].sum(axis=-1).mean(axis=-1) for m, flags in zip(maps, category, strict=True)
    ]
    return np.mean(sums, axis=0)


def category_mean(value_norms: Sequence[Array], category: Sequence[Flags]) -> Array:
    """Mean of ||f|| over the category's tokens, then over the examples that have any.

    value_norms  one [layer, head, token] per example
    returns      [layer, head]; NaN where no example has the category (the authors' code gives NaN
                 as soon as one example lacks it)
    """
    pairs = zip(value_norms, category, strict=True)
    means = [norm[..., flags].mean(axis=-1) for norm, flags in pairs if flags.any()]
    return np.mean(means, axis=0) if means else np.full(value_norms[0].shape[:-1], np.nan)


def dispersion(value_norms: Sequence[Array]) -> dict[str, Array]:
    """Mean, population sd, cv = sd / mean, max, min of ||f||, all tokens pooled; [layer, head]."""
    pooled = np.concatenate(list(value_norms), axis=-1)  # [layer, head, token of any example]
    mean, sd = pooled.mean(axis=-1), pooled.std(axis=-1)
    return {"mean": mean, "sd": sd, "cv": sd / mean, "max": pooled.max(-1), "min": pooled.min(-1)}


def spearman_attention_value_norm(
    attentions: Sequence[Array], value_norms: Sequence[Array], category: Sequence[Flags]
) -> float:
    """Spearman of alpha_ij with ||f(x_j)||; layers, heads, examples, (i, j in category) pooled."""
    alphas, norms = [], []
    for attention, norm, flags in zip(attentions, value_norms, category, strict=True):
        alpha = attention[..., flags]  # [layer, head, query, key of the category]
        alphas.append(alpha.ravel())
        norms.append(np.broadcast_to(norm[:, :, None, flags], alpha.shape).ravel())
    return float(spearmanr(np.concatenate(alphas), np.concatenate(norms)).statistic)


def token_means(attention: Array, norm: Array) -> dict[str, Array]:
    """Each token's ||f||, mean over heads and layers; alpha received, over queries too; [token]."""
    return {"value_norm": norm.mean(axis=(0, 1)), "attention": attention.mean(axis=(0, 1, 2))}


def spearman_frequency(
    attentions: Sequence[Array], value_norms: Sequence[Array], ranks: Sequence[Array]
) -> dict[str, float]:
    """Spearman of `token_means` with the frequency rank, over all token occurrences.

    ranks  one [token] per example, 1 = the most frequent
    """
    tokens = [token_means(*one) for one in zip(attentions, value_norms, strict=True)]
    rank = np.concatenate(list(ranks))
    correlation = {}
    for quantity in ("value_norm", "attention"):
        values = np.concatenate([token[quantity] for token in tokens])
        correlation[quantity] = float(spearmanr(values, rank).statistic)
    return correlation
