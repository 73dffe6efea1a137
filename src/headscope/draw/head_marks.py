"""Note which marks of a chart are heads, so that a page can name the head that is pointed at.

A function that draws says where each head lies in the coordinates of its axes, and its number in
words; after the layout the places are known in points. The picture itself is not changed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from matplotlib.axes import Axes

from headscope.core.intervals import Estimate
from headscope.core.results import Floats
from headscope.core.wording import by_unit

POINT = 2.2  # points: half of a mark that is no cell


@dataclass(frozen=True)
class HeadMarks:
    """One mark per head.

    x, y   [mark] in the coordinates of the axes; NaN where there is none
    units  [mark] layer · heads + head
    texts  [mark] the number with its interval
    series what the number is, where the chart shows several
    cells  whether a mark is a cell of size 1 in these coordinates
    pairs  whether x and y [head] are the columns and rows of a matrix of heads; texts [mark] are
           of the cells left of the diagonal, row by row
    """

    x: Floats
    y: Floats
    units: Sequence[int]
    texts: Sequence[str]
    series: str = ""
    cells: bool = False
    pairs: bool = False


_NOTED: WeakKeyDictionary[Axes, list[HeadMarks]] = WeakKeyDictionary()


def note_heads(axes: Axes, x: Any, y: Any, texts: Sequence[str], **more: Any) -> None:
    """Note the marks of heads on axes; `more` as of `HeadMarks`, by default all heads in order."""
    across, up = (np.asarray(at, np.float64).ravel() for at in (x, y))  # [mark]
    made = HeadMarks(across, up, **{"units": range(len(texts)), "texts": texts, **more})
    _NOTED.setdefault(axes, []).append(made)


def note_cells(axes: Axes, parts: Estimate, unit: str) -> None:
    """Note the cells of a grid; parts [layer, head]."""
    rows, columns = np.indices(parts.value.shape)
    note_heads(axes, columns, rows, number_texts(parts, unit), cells=True)


def note_pairs(axes: Axes, order: Sequence[int], parts: Estimate, series: str) -> None:
    """Note the cells of a matrix left of its diagonal; parts [unit, unit], shown in `order`."""
    middles = np.arange(len(order)) + 0.5
    rows, columns = np.tril_indices(len(order), -1)
    units = np.array(order)
    own = parts.map(lambda part: part[units[rows], units[columns]])  # [mark]
    look = {"units": order, "series": series, "cells": True, "pairs": True}
    note_heads(axes, middles, middles, number_texts(own, "1"), **look)


def forget_heads(axes: Axes) -> None:
    """Before other marks are drawn in the place of those that were noted."""
    _NOTED.pop(axes, None)


def number_texts(parts: Estimate, unit: str) -> list[str]:
    """[unit] numbers with their intervals as the page writes them; parts [layer, head]."""
    ends = (part.ravel().tolist() for part in (parts.value, parts.low, parts.high))
    return [by_unit(value, low, high, unit) for value, low, high in zip(*ends, strict=True)]


def without_ends(values: Floats) -> Estimate:
    """Numbers that have no interval."""
    none = np.full(np.shape(values), np.nan)
    return Estimate(np.asarray(values, np.float64), none, none)


def placed(axes: Axes) -> list[dict[str, Any]]:
    """The noted marks in points from the upper left corner of the figure, once it is laid out.

    returns  of each series: u (units; none for all in order), x, y, t (a text per line), s (its
             name), half the width and height of a mark in w and h, and p for `pairs`
    """
    scale = 72 / axes.figure.dpi
    high = axes.figure.bbox.height * scale
    series = []
    for one in _NOTED.get(axes, []):
        at = axes.transData.transform(np.stack([one.x, one.y], -1)) * scale  # [mark, axis]
        half = (POINT, POINT)
        if one.cells:
            corners = axes.transData.transform([(0, 0), (1, 1)]) * scale
            half = tuple(np.abs(corners[1] - corners[0]) / 2)
        there = np.flatnonzero(np.isfinite(at).all(1)).tolist()
        units = [int(one.units[mark]) for mark in there]
        series.append(
            {
                **({} if units == list(range(len(units))) else {"u": units}),
                "x": [round(float(at[mark, 0]), 1) for mark in there],
                "y": [round(float(high - at[mark, 1]), 1) for mark in there],
                "t": "\n".join(one.texts if one.pairs else [one.texts[mark] for mark in there]),
                **({"s": one.series} if one.series else {}),
                **({"p": 1} if one.pairs else {}),
                "w": round(float(half[0]), 1),
                "h": round(float(half[1]), 1),
            }
        )
    return [one for one in series if one["t"]]
