"""How does one number differ between all heads, layer by layer?"""

from __future__ import annotations

from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from headscope.core.dictionary import unit_label
from headscope.core.head_metrics import HeadMetric, chosen_metrics, head_metrics
from headscope.core.results import Floats
from headscope.core.wording import plain
from headscope.draw.caption_words import over
from headscope.draw.marks import cell_key, cells
from headscope.draw.panel import Panel, Picture
from headscope.draw.style import color

FEW = 4  # up to so many rows or columns are all numbered


def panels(tree: xr.DataTree) -> list[Panel]:
    """One panel per number that a question has for it (`Question.overview`)."""
    return [metric_panel(metric) for metric in chosen_metrics(head_metrics(tree), "overview")]


def metric_panel(metric: HeadMetric) -> Panel:
    """The grid of one number."""
    title = metric.label[0].upper() + metric.label[1:]
    if unit_label(metric.unit) and metric.unit != "probability":
        title = f"{title} ({unit_label(metric.unit)})"
    return Panel(
        title.replace("Attention to", "To").replace(", all tokens", ""),
        partial(draw_grid, metric.estimate.value, unit=metric.unit),
        height=grid_height(metric.estimate.value),
    )


def caption(tree: xr.DataTree) -> str:
    """How to read the figure."""
    return (
        "Each cell is one head, layers from top to bottom and heads from left to right, numbered "
        "from 1; darker is more, from 0 (page) to the value at the end of each key; means over "
        f"documents; {over(tree)}; intervals stand in the tables."
    )


def draw_grid(
    values: Floats,
    axes: Axes,
    *,
    unit: str = "1",
    top: float | None = None,
    best: tuple[int, int] | None = None,
    top_text: str | None = None,
) -> None:
    """A heat map of values [layer, head]; 0 is page.

    top   the value at the end of the ramp; else the largest value
    best  (layer, head) of a cell to put a frame around
    top_text  how the value at the end of the ramp is written
    """
    layers, heads = values.shape
    top = largest(values) if top is None else top
    cells(axes, np.arange(heads + 1) - 0.5, np.arange(layers + 1) - 0.5, values, top=top, gap=0.08)
    if best is not None:
        corner = (best[1] - 0.5, best[0] - 0.5)
        axes.add_patch(Rectangle(corner, 1, 1, fill=False, ec=color("vermillion"), lw=1.1))
    axes.invert_yaxis()
    axes.set_aspect("equal", anchor="N")  # level with its neighbours
    for setter, count in ((axes.set_xticks, heads), (axes.set_yticks, layers)):
        step = 1 if count <= FEW else 2 if count <= 2 * FEW else 4
        shown = range(0, count, step)
        setter(shown, [str(at + 1) for at in shown])
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xlabel("head", loc="left")
    axes.set_ylabel("layer")
    cell_key(axes, plain(top, unit) if top_text is None else top_text)


def grid_height(values: Floats) -> float:
    """The height of a panel with such a heat map, as a share of its width."""
    layers, heads = values.shape
    return float(0.4 + 0.65 * layers / heads)


def best_place(values: Floats) -> tuple[int, int]:
    """(layer, head) of the largest of values [layer, head], of which one is not NaN."""
    layer, head = np.unravel_index(np.nanargmax(values), values.shape)
    return int(layer), int(head)


def largest(values: Floats) -> float:
    """The largest value, or 1 where there is none above 0: where a ramp can end."""
    top: float = np.nan_to_num(values).max(initial=0)
    return float(top) or 1.0


OVERVIEW = Picture("head_grid", "All heads at a glance", (), panels, caption, columns=4)
