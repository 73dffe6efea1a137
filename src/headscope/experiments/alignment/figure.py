"""Draws which layers and heads align words, and how long their vectors are."""

from __future__ import annotations

from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from headscope.core.results import estimate, group
from headscope.draw.caption_words import over, with_interval
from headscope.draw.marks import (
    LineEnd,
    band_line,
    end_labels,
    faint_grid,
    layer_axis,
    percent_axis,
)
from headscope.draw.panel import Panel, Picture
from headscope.draw.style import color, marker

LINES = {"weight": ("mean", "weights"), "norm": ("strongest", "norms")}
TITLES = {"AWO": "the word generated (AWO)", "AWI": "the word read (AWI)"}


def panels(tree: xr.DataTree) -> list[Panel]:
    """Layers, then heads, for each setting."""
    alignment = group(tree, "alignment")
    if alignment is None:
        return []
    layers = [
        Panel(f"Layers: {TITLES[setting]}", partial(_layers, alignment, setting))
        for setting in TITLES
    ]
    heads = [
        Panel(f"Heads: {TITLES[setting]}", partial(_heads, alignment, setting))
        for setting in TITLES
    ]
    return [*layers, *heads]


def caption(tree: xr.DataTree) -> str:
    """How to read the figure."""
    return (
        "Alignment error rate (0 % is perfect) of cross-attention. (a, b) Of each layer: links by "
        "the mean weight of its heads, and by the norm of the sum of their weighted vectors. "
        "(c, d) Of each head by norms, against its mean norm ‖αf(x)‖, and Spearman’s ρ. Bands, "
        "whiskers and brackets: 95 % intervals, bootstrap over sentence pairs; "
        f"{over(tree)}. After Kobayashi et al. (2020), Table 3."
    )


def _layers(alignment: xr.Dataset, setting: str, axes: Axes) -> None:
    layers = np.arange(alignment.sizes["layer"], dtype=np.float64)
    ends = []
    for measure, (word, text) in LINES.items():
        parts = estimate(alignment, "layer_aer", setting=setting, measure=measure)
        band_line(axes, layers, parts, word)
        ends.append(LineEnd(float(parts.value[-1]), text, word, marker(word)))
    layer_axis(axes, len(layers))
    percent_axis(axes, "alignment error rate", top=1.0)
    end_labels(axes, ends, top=1.0)


def _heads(alignment: xr.Dataset, setting: str, axes: Axes) -> None:
    norm = estimate(alignment, "mean_norm")
    aer = estimate(alignment, "aer", setting=setting, measure="norm")
    word, _ = LINES["norm"]
    x = norm.value.ravel()  # [unit]
    axes.vlines(x, aer.low.ravel(), aer.high.ravel(), color=color(word), lw=0.7, alpha=0.35)
    axes.plot(x, aer.value.ravel(), marker(word), color=color(word), ms=3.6, mew=0)
    axes.set_xlabel("mean norm ‖αf(x)‖")
    axes.set_xlim(0, 1.05 * float(x.max()) or 1.0)
    percent_axis(axes, "alignment error rate", top=1.0)
    faint_grid(axes)
    rho = estimate(alignment, "spearman", setting=setting)
    words = with_interval("ρ", float(rho.value), float(rho.low), float(rho.high))
    axes.text(0.98, 0.05, words, transform=axes.transAxes, ha="right", fontsize=7)


PICTURE = Picture("alignment", "Which words does it align?", ("alignment",), panels, caption)
FIGURES = (PICTURE,)
