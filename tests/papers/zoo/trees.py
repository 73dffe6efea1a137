"""What does a run look like of which every number of a claim is known beforehand?

Results as `atlas` gives them, with draws; replicate k of a share is the share moved by SHIFTS[k].
Together they make intervals of 0.019 to both sides, where no bound is near.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from headscope.analyses.surface.measure import TARGETS
from headscope.core.intervals import Estimate, estimate
from headscope.core.results import Variable, labelled
from headscope.run.store import Run

SHIFTS = np.linspace(-1, 1, 200) * 0.00116847055
DOCUMENTS = 10


def moved(values) -> Estimate:
    """An estimate of values whose draws are all moved by the same."""
    values = np.asarray(values, float)
    shifts = np.concatenate([[0.0], SHIFTS]).reshape(-1, *[1] * values.ndim)
    return estimate(values[None] + shifts)


def surface(layers=12, heads=2, **targets) -> xr.Dataset:
    """Attention to targets, each [layer] or one number, the same for all heads; others NaN."""
    values = np.full((layers, heads, len(TARGETS)), np.nan)
    for name, given in targets.items():
        by_layer = np.broadcast_to(np.asarray(given, float), (layers,))
        values[:, :, TARGETS.index(name)] = by_layer[:, None]
    return _labelled({"attention": (moved(values), ("layer", "head", "target"))}, target=TARGETS)


def entropy(every, cls, uniform=4.0) -> xr.Dataset:
    """Entropies [layer] of two equal heads."""
    values = np.stack([np.asarray(every, float), np.asarray(cls, float)], -1)  # [layer, query]
    both = np.repeat(values[:, None], 2, 1)  # [layer, head, query]
    flat = Estimate(*(np.asarray(uniform, float),) * 3, np.full(201, float(uniform)))
    variables = {"entropy": (moved(both), ("layer", "head", "query")), "uniform": (flat, ())}
    return _labelled(variables, query=("all", "cls"))


def norms(weight, norm, cancellation=(-0.3, -0.7, -0.2, 0.0), frequency=(0.7, 0.0)) -> xr.Dataset:
    """Weights and weighted norms [category] of all layers and heads."""
    by_head = ("layer", "head", "category")
    variables = {
        "attention": (moved(np.broadcast_to(weight, (12, 2, 4))), by_head),
        "weighted_norm": (moved(np.broadcast_to(norm, (12, 2, 4))), by_head),
        "spearman_attention_value_norm": (moved(cancellation), ("category",)),
        "spearman_frequency": (moved(frequency), ("quantity",)),
    }
    categories = ("cls", "sep", "punctuation", "other")
    return _labelled(variables, category=categories, quantity=("value_norm", "attention"))


def model_run(*, layers=12, heads=2, stack="encoder", cls="[CLS]", sep="[SEP]", **groups) -> Run:
    """A run of these groups."""
    attrs = {
        "layers": layers,
        "heads": heads,
        "stack": stack,
        "cls_token": cls,
        "sep_token": sep,
        "documents": DOCUMENTS,
        "tokens": 500,
        "replicates": 201,
        "seed": 0,
        "model": "made",
    }
    root = xr.Dataset(attrs=attrs)
    return Run(xr.DataTree.from_dict({"/": root, **{f"/{k}": v for k, v in groups.items()}}), {})


def _labelled(variables, **coords) -> xr.Dataset:
    made = {k: Variable(value, dims, k, "1", "made") for k, (value, dims) in variables.items()}
    return labelled(made, coords=coords)
