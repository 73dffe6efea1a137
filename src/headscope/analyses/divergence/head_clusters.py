"""Into which clusters do heads fall that attend alike, and are the heads of a layer alike?

From the divergences of all pairs and their bootstrap replicates; no model. Distances are roots of
divergences: the root of the mean Jensen-Shannon divergence is a metric (Endres and Schindelin
2003), so that two heads near a third are near each other, and silhouettes compare like with like.

Layers: Clark et al. (2019), section 6, saw that heads of a layer are often near each other on the
map. Here: the mean divergence of two heads by how many layers lie between them, and how often the
nearest head is of the same layer; both against layer numbers dealt out anew among the heads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from headscope.analyses.divergence import clustering
from headscope.core.accumulators import (
    Estimate,
    Float64,
    Ints,
    estimate_by_spread,
    generator,
    ratio,
)
from headscope.core.results import Variable

LAYERS = "Clark et al. 2019, §6; the statistic and its test are ours"
MEDOIDS, SILHOUETTE = "Kaufman and Rousseeuw 1990", "Rousseeuw 1987"
RAND, HENNIG = "Hubert and Arabie 1985", "Hennig 2007"
OURS = "ours, after Hennig and Lin 2015"
WHERE = ("same_layer", "neighbouring_layer", "farther_layer")
PERMUTATIONS = 999
TIE = 1e-12  # of the value: rounding is no difference


def cluster_results(
    draws: Float64, *, heads: int, documents: int, seed: int, unit: str
) -> tuple[dict[str, Variable], dict[str, Sequence[Any]]]:
    """Clusters and layers; nothing of fewer than 4 heads, or where no example was seen.

    draws      [replicate + 1, pair] divergences as `np.triu_indices(units, 1)` orders pairs
    heads      of a layer
    documents  fewer than two: no interval, no stability
    seed       of clouds and permutations
    unit       of the divergences
    returns    variables, and the coordinates of their dims
    """
    from scipy.spatial.distance import squareform

    units = round((1 + np.sqrt(1 + 8 * draws.shape[1])) / 2)
    if units < clustering.FEWEST_UNITS or not np.isfinite(draws[0]).all() or not draws[0].any():
        return {}, {}
    kept = draws if documents > 1 else draws[:1]
    kept = kept[np.isfinite(kept).all(1) & kept.any(1)]  # a replicate may have drawn no document
    distances = [np.sqrt(squareform(np.maximum(pairs, 0))) for pairs in kept]
    layer = (np.arange(units) // heads).astype(np.int64)
    variables = _clusters(distances, layer, seed=seed, documents=documents)
    variables |= _layers(kept, distances, layer, seed=seed, documents=documents, unit=unit)
    coords = {
        "k": clustering.counts_for(units), "method": clustering.METHODS,
        "where": WHERE, "pairs": ("same_layer", "other_layers"),
    }  # fmt: skip
    return variables, coords


def _clusters(
    distances: Sequence[Float64], layer: Ints, *, seed: int, documents: int
) -> dict[str, Variable]:
    counts = clustering.counts_for(len(layer))
    labels = np.stack([
        [clustering.labels_by(method, apart, counts) for method in clustering.METHODS]
        for apart in distances
    ])  # [replicate + 1, method, k, unit]  # fmt: skip
    curves = np.stack([
        [clustering.curve(apart, of_method) for of_method in of_draw]
        for apart, of_draw in zip(distances, labels, strict=True)
    ])  # [replicate + 1, method, k]  # fmt: skip
    references = clustering.reference_curves(distances[0], counts, seed=seed)
    best, p = clustering.choose(curves[0, 0], references)
    share = "share of replicates that choose this number of clusters"
    return _variables({
        "cluster_count": (float(counts[best]), (), "number of clusters of heads", OURS),
        "cluster_p": (p, (), "p that heads without clusters stand out as much", OURS),
        "silhouette_by_k": (
            _bounded(curves, documents, least=-1), ("method", "k"), "mean silhouette", SILHOUETTE,
        ),
        "reference_silhouette": (
            references, ("draw", "k"), "mean silhouette of points without clusters", OURS,
        ),
        "k_share": (_picked(curves[1:, 0], references), ("k",), share, OURS, "probability"),
        "stability": (
            _stability(labels[:, :, best]), ("method",),
            "adjusted Rand index with the clusters of replicates", RAND,
        ),
        "method_agreement": (
            clustering.agreement(*labels[0, :, best]), (),
            "adjusted Rand index of k-medoids and average linkage", RAND,
        ),
    }) | _members(distances, labels[:, 0, best], layer, documents=documents)  # fmt: skip


def _variables(rows: Mapping[str, tuple[Any, ...]]) -> dict[str, Variable]:
    return {
        name: Variable(value, dims, words, unit[0] if unit else "1", source)
        for name, (value, dims, words, source, *unit) in rows.items()
    }


def _members(
    distances: Sequence[Float64], labels: Ints, layer: Ints, *, documents: int
) -> dict[str, Variable]:
    order = clustering.by_depth(labels[0], layer)
    number, count = np.argsort(order)[labels[0]], len(order)  # [unit]
    medoids = clustering.typical(distances[0], number)  # [cluster]
    each = np.stack([clustering.silhouettes(apart, number) for apart in distances])
    member = (number[:, None] == np.arange(count)).astype(np.float64)  # [unit, cluster]
    means = ratio(each @ member, member.sum(0))  # [replicate + 1, cluster]
    by_head, by_cluster = ("unit",), ("cluster_number",)
    share = "share of replicates in which the head is with its cluster’s medoid"
    again = "overlap with the most similar cluster of a replicate"
    stays = clustering.stays(number, medoids, labels[1:])
    return _variables({
        "cluster": (number.astype(float), by_head, "cluster of the head, from 0", MEDOIDS),
        "silhouette": (
            _bounded(each, documents, least=-1), by_head, "silhouette of the head", SILHOUETTE,
        ),
        "stays": (stays, by_head, share, HENNIG, "probability"),
        "medoid": (medoids.astype(float), by_cluster, "unit of the most typical head", MEDOIDS),
        "cluster_size": (member.sum(0), by_cluster, "heads in the cluster", MEDOIDS),
        "cluster_silhouette": (
            _bounded(means, documents, least=-1), by_cluster, "mean silhouette of the cluster",
            SILHOUETTE,
        ),
        "jaccard": (clustering.jaccard(number, labels[1:]), by_cluster, again, HENNIG),
    })  # fmt: skip


def _picked(curves: Float64, references: Float64) -> Float64:
    """[k] how often each number of clusters would be chosen; curves [replicate, k]."""
    count = curves.shape[1]
    if not len(curves):
        return np.full(count, np.nan)
    chosen = (curves - references.mean(0)).argmax(1)  # [replicate]
    return np.bincount(chosen, minlength=count) / len(chosen)


def _stability(labels: Ints) -> Estimate:
    """[method] mean and 95 % range over replicates; labels [replicate + 1, method, unit]."""
    if len(labels) < 3:
        empty = np.full(labels.shape[1], np.nan)
        return Estimate(empty, empty, empty)
    agreements = np.array([
        [clustering.agreement(own, one) for own, one in zip(labels[0], other, strict=True)]
        for other in labels[1:]
    ])  # [replicate, method]  # fmt: skip
    return Estimate(agreements.mean(0), *np.quantile(agreements, [0.025, 0.975], axis=0))


def _bounded(draws: Float64, documents: int, *, least: float) -> Estimate:
    """The value of the first draw with its interval, clipped to what there can be."""
    whole = estimate_by_spread(draws, documents=documents)
    return Estimate(whole.value, np.maximum(whole.low, least), np.minimum(whole.high, 1))


def _layers(
    draws: Float64, distances: Sequence[Float64], layer: Ints, *, seed: int, documents: int,
    unit: str,
) -> dict[str, Variable]:  # fmt: skip
    both = within_and_between(draws, layer)
    divergence_p, nearest_p = permuted_layers(distances[0] ** 2, layer, seed=seed)
    shares = np.stack([nearest_shares(nearest_unit(apart), layer) for apart in distances])
    spread = partial(estimate_by_spread, documents=documents)
    mean = "mean divergence of two heads"
    return _variables({
        "layer_js": (spread(both), ("pairs",), mean, LAYERS, unit),
        "layer_js_ratio": (
            spread(ratio(both[:, 0], both[:, 1])), (),
            "divergence within layers over that between layers", LAYERS,
        ),
        "layer_js_p": (divergence_p, (), "p that layers dealt out anew are as alike", LAYERS),
        "js_by_layer_gap": (
            spread(by_gap(draws, layer)), ("layer_gap",),
            f"{mean} by the distance of their layers", LAYERS, unit,
        ),
        "nearest_layer": (
            _bounded(shares, documents, least=0), ("where",),
            "share of heads whose nearest head is in such a layer", LAYERS, "probability",
        ),
        "nearest_chance": (
            chance_shares(layer), ("where",),
            "the same if every other head were as likely to be nearest", LAYERS, "probability",
        ),
        "nearest_p": (nearest_p, ("where",), "p that layers dealt out anew hold as many", LAYERS),
    })  # fmt: skip


def by_gap(pairs: Float64, layer: Ints) -> Float64:
    """The mean divergence of two heads by the distance of their layers.

    pairs    [replicate, pair] as `np.triu_indices(units, 1)` orders them
    layer    [unit]
    returns  [replicate, gap] from 0, the same layer, to the largest; NaN where there is no pair
    """
    one, other = np.triu_indices(len(layer), 1)
    gap = np.abs(layer[one] - layer[other])
    chosen = (gap[:, None] == np.arange(layer.max() + 1)).astype(np.float64)  # [pair, gap]
    return ratio(pairs @ chosen, chosen.sum(0))


def within_and_between(pairs: Float64, layer: Ints) -> Float64:
    """[replicate, 2] mean divergence of pairs of the same layer, and of all other pairs."""
    one, other = np.triu_indices(len(layer), 1)
    same = layer[one] == layer[other]
    chosen = np.stack([same, ~same], -1).astype(np.float64)  # [pair, 2]
    return ratio(pairs @ chosen, chosen.sum(0))


def nearest_unit(divergence: Float64) -> Ints:
    """[unit] the head nearest to each, not itself; divergence [unit, unit]."""
    apart = divergence.copy()
    np.fill_diagonal(apart, np.inf)
    return np.asarray(apart.argmin(1), np.int64)


def nearest_shares(near: Ints, layer: Ints) -> Float64:
    """[where] share of heads whose nearest is of the same, a neighbouring, a farther layer."""
    return _shares(np.abs(layer[near] - layer))


def chance_shares(layer: Ints) -> Float64:
    """[where] the same if every other head were as likely to be the nearest."""
    gap = np.abs(layer[:, None] - layer)
    return _shares(gap[~np.eye(len(layer), dtype=bool)])


def _shares(gap: Ints) -> Float64:
    return np.bincount(np.minimum(gap, 2), minlength=3) / len(gap)


def permuted_layers(
    divergence: Float64, layer: Ints, *, seed: int, permutations: int = PERMUTATIONS
) -> tuple[float, Float64]:
    """Both statistics against layer numbers dealt out anew; one-sided, (1 + hits) / (1 + draws).

    divergence  [unit, unit] symmetric, zero diagonal
    returns     how often the heads of a layer are as near to each other, on average; and [where]
                how often as many nearest heads are of such a layer; NaN where there are no two
                heads of a layer, or no two layers
    """
    random = generator(seed, "clusters", "layers")
    near = nearest_unit(divergence)
    draws = [layer, *(random.permutation(layer) for _ in range(permutations))]
    within = np.array([_within(divergence, one) for one in draws])
    shares = np.array([nearest_shares(near, one) for one in draws])  # [draw, where]
    if not within[0] or len(np.unique(layer)) < 2:
        return np.nan, np.full(len(WHERE), np.nan)
    nearer = within <= within[0] * (1 + TIE)
    return float(nearer.mean()), (shares >= shares[0] - TIE).mean(0)


def _within(divergence: Float64, layer: Ints) -> float:
    """Sum over the pairs of the same layer; their number is the same however layers are dealt."""
    member = (layer[:, None] == np.unique(layer)).astype(np.float64)  # [unit, layer]
    return float(((divergence @ member) * member).sum() / 2)
