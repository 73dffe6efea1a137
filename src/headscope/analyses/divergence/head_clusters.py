"""Into which clusters do heads fall that attend alike, and are the heads of a layer alike?

From the divergences of all pairs; no model. Heads are resampled to measure stability: claims about
heads in general are over heads, not documents. Distances are roots of divergences: the root of the
mean Jensen-Shannon divergence is a metric (Endres and Schindelin 2003), so that two heads near a
third are near each other, and silhouettes compare like with like.

Layers: Clark et al. (2019), section 6, saw that heads of a layer are often near each other on the
map. Here: the mean divergence of two heads by how many layers lie between them, and how often the
nearest head is of the same layer; both against permuted layer numbers.
"""

from collections.abc import Mapping, Sequence
from math import isqrt
from typing import Any

import numpy as np

from headscope.analyses.divergence import clustering
from headscope.core.accumulators import Float64, Ints, generator, ratio
from headscope.core.intervals import CORRELATION, POSITIVE, estimate, estimate_share, left_one_out
from headscope.core.results import Variable

LAYERS = "Clark et al. 2019, §6; the statistic and its test are ours"
MEDOIDS, SILHOUETTE = "Kaufman and Rousseeuw 1990", "Rousseeuw 1987"
RAND, HENNIG = "Hubert and Arabie 1985", "Hennig 2007"
OURS = "ours, after Hennig and Lin 2015"
WHERE = ("same_layer", "neighbouring_layer", "farther_layer")
ONE_HEAD = ("silhouette",)  # said of each head: over documents, not over heads
PERMUTATIONS = 999
FEW_REFERENCES = 19  # clouds that a control is compared with: p can be 1/20
TIE = 1e-12  # of the value: rounding is no difference


