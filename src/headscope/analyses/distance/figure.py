"""How far do heads look, head by head and layer by layer?"""

from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from headscope.core.accumulators import finite_mean
from headscope.core.results import estimate, needed
from headscope.core.wording import number, percent
from headscope.draw.caption_words import over
from headscope.draw.head_grid import grid_panel
from headscope.draw.marks import percent_axis
from headscope.draw.panel import Panel, Picture
from headscope.draw.style import color, layer_colors
from headscope.page.sections import SectionPlan


def _window(dataset: xr.Dataset) -> str:
    """The smallest that some input is long enough for; '' for none."""
    names = [str(name) for name in dataset["window"].values]
    there = (w for w in names if np.isfinite(dataset["streaming"].sel(window=w)).any())
    return next(there, "")


def _panels(tree: xr.DataTree) -> list[Panel]:
    dataset = needed(tree, "distance")
    mean = dataset["mean_distance"].values
    panels = [
        grid_panel("Mean distance (tokens)", mean),
        Panel("Attention within a distance", partial(_draw_profiles, dataset), height=0.82),
    ]
    if window := _window(dataset):
        share = estimate(dataset, "streaming", window=window).value
        title = f"First and latest tokens ({window})"
        panels.append(grid_panel(title, share, unit="probability", top=1.0))
    return panels


def _caption(tree: xr.DataTree) -> str:
    dataset, last = needed(tree, "distance"), ""
    if window := _window(dataset):
        first, latest = window.split("+")
        share = float(estimate(dataset, "uniform_streaming", window=window).value)
        last = f", (c) what the first {first} and latest {latest} tokens get together from tokens "
        last += f"that see more than twice as many (uniform attention: {percent(share)})"
    even = number(float(dataset["uniform_distance"]))
    return (
        f"One cell a head: (a) how far it looks on the mean (uniform attention: {even} tokens)"
        f"{last}. (b) How much attention stays within a distance: one line a layer, the mean of "
        "its heads, darker for later layers; dashed: uniform attention. Means over inputs; "
        f"intervals stand in the tables; {over(tree, dataset['nearby'])}."
    )


def _draw_profiles(dataset: xr.Dataset, axes: Axes) -> None:
    even = dataset["uniform_profile"].values
    there = np.isfinite(even)
    within = finite_mean(dataset["profile"].values[..., there], 1).cumsum(-1)  # [layer, distance]
    at = np.arange(there.sum())
    for line, shade in zip(within, layer_colors(len(within)), strict=True):
        axes.plot(at, line, color=shade, lw=1.0)
    axes.plot(at, even[there].cumsum(), color=color("vermillion"), ls=(0, (4, 2)), lw=1.4, zorder=3)
    last = dataset["distance"].values[1:][there[:-1]] - 1
    step = 1 if len(at) <= 7 else 2
    axes.set_xticks(at[::step], [f"{name:,}" for name in last[::step]])
    axes.set_xlabel("distance (tokens)")
    percent_axis(axes, "attention within", top=1.0)
    axes.set_xlim(0, max(at[-1], 1))


PICTURE = Picture("distance", "How far heads look", ("distance",), _panels, _caption, columns=3)
FIGURES = (PICTURE,)


def _finding(tree: xr.DataTree) -> str:
    dataset = needed(tree, "distance")
    half = estimate(dataset, "distance_quantile", quantile=0.5).value
    if not np.isfinite(half).any():
        return ""
    said = f"Half of a mean head’s attention stays within {number(float(np.nanmean(half)))} tokens"
    if window := _window(dataset):
        share = float(np.nanmean(estimate(dataset, "streaming", window=window).value))
        first, last = window.split("+")
        return f"{said}; the first {first} and latest {last} tokens get {percent(share)}."
    return f"{said}; its mean distance is {number(float(dataset['mean_distance'].mean()))}."


SECTIONS = (
    SectionPlan(
        finding=_finding,
        id="distance",
        title="How far heads look",
        pictures=("distance",),
        text="Some heads work within a phrase, others reach over the whole input. A head whose "
        "attention is near, or rests on the first tokens, needs little of the input; a layer whose "
        "line is below the dashed one looks farther than uniform attention.",
    ),
)
