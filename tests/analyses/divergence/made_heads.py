"""Which distances between heads have clusters that are known beforehand, or none?"""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import pdist, squareform


def blobs(sizes, *, apart=8.0, dims=6, seed=0):
    """Distances [unit, unit] of normal points in groups of these sizes, and their labels."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    centres = apart * np.eye(max(len(sizes), dims))[: len(sizes), : max(len(sizes), dims)]
    points = centres[labels] + rng.normal(size=(len(labels), centres.shape[1]))
    return squareform(pdist(points)), labels


def cloud(units, *, dims=6, seed=0):
    """Distances of one normal cloud, wider along some axes."""
    rng = np.random.default_rng(seed)
    return squareform(pdist(rng.normal(size=(units, dims)) * np.linspace(3, 0.5, dims)))


def layered(layers, heads, *, pull, seed=0):
    """Divergences of heads whose place follows their layer by so much, and their layers."""
    rng = np.random.default_rng(seed)
    layer = np.repeat(np.arange(layers), heads)
    points = rng.normal(size=(layers * heads, 5))
    points[:, 0] += pull * layer
    return squareform(pdist(points)), layer
