"""Clusters of heads: into how many they fall, which head is typical of each, and how sure it is.

Two ways to cluster: k-medoids, which names a typical head for each cluster, and average linkage,
a tree. The number of clusters is the one whose mean silhouette stands farthest above that of
points without clusters: a single normal cloud with the main axes that the heads have (in the
manner of Hennig and Lin 2015). The plain maximum would favour few clusters, and one head against
all others.
"""

from collections.abc import Sequence

import numpy as np

from headscope.core.accumulators import Bools, Float64, Ints, finite_mean, generator, ratio

METHODS = ("k_medoids", "average")
FEWEST_UNITS = 4  # of fewer heads there are no two clusters of two
MOST = 20  # ours: more clusters than that nobody tells apart
DRAWS = 50  # of heads
REFERENCES = 39  # clouds without clusters: p can be 1/40


def counts_for(units: int) -> range:
    """The numbers of clusters to try: from 2, with two heads each on average, to MOST."""
    return range(2, min(MOST, units // 2) + 1)


def labels_by(method: str, distances: Float64, counts: Sequence[int]) -> Ints:
    """The clusters that every unit belongs to.

    method     one of METHODS
    distances  [unit, unit] symmetric, zero diagonal, finite
    returns    [count, unit] from 0; of a tree with ties, fewer clusters where they cannot be cut
    """
    if method == "k_medoids":
        # It imports torch, and a report asks for trees alone.
        from headscope.analyses.divergence.medoids import k_medoids

        return np.stack([one.labels for one in k_medoids(distances, counts)])  # [count, unit]
    from scipy.cluster.hierarchy import fcluster

    tree = average_tree(distances)
    cut = [fcluster(tree, count, "maxclust") - 1 for count in counts]
    return np.stack(cut).astype(np.int64)  # [count, unit]


def average_tree(distances: Float64, *, ordered: bool = False) -> Float64:
    """[merge, 4] the tree of average linkage, as scipy writes it.

    ordered  whether branches are turned so that neighbouring leaves are as alike as can be
    """
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    pairs = squareform(distances, checks=False)
    return np.asarray(linkage(pairs, "average", optimal_ordering=ordered), np.float64)


def silhouettes(distances: Float64, labels: Ints) -> Float64:
    """[unit] how much nearer its own cluster is than the next one, from -1 to 1; alone: 0.

    (b − a) / max(a, b), where a is the mean distance to the others of its cluster and b that to
    the nearest other cluster (Rousseeuw 1987). NaN throughout for fewer than two clusters.

    labels  [unit] clusters from 0, none of them empty
    """
    sizes = np.bincount(labels)
    if len(sizes) < 2:
        return np.full(len(labels), np.nan)
    units, member = np.arange(len(labels)), labels == np.arange(len(sizes))[:, None]
    means = member.astype(np.float64) @ distances  # [cluster, unit]
    own = means[labels, units] / np.maximum(sizes[labels] - 1, 1)
    means /= sizes[:, None]
    means[labels, units] = np.inf
    next_one = means.min(0)
    larger = np.maximum(own, next_one)
    apart = np.where(larger > 0, next_one - own, 0) / np.where(larger > 0, larger, 1)
    return np.asarray(np.where(sizes[labels] > 1, apart, 0.0), np.float64)


def curve(distances: Float64, labels: Ints) -> Float64:
    """[count] the mean silhouette of each clustering; labels [count, unit]."""
    return np.array([silhouettes(distances, one).mean() for one in labels])


def reference_curves(
    distances: Float64, counts: Sequence[int], *, seed: int, draws: int = REFERENCES
) -> Float64:
    """[draw, count] mean silhouettes of as many points without clusters, by k-medoids.

    The points are normal, with the variances of the units along their main axes (classical
    scaling; exact, as the root of a Jensen-Shannon divergence is a Euclidean distance: Fuglede
    and Topsøe 2004).
    """
    from scipy.spatial.distance import pdist, squareform

    units = len(distances)
    centre = np.eye(units) - 1 / units
    inner = -0.5 * centre @ distances**2 @ centre
    axes = np.sqrt(np.maximum(np.linalg.eigvalsh((inner + inner.T) / 2), 0) / units)
    random = generator(seed, "clusters", "reference")
    clouds = (squareform(pdist(random.normal(size=(units, units)) * axes)) for _ in range(draws))
    return np.stack([curve(cloud, labels_by("k_medoids", cloud, counts)) for cloud in clouds])


def choose(curves: Float64, references: Float64) -> tuple[int, float]:
    """Which number of clusters to take, and whether there are clusters at all.

    curves      [count] or [replicate, count]: the first row decides
    references  [draw, count]
    returns     the position of the count, and how often points without clusters stand out as much
                at any count (p of a Monte Carlo test: data and draws are treated alike)
    """
    own = np.atleast_2d(curves)[0]
    all_curves = np.vstack([own, references])
    excess = (all_curves - all_curves.mean(0)).max(1)  # [data and draws]
    return int((own - references.mean(0)).argmax()), float((excess >= excess[0]).mean())


def agreement(one: Ints, other: Ints) -> float:
    """The adjusted Rand index of two clusterings [unit] (Hubert and Arabie 1985).

    Units of which one of them says nothing (-1) do not count.
    """
    from sklearn.metrics import adjusted_rand_score

    there = (one >= 0) & (other >= 0)
    return float(adjusted_rand_score(one[there], other[there]))


def heads_anew(units: int, seed: int) -> list[Ints]:
    """Which heads are in each of DRAWS draws with replacement: about 63 %, each once."""
    random = generator(seed, "clusters", "heads")
    draws: list[Ints] = []
    while len(draws) < DRAWS:
        some = np.unique(random.integers(0, units, units))
        if len(some) > max(counts_for(units)):
            draws.append(some)
    return draws


def jaccard(labels: Ints, others: Ints) -> Float64:
    """How well each cluster is found again: the overlap with the cluster most like it.

    labels   [unit]
    others   [draw, unit] the clusters of draws of heads; -1 for heads that were not drawn
    returns  [cluster] mean over draws, from 0 to 1; above 0.75 stable, below 0.5 dissolved
             (Hennig 2007)
    """
    overlaps = []
    for other in others:
        there = other >= 0
        mine = _is_member(labels)[:, there].astype(np.float64)  # [cluster, unit that was drawn]
        theirs = _is_member(other[there]).astype(np.float64)
        both = mine @ theirs.T
        sizes = mine.sum(1)[:, None]
        overlaps.append(
            np.where(sizes[:, 0] > 0, (both / (sizes + theirs.sum(1) - both)).max(1), np.nan)
        )
    return finite_mean(np.array(overlaps), 0)


def stays(labels: Ints, medoids: Ints, others: Ints) -> Float64:
    """[unit] share of the draws in which a unit is with the medoid of its cluster.

    medoids  [cluster] unit; a medoid is always with itself
    others   [draw, unit] as in `jaccard`; only draws that have both count
    """
    medoid = others[:, medoids[labels]]
    there = (others >= 0) & (medoid >= 0)
    return ratio((there & (others == medoid)).sum(0) + 0.0, there.sum(0) + 0.0)


def by_depth(labels: Ints, layer: Ints) -> Ints:
    """[cluster] the clusters of `labels` [unit] by the mean layer of their units, first to last."""
    mean = [layer[labels == one].mean() for one in range(labels.max() + 1)]
    return np.argsort(mean, kind="stable").astype(np.int64)


def typical(distances: Float64, labels: Ints) -> Ints:
    """[cluster] the unit nearest to all others of its cluster: of k-medoids, the medoid."""
    member = _is_member(labels)  # [cluster, unit]
    to_own = np.where(member, member.astype(np.float64) @ distances, np.inf)  # [cluster, unit]
    return np.asarray(to_own.argmin(1), np.int64)


def _is_member(labels: Ints) -> Bools:
    """[cluster, unit]"""
    return np.asarray(labels == np.unique(labels)[:, None])
