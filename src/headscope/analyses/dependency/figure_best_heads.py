"""How good is the best head for each relation, beside a fixed offset?

Clark et al. (2019), Table 1, as a picture, with the head chosen on other documents than it is
scored on.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from headscope.analyses.language.finders import (
    DIRECTIONS,
    Finder,
    chosen_where,
    finders,
    shown_finders,
)
from headscope.core.relation_names import LEAST_WORDS, TOTALS
from headscope.core.results import group
from headscope.draw.caption_words import INTERVALS, by_measure, clipped
from headscope.draw.marks import legend
from headscope.draw.panel import Panel, Picture
from headscope.draw.rows import HEADER, beside, column_start, row_axes, row_point, rows_height
from headscope.draw.style import color

MOST = 30
LONGEST_LABEL = 16
TOTAL_NAMES = dict(zip(TOTALS, ("all words", "all but root, punct"), strict=True))
COLUMNS = {"relation": -62.0, "head": -27.0, "dir.": -5.0, "offset": 24.0}  # points; see `beside`


def panels(tree: xr.DataTree) -> list[Panel]:
    """One panel: the totals, then a row per relation."""
    dependency = group(tree, "dependency")
    if dependency is None:
        return []
    over_all, single = _rows(dependency)
    if not single:
        return []
    height = rows_height(len(over_all) + len(single) + 1)
    left = column_start(map(_name, over_all + single), COLUMNS["relation"])
    draw = partial(_draw, over_all, single, left)
    return [Panel("Best heads by relation", draw, height=height, left=left)]


def caption(tree: xr.DataTree) -> str:
    """How to read the figure."""
    dependency = group(tree, "dependency")
    over_all, single = ([], []) if dependency is None else _rows(dependency)
    number = max((finder.count for finder in over_all + single), default=0)
    where = chosen_where(single)
    ink = (
        "; faint where the head does not beat the offset beyond the interval of the difference; "
        f"whiskers are {INTERVALS}"
        if _any_interval(single)
        else ""
    )
    return (
        "Share of words whose syntactic head the best head finds"
        f"{by_measure(dependency)}, {where}, beside the best fixed offset (+1: the next word); "
        "the head that is best on all data is named, d→h: the dependent attends to its head, "
        "h→d: the head to its dependent"
        f"{ink}; totals first, then relations of at least {LEAST_WORDS} words by how far the head "
        f"is ahead, root and punctuation left out; n = {number:,} words. "
        "After Clark et al. (2019), Table 1."
    )


def _rows(dependency: xr.Dataset) -> tuple[list[Finder], list[Finder]]:
    """The totals; and the most frequent relations, the head furthest ahead first."""
    single = sorted(shown_finders(dependency)[:MOST], key=lambda finder: -finder.ahead)
    return [finder for finder in finders(dependency) if finder.relation in TOTALS], single


def _any_interval(single: list[Finder]) -> bool:
    return any(np.isfinite(finder.advantage.low) for finder in single)


def _draw(over_all: list[Finder], single: list[Finder], left: float, axes: Axes) -> None:
    for text, at in COLUMNS.items():
        beside(axes, HEADER, text, at, faint=True, fontsize=6.5)
    places = [*range(len(over_all)), *(len(over_all) + 0.6 + at for at in range(len(single)))]
    judged = _any_interval(single)
    for row, finder in zip(places, over_all + single, strict=True):
        _row(axes, row, finder, faint=judged and not finder.beats)
    if over_all:
        axes.axhline(len(over_all) - 0.2, color=color("rule"), lw=0.6)
    row_axes(axes, len(places) + 0.6 * bool(over_all), "words whose head is found")
    axes.set_xlim(0, 1)
    entries = [("best_head", "best head"), ("offset", "best fixed offset")]
    legend(axes, entries, line=False, start=left)


def _name(finder: Finder) -> str:
    return TOTAL_NAMES.get(finder.relation) or clipped(finder.relation, LONGEST_LABEL)


def _row(axes: Axes, row: float, finder: Finder, *, faint: bool) -> None:
    texts = (_name(finder), finder.head, DIRECTIONS[finder.direction], f"{finder.offset:+d}")
    for text, at in zip(texts, COLUMNS.values(), strict=True):
        beside(axes, row, text.replace("-", "−") if at > 0 else text, at, faint=faint)
    ends = [finder.baseline.value, finder.shown.value]
    axes.hlines(row, min(ends), max(ends), color=color("rule"), lw=2.2, zorder=2)
    row_point(axes, row, finder.baseline, "offset", faint=faint)
    hollow = not np.isfinite(finder.score.value)
    row_point(axes, row, finder.shown, "best_head", faint=faint, hollow=hollow)


PICTURE = Picture(
    "best_heads", "The best heads", ("dependency",), panels, caption, columns=1
)  # fmt: skip
