"""How much of the tree do hidden states hold, layer by layer (Hewitt and Manning 2019)?"""

from __future__ import annotations

from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from headscope.core.results import estimate, group
from headscope.draw.marks import LineEnd, band_line, end_labels, layer_axis, percent_axis
from headscope.draw.panel import Panel, Picture
from headscope.draw.style import marker
from headscope.experiments.probes.findings import INTERVALS, best_layer, sentences_text

SHARES = {"structural_uuas": ("strongest", "UUAS"), "structural_root": ("mean", "root")}
RANKS = {
    "structural_distance": ("strongest", "distances"), "structural_depth": ("mean", "depths"),
}  # fmt: skip


def panels(tree: xr.DataTree) -> list[Panel]:
    """Shares, and rank correlations."""
    found = group(tree, "probes")
    if found is None or best_layer(found) is None:
        return []
    return [
        Panel("Arcs and roots found", partial(_draw, found, SHARES, "share"), height=0.72),
        Panel("Order of distances and depths", partial(_draw, found, RANKS, "ρ"), height=0.72),
    ]


def caption(tree: xr.DataTree) -> str:
    """How to read the figure."""
    found = group(tree, "probes")
    assert found is not None
    return (
        "The structural probe on the output of each layer. (a) UUAS: the share of arcs, whichever "
        "end is the head, in the minimum spanning tree of the predicted distances, without "
        "punctuation; root: the share of sentences whose least deep word is the root. (b) "
        "Spearman’s ρ of predicted and true distances, and depths, as means over lengths from 5 to "
        f"50 words; bands are {INTERVALS}; {sentences_text(found)}. After Hewitt and Manning "
        "(2019)."
    )


def _draw(found: xr.Dataset, lines: dict[str, tuple[str, str]], label: str, axes: Axes) -> None:
    ends = []
    layers = np.arange(found.sizes["layer"], dtype=np.float64)
    for variable, (word, text) in lines.items():
        parts = estimate(found, variable)
        band_line(axes, layers, parts, word)
        last = float(parts.value[np.isfinite(parts.value)][-1])
        ends.append(LineEnd(last, text, word, marker(word)))
    layer_axis(axes, len(layers))
    percent_axis(axes, label, top=1.0)
    if label == "ρ":  # which may be below 0
        axes.set_ylim(min(0.0, *(float(np.nanmin(found[x])) - 0.05 for x in lines)), 1)
        axes.yaxis.set_major_formatter("{x:.1f}")
    end_labels(axes, ends, top=1.0)


PICTURE = Picture("structural", "Trees in hidden states", ("probes",), panels, caption)
