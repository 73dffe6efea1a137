"""How does one number differ between all heads, layer by layer?"""

from __future__ import annotations

from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from headscope.derived.reading import Floats, HeadMetric, head_metrics
from headscope.derived.wording import plain
from headscope.draw.marks import cell_key, cells
from headscope.draw.panel import Panel, Picture
from headscope.draw.wording import over
from headscope.terms import unit_label

OVERVIEW = (
    "surface.attention.previous",
    "surface.attention.next",
    "surface.attention.cls",
    "surface.attention.first",
    "surface.attention.sep",
    "surface.attention.punctuation",
    "entropy.entropy.all",
    "norms.value_norm_mean",
    "norms.value_norm_cv",
)
FEW = 4  # up to so many rows or columns are all numbered


def panels(tree: xr.DataTree) -> list[Panel]:
    """One panel per number of OVERVIEW that the run has, [CLS] standing in for the first token."""
    metrics = {metric.key: metric for metric in head_metrics(tree)}
    chosen = [metrics[key] for key in OVERVIEW if key in metrics]
    if "surface.attention.cls" in metrics:
        chosen = [metric for metric in chosen if not metric.key.endswith(".first")]
    return [metric_panel(metric) for metric in chosen]


def metric_panel(metric: HeadMetric) -> Panel:
    """The grid of one number."""
    title = metric.label[0].upper() + metric.label[1:]
    if unit_label(metric.unit) and metric.unit != "probability":
        title = f"{title} ({unit_label(metric.unit)})"
    return Panel(
        title.replace("Attention to", "To").replace(", all tokens", ""),
        partial(draw_grid, metric.estimate.value, unit=metric.unit),
        height=0.4 + 0.65 * metric.estimate.value.shape[0] / metric.estimate.value.shape[1],
    )


def caption(tree: xr.DataTree) -> str:
    """How to read the figure."""
    return (
        "Each cell is one head, layers from top to bottom and heads from left to right, numbered "
        "from 1; darker is more, from 0 (page) to the value at the end of each key; means over "
        f"documents; {over(tree)}; intervals stand in the tables."
    )


def draw_grid(values: Floats, axes: Axes, *, unit: str = "1") -> None:
    """A heat map of values [layer, head]; 0 is page, the largest value the end of the ramp."""
    layers, heads = values.shape
    top = float(np.nanmax(values)) if np.isfinite(values).any() else 1.0
    top = top if top > 0 else 1.0
    cells(axes, np.arange(heads + 1) - 0.5, np.arange(layers + 1) - 0.5, values, top=top, gap=0.08)
    axes.invert_yaxis()
    axes.set_aspect("equal")
    for setter, count in ((axes.set_xticks, heads), (axes.set_yticks, layers)):
        step = 1 if count <= FEW else 2 if count <= 2 * FEW else 4
        shown = range(0, count, step)
        setter(shown, [str(at + 1) for at in shown])
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xlabel("head", loc="left")
    axes.set_ylabel("layer")
    cell_key(axes, plain(top, unit))


PICTURE = Picture("head_grid", "All heads at a glance", (), panels, caption, columns=4)
