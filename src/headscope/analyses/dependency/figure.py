"""Which heads find which relation, and how good is the best of them beside a fixed offset?

The best heads: Clark et al. (2019), Table 1, as a picture, with the head chosen on other documents
than it is scored on. The heat maps: every head's accuracy at a relation (§4.2 gives only the best),
in the better of its two directions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headscope.analyses.dependency import figure_sentences
from headscope.analyses.dependency.relation_heads import (
    DIRECTIONS,
    RelationHead,
    chosen_where,
    frequent_relation_heads,
    relation_heads,
)
from headscope.core.relation_names import LEAST_WORDS, TOTALS
from headscope.core.results import Floats, group
from headscope.draw.caption_words import INTERVALS, by_measure, clipped
from headscope.draw.head_grid import draw_grid, grid_height
from headscope.draw.marks import legend
from headscope.draw.panel import Panel, Picture, compose
from headscope.draw.rows import HEADER, beside, column_start, row_axes, row_point, rows_height
from headscope.draw.style import color

MOST_ROWS = 30
LONGEST_LABEL = 16
TOTAL_NAMES = dict(zip(TOTALS, ("all words", "all but root, punct"), strict=True))
COLUMNS = {"relation": -62.0, "head": -27.0, "dir.": -5.0, "offset": 24.0}  # points; see `beside`
MOST_MAPS = 12
LONGEST_NAME = 40  # characters of a file's name
LONGEST_TITLE = 18  # characters beside the letter of a panel


def best_head_panels(tree: xr.DataTree) -> list[Panel]:
    """One panel: the totals, then a row per relation."""
    dependency = group(tree, "dependency")
    if dependency is None:
        return []
    over_all, single = _rows(dependency)
    if not single:
        return []
    height = rows_height(len(over_all) + len(single) + 1)
    left = column_start(map(_label, over_all + single), COLUMNS["relation"])
    draw = partial(_draw, over_all, single, left)
    return [Panel("Best heads by relation", draw, height=height, left=left)]


def best_head_caption(tree: xr.DataTree) -> str:
    """How to read the figure."""
    dependency = group(tree, "dependency")
    over_all, single = ([], []) if dependency is None else _rows(dependency)
    number = max((best.count for best in over_all + single), default=0)
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


def _rows(dependency: xr.Dataset) -> tuple[list[RelationHead], list[RelationHead]]:
    """The totals; and the most frequent relations, the head furthest ahead first."""
    single = sorted(frequent_relation_heads(dependency)[:MOST_ROWS], key=lambda best: -best.ahead)
    return [best for best in relation_heads(dependency) if best.relation in TOTALS], single


def _any_interval(single: list[RelationHead]) -> bool:
    return any(np.isfinite(best.advantage.low) for best in single)


def _draw(
    over_all: list[RelationHead], single: list[RelationHead], left: float, axes: Axes
) -> None:
    for text, at in COLUMNS.items():
        beside(axes, HEADER, text, at, faint=True, fontsize=6.5)
    places = [*range(len(over_all)), *(len(over_all) + 0.6 + at for at in range(len(single)))]
    judged = _any_interval(single)
    for row, best in zip(places, over_all + single, strict=True):
        _row(axes, row, best, faint=judged and not best.beats)
    if over_all:
        axes.axhline(len(over_all) - 0.2, color=color("rule"), lw=0.6)
    row_axes(axes, len(places) + 0.6 * bool(over_all), "words whose head is found")
    axes.set_xlim(0, 1)
    entries = [("best_head", "best head"), ("offset", "best fixed offset")]
    legend(axes, entries, line=False, start=left)


def _label(best: RelationHead) -> str:
    return TOTAL_NAMES.get(best.relation) or clipped(best.relation, LONGEST_LABEL)


def _row(axes: Axes, row: float, best: RelationHead, *, faint: bool) -> None:
    texts = (_label(best), best.head_name, DIRECTIONS[best.direction], f"{best.offset:+d}")
    for text, at in zip(texts, COLUMNS.values(), strict=True):
        beside(axes, row, text.replace("-", "−") if at > 0 else text, at, faint=faint)
    ends = [best.baseline.value, best.accuracy.value]
    axes.hlines(row, min(ends), max(ends), color=color("rule"), lw=2.2, zorder=2)
    row_point(axes, row, best.baseline, "offset", faint=faint)
    hollow = not np.isfinite(best.score.value)
    row_point(axes, row, best.accuracy, "best_head", faint=faint, hollow=hollow)


def heat_maps(tree: xr.DataTree) -> list[Panel]:
    """The most frequent relations, without root and punctuation."""
    dependency = group(tree, "dependency")
    if dependency is None:
        return []
    return [_panel(dependency, best) for best in frequent_relation_heads(dependency)[:MOST_MAPS]]


def heat_map_caption(tree: xr.DataTree) -> str:
    """How to read the figure."""
    dependency = group(tree, "dependency")
    shown = [] if dependency is None else frequent_relation_heads(dependency)[:MOST_MAPS]
    counts = [best.count for best in shown] or [0]
    number = "The one relation" if len(shown) == 1 else f"The {len(shown)} most frequent relations"
    return (
        f"{number} of at least {LEAST_WORDS} words, root and punctuation left out: each cell is "
        "one head, layers from top to bottom and heads from left to right, numbered from 1; the "
        f"share of words whose syntactic head it finds{by_measure(dependency)}, in the better of "
        "the two directions, from 0 (page) to 100 %; the frame marks the best head; "
        f"n = {counts[0]:,} (a) to {counts[-1]:,} words; intervals stand in the tables. "
        "After Clark et al. (2019), §4.2."
    )


def draw_relation(tree: xr.DataTree, relation: str) -> Figure:
    """The heat map of one relation, `all` included, at single journal width.

    raises  KeyError for a relation that the run does not have, or of which no word was scored
    """
    dependency = group(tree, "dependency")
    found = {} if dependency is None else {f.relation: f for f in relation_heads(dependency)}
    if dependency is None or relation not in found:
        there = ", ".join(found) or "none"
        raise KeyError(f"no relation {relation!r} was scored; there are {there}")
    return compose([_panel(dependency, found[relation])], columns=1)


def relation_figures(tree: xr.DataTree) -> Iterator[tuple[str, str, Figure]]:
    """Relation, name of its file and heat map: totals first, then by frequency.

    The name has a number and what letters and digits of ASCII the relation has: each its own, and
    safe on every system.
    """
    dependency = group(tree, "dependency")
    if dependency is not None:
        for at, best in enumerate(relation_heads(dependency), start=1):
            plain = re.sub(r"[^a-z0-9]+", "-", best.relation.lower())[:LONGEST_NAME].strip("-")
            file = f"{at:02d}-{plain}".strip("-") + ".svg"
            yield best.relation, file, compose([_panel(dependency, best)], columns=1)


def values(dependency: xr.Dataset, relation: str) -> Floats:
    """[layer, head] the accuracy in the better of the two directions."""
    accuracy = dependency["accuracy"].transpose("relation", "layer", "head", "direction").values
    here = np.flatnonzero(dependency["relation"].values == relation)[0]
    return np.asarray(np.fmax.reduce(accuracy[here], axis=-1), dtype=np.float64)


def _panel(dependency: xr.Dataset, best: RelationHead) -> Panel:
    grid = values(dependency, best.relation)
    draw = partial(draw_grid, grid, unit="probability", top=1.0, best=best.place)
    return Panel(clipped(best.relation, LONGEST_TITLE), draw, height=grid_height(grid))


def sheets(tree: xr.DataTree) -> Iterator[tuple[str, Figure]]:
    """The heat map of every relation, by its path in the folder of figures."""
    for _, file, figure in relation_figures(tree):
        yield f"dependency/{file}", figure


BEST_HEADS = Picture(
    "best_heads", "The best heads", ("dependency",), best_head_panels, best_head_caption, columns=1
)  # fmt: skip
HEAT_MAPS = Picture(
    "dependency_heads", "Which heads find which relation", ("dependency",), heat_maps,
    heat_map_caption, columns=4, sheets=sheets,
)  # fmt: skip
FIGURES = (BEST_HEADS, HEAT_MAPS, figure_sentences.PICTURE)
