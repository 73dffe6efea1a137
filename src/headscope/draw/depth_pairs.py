"""Draw pairs of heads of two models by the depth of their layers."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator

from headscope.claims.caption_words import clipped
from headscope.core.accumulators import Bools, Float64, Ints
from headscope.draw.marks import faint_grid
from headscope.draw.style import color

AREA = 11  # square points of a pair of heads
LONGEST = 30  # characters of a model's name
SURE, OTHER = "blue", "grey"


def draw_depth_pairs(
    axes: Axes,
    places: Ints | Float64,
    layers: tuple[int, int],
    alike: Bools,
    models: tuple[str, str],
) -> None:
    """One circle for all pairs of heads of the same two depths; its area is how many they are.

    Depth goes from 0, the first layer, to 1, the last.

    places  [pair, model] of the layers, from 0
    layers  [model] how many each has
    alike   [pair] whether both surely do the same: blue and filled; others are grey circles
    models  their names
    """
    depths = places / np.maximum(np.array(layers) - 1, 1)
    axes.plot([0, 1], [0, 1], color=color("rule"), lw=0.8, zorder=1)
    for chosen, hue in ((~alike, OTHER), (alike, SURE)):
        circles, counts = np.unique(depths[chosen], axis=0, return_counts=True)
        across, up = circles.T
        axes.scatter(
            across,
            up,
            s=AREA * counts,
            facecolor=color(hue) if hue == SURE else "none",
            edgecolor=color(hue),
            lw=0.7,
            alpha=0.8,
            clip_on=False,
            zorder=2 + (hue == SURE),
        )
    for axis, name in zip((axes.xaxis, axes.yaxis), models, strict=True):
        axis.set_major_locator(FixedLocator([0, 0.25, 0.5, 0.75, 1]))
        axis.set_major_formatter(lambda depth, _: f"{depth:g}")
        axis.set_label_text(f"depth in {clipped(name, LONGEST)}")
    axes.set_xlim(-0.03, 1.03)
    axes.set_ylim(-0.03, 1.03)
    faint_grid(axes)


def depth_pair_handles(sure: str, other: str) -> list[Line2D]:
    """Entries of a legend: what blue and grey circles are."""
    return [
        Line2D([], [], color=color(hue), label=label, marker="o", ms=4, mew=0.7, ls="", mfc=inside)
        for hue, label, inside in ((SURE, sure, color(SURE)), (OTHER, other, color("page")))
    ]
