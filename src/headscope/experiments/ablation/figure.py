"""What becomes of the score without each head, and without each layer?

Kovaleva et al. (2019), Figure 8: a cell per head, the change of the task's score when the head
attends evenly; Figure 9: the score without each layer beside that of the whole model.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from headscope.core.accumulators import Estimate
from headscope.core.results import Floats, estimate, group
from headscope.core.wording import fixed
from headscope.draw.marks import faint_grid, layer_axis
from headscope.draw.panel import Panel, Picture
from headscope.draw.signed import HUES, sign_marks, signed_grid, signed_top
from headscope.draw.style import color
from headscope.experiments.ablation.readings import (
    in_percent,
    metric_name,
    score_text,
    task_name,
    verdict_counts,
)

WIDTH = 0.72  # of a bar, as a share of its place
INSTEAD = {
    "uniform": "attends to all tokens evenly",
    "zero": "adds nothing",
    "mean": "adds its mean over the data whatever it sees",
}
SIGNS = {"helpful": -1, "harmful": 1}


def panels(tree: xr.DataTree) -> list[Panel]:
    """The heads, and the layers."""
    found = group(tree, "ablation")
    if found is None:
        return []
    word = metric_name(found)
    return [
        _grid(
            f"Change of {word}, by head",
            found,
            "difference",
            "verdict",
            unit="points" if in_percent(found) else "",
        ),
        Panel(f"{_capital(word)} without a layer", partial(_layers, found), height=0.72),
    ]


def loss_panels(tree: xr.DataTree) -> list[Panel]:
    """The loss, which is finer than a score: every example counts, not only those that flip."""
    found = group(tree, "ablation")
    if found is None:
        return []
    unit = "nats" if found["loss_difference"].attrs["units"] == "nats" else ""
    title = "Fall of the loss without a head"
    return [
        _grid(title, found, "loss_difference", "loss_verdict", unit=unit),
        Panel("Fall of the loss without a layer", partial(_layer_losses, found), height=0.72),
    ]


def caption(tree: xr.DataTree) -> str:
    """How to read the figure."""
    found = group(tree, "ablation")
    assert found is not None
    counts, n = verdict_counts(found), found.sizes["example"]
    many = found["verdict"].size
    return (
        f"(a) Change of {metric_name(found)} on {task_name(found)} when a head "
        f"{INSTEAD[found.attrs['replacement']]}: blue where the score rises without it, vermillion "
        f"where it falls. Marked are heads whose change is more than chance (q < 0.05, corrected "
        f"for {many} heads by Benjamini and Hochberg): {_told(counts)}. (b) The score without each "
        f"whole layer, bars from the score of the whole model ({score_text(found)}); 95 % "
        f"intervals of the difference, paired bootstrap over examples; n = {n:,} examples. After "
        "Kovaleva et al. (2019), Figures 8 and 9."
    )


def loss_caption(tree: xr.DataTree) -> str:
    """How to read the figure."""
    found = group(tree, "ablation")
    assert found is not None
    counts, n = verdict_counts(found, "loss_verdict"), found.sizes["example"]
    kind = "squared error" if not found.attrs["classes"] else "cross-entropy"
    return (
        f"By how much the loss, the mean {kind}, falls without a head (a) or layer (b): blue where "
        f"the model gets better, vermillion where it gets worse. The loss moves with the certainty "
        f"of every answer, so it may tell more heads from chance than a score: {_told(counts)} "
        f"(q < 0.05, corrected as for the score). Whole model {float(found['baseline_loss']):.3f}; "
        f"95 % intervals by the normal approximation; n = {n:,} examples."
    )


def score_tick(result: xr.Dataset) -> Callable[[float, object], str]:
    """How a score is written on an axis."""
    if in_percent(result):
        return lambda score, _: f"{100 * score:g} %"
    return lambda score, _: fixed(score, 2)


def _grid(title: str, found: xr.Dataset, variable: str, verdict: str, *, unit: str) -> Panel:
    values = np.asarray(found[variable].values, np.float64)
    if variable == "loss_difference":
        values = -values  # as in the other figure, up is better
    layers, heads = values.shape
    signs = np.zeros(values.shape)
    for word, sign in SIGNS.items():
        signs[found[verdict].values == word] = sign
    draw = partial(_draw_grid, values, signs, unit=unit)
    return Panel(title, draw, height=0.3 + 0.8 * layers / heads)


def _draw_grid(values: Floats, signs: Floats, axes: Axes, *, unit: str) -> None:
    top = signed_top(values)
    scale = 100 if unit == "points" else 1
    shown = fixed(scale * top, 1 if unit == "points" else 2 if top >= 0.1 else 3)
    text = f"{shown} {unit}".strip()
    signed_grid(axes, values, top=top, low_text=f"−{shown}", high_text=text)
    sign_marks(axes, signs, values / top)


def _layers(found: xr.Dataset, axes: Axes) -> None:
    """Bars from the baseline up or down, on the scale of the score."""
    base, apart = float(found["baseline"]), estimate(found, "layer_difference")
    _bars(axes, apart, base)
    axes.axhline(base, color=color("ink"), lw=0.8, zorder=4)
    axes.annotate(
        "whole model", (1, base), (1.02, base), xycoords=("axes fraction", "data"),
        textcoords=("axes fraction", "data"), va="center", fontsize=7, annotation_clip=False,
    )  # fmt: skip
    axes.set_ylabel(metric_name(found))
    axes.yaxis.set_major_formatter(FuncFormatter(score_tick(found)))


def _layer_losses(found: xr.Dataset, axes: Axes) -> None:
    rise = estimate(found, "layer_loss_difference")
    _bars(axes, Estimate(-rise.value, -rise.high, -rise.low), 0.0)
    axes.axhline(0, color=color("ink"), lw=0.8, zorder=4)
    axes.set_ylabel("fall of the loss")


def _bars(axes: Axes, apart: Estimate, base: float) -> None:
    """Signed bars [layer] with whiskers; the axis holds what is drawn and the baseline."""
    at = np.arange(len(apart.value))
    for sign, hue in HUES.items():
        some = np.sign(apart.value) == sign
        axes.bar(at[some], apart.value[some], WIDTH, base, color=color(hue), lw=0, zorder=2)
    axes.vlines(at, base + apart.low, base + apart.high, color=color("ink"), lw=0.8, zorder=3)
    layer_axis(axes, len(at))
    ends = np.concatenate([apart.value, apart.low, apart.high, [0.0]])
    low, high = base + np.nanmin(ends), base + np.nanmax(ends)
    room = 0.08 * ((high - low) or 0.1)
    axes.set_ylim(low - room, high + room)
    axes.yaxis.set_major_locator(MaxNLocator(5))
    faint_grid(axes)


def _told(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {word}" for word, count in counts.items())


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


PICTURE = Picture("ablation", "Scores without heads", ("ablation",), panels, caption)
LOSS = Picture("ablation_loss", "Losses without heads", ("ablation",), loss_panels, loss_caption)
FIGURES = (PICTURE, LOSS)
