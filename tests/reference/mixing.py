"""How much of each token's new vector comes from other tokens rather than from itself?

Kobayashi et al. (2021). Mixing ratio of token i, with v_ij the vector that j gives to i:
    r_i = ||sum_{j != i} v_ij|| / (||sum_{j != i} v_ij|| + ||v_ii||)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from .norms import layer_weighted_norm, summed_vectors

Array = NDArray[np.float64]
METHODS = ("attn_w", "attn_n", "attnres_w", "attnres_n", "attnresln_n")


def mixing_example(blocks: Mapping[str, Any]) -> dict[str, Array]:
    """The five ratios of every token of one example, as method -> [layer, token], fractions 0..1.

    blocks  what extraction.bert_blocks gives (its arrays; see there)
    """
    layers = [_layer_ratios(blocks, layer) for layer in range(len(blocks["x"]))]
    return {method: np.stack([ratios[method] for ratios in layers]) for method in METHODS}


def mixing_means(examples: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """Mean over all tokens of all examples pooled, as method -> [layer].

    examples  one `mixing_example` each
    """
    pooled = {m: np.concatenate([example[m] for example in examples], axis=1) for m in METHODS}
    return {method: ratios.mean(axis=1) for method, ratios in pooled.items()}


def taken_share(
    blocks: Sequence[Mapping[str, Any]], categories: Mapping[str, Sequence[NDArray[np.bool_]]]
) -> dict[str, Array]:
    """Which share of sum_i sum_{j != i} ||sum_h alpha_ij f_h(x_j)|| each category's tokens j have.

    blocks      one of extraction.bert_blocks per example
    categories  category -> one [token] per example
    returns     category -> [layer]
    """
    taken = []  # [layer, key] of each example
    for block in blocks:
        norms = layer_weighted_norm(block["attention"], block["f"])  # [layer, query, key]
        others = ~np.eye(norms.shape[-1], dtype=bool)
        taken.append((norms * others).sum(axis=1))
    whole = sum(one.sum(axis=1) for one in taken)
    return {
        name: sum(one[:, flags].sum(axis=1) for one, flags in zip(taken, kind, strict=True)) / whole
        for name, kind in categories.items()
    }


def spearman_frequency(
    examples: Sequence[Mapping[str, Array]], ranks: Sequence[Array]
) -> dict[str, float]:
    """Spearman of each token's ratio, mean over layers, with its frequency rank; all occurrences.

    examples  one `mixing_example` each
    ranks     one [token] per example, 1 = the most frequent
    """
    rank = np.concatenate(list(ranks))
    means = {m: np.concatenate([e[m].mean(axis=0) for e in examples]) for m in METHODS}
    return {method: float(spearmanr(values, rank).statistic) for method, values in means.items()}


def vector_ratio(v: Array) -> Array:
    """r_i of vectors v [query, key, d] -> [token]."""
    itself = np.diagonal(v).T  # [query, d]
    context = np.linalg.norm(v.sum(axis=1) - itself, axis=-1)
    return context / (context + np.linalg.norm(itself, axis=-1))


def layer_norm_vectors(v: Array, pre_norm: Array, gamma: Array, eps: float) -> Array:
    """LayerNorm taken apart: g(v_ij) = gamma (v_ij - mean(v_ij)) / s_i; beta is left out.

    v         [query, key, d]
    pre_norm  [query, d]   the full vector that the LayerNorm sees, b_O included: gives s_i
    """
    s = np.sqrt(pre_norm.var(axis=-1) + eps)  # [query]
    scaled = v - v.mean(axis=-1, keepdims=True)  # [query, key, d]
    scaled *= gamma  # in place: these are the largest arrays of all references
    scaled /= s[:, None, None]
    return scaled


def _layer_ratios(blocks: Mapping[str, Any], layer: int) -> dict[str, Array]:
    attention, x = blocks["attention"][layer], blocks["x"][layer]
    alpha = attention.mean(axis=0)  # [query, key]
    weight = alpha.sum(axis=1) - np.diagonal(alpha)  # attention to others
    vectors = summed_vectors(attention, blocks["f"][layer])  # [query, key, d]
    attn_n = vector_ratio(vectors)
    own = np.arange(len(x))
    vectors[own, own] += x  # the residual
    normed = layer_norm_vectors(
        vectors, blocks["pre_norm"][layer], blocks["gamma"][layer], blocks["eps"]
    )
    return {
        "attn_w": weight,
        "attn_n": attn_n,
        "attnres_w": weight / 2,  # the residual counts as a second unit of weight
        "attnres_n": vector_ratio(vectors),
        "attnresln_n": vector_ratio(normed),
    }
