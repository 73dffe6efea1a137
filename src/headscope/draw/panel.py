"""Panels, pictures made of them, and the layout of a picture.

A panel draws itself on any axes. So the same code makes the wide figure of a paper, the single
column, and the separate panels that a report can reflow.
"""

import math
import string
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.transforms import Bbox, ScaledTranslation

from headscope.draw.saving import ShownFigure, Vector, vector
from headscope.draw.style import DOUBLE, SINGLE, house_style

LEGEND_ROW = 11.0  # points between axes and title that a row of legend needs
LEGEND_COLUMNS = 4


@dataclass(frozen=True, slots=True)
class Panel:
    """One set of axes.

    draw       draws on them, all but the title
    height     as a share of the width
    key_above  whether a key stands between title and axes
    left       where title and legend begin, in points from the left border of the axes
    legend     marks of its legend side by side
    beside     inches of height that do not grow with the width: those of title, axis and key
    """

    title: str
    draw: Callable[[Axes], None]
    height: float = 0.72
    key_above: bool = False
    left: float = 0.0
    legend: int = LEGEND_COLUMNS
    beside: float = 0.0


@dataclass(frozen=True, slots=True)
class Picture:
    """One figure of the field.

    name     of the function and of the files
    title    in words
    needs    the groups without which there is nothing to draw
    panels   tree → panels; empty where the groups lack what it takes
    caption  tree → how to read it, in which unit, on how many documents
    columns  panels side by side at double width
    wide     one column of panels, each as wide as a page, however narrow the rest is set
    sheets   tree → further files by their path in the folder of figures, each a figure of its own
    """

    name: str
    title: str
    needs: tuple[str, ...]
    panels: Callable[[xr.DataTree], list[Panel]]
    caption: Callable[[xr.DataTree], str]
    columns: int = 2
    wide: bool = False
    sheets: Callable[[xr.DataTree], Iterable[tuple[str, Figure]]] = lambda tree: ()

    def available(self, tree: xr.DataTree) -> bool:
        """Whether the run holds what the picture needs."""
        return all(name in tree.children for name in self.needs) and bool(self.panels(tree))


class PanelStore:
    """The panels of a run's pictures and their drawings, each made once, for files and pages."""

    def __init__(self, tree: xr.DataTree) -> None:
        self.tree = tree
        self._made: dict[str, list[Panel]] = {}
        self._drawn: dict[str, Vector] = {}

    def of(self, picture: Picture) -> list[Panel]:
        """The panels of a picture; none where the run lacks what it needs."""
        if picture.name not in self._made:
            there = all(name in self.tree.children for name in picture.needs)
            self._made[picture.name] = picture.panels(self.tree) if there else []
        return self._made[picture.name]

    def figure(self, picture: Picture, *, columns: int | None = None) -> ShownFigure:
        """A picture at double journal width, or at single width with `columns=1`."""
        width = DOUBLE if picture.wide else None
        return compose(self.of(picture), columns=columns or picture.columns, width=width)

    def vector(self, picture: Picture) -> Vector:
        """A picture as SVG; no dots are drawn for a page."""
        if picture.name not in self._drawn:
            self._draw(picture, dots=False)
        return self._drawn[picture.name]

    def files(self, picture: Picture) -> tuple[bytes, bytes]:
        """A picture's `svg` and `png` file, drawn together."""
        png = self._draw(picture, dots=True)
        return self._drawn[picture.name].svg, png

    def _draw(self, picture: Picture, *, dots: bool) -> bytes:
        drawn, png = vector(self.figure(picture), len(self.of(picture)), dots=dots)
        self._drawn[picture.name] = drawn
        return png


class _SteadyLayout(ConstrainedLayoutEngine):
    """Constrained layout to the millionth of the figure.

    Its solver takes constraints in the order of their addresses, so that the last digits differ
    from run to run, and with them the bytes of a file.
    """

    def execute(self, fig: Figure) -> None:
        """Lay out, then round."""
        super().execute(fig)
        for axes in fig.axes:
            corners = axes.get_position(original=True).get_points()
            axes.set_position(Bbox(corners.round(6)))
            axes.set_in_layout(True)  # `set_position` takes axes out of it


def compose(
    panels: Sequence[Panel], *, columns: int = 2, width: float | None = None
) -> ShownFigure:
    """A figure of the panels, lettered a, b, … where there is more than one.

    columns  panels per row
    width    in inches; a single journal column for one panel, else a double one
    """
    columns = min(columns, len(panels))
    rows = math.ceil(len(panels) / columns)
    inches = width or (SINGLE if columns == 1 else DOUBLE)
    each = inches / columns
    with house_style():
        starts = range(0, len(panels), columns)
        rows_of = (panels[at : at + columns] for at in starts)
        heights = [max(each * p.height + p.beside for p in row) for row in rows_of]
        figure = ShownFigure(figsize=(inches, sum(heights)), layout=_SteadyLayout())
        grid = figure.subplots(rows, columns, squeeze=False, height_ratios=heights)
        axes = grid.ravel()  # [row*column]
        for place, panel in zip(axes, panels, strict=False):
            panel.draw(place)
        for at, (place, panel) in enumerate(zip(axes, panels, strict=False)):
            beside = range(at - at % columns, min(at - at % columns + columns, len(panels)))
            above = max(_rows_above(axes[other], panels[other]) for other in beside)
            letter = f"{string.ascii_lowercase[at]}   " if len(panels) > 1 else ""
            # A title over nothing has its place: matplotlib looks for one whenever it draws.
            free = place.xaxis.get_ticks_position() == "bottom"
            title = place.set_title(
                letter + panel.title, pad=6 + LEGEND_ROW * above, y=1.0 if free else None
            )
            start = ScaledTranslation(panel.left / 72, 0, figure.dpi_scale_trans)
            title.set_transform(title.get_transform() + start)
        for place in axes[len(panels) :]:
            place.set_axis_off()
    return figure


def _rows_above(axes: Axes, panel: Panel) -> int:
    """Rows of legend or key between the axes and the title."""
    legend = axes.get_legend()
    if legend is None:
        return int(panel.key_above)
    return math.ceil(len(legend.legend_handles) / panel.legend)
