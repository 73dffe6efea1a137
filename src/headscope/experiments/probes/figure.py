"""How many heads of words does each probe find, and how many after fewer sentences?

Clark et al. (2019), Table 3, as a picture; the learning curve is ours.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from headscope.core.dictionary import name as plain_name
from headscope.core.results import estimate, group
from headscope.draw.marks import LineEnd, end_labels, legend, percent_axis
from headscope.draw.panel import Panel, Picture
from headscope.draw.rows import HEADER, beside, column_start, row_axes, row_point, rows_height
from headscope.draw.style import DASHES, color
from headscope.experiments.probes import figure_heads, figure_structural
from headscope.experiments.probes.findings import INTERVALS, sentences_text, share

AT = -5.0  # points left of the axes, where a row's name ends
LINES = {
    "right_branching": ("grey", "o"),
    "attention": ("sky", "s"),
    "attention_words": ("blue", "D"),
    "distances_words": ("orange", "^"),
    "random_words": ("purple", "v"),
}


def panels(tree: xr.DataTree) -> list[Panel]:
    """The scores, and the curve where there is one."""
    found = group(tree, "probes")
    if found is None or "uas" not in found:
        return []
    names = [plain_name(str(name)) for name in found["probe"].values]
    height = rows_height(len(names) + 1)
    left = column_start(names, AT)
    shown = [Panel("Heads found by each probe", partial(_rows, found), height=height, left=left)]
    if "curve" in found:
        shown.append(Panel("By sentences trained on", partial(_curve, found), height=0.8))
    return shown


def caption(tree: xr.DataTree) -> str:
    """How to read the figure."""
    found = group(tree, "probes")
    assert found is not None
    curve = (
        " (b) UAS after training on fewer sentences, from one seed; bands are intervals."
        if "curve" in found
        else ""
    )
    return (
        f"{'(a) ' if curve else ''}UAS: the share of words whose syntactic head a probe finds; "
        "UUAS: the share of arcs, whichever end is the head, in the best undirected tree; both "
        f"without punctuation; whiskers are {INTERVALS}; {sentences_text(found)}.{curve} "
        "After Clark et al. (2019), Table 3."
    )


def _rows(found: xr.Dataset, axes: Axes) -> None:
    names = [str(name) for name in found["probe"].values]
    beside(axes, HEADER, "probe", AT, faint=True, fontsize=6.5)
    for row, name in enumerate(names):
        beside(axes, row, plain_name(name), AT)
        row_point(axes, row, estimate(found, "uuas", probe=name), "offset")
        row_point(axes, row, estimate(found, "uas", probe=name), "best_head")
        text = share(found, "uas", name).partition(" %")[0]
        beside(axes, row, text, 22.0)
    beside(axes, HEADER, "UAS", 22.0, faint=True, fontsize=6.5)
    row_axes(axes, len(names), "share found")
    axes.set_xlim(0, 1)
    start = column_start(map(plain_name, names), AT)
    legend(axes, [("best_head", "UAS"), ("offset", "UUAS")], line=False, start=start)


def _curve(found: xr.Dataset, axes: Axes) -> None:
    sizes = found["size"].values.astype(float)
    ends, most = [], 0.0
    for dash, name in zip(DASHES, map(str, found["probe"].values), strict=False):
        hue, mark = LINES[name]
        parts = estimate(found, "curve", probe=name)
        there = np.isfinite(parts.value)
        if not there.any():  # a rule learns nothing
            value = float(estimate(found, "uas", probe=name).value)
            axes.axhline(value, color=color(hue), lw=1.0, ls=dash)
            last, mark = value, "_"
        else:
            shade = color(hue)
            axes.fill_between(sizes[there], parts.low[there], parts.high[there], color=shade,
                              alpha=0.18, lw=0)  # fmt: skip
            axes.plot(sizes[there], parts.value[there], ls=dash, color=shade, marker=mark, ms=3.2,
                      mew=0)  # fmt: skip
            last = float(parts.value[there][-1])
        ends.append(LineEnd(last, plain_name(name), hue, mark))
        most = max(most, last, float(np.nan_to_num(parts.high).max()))
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(sizes.tolist()))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: f"{size:,.0f}"))
    axes.set_xlabel("sentences trained on")
    top = min(1.0, 1.1 * most)
    percent_axis(axes, "UAS", top=top)
    end_labels(axes, ends, top=top)


PICTURE: Picture = Picture("probes", "What probes find", ("probes",), panels, caption)
FIGURES = (PICTURE, figure_heads.PICTURE, figure_structural.PICTURE)
