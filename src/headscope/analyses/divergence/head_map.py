"""Draw heads as points of a plane whose distances are as near as can be to theirs."""

from __future__ import annotations

import numpy as np

from headscope.core.accumulators import Array, Float64

STEPS = 1000  # at most
ENOUGH = 1e-9  # of the squared distances: a smaller gain is none
APART = 1e-5  # of points in one place, so that they can be divided by


def head_map(distances: Float64) -> tuple[Array, float]:
    """Metric MDS in two dimensions, started from classical scaling, turned to its main axes.

    SMACOF (de Leeuw 1977): each step is a Guttman transform, which lowers the stress.

    distances  [unit, unit] symmetric, zero diagonal
    returns    places [unit, axis] in the distances' unit, and Kruskal's stress-1
    """
    if len(distances) < 3 or not np.isfinite(distances).all() or not distances.any():
        return np.full((len(distances), 2), np.nan), float("nan")
    places = _nearer(_classical(distances), distances)
    centred = places - places.mean(0)
    turned = centred @ np.linalg.svd(centred, full_matrices=False)[2].T
    turned *= np.where(np.abs(turned.max(0)) >= np.abs(turned.min(0)), 1, -1)
    gaps = np.linalg.norm(turned[:, None] - turned[None], axis=-1)
    return turned, float(np.sqrt(((gaps - distances) ** 2).sum() / (distances**2).sum()))


def _classical(distances: Float64) -> Float64:
    """[unit, axis] classical scaling (Torgerson 1952): the first two principal coordinates."""
    from scipy.linalg import eigh

    products = distances**2
    products -= products.mean(0)
    products -= products.mean(1, keepdims=True)
    sizes, axes = eigh(-0.5 * products)
    sizes, axes = sizes[:-3:-1], axes[:, :-3:-1]  # [axis], [unit, axis] the largest first
    largest = axes[np.abs(axes).argmax(0), [0, 1]]
    return np.ascontiguousarray(np.sqrt(np.maximum(sizes, 0)) * (axes * np.sign(largest)))


def _nearer(places: Float64, wanted: Float64) -> Float64:
    """[unit, axis] the places after as many steps as make them better."""
    before, gaps = np.inf, _gaps(places)
    for _ in range(STEPS):
        gaps[gaps == 0] = APART
        shares = wanted / gaps
        pull = -shares
        pull[np.diag_indices_from(pull)] += shares.sum(1)
        places = 1 / len(places) * (pull @ places)
        gaps = _gaps(places)
        stress = ((gaps - wanted) ** 2).sum() / 2
        if before - stress < ENOUGH * ((gaps**2).sum() / 2):
            break
        before = stress
    return places


def _gaps(places: Float64) -> Float64:
    """[unit, unit] distances of points."""
    square = np.einsum("ua,ua->u", places, places)
    apart = np.maximum(-2 * (places @ places.T) + square[:, None] + square, 0)
    np.fill_diagonal(apart, 0)
    return np.asarray(np.sqrt(apart))
