"""Which heads stand best for the others? In compiled loops: a run clusters a hundred clouds.

k-medoids: the k heads for which the distances of all heads to the nearest of them add up to least
(partitioning around medoids; Kaufman and Rousseeuw 1990). From a start, the best exchange of a
medoid for another head is made until none helps; all exchanges are weighed at once (Schubert and
Rousseeuw 2021). Our own code, because theirs is under the GPL and this package is not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from headscope.core.accumulators import Float64, Ints
from headscope.model.compiled_loops import compile_loop

ROUNDING = 1e-12  # of the whole: a smaller gain is none


@dataclass(frozen=True)
class Medoids:
    """The heads chosen, and whom each other head goes with.

    medoids  [cluster] unit
    labels   [unit] cluster; a medoid is of its own cluster, so that none is empty
    missed   [unit] by how much farther it is from the second nearest medoid
    cost     sum over units of the distance to their medoid
    """

    medoids: Ints
    labels: Ints
    missed: Float64
    cost: float


def k_medoids(distances: Float64, counts: Sequence[int]) -> list[Medoids]:
    """The best medoids for every number of clusters asked for.

    distances  [unit, unit] symmetric, zero diagonal, finite
    counts     numbers of clusters, each from 1 to the number of units
    returns    one for each count: the best of three local optima, from a greedy start, from the
               medoids of one cluster fewer, and of one more; the same for the same distances
    """
    # In one layout, and writable: the loops are compiled once for each kind that they get.
    distances = np.require(distances, np.float64, ["C", "W"])

    def cheapest(candidates: Sequence[Medoids]) -> Medoids:
        costs = np.array([one.cost for one in candidates])
        return candidates[int(_least(costs, candidates[0].cost))]

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
        best[at] = cheapest([best[at], exchanged(*_shrunk(best[at + 1]))])
    return [best[count - 1] for count in counts]


def _grown(distances: Float64, medoids: Ints, count: int) -> Ints:
    """Up to `count` medoids: each time the head that helps most is added."""
    grown = np.append(medoids, np.empty(count - len(medoids), np.int64))
    _grow(distances, len(medoids), grown, np.full(len(distances), np.inf), np.empty(len(distances)))
    return grown


def _shrunk(more: Medoids) -> Ints:
    """One medoid fewer: without the one that is missed least."""
    return np.delete(more.medoids, _least(np.bincount(more.labels, more.missed), more.cost))


def _exchanged(distances: Float64, medoids: Ints) -> Medoids:
    """Exchanges one medoid for one other head, the best pair each time, while that helps."""
    labels = np.empty(len(distances), np.int64)
    near, change = np.empty((2, len(distances))), np.empty((len(medoids) + 1, len(distances)))
    cost = _exchange(distances, medoids, labels, near, change)
    return Medoids(medoids, labels, near[1] - near[0], cost)


# Loops are written out: calls of numpy take twice the time to compile.
@compile_loop
def _least(values, whole):  # type: ignore[no-untyped-def]
    """The place of the first of the least, where what rounding tells apart counts as equal.

    Of two heads that are alone with each other either may be the medoid, at the same cost.
    """
    least = np.inf
    for at in range(len(values)):
        least = min(least, values[at])
    at = 0
    while values[at] > least + ROUNDING * whole:
        at += 1
    return at


@compile_loop
def _grow(distances, begin, medoids, near, cost):  # type: ignore[no-untyped-def]
    """Adds medoids from place `begin`, in place.

    near  [unit] inf; out: the distance to the nearest medoid
    cost  [candidate] room
    """
    units = len(distances)
    for at in range(len(medoids)):
        if at >= begin:
            for other in range(units):
                cost[other] = 0.0
            for unit in range(units):
                for other in range(units):
                    cost[other] += min(distances[unit, other], near[unit])
            least = np.inf
            for other in range(units):
                least = min(least, cost[other])
            for before in range(at):
                cost[medoids[before]] = np.inf
            medoids[at] = _least(cost, least)
        for unit in range(units):
            near[unit] = min(near[unit], distances[unit, medoids[at]])


@compile_loop
def _exchange(distances, medoids, labels, near, change):  # type: ignore[no-untyped-def]
    """Exchanges in place; what all units cost after the last of them.

    labels  [unit] out: the nearest medoid; its own, even where another head is the same
    near    [2, unit] out: the distance to it, and that to the second (inf for one only)
    change  [medoid, candidate] room, and a row for what every exchange for a candidate gains
    """
    units, clusters = len(distances), len(medoids)
    while True:
        change[:] = 0.0
        gain, whole = change[clusters], 0.0
        for unit in range(units):
            first, second = np.inf, np.inf
            for cluster in range(clusters):
                to = distances[unit, medoids[cluster]] if unit != medoids[cluster] else -1.0
                if to < first:
                    labels[unit], first, second = cluster, to, first
                else:
                    second = min(second, to)
            first = max(first, 0.0)
            near[0, unit], near[1, unit] = first, second
            whole += first
            # A candidate takes over whom it is nearer to; those who lose their medoid to it and
            # are not taken over go to their second.
            lost = change[labels[unit]]
            for other in range(units):
                taken = min(distances[unit, other], first)
                gain[other] += taken - first
                lost[other] += min(distances[unit, other], second) - taken
        for cluster in range(clusters):
            for other in range(units):
                change[cluster, other] += gain[other]
            for at in range(clusters):
                change[cluster, medoids[at]] = 0.0
        best = _least(change[:clusters].ravel(), whole)
        if change[best // units, best % units] >= -ROUNDING * whole:
            return whole
        medoids[best // units] = best % units
