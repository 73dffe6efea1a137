"""Rows and grids of marks: columns of text beside an axis, and values below and above 0."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.offsetbox import AnnotationBbox, DrawingArea, HPacker, TextArea
from matplotlib.patches import Rectangle
from matplotlib.path import Path
from matplotlib.ticker import FuncFormatter, MaxNLocator

from headscope.core.accumulators import Estimate
from headscope.core.results import Floats
from headscope.draw.arcs import text_width
from headscope.draw.head_grid import FEW
from headscope.draw.marks import KEY_BELOW, KEY_SIZE
from headscope.draw.style import SINGLE, color, house_style, marker

ROW = 0.155  # inches
AROUND = 0.85  # inches that title, legend, axis and its label take
HEADER = -1.0  # the row above the first
LABEL = 7.0  # points of type
FAINT = 0.4  # opacity of what is not to stand out


def rows_height(count: float, *, width: float = SINGLE) -> float:
    """The height of a panel of so many rows, as a share of its width in inches."""
    return (AROUND + ROW * (count + 1)) / width


def column_start(texts: Iterable[str], at: float) -> float:
    """Where a right-aligned column at `at` begins, in points; see `beside`."""
    with house_style():  # its typeface gives the widths
        return at - max(text_width(text, LABEL) for text in texts)


def row_axes(axes: Axes, count: float, label: str, *, percent: bool = True) -> None:
    """Rows 0, 1, … from the top; an x axis from 0, in percent where the values are shares."""
    axes.set_ylim(count - 0.4, HEADER - 0.5)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
    if percent:
        axes.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.0f} %"))
    axes.set_xlabel(label)
    axes.grid(axis="x")
    axes.set_axisbelow(True)


def row_point(
    axes: Axes, row: float, parts: Estimate, word: str, *, faint: bool = False, hollow: bool = False
) -> None:
    """One mark with a whisker for its interval; nothing where there is no value."""
    shade, opacity = color(word), FAINT if faint else 1.0
    if not np.isfinite(parts.value):
        return
    if np.isfinite(parts.low) and np.isfinite(parts.high):
        axes.hlines(row, parts.low, parts.high, color=shade, lw=0.9, alpha=opacity, zorder=3)
    face = color("page") if hollow else shade
    axes.plot(
        [parts.value], [row], marker(word), color=face, mec=shade, mew=0.9 if hollow else 0,
        ms=3.6 if hollow else 4.2, alpha=opacity, zorder=4,
    )  # fmt: skip


def beside(
    axes: Axes,
    row: float,
    text: str,
    at: float,
    *,
    align: str = "right",
    faint: bool = False,
    **look: Any,
) -> None:
    """Text of a column beside the axes.

    at  points right of the right border, or, negative, left of the left border
    """  # fmt: skip
    axes.annotate(
        text, (float(at > 0), row), (at, 0), xycoords=("axes fraction", "data"),
        textcoords="offset points", ha=align, va="center", annotation_clip=False,
        color=color("muted" if faint else "ink"), **({"fontsize": LABEL} | look),
    )  # fmt: skip


STEPS = 12  # shades of each sign
HUES = {1: "blue", -1: "vermillion"}
GAP = 0.04  # of a cell, on each side
MARK_TURNS = 0.6  # of the ramp: from there on a page-coloured mark stands out more


def signed_grid(axes: Axes, values: Floats, *, top: float, low_text: str, high_text: str) -> None:
    """A heat map of values [layer, head], layers downwards, with its key below.

    top                  the size of the last shade; larger ones get it too
    low_text, high_text  the ends of the key, −top and top, as they are to be read
    """
    layers, heads = values.shape
    shade = np.ceil(np.clip(np.abs(np.nan_to_num(values)) / top, 0, 1) * STEPS).astype(int)
    for sign, hue in HUES.items():
        for level in range(1, STEPS + 1):
            there = np.argwhere((shade == level) & (np.sign(values) == sign))
            if len(there):
                path = Path.make_compound_path(*(_box(head, layer) for layer, head in there))
                shown = PathCollection([path], facecolors=color(hue), linewidths=0.0)
                shown.set_alpha(level / STEPS)
                axes.add_collection(shown)
    axes.set_xlim(-0.5, heads - 0.5)
    axes.set_ylim(layers - 0.5, -0.5)
    axes.set_aspect("equal", anchor="N")
    for setter, count in ((axes.set_xticks, heads), (axes.set_yticks, layers)):
        step = 1 if count <= FEW else 2 if count <= 2 * FEW else 4
        setter(range(0, count, step), [str(at + 1) for at in range(0, count, step)])
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set(visible=True, color=color("rule"))
    axes.set_xlabel("head", loc="left")
    axes.set_ylabel("layer")
    _key(axes, low_text, high_text)


def sign_marks(axes: Axes, signs: Floats, shares: Floats) -> None:
    """A + or a − on cells; signs [layer, head], 0 for none.

    shares  [layer, head] of the ramp that the cells have: on dark ones the mark is page
    """
    for layer, head in np.argwhere(signs != 0):
        text = "+" if signs[layer, head] > 0 else "−"
        shade = color("page" if abs(shares[layer, head]) > MARK_TURNS else "ink")
        axes.text(head, layer, text, ha="center", va="center_baseline", fontsize=7, color=shade)


def signed_top(values: Floats) -> float:
    """Where both ends of a signed ramp may stand: the largest size, or 1 where all are 0."""
    top = float(np.nan_to_num(np.abs(values)).max(initial=0))
    return top or 1.0


def _box(head: int, layer: int) -> Path:
    x0, x1, y0, y1 = head - 0.5 + GAP, head + 0.5 - GAP, layer - 0.5 + GAP, layer + 0.5 - GAP
    return Path([(x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0)], closed=True)


def _key(axes: Axes, low_text: str, high_text: str) -> None:
    """The ramp from its lowest shade over 0 to its highest, below the map."""
    width = 2 * KEY_SIZE[0]
    bar = DrawingArea(width, KEY_SIZE[1])
    step = width / (2 * STEPS)
    for at in range(2 * STEPS):
        level = at - STEPS + (at >= STEPS)
        hue = color(HUES[1 if level > 0 else -1])
        place = (at * step, 0)
        bar.add_artist(Rectangle(place, step, KEY_SIZE[1], fc=hue, alpha=abs(level) / STEPS, lw=0))
    words = [TextArea(text, textprops={"fontsize": 6.5}) for text in (low_text, high_text)]
    key = HPacker(children=[words[0], bar, words[1]], align="center", pad=0, sep=2)
    box = AnnotationBbox(
        key, (1, 0), xybox=(0, KEY_BELOW), xycoords="axes fraction", boxcoords="offset points",
        box_alignment=(1, 0.5), frameon=False, pad=0, annotation_clip=False,
    )  # fmt: skip
    box.set_in_layout(False)  # beside the axis label, which keeps the height
    axes.add_artist(box)