def cluster_results(
    draws: Float64, *, heads: int, seed: int, unit: str
) -> tuple[dict[str, Variable], dict[str, Sequence[Any]]]:
    """Clusters and layers; nothing of fewer than 4 heads, or where no example was seen.

    draws    [replicate + 1, pair] divergences as `np.triu_indices(units, 1)` orders pairs
    heads    of a layer
    seed     of clouds, permutations and resampled heads
    unit     of the divergences
    returns  variables, and the coordinates of their dims
    """
    units = units_of(draws)
    if units < clustering.FEWEST_UNITS or not np.isfinite(draws[0]).all() or not draws[0].any():
        return {}, {}
    layer = (np.arange(units) // heads).astype(np.int64)
    variables = _clusters(draws, layer, seed=seed) | _layers(draws[0], layer, seed=seed, unit=unit)
    coords = {
        "k": clustering.counts_for(units),
        "variant": clustering.METHODS,
        "where": WHERE,
        "pairs": ("same_layer", "other_layers"),
    }
    return variables, coords


def control_results(pairs: Float64, *, seed: int) -> dict[str, Variable]:
    """What a run's clusters are compared with: silhouettes of heads, and whether clusters stand
    out.

    pairs  [pair] divergences; nothing where `cluster_results` has nothing
    """
    units = units_of(pairs)
    if units < clustering.FEWEST_UNITS or not np.isfinite(pairs).all() or not pairs.any():
        return {}
    distances, counts = distances_of(pairs), clustering.counts_for(units)
    labels = clustering.labels_by("k_medoids", distances, counts)
    each = np.stack([clustering.silhouettes(distances, one) for one in labels])  # [k, unit]
    references = clustering.reference_curves(distances, counts, seed=seed, draws=FEW_REFERENCES)
    best, p = clustering.choose(each.mean(-1), references)
    return _variables(
        {
            "cluster_p": (p, (), "p that heads without clusters stand out as much", OURS),
            "silhouette": (each[best], ("unit",), "silhouette of the head", SILHOUETTE),
        }
    )


def units_of(pairs: Float64) -> int:
    """The number of units with this number of pairs [pair]."""
    return (1 + isqrt(1 + 8 * pairs.shape[-1])) // 2


def distances_of(pairs: Float64) -> Float64:
    """[unit, unit] roots of the divergences of all pairs [pair]."""
    from scipy.spatial.distance import squareform

    return np.asarray(np.sqrt(squareform(np.maximum(pairs, 0))), np.float64)


def _clusters(draws: Float64, layer: Ints, *, seed: int) -> dict[str, Variable]:
    """How many clusters, how sure; and which heads are in which (`_members`)."""
    distances, counts = distances_of(draws[0]), clustering.counts_for(len(layer))
    labels = np.stack(
        [clustering.labels_by(method, distances, counts) for method in clustering.METHODS]
    )  # [variant, k, unit]
    each = np.array(
        [[clustering.silhouettes(distances, one) for one in of_method] for of_method in labels]
    )  # [variant, k, unit]
    references = clustering.reference_curves(distances, counts, seed=seed)
    best, p = clustering.choose(each[0].mean(-1), references)
    drawn = clustering.heads_anew(len(layer), seed)
    again = [_on_some(distances, some, counts, best) for some in drawn]
    curves = np.stack([curve for _, curve in again])  # [draw, k]
    others = np.stack([labels for labels, _ in again])  # [draw, variant, unit]
    pairs = (zip(labels[:, best], other, strict=True) for other in others)
    stability = np.mean([[clustering.agreement(*pair) for pair in of] for of in pairs], 0)
    share = "share of draws of heads that choose this number of clusters"
    return _variables(
        {
            "cluster_count": (float(counts[best]), (), "number of clusters of heads", OURS),
            "cluster_p": (p, (), "p that heads without clusters stand out as much", OURS),
            "silhouette_by_k": (
                estimate(left_one_out(np.moveaxis(each, -1, 0)), bounds=CORRELATION),
                ("variant", "k"),
                "mean silhouette",
                SILHOUETTE,
            ),
            "reference_silhouette": (
                references,
                ("draw", "k"),
                "mean silhouette of points without clusters",
                OURS,
            ),
            "k_share": (_picked(curves, references), ("k",), share, OURS, "probability"),
            "stability": (
                stability,
                ("variant",),
                "adjusted Rand index with the clusters of draws of heads",
                RAND,
            ),
            "method_agreement": (
                clustering.agreement(*labels[:, best]),
                (),
                "adjusted Rand index of k-medoids and average linkage",
                RAND,
            ),
        }
    ) | _members(draws, labels[0, best], layer, others[:, 0])


def _on_some(
    distances: Float64, some: Ints, counts: Sequence[int], best: int
) -> tuple[Ints, Float64]:
    """The clusters of some heads, as many as counts[best]: labels [variant, unit], -1 for the
    others; and k-medoids' mean silhouettes [k].
    """
    apart = distances[np.ix_(some, some)]
    medoids = clustering.labels_by("k_medoids", apart, counts)  # [k, unit of some]
    (average,) = clustering.labels_by("average", apart, counts[best : best + 1])
    labels = np.full((len(clustering.METHODS), len(distances)), -1)
    labels[:, some] = medoids[best], average
    return labels, clustering.curve(apart, medoids)


def _variables(rows: Mapping[str, tuple[Any, ...]]) -> dict[str, Variable]:
    return {
        name: Variable(
            value,
            dims,
            words,
            unit[0] if unit else "1",
            source,
            "" if name in ONE_HEAD else "heads",
        )
        for name, (value, dims, words, source, *unit) in rows.items()
    }


def _members(draws: Float64, labels: Ints, layer: Ints, others: Ints) -> dict[str, Variable]:
    """Which heads, which medoid, how well apart and how surely.

    draws   [replicate + 1, pair]
    labels  [unit]
    others  [draw of heads, unit], -1 for those not drawn
    """
    order = clustering.by_depth(labels, layer)
    number, count = np.argsort(order)[labels], len(order)  # [unit]
    medoids = clustering.typical(distances_of(draws[0]), number)  # [cluster]
    each = np.stack([clustering.silhouettes(distances_of(pairs), number) for pairs in draws])
    member = number[:, None] == np.arange(count)  # [unit, cluster]
    means = left_one_out(np.where(member, each[0][:, None], np.nan))  # [unit + 1, cluster]
    by_head, by_cluster = ("unit",), ("cluster_number",)
    share = "share of draws of heads in which the head is with its cluster’s medoid"
    again = "overlap with the most similar cluster of a draw of heads"
    return _variables(
        {
            "cluster": (number.astype(float), by_head, "cluster of the head, from 0", MEDOIDS),
            "silhouette": (
                estimate(each, bounds=CORRELATION),
                by_head,
                "silhouette of the head",
                SILHOUETTE,
            ),
            "stays": (
                clustering.stays(number, medoids, others),
                by_head,
                share,
                HENNIG,
                "probability",
            ),
            "medoid": (medoids.astype(float), by_cluster, "unit of the most typical head", MEDOIDS),
            "cluster_size": (
                member.sum(0).astype(float),
                by_cluster,
                "heads in the cluster",
                MEDOIDS,
            ),
            "cluster_silhouette": (
                estimate(means, bounds=CORRELATION),
                by_cluster,
                "mean silhouette of the cluster",
                SILHOUETTE,
            ),
            "jaccard": (clustering.jaccard(number, others), by_cluster, again, HENNIG),
        }
    )


def _picked(curves: Float64, references: Float64) -> Float64:
    """[k] how often each number of clusters would be chosen; curves [draw, k]."""
    chosen = (curves - references.mean(0)).argmax(1)  # [draw]
    return np.bincount(chosen, minlength=curves.shape[1]) / len(chosen)


def _layers(pairs: Float64, layer: Ints, *, seed: int, unit: str) -> dict[str, Variable]:
    """Intervals are over heads: what is said is of heads in general."""
    divergence = distances_of(pairs) ** 2  # [unit, unit]
    divergence_p, nearest_p = permuted_layers(divergence, layer, seed=seed)
    near = nearest_of(np.abs(layer[nearest_unit(divergence)] - layer))  # [unit, where]
    left = np.append(0.0, np.ones(len(near)))  # [unit + 1] heads that are left out
    sums, sizes = by_gap(divergence, layer)  # [unit + 1, gap]
    within, between = slice(1), slice(1, None)
    each = [ratio(sums[:, gap].sum(-1), sizes[:, gap].sum(-1)) for gap in (within, between)]
    both = np.stack(each, -1)  # [unit + 1, pairs]
    mean = "mean divergence of two heads"
    return _variables(
        {
            "layer_js": (estimate(both, bounds=POSITIVE), ("pairs",), mean, LAYERS, unit),
            "layer_js_ratio": (
                estimate(ratio(both[:, 0], both[:, 1]), bounds=POSITIVE),
                (),
                "divergence within layers over that between layers",
                LAYERS,
            ),
            "layer_js_p": (divergence_p, (), "p that layers dealt out anew are as alike", LAYERS),
            "js_by_layer_gap": (
                estimate(ratio(sums, sizes), bounds=POSITIVE),
                ("layer_gap",),
                f"{mean} by the distance of their layers",
                LAYERS,
                unit,
            ),
            "nearest_layer": (
                estimate_share(left_one_out(near), len(near) - left[:, None]),
                ("where",),
                "share of heads whose nearest head is in such a layer",
                LAYERS,
                "probability",
            ),
            "nearest_chance": (
                chance_shares(layer),
                ("where",),
                "the same if every other head were as likely to be nearest",
                LAYERS,
                "probability",
            ),
            "nearest_p": (
                nearest_p,
                ("where",),
                "p that layers dealt out anew hold as many",
                LAYERS,
            ),
        }
    )


def by_gap(divergence: Float64, layer: Ints) -> tuple[Float64, Float64]:
    """Sums of divergences, and numbers, of pairs of heads by the distance of their layers.

    divergence  [unit, unit] symmetric, zero diagonal
    layer       [unit]
    returns     [unit + 1, gap] from 0, the same layer, to the largest: of all heads, then without
                each
    """
    gap = np.abs(layer[:, None] - layer)
    chosen = (gap[..., None] == np.arange(layer.max() + 1)).astype(np.float64)
    chosen[np.diag_indices(len(layer))] = 0  # [unit, unit, gap]
    pairs = []
    for weights in (divergence, np.ones_like(divergence)):
        of_unit = np.einsum("ij,ijg->ig", weights, chosen)
        whole = of_unit.sum(0) / 2
        pairs.append(np.concatenate([whole[None], whole - of_unit]))
    return pairs[0], pairs[1]


def nearest_unit(divergence: Float64) -> Ints:
    """[unit] the head nearest to each, not itself; divergence [unit, unit]."""
    apart = divergence.copy()
    np.fill_diagonal(apart, np.inf)
    return np.asarray(apart.argmin(1), np.int64)


def nearest_shares(near: Ints, layer: Ints) -> Float64:
    """[where] share of heads whose nearest is of the same, a neighbouring, a farther layer."""
    return np.asarray(nearest_of(np.abs(layer[near] - layer)).mean(0))


def chance_shares(layer: Ints) -> Float64:
    """[where] the same if every other head were as likely to be the nearest."""
    gap = np.abs(layer[:, None] - layer)
    return np.asarray(nearest_of(gap[~np.eye(len(layer), dtype=bool)]).mean(0))


def nearest_of(gap: Ints) -> Float64:
    """[…, where] 1 where the other layer is the same, a neighbouring or a farther one."""
    return np.asarray(np.minimum(gap, 2)[..., None] == np.arange(3), np.float64)


def permuted_layers(
    divergence: Float64, layer: Ints, *, seed: int, permutations: int = PERMUTATIONS
) -> tuple[float, Float64]:
    """Both statistics against permuted layer numbers; one-sided, (1 + hits) / (1 + draws).

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
