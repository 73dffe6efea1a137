"""How good is the best head at finding antecedents, beside systems of rules?

Clark et al. (2019), Table 2, as a picture, with the head chosen on other documents than it is
scored on.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from headscope.core.accumulators import Estimate
from headscope.core.results import estimate, group
from headscope.draw.caption_words import INTERVALS, by_measure
from headscope.draw.head_grid import draw_grid, grid_height
from headscope.draw.marks import legend
from headscope.draw.panel import Panel, Picture
from headscope.draw.rows import HEADER, beside, column_start, row_axes, row_point, rows_height
from headscope.draw.style import DOUBLE, color

TYPES = {
    "all": "all mentions", "pronoun": "pronouns", "proper": "proper nouns", "nominal": "nominals",
}  # fmt: skip
SYSTEMS = {"nearest": "nearest", "head_match": "head match", "rule_based": "rules"}
COLUMNS = {"mentions": -40.0, "head": -4.0}  # points; see `beside`
APART = 0.4  # rows between the marks of one type


def panels(tree: xr.DataTree) -> list[Panel]:
    """The best heads beside the systems; and all heads."""
    coreference = group(tree, "coreference")
    if coreference is None:
        return []
    kinds = [kind for kind in TYPES if _scored(coreference, kind)]
    if not kinds:
        return []
    height = rows_height(2 * len(kinds) - 0.6, width=DOUBLE / 2)
    grid = estimate(coreference, "accuracy", mention_type=kinds[0]).value
    left = column_start((TYPES[kind] for kind in kinds), COLUMNS["mentions"])
    draw = partial(_draw, coreference, kinds, left)
    return [
        Panel("Best heads by mention", draw, height=height, left=left),
        Panel(
            f"All heads, {TYPES[kinds[0]]}", partial(draw_grid, grid, unit="probability"),
            height=grid_height(grid),
        ),
    ]  # fmt: skip


def caption(tree: xr.DataTree) -> str:
    """How to read the figure."""
    coreference = group(tree, "coreference")
    count = 0 if coreference is None else int(coreference["count"].max())
    held_out = coreference is not None and np.isfinite(coreference["held_out"].values).any()
    where = (
        "chosen on one half of the documents and scored on the other, both ways"
        if held_out
        else "chosen and scored on the same data"
    )
    return (
        "(a) Share of mentions whose head word attends, of the head words of all mentions before "
        f"it, most to that of an antecedent{by_measure(coreference)}, in the best head, {where}, "
        "beside the nearest mention, the nearest with the same head word, and rules for string, "
        "head word and agreement; the head that is best on all data is named; whiskers are "
        f"{INTERVALS}; (b) the same share for every head, from 0 (page) to the value at the end of "
        f"the key; n = {count:,} mentions with an antecedent. After Clark et al. (2019), Table 2."
    )


def _scored(coreference: xr.Dataset, kind: str) -> bool:
    return bool(np.isfinite(estimate(coreference, "best_accuracy", mention_type=kind).value))


def _draw(coreference: xr.Dataset, kinds: list[str], left: float, axes: Axes) -> None:
    for text, at in COLUMNS.items():
        beside(axes, HEADER, text, at, faint=True, fontsize=6.5)
    for place, kind in enumerate(kinds):
        _rows(axes, 2 * place, coreference, kind)
    for border in range(1, 2 * len(kinds) - 1, 2):
        axes.axhline(border, color=color("rule"), lw=0.5)
    row_axes(axes, 2 * len(kinds) - 0.6, "mentions whose antecedent is found")
    axes.set_xlim(0, 1)
    legend(axes, [("best_head", "best head"), *SYSTEMS.items()], line=False, start=left)


def _rows(axes: Axes, row: float, coreference: xr.Dataset, kind: str) -> None:
    """The marks of one type of mention, one under the other."""
    here = coreference.sel(mention_type=kind)
    beside(axes, row, TYPES[kind], COLUMNS["mentions"])
    head = f"L{int(here['best_layer']) + 1}·H{int(here['best_head']) + 1}"
    beside(axes, row, head, COLUMNS["head"])
    held_out, chosen = estimate(here, "held_out"), estimate(here, "best_accuracy")
    hollow = not np.isfinite(held_out.value)
    marks: list[tuple[str, Estimate, bool]] = [
        ("best_head", chosen if hollow else held_out, hollow),
        *((system, estimate(here, "baseline", system=system), False) for system in SYSTEMS),
    ]
    for at, (word, parts, open_mark) in enumerate(marks):
        shift = (at - (len(marks) - 1) / 2) * APART
        row_point(axes, row + shift, parts, word, hollow=open_mark)


PICTURE = Picture(
    "coreference", "The best heads at coreference", ("coreference",), panels, caption, columns=2
)
FIGURES = (PICTURE,)
