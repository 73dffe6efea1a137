"""Which clusters has a made run? Plausible numbers in the layout of the analysis `divergence`."""

from __future__ import annotations

import numpy as np
import xarray as xr

FEWEST = 4  # of fewer heads there are no clusters
DRAWS = 39


def add_clusters(divergence: xr.Dataset, layers: int, heads: int, documents: int) -> xr.Dataset:
    """The group with clusters of neighbouring layers in it; one document: no intervals."""
    units = layers * heads
    if units < FEWEST:
        return divergence
    rng = np.random.default_rng(1)
    counts = np.arange(2, min(20, units // 2) + 1)
    count = int(counts[len(counts) * 2 // 3])
    number = np.sort(np.arange(units) * count // units)
    number[rng.random(units) < 0.15] = 0
    many = documents > 1
    gone = 1.0 if many else np.nan
    curve = 0.2 - 0.004 * counts + rng.normal(0, 0.01, (2, len(counts)))
    sizes = np.bincount(number, minlength=count)
    first = np.array([np.flatnonzero(number == at)[0] for at in range(count)])
    data = {
        "cluster": ("unit", number.astype(float)),
        "stays": ("unit", gone * rng.uniform(0.7, 1, units)),
        "medoid": ("cluster_number", first.astype(float)),
        "cluster_size": ("cluster_number", sizes.astype(float)),
        "jaccard": ("cluster_number", gone * rng.uniform(0.6, 1, count)),
        "cluster_count": ((), float(count)),
        "cluster_p": ((), 0.025),
        "reference_silhouette": (("draw", "k"), rng.normal(0.05, 0.01, (DRAWS, len(counts)))),
        "k_share": ("k", gone * np.where(counts == count, 0.9, 0.1 / max(len(counts) - 1, 1))),
        "method_agreement": ((), 0.4),
        "layer_js_p": ((), 0.001),
        "nearest_chance": ("where", _thirds(rng)),
        "nearest_p": ("where", np.array([0.001, 0.03, 1.0])),
    }
    estimates = {
        "silhouette": ("unit", rng.normal(0.15, 0.1, units)),
        "cluster_silhouette": ("cluster_number", rng.uniform(0.05, 0.4, count)),
        "silhouette_by_k": (("method", "k"), curve),
        "stability": ("method", np.array([0.95, 0.85])),
        "layer_js": ("pairs", np.array([0.24, 0.31])),
        "layer_js_ratio": ((), 0.77),
        "js_by_layer_gap": ("layer_gap", 0.24 + 0.01 * np.arange(layers)),
        "nearest_layer": ("where", _thirds(rng)),
    }
    for name, (dims, value) in estimates.items():
        for end, shift in (("", 0.0), ("_ci_low", -0.01), ("_ci_high", 0.01)):
            data[name + end] = (dims, (np.asarray(value) + shift) * (gone if end else 1.0))
    made = xr.Dataset({name: (*parts, {"units": "1"}) for name, parts in data.items()})
    for name in ("layer_js", "js_by_layer_gap"):
        made[name].attrs["units"] = "nats"
    coords = {"k": counts, "method": ["k_medoids", "average"], "draw": np.arange(DRAWS)}
    coords |= {"where": ["same_layer", "neighbouring_layer", "farther_layer"]}
    coords |= {"pairs": ["same_layer", "other_layers"], "cluster_number": np.arange(count)}
    return divergence.merge(made.assign_coords(coords))


def _thirds(rng: np.random.Generator) -> np.ndarray:
    return rng.dirichlet(np.ones(3))
