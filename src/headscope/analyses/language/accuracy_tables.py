"""Which tables show what heads find: syntactic heads of words, antecedents of mentions?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from headscope.analyses.language.best_head_tables import at_heads, best_heads, coreference_heads
from headscope.core.accumulators import Estimate
from headscope.core.dictionary import name
from headscope.core.relation_names import LEAST_WORDS, TOTALS, arrow, shown_relations
from headscope.core.results import group, printable
from headscope.core.wording import MISSING
from headscope.draw.caption_words import INTERVALS, over
from headscope.page.tabulate import (
    Cell,
    Column,
    Rows,
    Table,
    capital,
    ends,
    head_of,
    points,
    records,
    share,
)

BEATS = "beats its baseline"
TOTAL_NAMES = {"all": "all", "all_but_root_and_punctuation": "all but root and punctuation"}
SYSTEMS = {"nearest": "nearest", "head_match": "head match", "rule_based": "rules"}


def syntax_table(tree: xr.DataTree) -> Table:
    """Clark et al. (2019), Table 1, with intervals and the held-out figure."""
    dataset = group(tree, "dependency")
    assert dataset is not None
    table = best_heads(tree)
    totals, single = table.iloc[: len(TOTALS)], table.iloc[shown_relations(dataset)]
    groups = [
        Rows([_relation_row(tree, row) for row in records(rows)], title)
        for rows, title in ((totals, "Totals"), (single, "Relations, the most frequent first"))
        if len(rows)
    ]
    columns = [
        Column("Relation"), Column("n", "words"), Column("Head"), Column("Accuracy", "%"),
        Column("Baseline", "%", "baseline"), Column("Offset", "words"),
        Column("Held out", "%", "held_out"), Column("Ahead", "points", "advantage"),
    ]  # fmt: skip
    rare = int((table["count"].iloc[len(TOTALS) :] < LEAST_WORDS).sum())
    caption = _syntax_caption(over(tree, dataset["accuracy"]), rare=rare)
    return Table("Best heads by relation", columns, groups, caption, inline=False)


def _syntax_caption(n: str, *, rare: int) -> str:
    stand = "relation stands" if rare == 1 else "relations stand"
    left = f" {rare} rarer {stand} in tables/best_heads.csv." if rare else ""
    return (
        "Share of words (%) whose syntactic head the best head finds, beside the best fixed offset "
        "(+1: the word to the right), both chosen on the words that they are scored on; held out: "
        "heads chosen on one half of the documents, scored on the other; ahead: held out less the "
        "baseline, in percentage points; ▲ the interval of this lies above 0. "
        f"Relations of at least {LEAST_WORDS} words, root and punctuation not shown; n counts "
        f"words. {INTERVALS}; {n}.{left} Layout after Clark et al. (2019), Table 1."
    )


def _relation_row(tree: xr.DataTree, row: dict[str, Any]) -> list[Cell]:
    relation, direction = printable(row["relation"]), row["direction"]
    words = "" if direction is None else arrow(relation, str(direction))
    offset = row["baseline_offset"]
    return [
        Cell(TOTAL_NAMES.get(relation, relation), words, code=relation not in TOTAL_NAMES),
        Cell(f"{int(row['count']):,}"),
        Cell(head_of(tree, row)),
        _from(row, "accuracy"),
        _from(row, "baseline"),
        Cell(MISSING if pd.isna(offset) else f"{int(offset):+d}".replace("-", "−")),
        _from(row, "held_out"),
        points(*ends(row, "advantage"), mark=BEATS if _true(row["beats_baseline"]) else ""),
    ]


def coreference_table(tree: xr.DataTree) -> Table:
    """Clark et al. (2019), Table 2, with intervals, the strict mode and the held-out figure."""
    dataset = group(tree, "coreference")
    assert dataset is not None
    rows = records(coreference_heads(tree))
    systems = [str(system) for system in dataset["system"].values]
    rules = [
        [Cell(capital(name(system))), *(_from(row, f"baseline_{system}") for row in rows)]
        for system in systems
    ]
    every = [
        [Cell("Best head"), *(_with_head(tree, row) for row in rows)],
        [Cell("Held out"), *(_from(row, "held_out") for row in rows)],
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
    cell = _from(row, "accuracy")
    return Cell(f"{head_of(tree, row)} {cell.text}", cell.small)


def _beaten(row: dict[str, Any], systems: list[str]) -> str:
    verdicts = [row[f"beats_{system}"] for system in systems]
    if all(pd.isna(verdict) for verdict in verdicts):
        return MISSING
    beaten = [SYSTEMS.get(s, s) for s, won in zip(systems, verdicts, strict=True) if _true(won)]
    return ", ".join(beaten) or "none"


def _kind(kind: str) -> str:
    return {"all": "All", "pronoun": "Pronoun", "proper": "Proper", "nominal": "Nominal"}.get(
        kind, printable(kind)
    )


def _from(row: dict[str, Any], key: str) -> Cell:
    return share(*ends(row, key))


def _cells(parts: Estimate) -> list[Cell]:
    limits = zip(parts.value.tolist(), parts.low.tolist(), parts.high.tolist(), strict=True)
    return [share(*three) for three in limits]


def _true(verdict: Any) -> bool:
    """False where there is no verdict."""
    return not pd.isna(verdict) and bool(verdict)
