"""Do the heads of one layer attend alike, more than heads of different layers?

Clark et al. (2019), section 6, saw that heads of a layer are often near each other on the map.
Here: the mean divergence of two heads by how many layers lie between them, and how often the
nearest head is of the same layer; both against layer numbers dealt out anew among the heads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headscope.analyses.divergence.medoids import Ints
from headscope.core.accumulators import Float64, generator, ratio

WHERE = ("same_layer", "neighbouring_layer", "farther_layer")
PERMUTATIONS = 999
TIE = 1e-12  # of the value: rounding is no difference


@dataclass(frozen=True)
class Permuted:
    """What dealing out the layer numbers anew gives.

    divergence_p  how often the heads of a layer are as near to each other, on average
    nearest_p     [where] how often as many nearest heads are of such a layer
    """

    divergence_p: float
    nearest_p: Float64


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


def nearest(divergence: Float64) -> Ints:
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


def permuted(
    divergence: Float64, layer: Ints, *, seed: int, permutations: int = PERMUTATIONS
) -> Permuted:
    """Both statistics against layer numbers dealt out anew; one-sided, (1 + hits) / (1 + draws).

    divergence  [unit, unit] symmetric, zero diagonal
    returns     NaN where there are no two heads of a layer, or no two layers
    """
    random = generator(seed, "clusters", "layers")
    near = nearest(divergence)
    draws = [layer, *(random.permutation(layer) for _ in range(permutations))]
    within = np.array([_within(divergence, one) for one in draws])
    shares = np.array([nearest_shares(near, one) for one in draws])  # [draw, where]
    if not within[0] or len(np.unique(layer)) < 2:
        return Permuted(np.nan, np.full(len(WHERE), np.nan))
    nearer = within <= within[0] * (1 + TIE)
    return Permuted(float(nearer.mean()), (shares >= shares[0] - TIE).mean(0))


def _within(divergence: Float64, layer: Ints) -> float:
    """Sum over the pairs of the same layer; their number is the same however layers are dealt."""
    member = (layer[:, None] == np.unique(layer)).astype(np.float64)  # [unit, layer]
    return float(((divergence @ member) * member).sum() / 2)


def _shares(gap: npt.NDArray[np.int64]) -> Float64:
    kinds = np.minimum(gap, 2).ravel()
    return np.bincount(kinds, minlength=3) / len(kinds)
