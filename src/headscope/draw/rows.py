"""Draw rows of marks with intervals, and columns of text beside them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from headscope.core.intervals import Estimate
from headscope.draw.arcs import text_width
from headscope.draw.marks import legend, share_tick
from headscope.draw.panel import Panel
from headscope.draw.style import SINGLE, color, house_style, marker

ROW = 0.155  # inches
AROUND = 0.85  # inches that title, legend, axis and its label take
HEADER = -1.0  # the row above the first
LABEL = 6.5  # points of type
TICK_ROOM = 28.0  # points that `100 %` takes, with a gap
FAINT = 0.4  # opacity of what is not to stand out


class FittingLocator(MaxNLocator):
    """As many ticks as asked for, or as few as have room for their labels beside each other."""

    def __call__(self) -> Any:
        """The places of the ticks, for the width that the axis has as it is drawn."""
        own: Any = self.axis
        axes = own.axes
        points = axes.get_window_extent().width * 72 / axes.figure.dpi
        self.set_params(nbins=max(1, min(self.most, int(points / TICK_ROOM))))
        return super().__call__()

    def __init__(self, most: int, **look: Any) -> None:
        super().__init__(most, **look)
        self.most = most


def rows_height(count: float, *, width: float = SINGLE) -> float:
    """The height of a panel of rows, as a share of its width in inches."""
    return (AROUND + ROW * (count + 1)) / width


def column_start(texts: Iterable[str], at: float) -> float:
    """Where a right-aligned column at `at` begins, in points; see `beside`."""
    with house_style():  # its typeface gives the widths
        return at - max(text_width(text, LABEL) for text in texts)


def row_panel(
    title: str,
    columns: Mapping[str, float],
    names: Iterable[str],
    draw_rows: Callable[[Axes], None],
    *,
    count: float,
    height: float,
    label: str,
    entries: Sequence[tuple[str, str]],
    percent: bool = True,
    right: float | None = None,
) -> Panel:
    """A panel of rows: headed columns of text, the rows themselves, an axis of values, a legend.

    columns        where each column stands (see `beside`), by its heading
    names          the texts of the first column, which the panel is as wide as
    count, height  see `row_axes` and `rows_height`
    label, right   of the axis: its words, and where it ends
    entries        of the legend
    """
    start = column_start(names, next(iter(columns.values())))

    def draw(axes: Axes) -> None:
        for heading, at in columns.items():
            beside(axes, HEADER, heading, at, faint=True, fontsize=6.5)
        draw_rows(axes)
        row_axes(axes, count, label, percent=percent)
        axes.set_xlim(0, right)
        legend(axes, entries, line=False, start=start)

    return Panel(title, draw, height=height, left=start)


def row_axes(axes: Axes, count: float, label: str, *, percent: bool = True) -> None:
    """Rows 0, 1, … from the top; an x axis from 0, in percent where the values are shares."""
    axes.set_ylim(count - 0.4, HEADER - 0.5)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_locator(FittingLocator(4, steps=[1, 2, 2.5, 5, 10]))
    if percent:
        axes.xaxis.set_major_formatter(share_tick)
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
        [parts.value],
        [row],
        marker(word),
        color=face,
        mec=shade,
        mew=0.9 if hollow else 0,
        ms=3.6 if hollow else 4.2,
        alpha=opacity,
        zorder=4,
    )


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
    """Text `at` points right of the axes' right border, or, where negative, left of the left."""
    axes.annotate(
        text,
        (float(at > 0), row),
        (at, 0),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        ha=align,
        va="center",
        annotation_clip=False,
        color=color("muted" if faint else "ink"),
        **({"fontsize": LABEL} | look),
    )
