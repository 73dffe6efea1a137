"""Lay out and draw a sentence with arcs above it."""

import unicodedata
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection, PolyCollection
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.textpath import text_to_path

from headscope.draw.style import color

SPACE = 1.1  # between words, in font sizes
FAN = 3.4  # points between the ends of arcs at one word
LABEL_GAP = 5.0  # points that labels on one level stay apart
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


@dataclass(frozen=True, slots=True)
class Route:
    """The way of an arc: from x `start` to x `end`, in points; level 0 is nearest the words."""

    start: float
    end: float
    level: int


@dataclass(frozen=True, slots=True)
class WordRow:
    """A row of words.

    centres  [word] in points from the left end
    widths   [word] in points
    size     of the type, in points
    length   of the row, in points
    """

    centres: list[float]
    widths: list[float]
    size: float
    length: float


def row_of(words: Sequence[str], *, width: float, size: float, least: float) -> WordRow | None:
    """The words in a row, set smaller where they do not fit; None if `least` is still too large.

    width  in points
    size   of the type where there is room
    """
    wish = sum(text_width(word, size) + SPACE * size for word in words)
    size = size * min(1.0, width / wish)
    if size < least:
        return None
    widths = [text_width(word, size) for word in words]
    centres, at = [], 0.0
    for wide in widths:
        centres.append(at + SPACE * size / 2 + wide / 2)
        at += wide + SPACE * size
    return WordRow(centres, widths, size, at)


def mirrored(row: WordRow) -> WordRow:
    """The same row from right to left."""
    return WordRow([row.length - at for at in row.centres], row.widths, row.size, row.length)


def routes(arcs: Sequence[Stroke], row: WordRow) -> list[Route]:
    """One route per arc, in the same order."""
    ends = _ends(arcs, row)
    extents = [_extent(arc, *pair) for arc, pair in zip(arcs, ends, strict=True)]
    levels = [0] * len(arcs)
    placed: list[int] = []
    by_length = sorted(range(len(arcs)), key=lambda at: (abs(ends[at][0] - ends[at][1]), ends[at]))
    for at in by_length:
        start, end = extents[at]
        beneath = [levels[o] for o in placed if start < extents[o][1] and extents[o][0] < end]
        levels[at] = max(beneath, default=-1) + 1
        placed.append(at)
    return [Route(*pair, level) for pair, level in zip(ends, levels, strict=True)]


def text_width(text: str, size: float) -> float:
    """In points, in the first typeface of the style; signs of East Asia are squares."""
    square = sum(unicodedata.east_asian_width(sign) in "WF" for sign in text)
    rest = "".join(sign for sign in text if unicodedata.east_asian_width(sign) not in "WF")
    face = FontProperties(family=mpl.rcParams["font.family"], size=size)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a box: its width will do
        wide = text_to_path.get_text_width_height_descent(rest, face, ismath=False)[0]
    return float(wide) + square * size


def right_to_left(words: Sequence[str]) -> bool:
    """Whether most of the words that have a direction run from right to left."""
    signs = [unicodedata.bidirectional(sign) for word in words for sign in word]
    leftwards = sum(sign in ("R", "AL") for sign in signs)
    return leftwards > sum(sign == "L" for sign in signs)


def _ends(arcs: Sequence[Stroke], row: WordRow) -> list[tuple[float, float]]:
    """The x of both ends of each arc, fanned out so that nested arcs do not cross."""
    ends = [[0.0, 0.0] for _ in arcs]
    for word, centre in enumerate(row.centres):
        here = [
            (at, side)
            for at, arc in enumerate(arcs)
            for side, own in enumerate((arc.source, arc.target))
            if own == word
        ]
        # From left to right: arcs that come from the left, the longest last; then the others,
        # the longest first.
        here.sort(key=lambda end: _fan_key(arcs[end[0]], word, end[1], row))
        step = min(FAN, row.widths[word] / max(len(here), 1))
        for place, (at, side) in enumerate(here):
            ends[at][side] = centre + (place - (len(here) - 1) / 2) * step
    return [(start, end) for start, end in ends]


def _fan_key(arc: Stroke, word: int, side: int, row: WordRow) -> tuple[bool, float]:
    other = arc.target if side == 0 else arc.source
    reach = row.centres[other] - row.centres[word]
    return reach > 0, -reach


def _extent(arc: Stroke, start: float, end: float) -> tuple[float, float]:
    """The stretch that an arc and its label take on its level."""
    half = text_width(arc.label, LABEL) / 2 + LABEL_GAP / 2 if arc.label else 0.0
    middle = (start + end) / 2
    return min(start, end, middle - half), max(start, end, middle + half)


def reach(strokes: Sequence[Stroke], row: WordRow) -> float:
    """How far the arcs and their labels go from the middle of the words, in points."""
    levels = [route.level for route in routes(strokes, row)]
    return _height(max(levels)) + LABEL + 2 if levels else CLEAR


def draw_strokes(axes: Axes, strokes: Sequence[Stroke], row: WordRow, *, side: int) -> None:
    """Draws on axes in points, the middle of the words at 0; side 1: above the words, -1: below."""
    ways, tip = routes(strokes, row), side * CLEAR
    hues = [color(stroke.hue) for stroke in strokes]
    arcs = PathCollection(
        [_path(route, side * _height(route.level), side) for route in ways],
        facecolors="none",
        edgecolors=hues,
        linewidths=[stroke.width for stroke in strokes],
        linestyles=[DASHED if stroke.dashed else "-" for stroke in strokes],
        capstyle="butt",
        joinstyle="miter",
        zorder=2,
    )
    (half, long), ends = ARROW, [route.end for route in ways]
    arrows = PolyCollection(
        [[(x, tip), (x - half, tip + side * long), (x + half, tip + side * long)] for x in ends],
        facecolors=hues,
        linewidths=0.0,
        zorder=3,
    )
    for marks in (arcs, arrows):
        axes.add_collection(marks, autolim=False)
    for stroke, route in zip(strokes, ways, strict=True):
        away = side * (stroke.width / 2 + LABEL / 2 + 0.9)
        look: dict[str, Any] = {"ha": "center", "va": "center_baseline", "fontsize": LABEL}
        axes.text(
            _label_place(stroke.label, route, ways),
            side * _height(route.level) + away,
            stroke.label,
            zorder=4,
            color=color("muted" if stroke.plain else "ink"),
            bbox={"fc": color("page"), "lw": 0, "pad": 0},
            **look,
        )


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
        (route.start, side * CLEAR),
        (route.start, y - side * bend),
        (route.start, y),
        (route.start + way * bend, y),
        (route.end - way * bend, y),
        (route.end, y),
        (route.end, y - side * bend),
        (route.end, side * (CLEAR + ARROW[1])),
    ]
    line, curve = Path.LINETO, Path.CURVE3
    return Path(points, [Path.MOVETO, line, curve, curve, line, curve, curve, line])
