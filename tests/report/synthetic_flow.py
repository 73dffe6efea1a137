"""Which group `flow` looks like that of a real run, without a model?

Of itself ever less, of other tokens ever more; by attention alone [CLS] takes their place.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

METHODS = ["rollout", "weighted_norm_residual", "globenc"]
TARGETS = ["self", "previous", "next", "cls", "sep", "punctuation", "other"]


def make_flow(layers: int, documents: int, *, decoder: bool = False) -> xr.Dataset:
    """A decoder has no [CLS] and [SEP], and no GlobEnc; one document has no intervals."""
    depth = np.linspace(0.5, 2.5, layers)  # [layer]
    kept = np.exp(-depth)
    rest = np.stack([0.1 * kept, 0.05 * kept, 0.02 * depth, 0.02 * depth, 0.02 * depth], -1)
    itself = kept[:, None]
    others = 1 - itself - rest.sum(-1, keepdims=True)
    norms = np.concatenate([itself, rest, others], -1)  # [layer, target]
    sink = norms.copy()
    sink[:, 3], sink[:, 6] = norms[:, 6] * 0.8, norms[:, 3] + norms[:, 6] * 0.2
    share = np.stack([sink, norms, norms])  # [method, layer, target]
    if decoder:
        share[..., 3:5], share[2] = np.nan, np.nan
    number = np.where(
        np.isnan(share[..., 0]), np.nan, 1 + np.stack([2 * depth, 9 * depth, 8 * depth])
    )
    found = {
        **_with_interval("share", ("method", "layer", "target"), share, documents, "probability"),
        **_with_interval(
            "cls_share", ("method", "layer", "target"), share, documents, "probability"
        ),
        **_with_interval("effective_tokens", ("method", "layer"), number, documents, "tokens"),
    }
    coords = {"method": METHODS, "layer": np.arange(layers), "target": TARGETS}
    return xr.Dataset(found, coords=coords)


def _with_interval(name, dims, value, documents, units):
    half = value * (np.nan if documents < 2 else 0.03)
    attrs = {"long_name": name.replace("_", " "), "units": units, "source": "Abnar & Zuidema 2020"}
    ends = {"": value, "_ci_low": value - half, "_ci_high": value + half}
    return {name + end: (dims, array, attrs) for end, array in ends.items()}
