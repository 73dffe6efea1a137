"""Do the tokens that get the attention also contribute the most?

Kobayashi et al. (2020), Figure 3: by category of token and layer, the summed attention beside the
summed norm of what it brings in.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from headscope.analyses.norms import figure_cancellation, figure_frequency
from headscope.core.accumulators import Estimate
from headscope.core.results import estimate, group
from headscope.draw.caption_words import INTERVALS, over, special
from headscope.draw.marks import band_line, faint_grid, layer_axis, legend, over_heads, percent_axis
from headscope.draw.panel import Panel, Picture

CATEGORIES = ("cls", "sep", "punctuation", "other")


def panels(tree: xr.DataTree) -> list[Panel]:
    """Attention; weighted norm, mean over heads; norm of the sum over heads."""
    norms = group(tree, "norms")
    if norms is None:
        return []
    wanted = [
        ("attention", "Weight α"),
        ("weighted_norm", "Weighted norm ‖αf(x)‖"),
        ("layer_weighted_norm", "All heads together ‖Σαf(x)‖"),
    ]
    return [
        Panel(title, partial(_draw, tree, norms, variable), height=0.82)
        for variable, title in wanted
        if variable in norms
    ]


def caption(tree: xr.DataTree) -> str:
    """How to read the figure."""
    norms = group(tree, "norms")
    array = None if norms is None else norms["weighted_norm"]
    return (
        "(a) Attention to each category of token, (b) the norm of what it adds, both summed over "
        "the category’s tokens, mean over heads, (c) the norm of the sum over heads: much weight "
        "on a token need not mean that it contributes. Norms are in the model’s own unit; bands: "
        f"{INTERVALS}, in (a) and (b) the mean of the heads’ limits, which is at least as wide as "
        f"the mean’s own; {over(tree, array)}. After Kobayashi et al. (2020), Figure 3."
    )


def present(norms: xr.Dataset, variable: str) -> list[str]:
    """The categories that have any number."""
    return [
        category
        for category in CATEGORIES
        if np.isfinite(estimate(norms, variable, category=category).value).any()
    ]


def mean_of_heads(parts: Estimate) -> Estimate:
    """[layer] from [layer, head]; the mean of the limits bounds the interval of the mean."""
    if parts.value.ndim == 1:
        return parts
    return Estimate(over_heads(parts.value), over_heads(parts.low), over_heads(parts.high))


def _draw(tree: xr.DataTree, norms: xr.Dataset, variable: str, axes: Axes) -> None:
    there = present(norms, variable)
    for category in there:
        parts = mean_of_heads(estimate(norms, variable, category=category))
        band_line(axes, np.arange(len(parts.value), dtype=float), parts, category)
    layer_axis(axes, len(parts.value))
    if variable == "attention":
        percent_axis(axes, "attention", top=1.0)
    else:
        axes.set_ylabel("norm")
        axes.set_ylim(0)
        faint_grid(axes)
    legend(axes, [(category, special(tree, category)) for category in there])


PICTURE = Picture(
    "weight_against_norm", "Weight against norm", ("norms",), panels, caption, columns=3
)
FIGURES = (PICTURE, figure_cancellation.PICTURE, figure_frequency.PICTURE)
