"""Into which clusters do heads fall that attend alike, and are the heads of a layer alike?

From the divergences of all pairs and their bootstrap replicates; no model. Distances are roots of
divergences: the root of the mean Jensen-Shannon divergence is a metric (Endres and Schindelin
2003), so that two heads near a third are near each other, and silhouettes compare like with like.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headscope.analyses.divergence import clustering, layers_alike
from headscope.analyses.divergence.clustering import Ints
from headscope.core.accumulators import Estimate, Float64, estimate_by_spread, ratio
from headscope.core.labelled import Variable

LAYERS = "Clark et al. 2019, §6; the statistic and its test are ours"
MEDOIDS, SILHOUETTE = "Kaufman and Rousseeuw 1990", "Rousseeuw 1987"
RAND, HENNIG = "Hubert and Arabie 1985", "Hennig 2007"
OURS = "ours, after Hennig and Lin 2015"
Value = Estimate | Float64 | float
Row = tuple[Value, tuple[str, ...], str, str, str]  # as the fields of a Variable


@dataclass(frozen=True)
class ClusterScope:
    """What is known beside the divergences.

    layer      [unit]
    documents  fewer than two: no interval, no stability
    seed       of clouds and permutations
    unit       of the divergences
    """

    layer: Ints
    documents: int
    seed: int
    unit: str


def cluster_results(
    draws: Float64, *, heads: int, documents: int, seed: int, unit: str
) -> tuple[dict[str, Variable], dict[str, Sequence[Any]]]:
    """Clusters and layers; nothing of fewer than 4 heads, or where no example was seen.

    draws    [replicate + 1, pair] divergences as `np.triu_indices(units, 1)` orders pairs
    heads    of a layer
    returns  variables, and the coordinates of their dims
    """
    units = round((1 + np.sqrt(1 + 8 * draws.shape[1])) / 2)
    if units < clustering.FEWEST_UNITS or not np.isfinite(draws[0]).all() or not draws[0].any():
        return {}, {}
    kept = draws if documents > 1 else draws[:1]
    kept = kept[np.isfinite(kept).all(1) & kept.any(1)]  # a replicate may have drawn no document
    scope = ClusterScope((np.arange(units) // heads).astype(np.int64), documents, seed, unit)
    rows = {**_clusters(kept, scope), **_layers(kept, scope)}
    coords = {
        "k": clustering.counts_for(units), "method": clustering.METHODS,
        "where": layers_alike.WHERE, "pairs": ("same_layer", "other_layers"),
    }  # fmt: skip
    return {name: Variable(*row) for name, row in rows.items()}, coords


def distances_of(pairs: Float64) -> Float64:
    """[unit, unit] roots of the divergences of all pairs [pair]."""
    from scipy.spatial.distance import squareform

    return np.asarray(np.sqrt(squareform(np.maximum(pairs, 0))), np.float64)


# --- clusters -------------------------------------------------------------------------------


def _clusters(draws: Float64, scope: ClusterScope) -> Mapping[str, Row]:
    own = distances_of(draws[0])
    counts = clustering.counts_for(len(own))
    by_draw = [_clustered(distances_of(pairs), counts) for pairs in draws]
    curves = np.stack([curve for curve, _ in by_draw])  # [replicate + 1, method, k]
    labels = np.stack([one for _, one in by_draw])  # [replicate + 1, method, k, unit]
    references = clustering.reference_curves(own, counts, seed=scope.seed)
    best, p = clustering.choose(curves[0, 0], references)
    rows: dict[str, Row] = {
        "cluster_count": (float(counts[best]), (), "number of clusters of heads", "1", OURS),
        "cluster_p": (p, (), "p that heads without clusters stand out as much", "1", OURS),
        "silhouette_by_k": (
            _bounded(curves, scope, least=-1), ("method", "k"), "mean silhouette", "1", SILHOUETTE,
        ),
        "reference_silhouette": (
            references, ("draw", "k"), "mean silhouette of points without clusters", "1", OURS,
        ),
        "k_share": (
            _picked(curves[1:, 0], references), ("k",),
            "share of replicates that choose this number of clusters", "probability", OURS,
        ),
        "stability": (
            _stability(labels[:, :, best]), ("method",),
            "adjusted Rand index with the clusters of replicates", "1", RAND,
        ),
        "method_agreement": (
            clustering.agreement(*labels[0, :, best]), (),
            "adjusted Rand index of k-medoids and average linkage", "1", RAND,
        ),
    }  # fmt: skip
    return {**rows, **_members(draws, labels[:, 0, best], scope)}


def _clustered(distances: Float64, counts: Sequence[int]) -> tuple[Float64, Ints]:
    """[method, k] mean silhouettes and [method, k, unit] labels."""
    labels = [clustering.labels_by(method, distances, counts) for method in clustering.METHODS]
    curves = [clustering.curve(distances, one) for one in labels]
    return np.stack(curves), np.stack(labels)  # [method, k], [method, k, unit]


def _members(draws: Float64, labels: Ints, scope: ClusterScope) -> Mapping[str, Row]:
    """Which heads, which medoid, how well apart and how surely; labels [replicate + 1, unit]."""
    order = clustering.by_depth(labels[0], scope.layer)
    number, count = np.argsort(order)[labels[0]], len(order)  # [unit]
    medoids = clustering.typical(distances_of(draws[0]), number)  # [cluster]
    others = labels[1:]
    each = np.stack([clustering.silhouettes(distances_of(pairs), number) for pairs in draws])
    member = (number[:, None] == np.arange(count)).astype(np.float64)  # [unit, cluster]
    means = ratio(each @ member, member.sum(0))  # [replicate + 1, cluster]
    return {
        "cluster": (number.astype(float), ("unit",), "cluster of the head, from 0", "1", MEDOIDS),
        "silhouette": (
            _bounded(each, scope, least=-1), ("unit",), "silhouette of the head", "1", SILHOUETTE,
        ),
        "stays": (
            clustering.stays(number, medoids, others), ("unit",),
            "share of replicates in which the head is with its cluster’s medoid", "probability",
            HENNIG,
        ),
        "medoid": (
            medoids.astype(float), ("cluster_number",), "unit of the most typical head", "1",
            MEDOIDS,
        ),
        "cluster_size": (member.sum(0), ("cluster_number",), "heads in the cluster", "1", MEDOIDS),
        "cluster_silhouette": (
            _bounded(means, scope, least=-1), ("cluster_number",), "mean silhouette of the cluster",
            "1", SILHOUETTE,
        ),
        "jaccard": (
            clustering.jaccard(number, others), ("cluster_number",),
            "overlap with the most similar cluster of a replicate", "1", HENNIG,
        ),
    }  # fmt: skip


def _picked(curves: Float64, references: Float64) -> Float64:
    """[k] how often each number of clusters would be chosen; curves [replicate, k]."""
    count = curves.shape[1]
    if not len(curves):
        return np.full(count, np.nan)
    chosen = (curves - references.mean(0)).argmax(1)  # [replicate]
    return np.bincount(chosen, minlength=count) / len(chosen)


def _stability(labels: Ints) -> Estimate:
    """[method] the mean over replicates, and between what lie 95 % of them.

    labels  [replicate + 1, method, unit]
    """
    if len(labels) < 3:
        empty = np.full(labels.shape[1], np.nan)
        return Estimate(empty, empty, empty)
    methods = range(labels.shape[1])
    agreements = np.array(
        [[clustering.agreement(labels[0, m], other[m]) for m in methods] for other in labels[1:]]
    )  # [replicate, method]
    return Estimate(agreements.mean(0), *np.quantile(agreements, [0.025, 0.975], axis=0))


# --- layers ---------------------------------------------------------------------------------


def _layers(draws: Float64, scope: ClusterScope) -> Mapping[str, Row]:
    layer = scope.layer
    both = layers_alike.within_and_between(draws, layer)
    tested = layers_alike.permuted_layers(distances_of(draws[0]) ** 2, layer, seed=scope.seed)
    near = [layers_alike.nearest_unit(distances_of(pairs)) for pairs in draws]
    shares = np.stack([layers_alike.nearest_shares(one, layer) for one in near])

    def spread(values: Float64) -> Estimate:
        return estimate_by_spread(values, documents=scope.documents)

    return {
        "layer_js": (
            spread(both), ("pairs",), "mean divergence of two heads", scope.unit, LAYERS,
        ),
        "layer_js_ratio": (
            spread(ratio(both[:, 0], both[:, 1])), (),
            "divergence within layers over that between layers", "1", LAYERS,
        ),
        "layer_js_p": (
            tested.divergence_p, (), "p that layers dealt out anew are as alike", "1", LAYERS,
        ),
        "js_by_layer_gap": (
            spread(layers_alike.by_gap(draws, layer)), ("layer_gap",),
            "mean divergence of two heads by the distance of their layers", scope.unit, LAYERS,
        ),
        "nearest_layer": (
            _bounded(shares, scope, least=0), ("where",),
            "share of heads whose nearest head is in such a layer", "probability", LAYERS,
        ),
        "nearest_chance": (
            layers_alike.chance_shares(layer), ("where",),
            "the same if every other head were as likely to be nearest", "probability", LAYERS,
        ),
        "nearest_p": (
            tested.nearest_p, ("where",), "p that layers dealt out anew hold as many", "1", LAYERS,
        ),
    }  # fmt: skip


def _bounded(draws: Float64, scope: ClusterScope, *, least: float) -> Estimate:
    """The value of the first draw with its interval, clipped to what there can be."""
    whole = estimate_by_spread(draws, documents=scope.documents)
    return Estimate(whole.value, np.maximum(whole.low, least), np.minimum(whole.high, 1))
