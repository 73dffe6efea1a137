"""How much of a token's new vector comes from other tokens?

Kobayashi et al. (2021): the mixing ratio by layer, for five ways to count, from attention weights
alone to the whole block with residual connection and layer normalisation.
"""

from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from headscope.core.caption_words import INTERVALS, over, special
from headscope.core.dictionary import name
from headscope.core.results import estimate, needed
from headscope.core.wording import percent
from headscope.draw.marks import LineEnd, band_line, end_labels, layer_axis, legend, percent_axis
from headscope.draw.panel import Panel, Picture
from headscope.draw.style import DASHES, color
from headscope.page.sections import SectionPlan

LINES = {
    "attn_w": ("grey", "o"),
    "attn_n": ("sky", "s"),
    "attnres_w": ("orange", "^"),
    "attnres_n": ("green", "v"),
    "attnresln_n": ("blue", "D"),
}


def _panels(tree: xr.DataTree) -> list[Panel]:
    mixing = needed(tree, "mixing")
    panels = [Panel("Share from other tokens", partial(_draw, mixing), height=0.8)]
    if "taken_share" in mixing:  # else a run of an older version
        panels.append(Panel("Of which tokens", partial(_draw_taken, tree, mixing), height=0.8))
    return panels


def _caption(tree: xr.DataTree) -> str:
    return (
        "(a) How much of each token’s new vector comes from the other tokens, mean over tokens: by "
        "attention weights (W) or norms (N), of attention alone, with the residual connection "
        "(Res), with layer normalisation (Ln). (b) From which tokens: shares of the summed "
        f"norms ‖Σαf(x)‖ of all heads together. Bands are {INTERVALS}; {over(tree)}. "
        "After Kobayashi et al. (2021)."
    )


def _draw(mixing: xr.Dataset, axes: Axes) -> None:
    ends = []
    for dash, (method, (hue, mark)) in zip(DASHES, LINES.items(), strict=True):
        parts = estimate(mixing, "ratio", variant=method)
        if not np.isfinite(parts.value).any():
            continue
        layers = np.arange(len(parts.value))
        axes.fill_between(layers, parts.low, parts.high, color=color(hue), alpha=0.18, lw=0)
        axes.plot(layers, parts.value, ls=dash, color=color(hue), marker=mark, ms=3.2, mew=0)
        last = parts.value[np.isfinite(parts.value)][-1]
        ends.append(LineEnd(float(last), name(method), hue, mark))
    layer_axis(axes, len(layers))
    percent_axis(axes, "mixing ratio", top=1.0)
    end_labels(axes, ends, top=1.0)


def _draw_taken(tree: xr.DataTree, mixing: xr.Dataset, axes: Axes) -> None:
    there = []
    for category in mixing["category"].values.tolist():
        parts = estimate(mixing, "taken_share", category=category)
        if np.isfinite(parts.value).any():
            there.append((category, special(tree, category)))
            band_line(axes, np.arange(len(parts.value), dtype=float), parts, category)
    layer_axis(axes, len(mixing["layer"]))
    percent_axis(axes, "share of what is taken", top=1.0)
    legend(axes, there)


PICTURE = Picture("mixing", "How much tokens are mixed", ("mixing",), _panels, _caption)
FIGURES = (PICTURE,)


def _finding(tree: xr.DataTree) -> str:
    mixing = needed(tree, "mixing")
    kinds = [kind for kind in ("attn_w", "attnresln_n") if kind in mixing["variant"]]
    values = [estimate(mixing, "ratio", variant=one).value for one in kinds]
    if len(values) < 2 or any(np.isnan(one).all() for one in values):
        return ""
    means = [float(np.nanmean(one)) for one in values]
    weights, whole = map(percent, means)
    return (
        f"Of a token’s new vector {whole} comes from other tokens, mean over layers; "
        f"by attention weights alone it seems {weights}."
    )


SECTIONS = (
    SectionPlan(
        finding=_finding,
        id="mixing",
        title="How much tokens are mixed",
        pictures=("mixing",),
        text="Attention weights alone make it look as if nearly everything came from other tokens. "
        "Counting the residual connection and layer normalisation shows how much of each token "
        "stays itself.",
    ),
)
