"""Is large attention spent on tokens whose vectors are short?

Kobayashi et al. (2020), Table 2: attention against the value norm of the token attended to,
for every pair of tokens, by category of the token attended to.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt
import xarray as xr
from matplotlib.axes import Axes

from headscope.core.results import Floats, estimate, group
from headscope.draw.caption_words import INTERVALS, over, special, with_interval
from headscope.draw.marks import bin_edges, cells, doubling_axis, log_axis
from headscope.draw.panel import Panel, Picture
from headscope.draw.style import color

HISTOGRAM = "attention_value_norm_histogram"
SPEARMAN = "spearman_attention_value_norm"
RARE = 1e-3  # share of the pairs below which a bin is not worth the space


def panels(tree: xr.DataTree) -> list[Panel]:
    """One panel per category that has pairs."""
    norms = group(tree, "norms")
    if norms is None or HISTOGRAM not in norms:
        return []
    window = _window(norms)
    return [
        Panel(
            f"To {special(tree, category)}",
            partial(_draw, norms, category, window),
            height=1.05,
            key_above=True,
        )
        for category in norms["category"].values.tolist()
        if float(norms[HISTOGRAM].sel(category=category).sum()) > 0
    ]


def caption(tree: xr.DataTree) -> str:
    """How to read the figure."""
    norms = group(tree, "norms")
    pairs = float(norms[HISTOGRAM].sum()) if norms is not None and HISTOGRAM in norms else 0
    rho = norms[SPEARMAN].attrs.get("long_name", "") if norms is not None else ""
    return (
        "Pairs of tokens over heads and layers: attention α across, value norm ‖f(x)‖ of the token "
        "attended to upwards, darker where more pairs fall (square-root scale, each panel to its "
        "own maximum); the line is the median norm at each weight. A falling line and a negative "
        f"ρ mean that the norm cancels the weight. ρ: {rho or 'Spearman correlation'}; "
        f"{INTERVALS}; {pairs:,.0f} pairs, {over(tree)}. After Kobayashi et al. (2020), Table 2."
    )


def medians(counts: Floats, borders: Floats) -> Floats:
    """The median norm of each attention bin; NaN where fewer than RARE of the pairs fall.

    counts   [attention_bin, value_norm_bin]
    borders  [value_norm_bin + 1]; inside a bin, pairs are taken as evenly spread
    """
    total = counts.sum(axis=1)
    found = np.full(len(counts), np.nan)
    for row in np.flatnonzero(total > RARE * total.sum()):
        share = np.concatenate([[0.0], counts[row].cumsum() / total[row]])
        found[row] = np.interp(0.5, share, borders)
    return found


def _window(norms: xr.Dataset) -> tuple[slice, slice]:
    """The bins from the first to the last that hold more than RARE of the pairs of a category."""
    counts = norms[HISTOGRAM].transpose("category", "attention_bin", "value_norm_bin").values
    share = counts / np.maximum(counts.sum(axis=(1, 2), keepdims=True), 1)
    weights, lengths = share.sum(axis=2).max(axis=0), share.sum(axis=1).max(axis=0)
    return _span(weights > RARE), _span(lengths > RARE)


def _span(chosen: npt.NDArray[np.bool_]) -> slice:
    there = np.flatnonzero(chosen)
    return slice(int(there[0]), int(there[-1]) + 1)


def _draw(norms: xr.Dataset, category: str, window: tuple[slice, slice], axes: Axes) -> None:
    table = norms[HISTOGRAM].sel(category=category).transpose("attention_bin", "value_norm_bin")
    weights = bin_edges(table["attention_bin"].values.astype(np.float64))
    lengths = bin_edges(table["value_norm_bin"].values.astype(np.float64))
    counts = table.values[window].astype(np.float64)
    weights = weights[window[0].start : window[0].stop + 1]
    lengths = lengths[window[1].start : window[1].stop + 1]
    log_axis(axes, decades=2)
    doubling_axis(axes)
    cells(axes, weights, lengths, np.sqrt(counts.T / counts.max()), top=1.0)
    middles = np.sqrt(weights[1:] * weights[:-1])
    axes.plot(middles, medians(counts, lengths), color=color("vermillion"), lw=1.3)
    rho = estimate(norms, SPEARMAN, category=category)
    words = with_interval("ρ", float(rho.value), float(rho.low), float(rho.high))
    axes.text(0.0, 1.03, words, transform=axes.transAxes, fontsize=7)
    axes.set_xlabel("attention α")
    axes.set_ylabel("value norm ‖f(x)‖")


PICTURE = Picture(
    "cancellation", "Does the norm cancel the weight?", ("norms",), panels, caption, columns=4
)
