"""How good is the best head at finding antecedents, beside systems of rules?

Clark et al. (2019), Table 2, as a picture, with the head chosen on other documents than it is
scored on; the same as tables on the page, in files, and in the layout of the paper: per cent with
one decimal, heads as layer-head counted from 1.
"""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes

from headscope.analyses.language.held_out import chosen_where
from headscope.analyses.language.tables import (
    above_zero,
    language_section,
    paper_head,
    paper_measure,
    paper_percent,
    with_ends,
    with_model,
)
from headscope.claims.caption_words import INTERVALS, by_measure
from headscope.claims.dictionary import name as term_name
from headscope.claims.reading import Reading
from headscope.core.intervals import Estimate
from headscope.core.results import at, best_places, estimate
from headscope.core.wording import MISSING, capital, percent
from headscope.draw.head_grid import grid_panel
from headscope.draw.head_marks import note_heads
from headscope.draw.panel import Panel
from headscope.draw.rows import beside, row_panel, row_point, rows_height
from headscope.draw.style import DOUBLE, color
from headscope.page.tabulate import Cell, Column, Rows, Table, ends, head_of, records, share

TYPES = {
    "all": "all mentions",
    "pronoun": "pronouns",
    "proper": "proper nouns",
    "nominal": "nominals",
}
SYSTEMS = {"nearest": "nearest", "head_match": "head match", "rule_based": "rules"}
COLUMNS = {"mentions": -40.0, "head": -4.0}  # points; see `beside`
APART = 0.4  # rows between the marks of one type


def panels(run: Reading) -> list[Panel]:
    """The best head for each kind of mention beside the rules, then all heads."""
    best = {kind: run("best_accuracy", mention_type=kind) for kind in TYPES}
    kinds = [kind for kind, parts in best.items() if np.isfinite(parts.value)]
    if not kinds:
        return []
    count = 2 * len(kinds) - 0.6
    parts = run("accuracy", mention_type=kinds[0])
    return [
        row_panel(
            "Best heads by mention",
            COLUMNS,
            (TYPES[kind] for kind in kinds),
            partial(_draw, run, kinds),
            count=count,
            height=rows_height(count, width=DOUBLE / 2),
            label="mentions whose antecedent is found",
            entries=[("best_head", "best head"), *SYSTEMS.items()],
            right=1,
        ),
        grid_panel(
            f"All heads, {TYPES[kinds[0]]}",
            parts.value,
            run.names,
            unit="probability",
            parts=parts,
        ),
    ]


def caption(run: Reading) -> str:
    """How to read them."""
    where = chosen_where([run("held_out")])
    return (
        "(a) Share of mentions whose head word attends, of the head words of all mentions before "
        f"it, most to that of an antecedent{by_measure(run.data)}, in the best head, {where}; "
        "beside it the nearest mention, the nearest with the same head word, and rules for string, "
        "head word and agreement; the head that is best on all data is named; whiskers are "
        f"{INTERVALS}; (b) the same share for every head, from 0 (page) to the value at the end of "
        f"the key; n = {int(run.data['count'].max()):,} mentions with an antecedent. "
        "After Clark et al. (2019), Table 2."
    )


def _draw(run: Reading, kinds: list[str], axes: Axes) -> None:
    for row, kind in enumerate(kinds):
        here = run.data.sel(mention_type=kind)
        beside(axes, 2 * row, TYPES[kind], COLUMNS["mentions"])
        head = run.names.own(int(here["best_layer"]), int(here["best_head"]))
        beside(axes, 2 * row, head, COLUMNS["head"])
        held_out, chosen = estimate(here, "held_out"), estimate(here, "best_accuracy")
        hollow = not np.isfinite(held_out.value)
        unit = int(here["best_layer"]) * run.data.sizes["head"] + int(here["best_head"])
        best = chosen if hollow else held_out
        note_heads(
            axes,
            best.value,
            2 * row - APART * len(SYSTEMS) / 2,
            [percent(*map(float, (best.value, best.low, best.high)))],
            units=[unit],
            series=TYPES[kind],
        )
        marks = {"best_head": best}
        marks |= {system: estimate(here, "baseline", system=system) for system in SYSTEMS}
        for place, (word, parts) in enumerate(marks.items()):
            shift = (place - (len(marks) - 1) / 2) * APART
            row_point(axes, 2 * row + shift, parts, word, hollow=hollow and word == "best_head")
    for border in range(1, 2 * len(kinds) - 1, 2):
        axes.axhline(border, color=color("rule"), lw=0.5)


def _finding(run: Reading) -> str:
    held = float(run("held_out", mention_type="all").value)
    rules = float(np.nanmax(run("baseline", mention_type="all").value))
    if not np.isfinite([held, rules]).all():
        return ""
    return f"Held out, the best head finds {percent(held)}; the best rule {percent(rules)}."


