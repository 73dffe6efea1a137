"""Do the heads of one layer attend alike, more than heads of different layers?"""

from __future__ import annotations

from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from headscope.analyses.divergence.layer_claim import has_layers, layers_verdict
from headscope.analyses.divergence.layers_alike import PERMUTATIONS
from headscope.core.results import estimate, group
from headscope.draw.caption_words import INTERVALS, over
from headscope.draw.marks import band_line, faint_grid, legend
from headscope.draw.panel import Panel, Picture
from headscope.draw.style import color

ROWS = ("same layer", "neighbouring layer", "farther layer")


def panels(tree: xr.DataTree) -> list[Panel]:
    """Divergence by distance of layers, and where the most alike head is."""
    divergence = group(tree, "divergence")
    if divergence is None or not has_layers(tree):
        return []
    return [
        Panel("Farther layers, less alike?", partial(_gaps, divergence), height=0.7),
        Panel("Where the most alike head is", partial(_nearest, divergence), height=0.7),
    ]


def caption(tree: xr.DataTree) -> str:
    """How to read the figure, and what held."""
    return (
        "(a) Mean divergence of two heads by the distance of their layers, 0 in the same layer; "
        "dashed, what it is over all pairs, whatever their layers. (b) Share of heads whose most "
        "alike head is in the same, a neighbouring or a farther layer, and what chance gives. "
        f"Bands and whiskers are {INTERVALS}; p: layers dealt out anew among the heads, "
        f"{PERMUTATIONS} times. {layers_verdict(tree)} {over(tree)}. Clark et al. (2019), §6, saw "
        "heads of a layer near each other on the map of BERT."
    )


def _gaps(divergence: xr.Dataset, axes: Axes) -> None:
    gaps = estimate(divergence, "js_by_layer_gap")
    js = divergence["js"].values
    mean = float(js[np.triu_indices(len(js), 1)].mean())
    axes.axhline(mean, color=color("muted"), lw=0.8, ls=(0, (4, 2)))
    band_line(axes, np.arange(len(gaps.value), dtype=np.float64), gaps, "all")
    axes.set_ylim(0)
    axes.set_xticks(range(0, len(gaps.value), 1 if len(gaps.value) <= 12 else 4))
    axes.set_xlabel("layers apart")
    axes.set_ylabel(f"divergence ({divergence['js'].attrs.get('units', 'nats')})")
    faint_grid(axes)


def _nearest(divergence: xr.Dataset, axes: Axes) -> None:
    found = estimate(divergence, "nearest_layer")
    chance = divergence["nearest_chance"].values
    rows = np.arange(len(ROWS))
    axes.hlines(rows, found.low, found.high, color=color("all"), lw=2.2, alpha=0.35)
    axes.plot(found.value, rows, "o", color=color("all"), ms=5, mew=0, zorder=4)
    axes.plot(chance, rows, "D", color=color("chance"), ms=4, mew=0, zorder=3)
    axes.set_yticks(rows, ROWS)
    axes.set_ylim(len(ROWS) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0, 1.1 * float(max(np.nanmax(found.value), np.nanmax(chance))))
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    axes.set_xlabel("of all heads")
    legend(axes, [("all", "found"), ("chance", "by chance")], line=False, start=0.0)


PICTURE = Picture(
    "layers_alike", "Are the heads of a layer alike?", ("divergence",), panels, caption, columns=2
)
