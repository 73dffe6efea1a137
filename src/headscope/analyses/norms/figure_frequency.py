"""Do rarer tokens get more: more attention, longer vectors?

Kobayashi et al. (2020), word frequency: value norm and received attention by frequency rank.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from headscope.core.results import estimate, group
from headscope.draw.caption_words import INTERVALS, over, with_interval
from headscope.draw.marks import band_line, faint_grid, log_axis
from headscope.draw.panel import Panel, Picture

PROFILE, SPEARMAN = "frequency_profile", "spearman_frequency"
WORDS = {
    "value_norm": ("Value norm by rank", "value norm ‖f(x)‖", "cls"),
    "attention": ("Received attention by rank", "mean attention received", "sep"),
}


def panels(tree: xr.DataTree) -> list[Panel]:
    """One panel per quantity."""
    norms = group(tree, "norms")
    if norms is None or PROFILE not in norms:
        return []
    return [
        Panel(WORDS[quantity][0], partial(_draw, norms, quantity), height=0.66)
        for quantity in WORDS
        if quantity in norms["quantity"].values
    ]


def caption(tree: xr.DataTree) -> str:
    """How to read the figure."""
    return (
        "Tokens grouped by frequency rank (1 = most frequent, doubling bins): mean over token "
        "occurrences, heads and layers of the value norm (model’s own unit) and of the attention "
        f"received per query (share); ρ: Spearman with rank over all occurrences; bands and "
        f"brackets: {INTERVALS}; {over(tree)}. After Kobayashi et al. (2020)."
    )


def _draw(norms: xr.Dataset, quantity: str, axes: Axes) -> None:
    _, label, word = WORDS[quantity]
    parts = estimate(norms, PROFILE, quantity=quantity)
    band_line(axes, norms["rank_bin"].values.astype(np.float64), parts, word)
    log_axis(axes)
    axes.set_xlabel("frequency rank")
    axes.set_ylabel(label)
    axes.set_ylim(0)
    faint_grid(axes)
    rho = estimate(norms, SPEARMAN, quantity=quantity)
    words = with_interval("ρ", float(rho.value), float(rho.low), float(rho.high))
    axes.text(0.98, 0.05, words, transform=axes.transAxes, ha="right", fontsize=7)


PICTURE = Picture("frequency", "Does frequency matter?", ("norms",), panels, caption, columns=2)
