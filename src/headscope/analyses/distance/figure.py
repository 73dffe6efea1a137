"""How far do heads look, layer by layer and head by head?"""

from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from headscope.core.results import estimate, needed
from headscope.core.wording import number, percent
from headscope.draw.caption_words import INTERVALS, over
from headscope.draw.marks import (
    head_scatter,
    layer_axis,
    legend,
    mean_line,
    percent_axis,
    value_axis,
)
from headscope.draw.panel import Panel, Picture
from headscope.draw.style import color, layer_colors
from headscope.page.sections import SectionPlan

LOOKS = ("previous", "next")  # of two sides, of two windows


def _windows(dataset: xr.Dataset) -> list[str]:
    """Those that some input is long enough for."""
    names = [str(name) for name in dataset["window"].values]
    return [w for w in names if np.isfinite(estimate(dataset, "streaming", window=w).value).any()]


def _panels(tree: xr.DataTree) -> list[Panel]:
    dataset = needed(tree, "distance")
    panels = [
        Panel("Mean distance", partial(_draw_mean, dataset), height=0.82),
        Panel("Attention within a distance", partial(_draw_profiles, dataset), height=0.82),
    ]
    if np.isfinite(dataset["side_share"].values).any():
        draw = partial(_draw_two, dataset, "side_share", ["before", "after"], 0.5)
        panels.append(Panel("Before and after", draw, height=0.82))
    elif there := _windows(dataset):
        even = float(estimate(dataset, "uniform_streaming", window=there[0]).value)
        draw = partial(_draw_two, dataset, "streaming", there, even)
        panels.append(Panel("First and latest tokens", draw, height=0.82))
    return panels


def _caption(tree: xr.DataTree) -> str:
    dataset = needed(tree, "distance")
    last = ""
    if np.isfinite(dataset["side_share"].values).any():
        last = "; (c) attention to all tokens before and all after"
    elif there := _windows(dataset):
        last = "; (c) what the first and the latest tokens get together (4+64: the first 4, the "
        last += f"latest 64), from tokens that see more; dashed: uniform attention ({there[0]})"
    return (
        "(a) How far tokens look, each mark one head, the line the layer mean, dashed uniform "
        "attention; (b) how much of its attention stays within a distance, one line a head, darker "
        f"for later layers, dashed likewise{last}; means over documents; whiskers are {INTERVALS}; "
        f"{over(tree, dataset['nearby'])}."
    )


def _draw_mean(dataset: xr.Dataset, axes: Axes) -> None:
    parts, uniform = estimate(dataset, "mean_distance"), float(dataset["uniform_distance"])
    head_scatter(axes, parts, "all")
    mean_line(axes, parts.value, "all")
    layers = len(parts.value)
    axes.axhline(uniform, color=color("muted"), ls=(0, (4, 2)), lw=0.9)
    layer_axis(axes, layers)
    value_axis(axes, "distance (tokens)")


def _draw_profiles(dataset: xr.Dataset, axes: Axes) -> None:
    profile, even = (estimate(dataset, name).value for name in ("profile", "uniform_profile"))
    there = np.isfinite(even)
    within = profile[..., there].cumsum(-1)  # [layer, head, distance]
    at = np.arange(there.sum())
    for heads, shade in zip(within, layer_colors(len(within)), strict=True):
        lines = LineCollection([np.stack([at, one], -1) for one in heads])
        lines.set(color=shade, linewidth=0.6, alpha=0.5)
        axes.add_collection(lines)
    axes.plot(at, even[there].cumsum(), color=color("vermillion"), ls=(0, (4, 2)), lw=1.4, zorder=3)
    step = 1 if len(at) <= 7 else 2
    last = [*dataset["distance"].values[1:][there[1:]] - 1, dataset["distance"].values[there][-1]]
    axes.set_xticks(at[:-1:step], [f"{name:,}" for name in last[:-1:step]])
    axes.set_xlabel("distance (tokens)")
    percent_axis(axes, "attention within", top=1.0)
    axes.set_xlim(0, at[-1])


def _draw_two(
    dataset: xr.Dataset, variable: str, names: list[str], even: float, axes: Axes
) -> None:
    looks, dim = list(zip(LOOKS, names, strict=False)), str(dataset[variable].dims[-1])
    for (word, name), shift in zip(looks, (-0.12, 0.12), strict=False):
        parts = estimate(dataset, variable, **{dim: name})
        head_scatter(axes, parts, word, shift=shift)
        mean_line(axes, parts.value, word, shift=shift)
    axes.axhline(even, color=color("muted"), ls=(0, (4, 2)), lw=0.9)
    layer_axis(axes, len(parts.value))
    percent_axis(axes, "attention", top=1.0)
    legend(axes, looks)


PICTURE = Picture("distance", "How far heads look", ("distance",), _panels, _caption, columns=3)
FIGURES = (PICTURE,)


def _finding(tree: xr.DataTree) -> str:
    dataset = needed(tree, "distance")
    half = estimate(dataset, "distance_quantile", quantile=0.5).value
    if not np.isfinite(half).any():
        return ""
    said = f"Half of a mean head’s attention stays within {number(float(np.nanmean(half)))} tokens"
    if there := _windows(dataset):
        share = float(np.nanmean(estimate(dataset, "streaming", window=there[0]).value))
        first, last = there[0].split("+")
        return f"{said}; the first {first} and latest {last} tokens get {percent(share)}."
    return f"{said}; its mean distance is {number(float(dataset['mean_distance'].mean()))}."


SECTIONS = (
    SectionPlan(
        finding=_finding,
        id="distance", title="How far heads look", pictures=("distance",),
        text="Some heads work within a phrase, others reach over the whole input. A head whose "
        "attention is near, or rests on the first tokens, needs little memory; one above the "
        "dashed line looks farther than chance.",
    ),
)  # fmt: skip
