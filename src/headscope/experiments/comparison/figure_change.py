"""Draws which heads do something else after fine-tuning, and to which kinds of words they attend.

Kovaleva et al. (2019), §4.4, compare attention to kinds of words before and after.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from headscope.core.dictionary import unit_label
from headscope.core.head_metrics import chosen_keys
from headscope.core.results import Floats, estimate, group
from headscope.core.wording import capital, fixed, plain
from headscope.draw.caption_words import INTERVALS, over
from headscope.draw.head_grid import grid_height, signed_grid, signed_top
from headscope.draw.marks import band_line, layer_axis, legend, percent_axis
from headscope.draw.panel import Panel, Picture
from headscope.draw.style import color
from headscope.experiments.comparison.figure import base_name, tuned_name
from headscope.experiments.comparison.findings import (
    kind_change,
    kind_name,
    kinds_there,
    points,
    sure_finding,
    words_finding,
)

HEADROOM = 1.1  # of the axis
NO_WORDS = ("punctuation", "cls", "sep")  # on a scale of their own: they draw far more


def panels(tree: xr.DataTree) -> list[Panel]:
    """One grid per number that questions show of a change (`Question.shown`)."""
    change = group(tree, "change")
    if change is None:
        return []
    known = set(change["quantity"].values.tolist())
    return [_grid_panel(change, key) for key in chosen_keys(known, "change")]


def caption(tree: xr.DataTree) -> str:
    """How to read the grids."""
    return (
        f"How numbers of heads change from {base_name(tree)} to {tuned_name(tree)}: each cell is "
        "one head; blue rises, vermillion falls, up to the value at the end of each key; shares of "
        "attention and of maps differ by percentage points. A head is coloured only if its change "
        "is sure: outside the interval that in 95 % of resamples holds all heads of the grid "
        "together; bootstrap over documents, the same documents for both models; "
        f"{over(tree)}. {sure_finding(tree)}"
    )


def words_panels(tree: xr.DataTree) -> list[Panel]:
    """One panel per kind of token: both models, layer by layer."""
    change = group(tree, "change")
    kinds = [] if change is None else kinds_there(change)
    if change is None or not kinds:
        return []
    tops = {
        marks: max((_top(change, k) for k in kinds if (k in NO_WORDS) == marks), default=1.0)
        for marks in (False, True)
    }
    return [
        Panel(
            f"To {kind_name(tree, kind)}",
            partial(_before_and_after, change, kind, top=HEADROOM * tops[kind in NO_WORDS]),
            height=0.8,
        )
        for kind in kinds
    ]


def words_caption(tree: xr.DataTree) -> str:
    """How to read the lines."""
    return (
        "The attention that a token of each kind receives from all tokens of the input, mean over "
        "them, the largest of its kind, mean over the inputs that contain the kind and over the "
        f"heads of each layer: {base_name(tree)} before, {tuned_name(tree)} after. Bands are "
        f"{INTERVALS}; numbers are differences in percentage points, mean over all heads, paired "
        "over documents; punctuation and special tokens on a scale of their own; "
        f"{over(tree)}. {words_finding(tree)} After Kovaleva et al. (2019), §4.4."
    )


# --- what is drawn --------------------------------------------------------------------------


def _draw_grid(values: Floats, unit: str, axes: Axes) -> None:
    """Heads whose change is sure, in blue or vermillion."""
    top = signed_top(values)
    if not values.any():
        low, high = "", "none for sure"
    elif unit == "probability":
        text = fixed(100 * top, 1 if top < 0.1 else 0)
        low, high = f"−{text}", f"+{text} points"
    else:
        low, high = f"−{plain(top, unit)}", f"+{plain(top, unit)}"
    signed_grid(axes, values, top=top, low_text=low, high_text=high)


def _grid_panel(change: xr.Dataset, key: str) -> Panel:
    row = change.sel(quantity=key).transpose("layer", "head")
    sure = np.nan_to_num(row["sure"].values) != 0
    values = np.where(sure, row["difference"].values, 0.0)
    unit, title = str(row["unit"].values), str(row["label"].values)
    if unit_label(unit) and unit != "probability":
        title = f"{title} ({unit_label(unit)})"
    short = title.replace("attention to ", "to ").replace(", all tokens", "")
    drawn = partial(_draw_grid, values, unit)
    return Panel(capital(short), drawn, height=grid_height(values))


def _top(change: xr.Dataset, kind: str) -> float:
    key = f"features.attention.{kind}"
    ends = [estimate(change, f"layer_{side}", quantity=key) for side in ("before", "after")]
    return max(float(np.nanmax(np.fmax(part.high, part.value), initial=0)) for part in ends)


def _before_and_after(change: xr.Dataset, kind: str, axes: Axes, *, top: float) -> None:
    key = f"features.attention.{kind}"
    for side in ("before", "after"):
        parts = estimate(change, f"layer_{side}", quantity=key)
        band_line(axes, np.arange(len(parts.value), dtype=np.float64), parts, side)
    layer_axis(axes, change.sizes["layer"])
    percent_axis(axes, "attention", top=top or 1.0)
    axes.annotate(
        points(kind_change(change, kind)), (1, 1), (0, 4), xycoords="axes fraction",
        textcoords="offset points", ha="right", va="bottom", fontsize=6.5, color=color("muted"),
    )  # fmt: skip
    legend(axes, [("before", "before"), ("after", "after")])


PICTURE = Picture("change", "What heads do otherwise", ("change",), panels, caption, columns=3)
WORDS = Picture(
    "words_change", "Do heads look at other words?", ("change",), words_panels, words_caption,
    columns=3,
)  # fmt: skip
FIGURES = (PICTURE, WORDS)
