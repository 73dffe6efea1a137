"""Tables of the question `coreference`: on the page, in files, and in the layout of the paper.

Clark et al. (2019), Table 2: numbers in per cent with one decimal, heads as layer-head counted from
1, as the paper has them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from headscope.analyses.language.tables import (
    above_zero,
    is_true,
    paper_head,
    paper_measure,
    paper_percent,
    share_of,
    whole_numbers,
    with_ends,
    with_model,
)
from headscope.core.accumulators import Estimate
from headscope.core.dictionary import name as term_name
from headscope.core.results import Floats, estimate, group, printable
from headscope.core.wording import MISSING, capital
from headscope.draw.caption_words import INTERVALS, over
from headscope.page.tabulate import (
    Cell,
    Column,
    Rows,
    Table,
    head_of,
    records,
    share,
)

SYSTEMS = {"nearest": "nearest", "head_match": "head match", "rule_based": "rules"}
PAPER_SYSTEMS = {"nearest": "Nearest", "head_match": "Head match", "rule_based": "Rule based"}


def coreference_table(tree: xr.DataTree) -> Table:
    """Clark et al. (2019), Table 2, with intervals, the strict mode and the held-out figure."""
    dataset = group(tree, "coreference")
    assert dataset is not None
    rows = records(coreference_heads(tree))
    systems = [str(system) for system in dataset["system"].values]
    rules = [
        [Cell(capital(term_name(system))), *(share_of(row, f"baseline_{system}") for row in rows)]
        for system in systems
    ]
    every = [
        [Cell("Best head"), *(_with_head(tree, row) for row in rows)],
        [Cell("Held out"), *(share_of(row, "held_out") for row in rows)],
        [Cell("Held out beats"), *(Cell(_beaten(row, systems)) for row in rows)],
    ]
    groups = [
        Rows(rules, "Rules, without a model"),
        Rows(_one_head(dataset, head_of(tree, rows[0])), "The best head for all mentions"),
        Rows(every, "The best head for each kind of mention"),
    ]
    columns = [Column(_kind(str(r["mention_type"])), f"n = {int(r['count']):,}") for r in rows]
    caption = (
        "Share of mentions (%) for which an antecedent is found: the head word of an earlier "
        "mention of the same entity that the mention’s head word attends to most, among the head "
        "words of all earlier mentions; “any word”: among all words of the input. Heads are chosen "
        "on the mentions that they are scored on; held out: chosen on one half of the documents, "
        "scored on the other; below it the rules that this beats beyond the interval of the "
        f"difference. n counts mentions. {INTERVALS}; {over(tree, dataset['accuracy'])}. "
        "Layout after Clark et al. (2019), Table 2."
    )
    return Table("Coreference", [Column(""), *columns], groups, caption)


def _one_head(dataset: xr.Dataset, name_of_head: str) -> list[list[Cell]]:
    """The head that is best for all mentions, at every kind of mention and in both modes."""
    kinds = dataset.sizes["mention_type"]
    place = [np.full(kinds, dataset[f"best_{part}"].values[0]) for part in ("layer", "head")]
    modes = {"": "accuracy", ", any word": "accuracy_strict"}
    return [
        [Cell(f"{name_of_head}{end}"), *_cells(at_heads(dataset, mode, *place))]
        for end, mode in modes.items()
    ]


def _with_head(tree: xr.DataTree, row: dict[str, Any]) -> Cell:
    cell = share_of(row, "accuracy")
    return Cell(f"{head_of(tree, row)} {cell.text}", cell.small)


def _beaten(row: dict[str, Any], systems: list[str]) -> str:
    verdicts = [row[f"beats_{system}"] for system in systems]
    if all(pd.isna(verdict) for verdict in verdicts):
        return MISSING
    beaten = [SYSTEMS.get(s, s) for s, won in zip(systems, verdicts, strict=True) if is_true(won)]
    return ", ".join(beaten) or "none"


def _kind(kind: str) -> str:
    return {"all": "All", "pronoun": "Pronoun", "proper": "Proper", "nominal": "Nominal"}.get(
        kind, printable(kind)
    )


def _cells(parts: Estimate) -> list[Cell]:
    limits = zip(parts.value.tolist(), parts.low.tolist(), parts.high.tolist(), strict=True)
    return [share(*three) for three in limits]


def coreference_heads(tree: xr.DataTree) -> pd.DataFrame:
    """The best head of every kind of mention beside the rule systems; empty without `coreference`.

    returns  mention_type, count (mentions), layer, head; accuracy, accuracy_strict (of the same
             head, with all words as candidates) and held_out; for each system baseline_… and
             advantage_…, all with _ci_low and _ci_high; beats_…, missing without interval
    """
    dataset = group(tree, "coreference")
    if dataset is None:
        return pd.DataFrame()
    kinds = dataset["mention_type"].values.tolist()
    layer, head = dataset["best_layer"].values, dataset["best_head"].values
    columns: dict[str, Any] = {
        "mention_type": kinds,
        "count": dataset["count"].values,
        "layer": whole_numbers(layer),
        "head": whole_numbers(head),
        **with_ends("accuracy", estimate(dataset, "best_accuracy")),
        **with_ends("accuracy_strict", at_heads(dataset, "accuracy_strict", layer, head)),
        **with_ends("held_out", estimate(dataset, "held_out")),
    }
    for system in dataset["system"].values.tolist():
        advantage = estimate(dataset, "advantage", system=system)
        columns |= with_ends(f"baseline_{system}", estimate(dataset, "baseline", system=system))
        columns |= with_ends(f"advantage_{system}", advantage)
        columns[f"beats_{system}"] = above_zero(advantage.low)
    return with_model(tree, columns)


def at_heads(dataset: xr.Dataset, variable: str, layer: Floats, head: Floats) -> Estimate:
    """[column] `variable` [layer, head, column] at one head per column; NaN where there is none."""
    found = estimate(dataset, variable)
    there = np.isfinite(layer) & np.isfinite(head)
    place = np.where(there, layer, 0).astype(int), np.where(there, head, 0).astype(int)
    columns = np.arange(len(layer))
    parts = (found.value, found.low, found.high)
    return Estimate(*(np.where(there, part[(*place, columns)], np.nan) for part in parts))


def clark_table_2(tree: xr.DataTree) -> pd.DataFrame:
    """Model and one column per kind of mention: the rule systems, then the best head for all.

    returns  text; empty without `coreference`
    """
    dataset = group(tree, "coreference")
    if dataset is None:
        return pd.DataFrame()
    kinds = [str(kind).capitalize() for kind in dataset["mention_type"].values]
    rows = [
        _row(
            PAPER_SYSTEMS.get(system, printable(system)),
            kinds,
            estimate(dataset, "baseline", system=system),
        )
        for system in dataset["system"].values.tolist()
    ]
    layer, head = (float(dataset[name].values[0]) for name in ("best_layer", "best_head"))
    same = np.full(len(kinds), layer), np.full(len(kinds), head)
    name = f"Head {paper_head(layer, head)}"
    return pd.DataFrame([*rows, _row(name, kinds, at_heads(dataset, "accuracy", *same))])


def note_2(tree: xr.DataTree) -> str:
    """What stands below the second table; '' without it."""
    dataset = group(tree, "coreference")
    if dataset is None:
        return ""
    return (
        f"Share of mentions (%) for which an antecedent is found{paper_measure(dataset)} among the "
        "head words of the mentions before it. The head is the best for all mentions, chosen on "
        "the mentions that it is scored on; best_coreference_heads holds the held-out figures and "
        "the intervals. Heads are layer-head, counted from 1. "
        "Layout of Clark et al. (2019), Table 2."
    )


def _row(name: str, kinds: list[str], parts: Estimate) -> dict[str, str]:
    values: Floats = parts.value
    return {"Model": name} | dict(zip(kinds, map(paper_percent, values.tolist()), strict=True))


def tables(tree: xr.DataTree) -> dict[str, pd.DataFrame | tuple[pd.DataFrame, str]]:
    """The best head of each kind of mention; the same in the layout of the paper, with its note."""
    return {
        "best_coreference_heads": coreference_heads(tree),
        "clark_table_2": (clark_table_2(tree), note_2(tree)),
    }
