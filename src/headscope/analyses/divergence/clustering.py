"""Clusters of heads: into how many they fall, which head is typical of each, and how sure it is.

Two ways to cluster: k-medoids, which names a typical head for each cluster, and average linkage,
a tree. The number of clusters is the one whose mean silhouette stands farthest above that of
points without clusters: a single normal cloud with the main axes that the heads have (in the
manner of Hennig and Lin 2015). The plain maximum would favour few clusters, and one head against
all others.

k-medoids: the k heads for which the distances of all heads to the nearest of them add up to least
(partitioning around medoids; Kaufman and Rousseeuw 1990). From a start, the best exchange of a
medoid for another head is made until none helps; all exchanges are weighed at once (Schubert and
Rousseeuw 2021). Our own code, because theirs is under the GPL and this package is not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from headscope.core.accumulators import Bools, Float64, Ints, finite_mean, generator, ratio

ROUNDING = 1e-12  # of the whole: a smaller gain is none
METHODS = ("k_medoids", "average")
FEWEST_UNITS = 4  # of fewer heads there are no two clusters of two
MOST = 20  # ours: more clusters than that nobody tells apart
DRAWS = 50  # of heads
REFERENCES = 39  # clouds without clusters: p can be 1/40


@dataclass(frozen=True)
class Medoids:
    """The heads chosen, and whom each other head goes with.

    medoids  [cluster] unit
    labels   [unit] cluster; a medoid is of its own cluster, so that none is empty
    cost     sum over units of the distance to their medoid
    """

    medoids: Ints
    labels: Ints
    cost: float


def k_medoids(distances: Float64, counts: Sequence[int]) -> list[Medoids]:
    """The best medoids for every number of clusters asked for.

    distances  [unit, unit] symmetric, zero diagonal, finite
    counts     numbers of clusters, each from 1 to the number of units
    returns    one for each count: the best of three local optima, from a greedy start, from the
               medoids of one cluster fewer, and of one more; the same for the same distances
    """

    def cheapest(candidates: Sequence[Medoids]) -> Medoids:
        return candidates[_least(np.array([one.cost for one in candidates]), candidates[0].cost)]

    @cache  # two starts are often the same
    def exchanged(*start: int) -> Medoids:
        return _exchanged(distances, np.array(start, np.int64))

    largest = max(counts, default=0)
    greedy = _grown(distances, np.empty(0, np.int64), largest)
    best: list[Medoids] = []
    for count in range(1, largest + 1):
        starts = [greedy[:count]]
        if best:
            starts.append(_grown(distances, best[-1].medoids, count))
        best.append(cheapest([exchanged(*start) for start in starts]))
    for at in range(largest - 2, -1, -1):
        start = _shrunk(distances, best[at + 1].medoids)
        best[at] = cheapest([best[at], exchanged(*start)])
    return [best[count - 1] for count in counts]


def _least(values: Float64, whole: float) -> int:
    """The place of the first of the least, where what rounding tells apart counts as equal.

    Of two heads that are alone with each other either may be the medoid, at the same cost.
    """
    flat = values.ravel()
    return int((flat <= flat.min() + ROUNDING * whole).argmax())


def _grown(distances: Float64, medoids: Ints, count: int) -> Ints:
    """Up to `count` medoids: each time the head that helps most is added."""
    taken = medoids.tolist()
    near = distances[:, taken].min(1, initial=np.inf)
    while len(taken) < count:
        cost = np.minimum(distances, near[:, None]).sum(0)  # [candidate]
        cost[taken] = np.inf
        taken.append(_least(cost, float(cost.min())))
        near = np.minimum(near, distances[:, taken[-1]])
    return np.array(taken, np.int64)


def _shrunk(distances: Float64, medoids: Ints) -> Ints:
    """One medoid fewer: without the one that is missed least."""
    labels, first, second = _nearest(distances, medoids)
    missed = np.bincount(labels, second - first, minlength=len(medoids)).astype(np.float64)
    return np.delete(medoids, _least(missed, float(first.sum())))


def _exchanged(distances: Float64, medoids: Ints) -> Medoids:
    """Exchanges one medoid for one other head, the best pair each time, while that helps."""
    medoids, units = medoids.copy(), np.arange(len(distances))
    while True:
        labels, first, second = _nearest(distances, medoids)
        member = (labels == np.arange(len(medoids))[:, None]).astype(np.float64)  # [medoid, unit]
        # A candidate takes over whom it is nearer to; those who lose their medoid to it and are
        # not taken over go to their second.
        taken = np.minimum(distances, first[:, None])  # [unit, candidate]
        moved = np.minimum(distances, second[:, None]) - taken
        change = taken.sum(0) - first.sum() + member @ moved  # [medoid, candidate]
        change[:, medoids] = 0
        out, into = divmod(_least(change, first.sum()), len(units))
        if change[out, into] >= -ROUNDING * first.sum():
            return Medoids(medoids, labels, float(distances[units, medoids[labels]].sum()))
        medoids[out] = units[into]


def _nearest(distances: Float64, medoids: Ints) -> tuple[Ints, Float64, Float64]:
    """[unit] the nearest medoid, the distance to it, and that to the second (inf for one only)."""
    to = distances[:, medoids].copy()  # [unit, medoid]
    to[medoids, np.arange(len(medoids))] = -1  # its own, even where another head is the same
    labels = to.argmin(1).astype(np.int64)
    units = np.arange(len(to))
    first = distances[units, medoids[labels]]
    to[units, labels] = np.inf
    return labels, first, np.maximum(to.min(1), 0)


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
    """
    member = _is_member(labels)  # [cluster, unit]
    if len(member) < 2:
        return np.full(len(labels), np.nan)
    sizes = member.sum(1)
    sums = member.astype(np.float64) @ distances  # [cluster, unit]
    others = sizes @ member - 1  # [unit] the others of its cluster
    own = np.where(member, sums, 0).sum(0) / np.maximum(others, 1)
    next_one = np.where(member, np.inf, sums / sizes[:, None]).min(0)
    larger = np.maximum(own, next_one)
    apart = np.where(larger > 0, next_one - own, 0) / np.where(larger > 0, larger, 1)
    return np.asarray(np.where(others > 0, apart, 0.0), np.float64)


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
