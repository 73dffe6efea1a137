"""How good is a clustering, how alike are two, and how alike are heads of a layer?

Straight from the definitions, pair by pair:
    silhouette  s = (b - a) / max(a, b)                       Rousseeuw (1987); alone: 0
    Rand index, adjusted for chance, by counting pairs        Hubert and Arabie (1985)
    Jaccard     |A and B| / |A or B|                          as used by Hennig (2007)
    k-medoids   the cheapest of all sets of k units           Kaufman and Rousseeuw (1990)
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def silhouette(distances: Array, labels: Sequence[int]) -> list[float]:
    """One per unit."""
    found = []
    for unit, own in enumerate(labels):
        mine = [o for o, label in enumerate(labels) if label == own and o != unit]
        if not mine:
            found.append(0.0)
            continue
        a = float(np.mean([distances[unit, o] for o in mine]))
        b = min(
            float(np.mean([distances[unit, o] for o, label in enumerate(labels) if label == other]))
            for other in set(labels) - {own}
        )
        found.append((b - a) / max(a, b))
    return found


def adjusted_rand(one: Sequence[int], other: Sequence[int]) -> float:
    """From the pairs that both, either or neither put together."""
    both = mine = theirs = 0
    for i, j in combinations(range(len(one)), 2):
        both += one[i] == one[j] and other[i] == other[j]
        mine += one[i] == one[j]
        theirs += other[i] == other[j]
    expected = mine * theirs / comb(len(one), 2)
    return (both - expected) / ((mine + theirs) / 2 - expected)


def jaccard(labels: Sequence[int], others: Sequence[Sequence[int]]) -> list[float]:
    """For each cluster the mean over the other clusterings of the largest overlap."""
    sets = _sets(labels)
    return [
        float(np.mean([max(len(mine & s) / len(mine | s) for s in _sets(o)) for o in others]))
        for mine in sets
    ]


def cheapest(distances: Array, count: int) -> float:
    """The cost of the best medoids, by trying all."""
    units = range(len(distances))
    return min(
        sum(min(distances[unit, m] for m in medoids) for unit in units)
        for medoids in combinations(units, count)
    )


def layer_means(divergence: Array, layer: Sequence[int]) -> dict[int, float]:
    """Distance of layers to the mean divergence of two heads so far apart."""
    found: dict[int, list[float]] = {}
    for i, j in combinations(range(len(layer)), 2):
        found.setdefault(abs(layer[i] - layer[j]), []).append(float(divergence[i, j]))
    return {gap: float(np.mean(values)) for gap, values in found.items()}


def _sets(labels: Sequence[int]) -> list[set[int]]:
    return [{u for u, label in enumerate(labels) if label == own} for own in sorted(set(labels))]
