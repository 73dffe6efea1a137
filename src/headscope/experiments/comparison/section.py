"""Report sections on two models: summary, tables and examples."""

import numpy as np
import xarray as xr

from headscope.claims.caption_words import INTERVALS
from headscope.claims.dictionary import unit_label
from headscope.claims.question import questions
from headscope.claims.reading import Reading
from headscope.core.results import at, estimate, printable, shape
from headscope.core.wording import capital
from headscope.experiments.ablation.section import scores_table
from headscope.experiments.comparison import SIMILARITY, findings
from headscope.experiments.comparison.findings import base_name, points, tuned_name
from headscope.experiments.comparison.label_changes import control_words
from headscope.page.sections import OpeningPlan
from headscope.page.tabulate import Cell, Column, Rows, Table, measured, rows_table, share

LISTED = 10  # examples


def numbers_table(run: Reading) -> Table | None:
    """Every number that questions compare: means of both models, and how many heads changed."""
    change = findings.changes(run)
    keys = change["quantity"].values.tolist()
    compared = {one.name: one.compared for one in questions() if one.compared}
    unwanted = [f"{one.name}.{start}" for one in questions() for start in one.withheld]
    if "surface.attention.cls" in keys:  # it is the first token
        unwanted.append("surface.attention.first")
    wanted = np.array([not key.startswith(tuple(unwanted)) for key in keys])
    groups = [
        Rows(_rows(change.isel(quantity=there)), title)
        for name, title in compared.items()
        if (there := wanted & (change["analysis"].values == name)).any()
    ]
    columns = [
        Column("Number"),
        Column("Before"),
        Column("After"),
        Column("Difference", term="model_difference"),
        Column("Rose", "heads", "sure"),
        Column("Fell", "heads", "sure"),
    ]
    caption = (
        f"Means over all {np.prod(shape(run.tree))} heads: attention and classes in per "
        "cent, their differences in percentage points; and how many heads rose or fell "
        f"significantly (intervals widened for all heads of a row, not for rows). {INTERVALS}, "
        f"paired; {run.over()}. All numbers of all heads: tables/change."
    )
    return Table("Both models", columns, groups, caption) if groups else None


def examples_table(run: Reading) -> Table | None:
    """The inputs whose maps changed most."""
    if "rank" not in run.data.sizes:
        return None
    few = run.data.isel(rank=slice(LISTED))
    parts = (few[f"example_{name}"].values.tolist() for name in ("text", "tokens", "change"))
    rows = [
        [printable(text), int(tokens), measured(float(change))]
        for text, tokens, change in zip(*parts, strict=True)
    ]
    caption = (
        "1 − cosine, mean over all heads, of the inputs with the largest; of at least 8 tokens. "
        "The first are opened under Heads at work, both models side by side."
    )
    columns = "Input", "Tokens", "1 − cosine"
    return rows_table("Inputs and their change", columns, rows, caption)


def _rows(change: xr.Dataset) -> list[list[Cell]]:
    rows = []
    for key in change["quantity"].values.tolist():
        row = change.sel(quantity=key)
        before, after, difference = (
            estimate(change, f"model_{side}", quantity=key)
            for side in ("before", "after", "difference")
        )
        if not np.isfinite(difference.value):
            continue
        unit, label = str(row["unit"].values), printable(row["label"].values)
        is_share = unit == "probability"
        name = label if is_share or not unit_label(unit) else f"{label} ({unit_label(unit)})"
        write = share if is_share else measured
        text, _, interval = points(difference).partition(" ")
        rows.append(
            [
                Cell(capital(name)),
                write(*at(before)),
                write(*at(after)),
                Cell(text, interval) if is_share else measured(*at(difference)),
                Cell(str(int(row["rose"]))),
                Cell(str(int(row["fell"]))),
            ]
        )
    return rows


def _heading(tree: xr.DataTree) -> list[tuple[str, bool]]:
    run = Reading(tree, SIMILARITY)
    names = (tuned_name(run), True), (base_name(run), True)
    return [("What ", False), names[0], (" does otherwise than ", False), names[1]]


def _lede(tree: xr.DataTree) -> str:
    base, tuned = (of(Reading(tree, SIMILARITY)) for of in (base_name, tuned_name))
    which = f"Before: {base}; after: {tuned}. Other chapters are of {tuned} alone."
    return f"{control_words(tree)} {which}".strip()


OPENING = OpeningPlan(
    id="comparison",
    chapter="What changed",
    heading=_heading,
    lede=_lede,
    findings=findings.opening_findings,
    tables=(scores_table,),
    atlas=True,
)
