"""Which heads find which relation?

A heat map per relation of every head's accuracy at finding syntactic heads (Clark et al. 2019,
§4.2, gives only the best); the better of the two directions counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from headscope.analyses.dependency import figure_best_heads, figure_sentences
from headscope.analyses.language.finders import Finder, finders, shown_finders
from headscope.core.relation_names import LEAST_WORDS
from headscope.core.results import Floats, group
from headscope.draw.caption_words import by_measure, clipped
from headscope.draw.head_grid import draw_grid, grid_height
from headscope.draw.panel import Panel, Picture, compose

MOST = 12
LONGEST_NAME = 40  # characters of a file's name
LONGEST_TITLE = 18  # characters beside the letter of a panel


def panels(tree: xr.DataTree) -> list[Panel]:
    """The most frequent relations, without root and punctuation."""
    dependency = group(tree, "dependency")
    if dependency is None:
        return []
    return [_panel(dependency, finder) for finder in shown_finders(dependency)[:MOST]]


def caption(tree: xr.DataTree) -> str:
    """How to read the figure."""
    dependency = group(tree, "dependency")
    shown = [] if dependency is None else shown_finders(dependency)[:MOST]
    counts = [finder.count for finder in shown] or [0]
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
    found = {} if dependency is None else {f.relation: f for f in finders(dependency)}
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
        for at, finder in enumerate(finders(dependency), start=1):
            plain = re.sub(r"[^a-z0-9]+", "-", finder.relation.lower())[:LONGEST_NAME].strip("-")
            file = f"{at:02d}-{plain}".strip("-") + ".svg"
            yield finder.relation, file, compose([_panel(dependency, finder)], columns=1)


def values(dependency: xr.Dataset, relation: str) -> Floats:
    """[layer, head] the accuracy in the better of the two directions."""
    accuracy = dependency["accuracy"].transpose("relation", "layer", "head", "direction").values
    here = np.flatnonzero(dependency["relation"].values == relation)[0]
    return np.asarray(np.fmax.reduce(accuracy[here], axis=-1), dtype=np.float64)


def _panel(dependency: xr.Dataset, finder: Finder) -> Panel:
    grid = values(dependency, finder.relation)
    draw = partial(draw_grid, grid, unit="probability", top=1.0, best=finder.place)
    return Panel(clipped(finder.relation, LONGEST_TITLE), draw, height=grid_height(grid))


def sheets(tree: xr.DataTree) -> Iterator[tuple[str, Figure]]:
    """The heat map of every relation, by its path in the folder of figures."""
    for _, file, figure in relation_figures(tree):
        yield f"dependency/{file}", figure


PICTURE = Picture(
    "dependency_heads", "Which heads find which relation", ("dependency",), panels, caption,
    columns=4, sheets=sheets,
)  # fmt: skip
FIGURES = (figure_best_heads.PICTURE, PICTURE, figure_sentences.PICTURE)