def coreference_table(run: Reading) -> Table:
    """Clark et al. (2019), Table 2, with intervals, the strict mode and the held-out figure."""
    dataset, tree = run.data, run.tree
    rows = records(coreference_heads(run))

    def cells(key: str) -> list[Cell]:
        return [share(*ends(row, key)) for row in rows]

    systems = dataset["system"].values.tolist()
    rules = [[Cell(capital(term_name(s))), *cells(f"baseline_{s}")] for s in systems]
    best = [
        Cell(f"{head_of(tree, row)} {cell.text}", cell.small)
        for row, cell in zip(rows, cells("accuracy"), strict=True)
    ]
    every = [
        [Cell("Best head"), *best],
        [Cell("Held out"), *cells("held_out")],
        [Cell("Held out beats"), *(Cell(_beaten(row, systems)) for row in rows)],
    ]
    groups = [
        Rows(rules, "Rules, without a model"),
        Rows(_one_head(dataset, head_of(tree, rows[0])), "The best head for all mentions"),
        Rows(every, "The best head for each kind of mention"),
    ]
    columns = [Column(row["mention_type"].capitalize(), f"n = {row['count']:,}") for row in rows]
    caption = (
        "Share of mentions (%) for which an antecedent is found: the head word of an earlier "
        "mention of the same entity that the mention’s head word attends to most, among the head "
        "words of all earlier mentions; “any word”: among all words of the input. Heads are chosen "
        "on the mentions that they are scored on; held out: chosen on one half of the documents, "
        "scored on the other; below it the rules that this beats beyond the interval of the "
        f"difference. n counts mentions. {INTERVALS}; {run.over('accuracy')}. "
        "Layout after Clark et al. (2019), Table 2."
    )
    return Table("Coreference", [Column(""), *columns], groups, caption)


def _one_head(dataset: xr.Dataset, name_of_head: str) -> list[list[Cell]]:
    rows = []
    for mode, end in (("accuracy", ""), ("accuracy_strict", ", any word")):
        parts = at_best_heads(dataset, mode, [0] * dataset.sizes["mention_type"])
        shares = (share(*at(parts, kind)) for kind in range(len(parts.value)))
        rows.append([Cell(f"{name_of_head}{end}"), *shares])
    return rows


def _beaten(row: dict[str, Any], systems: list[str]) -> str:
    verdicts = {system: row[f"beats_{system}"] for system in systems}
    if all(pd.isna(verdict) for verdict in verdicts.values()):
        return MISSING
    return ", ".join(SYSTEMS.get(s, s) for s, won in verdicts.items() if won is True) or "none"


def coreference_heads(run: Reading) -> pd.DataFrame:
    """The best head of every kind of mention beside the rule systems.

    returns  mention_type, count (mentions), layer, head; accuracy, accuracy_strict (of the same
             head, with all words as candidates) and held_out; for each system baseline_… and
             advantage_…, all with _ci_low and _ci_high; beats_…, missing without interval
    """
    dataset = run.data
    kinds = dataset["mention_type"].values.tolist()
    strict = at_best_heads(dataset, "accuracy_strict", [*range(len(kinds))])
    columns: dict[str, Any] = {
        "mention_type": kinds,
        "count": dataset["count"].values,
        "layer": pd.Series(dataset["best_layer"].values, dtype="Int64"),
        "head": pd.Series(dataset["best_head"].values, dtype="Int64"),
        **with_ends("accuracy", run("best_accuracy")),
        **with_ends("accuracy_strict", strict),
        **with_ends("held_out", run("held_out")),
    }
    for system in dataset["system"].values.tolist():
        advantage = run("advantage", system=system)
        columns |= with_ends(f"baseline_{system}", run("baseline", system=system))
        columns |= with_ends(f"advantage_{system}", advantage)
        columns[f"beats_{system}"] = above_zero(advantage.low)
    return with_model(run.tree, columns)


def at_best_heads(dataset: xr.Dataset, variable: str, of: list[int]) -> Estimate:
    """[kind] `variable` of every kind of mention at the best head of another; NaN without one.

    of  [kind] whose best head that is, as its position
    """
    layer, head = best_places(dataset)[of], dataset["best_head"].values[of]
    place = *(np.nan_to_num(part).astype(int) for part in (layer, head)), np.arange(len(of))
    every = estimate(dataset, variable)
    return every.map(lambda part: np.where(np.isnan(layer), np.nan, part[place]))


def clark_table_2(run: Reading) -> tuple[pd.DataFrame, str]:
    """The rule systems, then the best head, by kind of mention; with a note."""
    dataset, names = run.data, run.names
    rows = {
        system.replace("_", " ").capitalize(): run("baseline", system=system)
        for system in dataset["system"].values.tolist()
    }
    kinds = [str(kind).capitalize() for kind in dataset["mention_type"].values]
    rows[f"Head {paper_head(dataset.isel(mention_type=0), names)}"] = at_best_heads(
        dataset, "accuracy", [0] * len(kinds)
    )
    shares = [(name, *map(paper_percent, parts.value.tolist())) for name, parts in rows.items()]
    note = (
        f"Share of mentions (%) for which an antecedent is found{paper_measure(dataset)} among the "
        "head words of the mentions before it. The head is the best for all mentions, chosen on "
        "the mentions that it is scored on; best_coreference_heads holds the held-out figures and "
        f"the intervals. Heads are layer-head, counted from {names.first}. "
        "Layout of Clark et al. (2019), Table 2."
    )
    return pd.DataFrame(shares, columns=["Model", *kinds]), note


def tables(run: Reading) -> dict[str, pd.DataFrame | tuple[pd.DataFrame, str]]:
    """The best head of each kind of mention; the same in the layout of the paper, with its note."""
    return {"best_coreference_heads": coreference_heads(run), "clark_table_2": clark_table_2(run)}


SECTIONS = language_section(
    "coreference",
    counts="mention",
    finding=_finding,
    id="coreference",
    title="Coreference: who finds the antecedent?",
    text="Of the mentions before it, the one whose head word a mention’s head word attends to "
    "most is taken for its antecedent, and is right if it is of the same entity, however far "
    "back.",
    pictures=("coreference",),
    tables=(coreference_table,),
    wanted="coreference (mentions: --coref)",
    chooses=True,
)
