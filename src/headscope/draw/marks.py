"""Draw the marks that figures share: bands, whiskers, axes of layers, grids of cells and keys."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.lines import Line2D
from matplotlib.offsetbox import AnnotationBbox, DrawingArea, HPacker, TextArea
from matplotlib.path import Path
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator
from matplotlib.transforms import ScaledTranslation

from headscope.core.accumulators import finite_mean
from headscope.core.head_names import HeadNames
from headscope.core.intervals import Estimate
from headscope.core.results import Floats
from headscope.draw.head_marks import note_heads, number_texts
from headscope.draw.panel import LEGEND_COLUMNS
from headscope.draw.style import RAMP_STEPS, color, marker, ramp

FEW, NAMED = 12, 8  # of more than FEW, at most NAMED have room for their numbers
KEY_SIZE = (26.0, 4.5)  # points
LINE_UNDER = 0.8  # points, of a line under the key
KEY_BELOW = -18.5  # points from the axes, beside the axis label
LABEL_GAP = 0.065  # between labels at line ends, of the axis' height
LEGEND_START = -22.0  # points right of the axes


def named_places(count: int) -> range:
    """The layers or heads that an axis names: all, or every second, third, … of more than FEW."""
    return range(0, count, 1 if count <= FEW else math.ceil(count / NAMED))


def layer_axis(axes: Axes, layers: int, names: HeadNames, *, label: bool = True) -> None:
    """An x axis of layers by their numbers."""
    named = named_places(layers)
    axes.set_xticks(named, [names.layer(at) for at in named])
    axes.set_xlim(-0.6, layers - 0.4)
    if label:
        axes.set_xlabel("layer")


def percent_axis(axes: Axes, label: str, *, top: float | None = None) -> None:
    """A y axis of shares, printed in percent, from 0."""
    axes.set_ylim(0, top)
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_formatter(share_tick)
    axes.set_ylabel(label)
    faint_grid(axes)


def share_tick(share: float, _: object) -> str:
    """How an axis writes a share: `40 %`."""
    return f"{100 * share:.0f} %"


def value_axis(axes: Axes, label: str, *, top: float | None = None) -> None:
    """A y axis of numbers, from 0."""
    axes.set_ylim(0, top)
    axes.set_ylabel(label)
    faint_grid(axes)


def faint_grid(axes: Axes) -> None:
    """Horizontal rules behind everything."""
    axes.grid(axis="y")
    axes.set_axisbelow(True)


def head_scatter(
    axes: Axes,
    parts: Estimate,
    word: str,
    *,
    shift: float = 0.0,
    unit: str = "1",
    series: str = "",
) -> None:
    """One mark per head over its layer, with a whisker for its interval; parts [layer, head].

    unit, series  of the number, and what it is, for a page that shows it of the head pointed at
    """
    layers, heads = parts.value.shape
    over = np.repeat(np.arange(layers), heads) + shift  # [layer*head]
    shade = color(word)
    axes.vlines(
        over, parts.low.ravel(), parts.high.ravel(), color=shade, lw=0.7, alpha=0.35, zorder=2
    )
    axes.plot(
        over, parts.value.ravel(), marker(word), color=shade, ms=3.2, mew=0, alpha=0.65, zorder=3
    )
    note_heads(axes, over, parts.value, number_texts(parts, unit), series=series)


def mean_line(axes: Axes, value: Floats, word: str, *, shift: float = 0.0) -> None:
    """The mean of the heads of each layer; value [layer, head]."""
    over = np.arange(len(value)) + shift
    axes.plot(over, finite_mean(value), "-", color=color(word), lw=1.5, zorder=4)


def band_line(axes: Axes, x: Floats, parts: Estimate, word: str) -> None:
    """A line with marks, and its interval as a band; parts [x]."""
    shade = color(word)
    there = np.isfinite(parts.value)
    if np.isfinite(parts.low).any():
        low, high = parts.low[there], parts.high[there]
        axes.fill_between(x[there], low, high, color=shade, alpha=0.18, lw=0, zorder=2)
    axes.plot(
        x[there], parts.value[there], "-", marker=marker(word), color=shade, ms=3.6, mew=0, zorder=3
    )


@dataclass(frozen=True, slots=True)
class LineEnd:
    """The end of a line: its value, the text beside it, and the mark that joins the two.

    hue   a colour's name, or a word of the data
    mark  of matplotlib; "_" for a line without marks
    """

    value: float
    text: str
    hue: str
    mark: str


def layer_bands(
    axes: Axes,
    lines: Sequence[tuple[Estimate, str, str]],
    label: str,
    names: HeadNames,
    *,
    bottom: float = 0.0,
) -> None:
    """Lines over the layers with their intervals, of values of at most 1, named where they end.

    lines  of each: its values [layer], the word of the data that gives its look, its name
    """
    ends = []
    for parts, word, text in lines:
        band_line(axes, np.arange(len(parts.value), dtype=np.float64), parts, word)
        last = float(parts.value[np.isfinite(parts.value)][-1])
        ends.append(LineEnd(last, text, word, marker(word)))
    layer_axis(axes, len(lines[0][0].value), names)
    percent_axis(axes, label, top=1.0)
    axes.set_ylim(bottom, 1)
    end_labels(axes, ends, top=1.0)


def end_labels(axes: Axes, ends: Sequence[LineEnd], *, top: float) -> None:
    """Texts right of the axes at the values where lines end, moved until none covers another.

    top  of the y axis, which begins at 0
    """
    order = sorted(range(len(ends)), key=lambda at: ends[at].value)
    heights = [end.value for end in ends]
    for lower, upper in pairwise(order):
        heights[upper] = max(heights[upper], heights[lower] + LABEL_GAP * top)
    highest = top
    for at in reversed(order):  # what was moved above the axes comes down again
        heights[at] = min(heights[at], highest)
        highest = heights[at] - LABEL_GAP * top
    for height, end in zip(heights, ends, strict=True):
        axes.plot(
            1.035,
            height,
            end.mark,
            color=color(end.hue),
            ms=3.6,
            mew=1.2 * (end.mark == "_"),
            transform=axes.get_yaxis_transform(),
            clip_on=False,
        )
        axes.annotate(
            end.text,
            (1.0, end.value),
            (1.065, height),
            xycoords=("axes fraction", "data"),
            textcoords=("axes fraction", "data"),
            va="center",
            fontsize=6.5,
            annotation_clip=False,
        )


def legend(
    axes: Axes,
    entries: Sequence[tuple[str, str]],
    *,
    line: bool = True,
    start: float = LEGEND_START,
) -> None:
    """A row above the axes, below the title, so that it never covers data.

    entries  (word of the data, text); colour and marker follow from the word
    line     whether the marks are joined in the picture
    start    points right of the axes' left border, by default above the tick labels
    """
    style = "-" if line else "none"
    handles = [
        Line2D([], [], color=color(word), marker=marker(word), ls=style, ms=4, mew=0, label=text)
        for word, text in entries
    ]
    legend_of(axes, handles, start=start)


def legend_of(
    axes: Axes, handles: list[Line2D], *, columns: int = LEGEND_COLUMNS, start: float = LEGEND_START
) -> None:
    """The same for other marks, side by side."""
    columns = min(len(handles), columns)
    row = axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncols=columns)
    shift = ScaledTranslation(start / 72, 0, axes.figure.dpi_scale_trans)
    row.set_bbox_to_anchor((0, 1), axes.transAxes + shift)
    row.set_in_layout(False)  # else a long row narrows the axes; `compose` leaves it its height


def cells(
    axes: Axes, x_edges: Floats, y_edges: Floats, values: Floats, *, top: float, gap: float = 0.0
) -> None:
    """A heat map in RAMP_STEPS shades, as one path per shade: small files that scale and recolour.

    values  [y, x]; 0 and NaN stay page
    top     the value of the last shade
    gap     empty share between neighbours, for maps whose cells must be distinguishable
    """
    steps = ramp()
    shade = np.ceil(np.nan_to_num(np.clip(values / top, 0, 1)) * (RAMP_STEPS - 1)).astype(int)
    paths, colors = [], []
    for level in range(1, RAMP_STEPS):
        boxes = _boxes(shade == level, x_edges, y_edges, merge=gap == 0)
        if boxes:
            paths.append(Path.make_compound_path(*(box_path(*box, gap) for box in boxes)))
            colors.append(steps[level])
    if paths:
        look: dict[str, Any] = {
            "facecolors": colors,
            "edgecolors": colors,
            "linewidths": 0.0 if gap else 0.25,
        }
        axes.add_collection(PathCollection(paths, **look), autolim=False)
    axes.set_xlim(x_edges[0], x_edges[-1])
    axes.set_ylim(y_edges[0], y_edges[-1])


def cell_key(
    axes: Axes, top_text: str, *, end: float = 1.0, under: tuple[float, float] | None = None
) -> None:
    """The legend of `cells` below a map, from 0 to the last shade; ends at `end` of its width.

    under  between which shares of the bar a thin line stands under it, if at all
    """
    shade_key(axes, ramp(), ("0", top_text), end=end, under=under)


def shade_key(
    axes: Axes,
    shades: Sequence[Any],
    texts: tuple[str, str],
    *,
    width: float = KEY_SIZE[0],
    end: float = 1.0,
    under: tuple[float, float] | None = None,
) -> None:
    """A key below a map: a bar of shades, with a text at each end.

    shades  the colour of each box of the bar
    width   of the bar, in points
    end     of the map's width, where the key ends
    under   between which shares of the bar a thin line stands under it, if at all
    """
    bar = DrawingArea(width, KEY_SIZE[1])
    edges = np.linspace(0, width, len(shades) + 1)
    boxes = [box_path(*pair, 0.0, KEY_SIZE[1], 0.0) for pair in pairwise(edges)]
    bar.add_artist(PathCollection(boxes, facecolors=shades, linewidths=0.0))
    if under is not None:
        first, last = (width * min(max(share, 0), 1) for share in under)
        first = min(first, width - LINE_UNDER)
        line = box_path(first, max(last, first + LINE_UNDER), -2 * LINE_UNDER, -LINE_UNDER, 0.0)
        bar.add_artist(PathCollection([line], facecolors=color("ink"), linewidths=0.0))
    words = [TextArea(text, textprops={"fontsize": 7}) for text in texts]
    key = HPacker(children=[words[0], bar, words[1]], align="center", pad=0, sep=2)
    box = AnnotationBbox(
        key,
        (end, 0),
        xybox=(0, KEY_BELOW),
        xycoords="axes fraction",
        boxcoords="offset points",
        box_alignment=(1, 0.5),
        frameon=False,
        pad=0,
        annotation_clip=False,
    )
    box.set_in_layout(False)  # beside the axis label, which keeps the height
    axes.add_artist(box)


def log_axis(axes: Axes, *, decades: int = 1) -> None:
    """A logarithmic x axis with whole powers of ten, in plain characters."""
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(base=10.0**decades))
    axes.xaxis.set_major_formatter(_power)
    axes.xaxis.set_minor_locator(NullLocator())


def doubling_axis(axes: Axes) -> None:
    """A logarithmic y axis that is numbered at powers of two."""
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_locator(LogLocator(base=2))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_locator(NullLocator())


def bin_edges(lower: Floats) -> Floats:
    """All borders of bins of which the lower edges are known.

    An open first bin (from 0) is drawn as wide as its neighbour on the ratio scale; so is the last.
    """
    inner = lower[1:] if lower[0] == 0 else lower
    first = [inner[0] ** 2 / inner[1]] if lower[0] == 0 else []
    return np.concatenate([first, inner, [inner[-1] ** 2 / inner[-2]]])


def _power(value: float, _: object) -> str:
    exponent = round(np.log10(value))
    if 0 <= exponent <= 4:
        return f"{10**exponent:,}"
    return "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _boxes(
    chosen: np.ndarray, x_edges: Floats, y_edges: Floats, *, merge: bool
) -> list[tuple[float, float, float, float]]:
    """Rectangles (left, right, bottom, top) that cover the chosen cells [y, x]."""
    boxes = []
    for row in np.flatnonzero(chosen.any(axis=1)):
        for start, stop in _runs(chosen[row], merge=merge):
            boxes.append((x_edges[start], x_edges[stop], y_edges[row], y_edges[row + 1]))
    return boxes


def _runs(row: np.ndarray, *, merge: bool) -> list[tuple[int, int]]:
    if not merge:
        return [(int(at), int(at) + 1) for at in np.flatnonzero(row)]
    change = np.diff(np.concatenate([[0], row.astype(np.int8), [0]]))
    starts, stops = np.flatnonzero(change == 1), np.flatnonzero(change == -1)
    return list(zip(starts.tolist(), stops.tolist(), strict=True))


def box_path(left: float, right: float, bottom: float, top: float, gap: float) -> Path:
    """A rectangle, smaller by the share `gap` of its width and height."""
    dx, dy = gap * (right - left) / 2, gap * (top - bottom) / 2
    x0, x1, y0, y1 = left + dx, right - dx, bottom + dy, top - dy
    return Path([(x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0)], closed=True)
