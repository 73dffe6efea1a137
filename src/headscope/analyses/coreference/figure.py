"""How good is the best head at finding antecedents, beside systems of rules?

Clark et al. (2019), Table 2, as a picture, with the head chosen on other documents than it is
scored on.
"""

from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from headscope.analyses.coreference.tables import SYSTEMS, coreference_table
from headscope.analyses.language.held_out import chosen_where
from headscope.analyses.language.tables import language_section
from headscope.core.results import estimate, group, needed, own_name
from headscope.core.wording import percent
from headscope.draw.caption_words import INTERVALS, by_measure
from headscope.draw.head_grid import grid_panel
from headscope.draw.panel import Panel, Picture
from headscope.draw.rows import beside, row_panel, row_point, rows_height
from headscope.draw.style import DOUBLE, color

TYPES = {
    "all": "all mentions", "pronoun": "pronouns", "proper": "proper nouns", "nominal": "nominals",
}  # fmt: skip
COLUMNS = {"mentions": -40.0, "head": -4.0}  # points; see `beside`
APART = 0.4  # rows between the marks of one type


def _panels(tree: xr.DataTree) -> list[Panel]:
    coreference = needed(tree, "coreference")
    best = {kind: estimate(coreference, "best_accuracy", mention_type=kind) for kind in TYPES}
    kinds = [kind for kind, parts in best.items() if np.isfinite(parts.value)]
    if not kinds:
        return []
    count = 2 * len(kinds) - 0.6
    grid = estimate(coreference, "accuracy", mention_type=kinds[0]).value
    return [
        row_panel(
            "Best heads by mention", COLUMNS, (TYPES[kind] for kind in kinds),
            partial(_draw, coreference, kinds), count=count,
            height=rows_height(count, width=DOUBLE / 2), label="mentions whose antecedent is found",
            entries=[("best_head", "best head"), *SYSTEMS.items()], right=1,
        ),
        grid_panel(f"All heads, {TYPES[kinds[0]]}", grid, unit="probability"),
    ]  # fmt: skip


def _caption(tree: xr.DataTree) -> str:
    coreference = needed(tree, "coreference")
    where = chosen_where([estimate(coreference, "held_out")])
    return (
        "(a) Share of mentions whose head word attends, of the head words of all mentions before "
        f"it, most to that of an antecedent{by_measure(coreference)}, in the best head, {where}; "
        "beside it the nearest mention, the nearest with the same head word, and rules for string, "
        "head word and agreement; the head that is best on all data is named; whiskers are "
        f"{INTERVALS}; (b) the same share for every head, from 0 (page) to the value at the end of "
        f"the key; n = {int(coreference['count'].max()):,} mentions with an antecedent. "
        "After Clark et al. (2019), Table 2."
    )


def _draw(coreference: xr.Dataset, kinds: list[str], axes: Axes) -> None:
    for row, kind in enumerate(kinds):
        here = coreference.sel(mention_type=kind)
        beside(axes, 2 * row, TYPES[kind], COLUMNS["mentions"])
        head = own_name(int(here["best_layer"]), int(here["best_head"]))
        beside(axes, 2 * row, head, COLUMNS["head"])
        held_out, chosen = estimate(here, "held_out"), estimate(here, "best_accuracy")
        hollow = not np.isfinite(held_out.value)
        marks = {"best_head": chosen if hollow else held_out}
        marks |= {system: estimate(here, "baseline", system=system) for system in SYSTEMS}
        for at, (word, parts) in enumerate(marks.items()):
            shift = (at - (len(marks) - 1) / 2) * APART
            row_point(axes, 2 * row + shift, parts, word, hollow=hollow and word == "best_head")
    for border in range(1, 2 * len(kinds) - 1, 2):
        axes.axhline(border, color=color("rule"), lw=0.5)


FIGURES = (
    Picture("coreference", "The best heads at coreference", ("coreference",), _panels, _caption),
)


def _finding(tree: xr.DataTree) -> str:
    dataset = group(tree, "coreference")
    if dataset is None or "held_out" not in dataset:
        return ""
    held = float(dataset["held_out"].sel(mention_type="all"))
    rules = float(np.nanmax(dataset["baseline"].sel(mention_type="all").values))
    if not np.isfinite([held, rules]).all():
        return ""
    return f"Held out, the best head finds {percent(held)}; the best rule {percent(rules)}."


SECTIONS = language_section(
    "coreference", asked="mention", finding=_finding, id="coreference",
    title="Coreference: who finds the antecedent?",
    text="Of the mentions before it, the one whose head word a mention’s head word attends to "
    "most is taken for its antecedent, and is right if it is of the same entity, however far "
    "back.",
    pictures=("coreference",), tables=(coreference_table,),
    wanted="coreference (mentions: --coref)", chooses=True,
)  # fmt: skip
