"""How are a sentence and arcs between its words laid out so that nothing covers anything?

Words stand in a row, at the width that they take. An arc goes up (or down) from one word, across on
a level of its own and back to the other; arcs that share a stretch, labels counted, are on
different levels, the shorter nearer to the words.
"""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib as mpl
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

SPACE = 1.1  # between words, in font sizes
FAN = 3.4  # points between the ends of arcs at one word
LABEL_GAP = 5.0  # points that labels on one level stay apart


@dataclass(frozen=True, slots=True)
class Arc:
    """An arc from one word to another; `label` stands on it, set in `size` points."""

    source: int
    target: int
    label: str
    size: float


@dataclass(frozen=True, slots=True)
class Route:
    """Where an arc runs: from x `start` to x `end`, in points; on `level`, 0 nearest the words."""

    start: float
    end: float
    level: int


@dataclass(frozen=True, slots=True)
class Row:
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


def row_of(words: Sequence[str], *, width: float, size: float, least: float) -> Row | None:
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
    return Row(centres, widths, size, at)


def mirrored(row: Row) -> Row:
    """The same row from right to left."""
    return Row([row.length - at for at in row.centres], row.widths, row.size, row.length)


def routes(arcs: Sequence[Arc], row: Row) -> list[Route]:
    """One route per arc, in the same order."""
    ends = _ends(arcs, row)
    extents = [_extent(arc, *pair) for arc, pair in zip(arcs, ends, strict=True)]
    levels = [0] * len(arcs)
    placed: list[int] = []
    by_length = sorted(range(len(arcs)), key=lambda at: (abs(ends[at][0] - ends[at][1]), ends[at]))
    for at in by_length:
        beneath = [levels[other] for other in placed if _touch(extents[at], extents[other])]
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


def _ends(arcs: Sequence[Arc], row: Row) -> list[tuple[float, float]]:
    """The x of both ends of each arc, fanned out so that nested arcs do not cross."""
    found = [[0.0, 0.0] for _ in arcs]
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
            found[at][side] = centre + (place - (len(here) - 1) / 2) * step
    return [(start, end) for start, end in found]


def _fan_key(arc: Arc, word: int, side: int, row: Row) -> tuple[bool, float]:
    other = arc.target if side == 0 else arc.source
    reach = row.centres[other] - row.centres[word]
    return reach > 0, -reach


def _extent(arc: Arc, start: float, end: float) -> tuple[float, float]:
    """The stretch that an arc and its label take on its level."""
    half = text_width(arc.label, arc.size) / 2 + LABEL_GAP / 2 if arc.label else 0.0
    middle = (start + end) / 2
    return min(start, end, middle - half), max(start, end, middle + half)


def _touch(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one[0] < other[1] and other[0] < one[1]
