"""What a report says of word alignment: opening, a section, a table."""

from __future__ import annotations

from typing import Any

import xarray as xr

from headscope.core.results import estimate, model_name
from headscope.core.wording import percent
from headscope.page.sections import FINDINGS, OpeningPlan, SectionPlan, of_group
from headscope.page.tabulate import Cell, Column, Rows, Table, share

WORDS = {"AWO": "the word that is generated", "AWI": "the word that is read"}
BY = {"weight": "weights", "norm": "norms"}


def findings(tree: xr.DataTree) -> list[str]:
    """Of each setting: the best layer by weights and by norms."""
    alignment = tree.children["alignment"].to_dataset()
    lines = []
    for setting, words in WORDS.items():
        told = [
            f"{_number(alignment, 'best_aer', setting=setting, measure=m)} by {name} (layer "
            f"{_best(alignment, setting, m)})"
            for m, name in BY.items()
        ]
        lines.append(
            f"Linked to {words} ({setting}), the best layer has an alignment error rate of "
            f"{' and '.join(told)}."
        )
    return lines


def _table(alignment: xr.Dataset) -> Table:
    rows = []
    for setting in WORDS:
        for measure, name in BY.items():
            at = {"setting": setting, "measure": measure}
            rows.append([
                Cell(setting), Cell(name), _cell(alignment, "mean_layer_aer", **at),
                _cell(alignment, "best_aer", **at), Cell(str(_best(alignment, setting, measure))),
                _cell(alignment, "held_out", **at),
                *(
                    _cell(alignment, f"highest_norm_{of}_aer", setting=setting)
                    if measure == "norm" else Cell("")
                    for of in ("layer", "head")
                ),
            ])  # fmt: skip
    columns = [
        Column("Setting"), Column("By"), Column("Mean of layers", "%", "aer"),
        Column("Best layer", "%"), Column("Layer"), Column("Held out", "%", "held_out"),
        Column("Layer of highest norm", "%", "mean_norm"), Column("Head of highest norm", "%"),
    ]  # fmt: skip
    caption = (
        "Alignment error rates as in Kobayashi et al. (2020), Table 3; 95 % intervals, bootstrap "
        "over sentence pairs. Held out: a layer chosen on one half of the pairs, scored on the "
        "other, both ways. Every layer and head: tables/alignment."
    )
    return Table("Error rates of word alignment", columns, [Rows(rows)], caption)


def _best(alignment: xr.Dataset, setting: str, measure: str) -> int:
    return int(alignment["best_layer"].sel(setting=setting, measure=measure)) + 1


def _cell(alignment: xr.Dataset, variable: str, **choice: Any) -> Cell:
    parts = estimate(alignment, variable, **choice)
    return share(float(parts.value), float(parts.low), float(parts.high))


def _number(alignment: xr.Dataset, variable: str, **choice: Any) -> str:
    parts = estimate(alignment, variable, **choice)
    return percent(float(parts.value), float(parts.low), float(parts.high))


def _heading(tree: xr.DataTree) -> list[tuple[str, bool]]:
    return [("How well cross-attention aligns words in ", False), (model_name(tree), True)]


OPENING = OpeningPlan(
    heading=_heading, findings=findings,
)  # fmt: skip
SECTIONS = (
    SectionPlan(
        id="part-alignment",
        title="Which layers and heads align words?",
        text=(
            "A word of the translation is linked to the source word that gets most of a head’s, or "
            "a layer’s, cross-attention: by weights, or by the norms of the weighted vectors. "
            "Links to the closing sign are left out."
        ),
        pictures=("alignment",),
        tables=(of_group("alignment", _table),),
        chapter=FINDINGS,
    ),
)
