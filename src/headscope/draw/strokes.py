"""How are arcs drawn above and below a row of words?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import PathPatch, Polygon
from matplotlib.path import Path

from headscope.draw.sentence import Arc, Route, Row, routes, text_width
from headscope.draw.style import color

LABEL = 5.8  # points of type
CLEAR = 6.5  # points from the middle of the words to the ends of arcs
LEVEL, CORNER = 11.0, 4.0  # points between levels, and of the bends
ARROW = (1.7, 3.4)  # points: half the width, and the length
DASHED = (0, (2.2, 1.3))


@dataclass(frozen=True, slots=True)
class Stroke:
    """One arc and its look; the arrow is at its target.

    source, target  words
    label           stands on the arc
    hue             name of a colour
    width           of the line in points
    dashed          or drawn through
    plain           set back: label and line are not to stand out
    """

    source: int
    target: int
    label: str
    hue: str
    width: float = 0.7
    dashed: bool = False
    plain: bool = False


def reach(strokes: Sequence[Stroke], row: Row) -> float:
    """How far the arcs and their labels go from the middle of the words, in points."""
    levels = [route.level for route in _routes(strokes, row)]
    return _height(max(levels)) + LABEL + 2 if levels else CLEAR


def draw_strokes(axes: Axes, strokes: Sequence[Stroke], row: Row, *, side: int) -> None:
    """Draws on axes in points, the middle of the words at 0.

    side  1: above the words, -1: below
    """
    ways = _routes(strokes, row)
    for stroke, route in zip(strokes, ways, strict=True):
        y, shade = side * _height(route.level), color(stroke.hue)
        axes.add_patch(
            PathPatch(
                _path(route, y, side), fill=False, ec=shade, lw=stroke.width, zorder=2,
                ls=DASHED if stroke.dashed else "-", capstyle="butt",
            )
        )  # fmt: skip
        tip, (half, long) = side * CLEAR, ARROW
        corners = [(route.end, tip)]
        corners += [(route.end + by, tip + side * long) for by in (-half, half)]
        axes.add_patch(Polygon(corners, closed=True, fc=shade, lw=0, zorder=3))
        away = side * (stroke.width / 2 + LABEL / 2 + 0.9)
        look: dict[str, Any] = {"ha": "center", "va": "center_baseline", "fontsize": LABEL}
        axes.text(
            _label_place(stroke.label, route, ways), y + away, stroke.label, zorder=4,
            color=color("muted" if stroke.plain else "ink"),
            bbox={"fc": color("page"), "lw": 0, "pad": 0}, **look,
        )  # fmt: skip


def _routes(strokes: Sequence[Stroke], row: Row) -> list[Route]:
    return routes([Arc(s.source, s.target, s.label, LABEL) for s in strokes], row)


def _label_place(label: str, route: Route, ways: Sequence[Route]) -> float:
    """The x nearest to the middle of an arc at which no other arc runs through its label."""
    through = [x for other in ways if other.level > route.level for x in (other.start, other.end)]
    half = text_width(label, LABEL) / 2 + 1.8
    middle, room = (route.start + route.end) / 2, abs(route.end - route.start) / 2 - half
    for shift in sorted(np.arange(-room, room).tolist(), key=abs):
        if all(abs(middle + shift - x) > half for x in through):
            return float(middle + shift)
    return middle


def _height(level: int) -> float:
    """How far from the middle of the words an arc runs, in points."""
    return CLEAR + ARROW[1] + LEVEL * level + CORNER


def _path(route: Route, y: float, side: int) -> Path:
    """Away from the words, across at height y, and back to where the arrow begins."""
    way = 1 if route.end > route.start else -1
    bend = min(CORNER, abs(route.end - route.start) / 2)
    points = [
        (route.start, side * CLEAR), (route.start, y - side * bend), (route.start, y),
        (route.start + way * bend, y), (route.end - way * bend, y), (route.end, y),
        (route.end, y - side * bend), (route.end, side * (CLEAR + ARROW[1])),
    ]  # fmt: skip
    line, curve = Path.LINETO, Path.CURVE3
    return Path(points, [Path.MOVETO, line, curve, curve, line, curve, curve, line])
