"""What a report says of gradients and importances: sections and tables."""

from __future__ import annotations

import numpy as np
import xarray as xr

from headscope.core.results import estimate, head_name, model_name
from headscope.core.wording import capital
from headscope.experiments.ablation.section import scores_table
from headscope.experiments.importance.findings import effect_name, importance_findings, method_name
from headscope.page.sections import FINDINGS, OpeningPlan, SectionPlan, of_group
from headscope.page.tabulate import Cell, Column, Rows, Table

LISTED = 12  # heads in the table; all are in the folder `tables`
UNLISTED = ("michel_normalised", "score_size")  # as columns: they follow from others


def importance_table(importance: xr.Dataset) -> Table:
    """The most important heads by the first method, with the numbers of the others."""
    methods = [str(name) for name in importance["method"].values if str(name) not in UNLISTED]
    parts = {name: estimate(importance, "head_importance", method=name) for name in methods}
    first = parts[methods[0]].value
    order = np.argsort(-np.nan_to_num(first).ravel(), kind="stable")[:LISTED].tolist()
    rows = []
    for unit in order:
        numbers = [
            _small(*(float(p.ravel()[unit]) for p in (part.value, part.low, part.high)))
            for part in parts.values()
        ]
        rows.append([Cell(head_name(unit, first.shape[1])), *numbers])
    caption = (
        f"The {len(rows)} most important heads by {method_name(methods[0])}, with 95 % intervals, "
        "bootstrap over examples. All heads: table of heads, and tables/importance."
    )
    columns = [Column("Head"), *(Column(capital(method_name(m)), "", m) for m in methods)]
    return Table("Most important heads", columns, [Rows(rows)], caption)


def against_table(importance: xr.Dataset) -> Table | None:
    """Each method against each effect of switching off."""
    if "rho" not in importance:
        return None
    effects = [str(name) for name in importance["effect"].values if str(name) not in UNLISTED]
    rows = []
    for name in (str(method) for method in importance["method"].values):
        told = [estimate(importance, "rho", method=name, effect=effect) for effect in effects]
        cells = [_two(*(float(x) for x in (p.value, p.low, p.high))) for p in told]
        shared = float(estimate(importance, "overlap", method=name, effect="loss").value)
        top = int(importance.attrs["top"])
        rows.append([
            Cell(capital(method_name(name))), *cells, Cell(f"{round(top * shared)} of {top}")
        ])  # fmt: skip
    columns = [
        Column("Method"),
        *(Column(capital(effect_name(importance, effect)), "ρ", "rho") for effect in effects),
        Column("Top heads shared", "", "overlap"),
    ]
    top, heads = int(importance.attrs["top"]), int(importance.attrs["heads"])
    caption = (
        "Spearman’s rank correlation over heads with what becomes of the task when a head is "
        "switched off, with its 95 % interval over heads; and how many of the "
        f"{top} heads without which the loss rises most are among the {top} most important (by "
        f"chance {top * top / heads:.1f})."
    )
    return Table("Importance against switching off", columns, [Rows(rows)], caption)


def _small(value: float, low: float, high: float) -> Cell:
    """Three figures, of any size."""
    ends = f"[{low:.2g}, {high:.2g}]" if np.isfinite(low) else ""
    text = f"{value:.3g}" if np.isfinite(value) else "–"
    return Cell(text.replace("-", "−"), ends.replace("-", "−"))


def _two(value: float, low: float, high: float) -> Cell:
    ends = f"[{low:.2f}, {high:.2f}]" if np.isfinite(low) else ""
    text = f"{value:.2f}" if np.isfinite(value) else "–"
    return Cell(text.replace("-", "−"), ends.replace("-", "−"))


GRADIENT_SECTIONS = (
    SectionPlan(
        id="gradients",
        title="Where do gradients go?",
        text=(
            "Attention that is changed a little changes the loss by its gradient. Where much "
            "attention rests on a token and the gradient is small, it matters little that it does: "
            "the token is a place to rest (Clark et al. 2019)."
        ),
        pictures=("gradients",),
        chapter=FINDINGS,
    ),
)
SECTIONS = (
    SectionPlan(
        id="importance",
        title="Which heads does the loss depend on?",
        text=(
            "All of these are read off gradients, at the price of a few passes. They say what a "
            "small change would do, which need not be what switching off does."
        ),
        pictures=("importance",),
        tables=(of_group("importance", importance_table),),
        chapter=FINDINGS,
    ),
    SectionPlan(
        id="against",
        title="Is that what happens when heads are switched off?",
        text="If an importance is worth its name, heads to the right lie high.",
        pictures=("importance_against_ablation",),
        tables=(of_group("importance", against_table),),
        chapter=FINDINGS,
    ),
)


def _heading(tree: xr.DataTree) -> list[tuple[str, bool]]:
    return [("Which heads of ", False), (model_name(tree), True), (" matter?", False)]


OPENING = OpeningPlan(
    heading=_heading,
    findings=importance_findings, tables=(scores_table,),
)  # fmt: skip
