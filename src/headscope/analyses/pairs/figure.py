"""Which heads link subjects with verbs, and nouns with pronouns?

Kovaleva et al. (2019), §4.5: the attention between tokens of two kinds, every head, both ways.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import xarray as xr

from headscope.core.results import estimate, group
from headscope.draw.caption_words import inputs, quantity
from headscope.draw.head_grid import best_place, draw_grid, grid_height, largest
from headscope.draw.panel import Panel, Picture

TITLES = {
    "subject_to_verb": "Subject to verb",
    "verb_to_subject": "Verb to subject",
    "noun_to_pronoun": "Noun to pronoun",
    "pronoun_to_noun": "Pronoun to noun",
}


def panels(tree: xr.DataTree) -> list[Panel]:
    """One heat map per kind of pair that occurs, all on one scale."""
    pairs = group(tree, "pairs")
    if pairs is None:
        return []
    found = {kind: estimate(pairs, "attention", pair=kind).value for kind in TITLES}
    there = {kind: grid for kind, grid in found.items() if np.isfinite(grid).any()}
    top = max(map(largest, there.values()), default=1.0)
    unit = str(pairs["attention"].attrs.get("units", "1"))
    return [
        Panel(
            TITLES[kind],
            partial(draw_grid, grid, unit=unit, top=top, best=best_place(grid)),
            height=grid_height(grid),
        )
        for kind, grid in there.items()
    ]


def caption(tree: xr.DataTree) -> str:
    """How to read the figure."""
    pairs = group(tree, "pairs")
    what = "attention" if pairs is None else quantity(pairs)
    return (
        "Each cell is one head, layers from top to bottom and heads from left to right, numbered "
        f"from 1: its largest {what} from a token of the one kind to one of the other, mean over "
        "the inputs that have such a pair; subjects with their own verbs, nouns with any pronoun; "
        "all panels from 0 (page) to the value at the end of the key; the frame marks the largest; "
        f"{inputs(pairs)}; intervals stand in the tables. After Kovaleva et al. (2019), §4.5."
    )


PICTURE = Picture("pairs", "Subjects and verbs, nouns and pronouns", ("pairs",), panels, caption)
FIGURES = (PICTURE,)
