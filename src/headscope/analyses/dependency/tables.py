"""Tables of the question `dependency`: on the page, in files, and in the layout of the paper.

Clark et al. (2019), Table 1: numbers in per cent with one decimal, heads as layer-head counted from
1, as the paper has them. Intervals and held-out figures stand in `best_heads`.
"""

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from headscope.analyses.language.tables import (
    above_zero,
    paper_head,
    paper_measure,
    paper_percent,
    with_ends,
    with_model,
)
from headscope.claims.caption_words import INTERVALS
from headscope.claims.reading import Reading
from headscope.claims.relation_names import LEAST_WORDS, TOTALS, arrow, frequent_relations
from headscope.core.display import printable
from headscope.core.results import estimate, shape
from headscope.core.wording import MISSING
from headscope.page.tabulate import Cell, Column, Rows, Table, ends, head_of, points, records, share

CLARK_LEAST_WORDS = 100  # Clark et al. 2019, Table 1
BEATS = "beats its baseline"


def syntax_table(run: Reading) -> Table:
    """Clark et al. (2019), Table 1, with intervals and the held-out figure."""
    table = best_heads(run)
    totals, single = table.iloc[: len(TOTALS)], table.iloc[frequent_relations(run.data)]
    groups = [
        Rows([_relation_row(run.tree, row) for row in records(rows)], title)
        for rows, title in ((totals, "Totals"), (single, "Relations, the most frequent first"))
        if len(rows)
    ]
    columns = [
        Column("Relation"),
        Column("n", "words"),
        Column("Head"),
        Column("Accuracy", "%"),
        Column("Baseline", "%", "baseline"),
        Column("Offset", "words"),
        Column("Held out", "%", "held_out"),
        Column("Ahead", "points", "advantage"),
    ]
    rare = int((table["count"].iloc[len(TOTALS) :] < LEAST_WORDS).sum())
    stand = "relation stands" if rare == 1 else "relations stand"
    left = f" {rare} rarer {stand} in tables/best_heads.csv." if rare else ""
    caption = (
        "Share of words (%) whose syntactic head the best head finds, beside the best fixed offset "
        "(+1: the word to the right), both chosen on the words that they are scored on; held out: "
        "heads chosen on one half of the documents, scored on the other; ahead: held out less the "
        "baseline, in percentage points; ▲ the interval of this lies above 0. "
        f"Relations of at least {LEAST_WORDS} words, root and punctuation not shown; n counts "
        f"words. {INTERVALS}; {run.over('accuracy')}.{left} "
        "Layout after Clark et al. (2019), Table 1."
    )
    return Table("Best heads by relation", columns, groups, caption, inline=False)


def _relation_row(tree: xr.DataTree, row: dict[str, Any]) -> list[Cell]:
    relation, direction = printable(row["relation"]), row["direction"]
    words = "" if direction is None else arrow(relation, str(direction))
    shares = {key: share(*ends(row, key)) for key in ("accuracy", "baseline", "held_out")}
    name, offset = relation, row["baseline_offset"]
    if relation in TOTALS:
        name = relation.replace("_", " ")
    return [
        Cell(name, words, code=relation not in TOTALS),
        Cell(f"{int(row['count']):,}"),
        Cell(head_of(tree, row)),
        shares["accuracy"],
        shares["baseline"],
        Cell(MISSING if pd.isna(offset) else f"{int(offset):+d}".replace("-", "−")),
        shares["held_out"],
        points(*ends(row, "advantage"), mark=BEATS if row["beats_baseline"] is True else ""),
    ]


def best_heads(run: Reading) -> pd.DataFrame:
    """The best head of every relation beside its best fixed offset.

    returns  relation ("all", "all_but_root_and_punctuation", then the treebank's labels, the most
             frequent first), count (words), layer, head, direction; accuracy and baseline, chosen
             on the data that they are scored on; baseline_offset (words, minus: to the left);
             held_out (chosen on one half of the documents, scored on the other), advantage (that
             less the baseline's held-out accuracy); each of the four with _ci_low and _ci_high;
             beats_baseline, missing where there is no interval
    """
    dataset = run.data
    direction = dataset["best_direction"].values
    names = dataset["direction"].values.tolist()
    advantage = run("advantage")
    columns: dict[str, Any] = {
        "relation": dataset["relation"].values.tolist(),
        "count": dataset["count"].values,
        "layer": pd.Series(dataset["best_layer"].values, dtype="Int64"),
        "head": pd.Series(dataset["best_head"].values, dtype="Int64"),
        "direction": [None if np.isnan(d) else names[int(d)] for d in direction],
        **with_ends("accuracy", run("best_accuracy")),
        **with_ends("held_out", run("held_out")),
        **with_ends("baseline", run("baseline")),
        "baseline_offset": pd.Series(dataset["best_offset"].values, dtype="Int64"),
        **with_ends("advantage", advantage),
        "beats_baseline": above_zero(advantage.low),
    }
    return with_model(run.tree, columns)


COLUMNS = ["Relation", "Head", "Accuracy", "Held out", "Baseline"]


def clark_table_1(run: Reading, *, least: int = CLARK_LEAST_WORDS) -> tuple[pd.DataFrame, str]:
    """Relation, Head, Accuracy, Held out, Baseline: all words first, then relations by frequency.

    least    words that a relation has at least
    returns  text, and what stands below it; Baseline holds the best offset in brackets; root and
             punctuation are not shown
    """
    dataset, names = run.data, run.names
    rows, turned = [], []
    for at in [0, *frequent_relations(dataset, least=least)]:
        here = dataset.isel(relation=at)
        name = printable(dataset["relation"].values[at]) if at else "All"
        offset = here["best_offset"]
        places = f" ({float(offset):.0f})" if np.isfinite(offset) else ""
        accuracy, held_out = (
            paper_percent(*(float(part) for part in (one.value, one.low, one.high)))
            for one in (estimate(here, "best_accuracy"), estimate(here, "held_out"))
        )
        baseline = paper_percent(float(here["baseline"]))
        rows.append([name, paper_head(here, names), accuracy, held_out, baseline + places])
        if here["best_direction"] == dataset["direction"].values.tolist().index(
            "head_to_dependent"
        ):
            turned.append(name)
    ways = "From dependent to head"
    ways += f", but from head to dependent for {', '.join(turned)}." if turned else " throughout."
    layers, heads = shape(run.tree)
    note = (
        f"Share of words (%) whose syntactic head is found{paper_measure(dataset)}: the best of "
        f"{layers * heads} heads in two directions, and in brackets the best fixed offset, each "
        "chosen on the words that it is scored on; held out: a head is chosen on one half of the "
        "documents and scored on the other, both ways. [ ]: 95 % intervals over documents. "
        f"{ways} Relations of at least {least} words, root and punctuation not shown. "
        f"Heads are layer-head, counted from {names.first}. Layout of Clark et al. (2019), Table 1."
    )
    return pd.DataFrame(rows, columns=COLUMNS), note


def tables(run: Reading) -> dict[str, pd.DataFrame | tuple[pd.DataFrame, str]]:
    """The best head of each relation; the same in the layout of the paper, with its note."""
    return {"best_heads": best_heads(run), "clark_table_1": clark_table_1(run)}
