"""Which few heads stand best for all others?

k-medoids: the k heads for which the distances of all heads to the nearest of them add up to least
(partitioning around medoids; Kaufman and Rousseeuw 1990). From a start, the best exchange of a
medoid for another head is made until none helps; all exchanges are weighed at once (Schubert and
Rousseeuw 2021). Our own code, because theirs is under the GPL and this package is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headscope.core.accumulators import Float64

Ints = npt.NDArray[np.int64]
ROUNDING = 1e-12  # of the whole: a smaller gain is none


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
    largest = max(counts, default=0)
    greedy = _grown(distances, np.empty(0, np.int64), largest)
    found: list[Medoids] = []
    for count in range(1, largest + 1):
        starts = [greedy[:count]]
        if found:
            starts.append(_grown(distances, found[-1].medoids, count))
        found.append(_best(_exchanged(distances, start) for start in starts))
    for at in range(largest - 2, -1, -1):
        start = _shrunk(distances, found[at + 1].medoids)
        found[at] = _best([found[at], _exchanged(distances, start)])
    return [found[count - 1] for count in counts]


def _best(candidates: Iterable[Medoids]) -> Medoids:
    """The first of the least cost."""
    given = list(candidates)
    return given[_least(np.array([one.cost for one in given]), given[0].cost)]


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
