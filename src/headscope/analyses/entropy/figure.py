"""How widely does each layer spread its attention?

Clark et al. (2019), Figure 4: entropy of every head over its layer, for all tokens and for [CLS],
against what uniform attention would give.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from headscope.core.results import estimate, needed
from headscope.draw.caption_words import INTERVALS, over, special
from headscope.draw.marks import faint_grid, head_scatter, layer_axis, mean_line
from headscope.draw.panel import Panel, Picture
from headscope.draw.style import color


def panels(tree: xr.DataTree) -> list[Panel]:
    """One panel per kind of query: all tokens; [CLS] where there is one."""
    entropy = needed(tree, "entropy")
    wanted = [("all", "From all tokens"), ("cls", f"From {special(tree, 'cls')} only")]
    return [
        Panel(title, partial(_draw, entropy, query), height=0.66)
        for query, title in wanted
        if np.isfinite(estimate(entropy, "entropy", query=query).value).any()
    ]


def caption(tree: xr.DataTree) -> str:
    """How to read the figure."""
    array = needed(tree, "entropy")["entropy"]
    return (
        "Each mark is one head: the entropy of its attention in nats, mean over tokens, then "
        "documents; high is broad, low is focused; the line is the layer mean, the dashed line "
        f"uniform attention; whiskers are {INTERVALS}; {over(tree, array)}. "
        "After Clark et al. (2019), Figure 4."
    )


def _draw(entropy: xr.Dataset, query: str, axes: Axes) -> None:
    parts = estimate(entropy, "entropy", query=query)
    layers = len(parts.value)
    head_scatter(axes, parts, query if query == "cls" else "all")
    mean_line(axes, parts.value, query if query == "cls" else "all")
    uniform = float(entropy["uniform"])
    axes.axhline(uniform, color=color("muted"), ls=(0, (4, 2)), lw=0.9)
    note: dict[str, Any] = {"ha": "right", "va": "bottom", "fontsize": 6.5, "color": color("muted")}
    axes.text(layers - 0.5, uniform * 1.01, f"uniform {uniform:.2f}", **note)
    layer_axis(axes, layers)
    axes.set_ylim(0, uniform * 1.12)
    axes.set_ylabel("entropy (nats)")
    faint_grid(axes)


PICTURE = Picture(
    "entropy_by_layer", "How widely each layer looks", ("entropy",), panels, caption, columns=2
)
FIGURES = (PICTURE,)
