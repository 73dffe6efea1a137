"""Tidy tables of all results, and the further tables of questions, as files for any tool.

Tidy: one row per number, with layers and heads 0-based, as in the data. Left out are values that
are no numbers, names of places (best_layer, …), and parts marked `tidy` = 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from headscope.claims.control import controls
from headscope.claims.dictionary import terms
from headscope.claims.head_labels import head_labels
from headscope.claims.reading import parts_of
from headscope.claims.relation_names import TOTALS
from headscope.core.head_names import HeadNames, names_of
from headscope.core.results import derived_once, documents, estimate, estimates, shape
from headscope.core.whole_file import write_whole
from headscope.core.wording import MISSING
from headscope.page.tabulate import measured

LEADING = [
    "model",
    "revision",
    "analysis",
    "metric",
    "layer",
    "head",
    "value",
    "n",
    "ci_low",
    "ci_high",
]
_TEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_TEX |= {character: "\\" + character for character in "&%$#_{}"}
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~])")
UNIT_COLUMNS = {"unit", "unit_other"}
LABEL_COLUMNS = (
    "rank",
    "kind",
    "label",
    "text",
    "sentence",
    "where",
    "value",
    "ci_low",
    "ci_high",
    "reference",
    "effect",
    "n",
    "analysis",
)
# What a caption says, a head's name, and whole sentences.
UNPRINTED = (
    "model",
    "revision",
    "analysis",
    "layer",
    "head",
    "name",
    "text",
    "sentence",
    "kind",
    "kinds",
)


@derived_once()
def tidy(tree: xr.DataTree) -> dict[str, pd.DataFrame]:
    """One table per group of the result, rows in the order of the data.

    returns  group name → columns of LEADING, then the group's other dimensions; a dimension that
             a metric does not have is missing there, as are layer and head
    """
    kept = [str(name) for name, child in tree.children.items() if child.attrs.get("tidy", 1)]
    return {name: _group_table(tree, name) for name in kept}


@derived_once()
def write_tables(tree: xr.DataTree, folder: Path) -> list[Path]:
    """Writes every table; each file appears whole or not at all.

    The tidy tables, those that questions add (but empty ones), `heads` and `head_labels` become
    .parquet and .csv, the tables in a paper's layout, which have a note, .csv, .md and .tex.

    returns  the paths written
    raises   UnwrittenError if the folder cannot be written
    """
    written: dict[str, Callable[[str], object] | bytes] = {}
    for name, (table, note) in all_tables(tree).items():
        written[f"{name}.csv"] = partial(table.to_csv, index=False)
        if note is None:
            written[f"{name}.parquet"] = partial(table.to_parquet, index=False)
        else:
            written[f"{name}.md"] = markdown(table, note).encode()
            written[f"{name}.tex"] = latex(table, note).encode()
    return [write_whole(folder / name, write) for name, write in written.items()]


@derived_once()
def all_tables(tree: xr.DataTree) -> dict[str, tuple[pd.DataFrame, str | None]]:
    """Every table by the name of its file; those in a paper's layout with their note, else None."""
    added = {name: table for of in parts_of(tree, "tables") for name, table in of.items()}
    pairs = {name: of if isinstance(of, tuple) else (of, None) for name, of in added.items()}
    ours = {"heads": (head_table(tree), None), "head_labels": (label_table(tree), None)}
    return (
        {name: (table, None) for name, table in tidy(tree).items()}
        | {name: pair for name, pair in pairs.items() if len(pair[0])}
        | ours
    )


def in_print(table: pd.DataFrame) -> pd.DataFrame:
    """A table as texts: intervals in brackets beside their numbers, heads and words by their names.

    Left out are empty columns, and those of UNPRINTED.
    """
    plain = {word: term.name for word, term in terms().items() if "_" in word}
    plain |= {word: word.replace("_", " ") for word in TOTALS}
    shown, names = dict[str, list[str]](), HeadNames(())  # tables have the model's own numbers
    if {"layer", "head"} <= set(table):
        places = zip(table["layer"], table["head"], strict=True)
        shown["layer" if table["head"].isna().all() else "head"] = [
            _place(*at, names) for at in places
        ]
    for name in map(str, table):
        if name in UNPRINTED or name.endswith(("ci_low", "ci_high")):
            continue
        ends = [f"{name}_ci_"[6 * (name == "value") :] + end for end in ("low", "high")]
        limits = [table.get(end, [np.nan] * len(table)) for end in ends]
        values = table[name] + names.first if name.endswith("layer") else table[name]
        texts = [_printed(*row) for row in zip(values, *limits, strict=True)]
        shown[name] = [plain.get(text, text) for text in texts]
    columns = {name: of for name, of in shown.items() if set(of) - {MISSING, ""}}
    return pd.DataFrame({name.replace("_", " "): of for name, of in columns.items()})


def _place(layer: Any, head: Any, names: HeadNames) -> str:
    name = MISSING if pd.isna(layer) else names.own(int(layer), 0 if pd.isna(head) else int(head))
    return name.partition("·")[0] if pd.isna(head) else name


def _printed(value: Any, low: float, high: float) -> str:
    if isinstance(value, float):
        cell = measured(value, low, high)
        return f"{cell.text} {cell.small}".strip()
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return MISSING if pd.isna(value) else str(value)


def markdown(table: pd.DataFrame, note: str) -> str:
    """The table as Markdown, numbers to the right, with a note below."""
    lines = [list(table.columns), ["---", *["---:"] * (len(table.columns) - 1)]]
    lines += [list(map(_escaped, row)) for row in table.values.tolist()]
    rows = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return f"{rows}\n\n{_escaped(note)}\n"


def latex(table: pd.DataFrame, note: str) -> str:
    """The table as a LaTeX table with the rules of booktabs; the note is its caption."""
    rows = [" & ".join(map(tex, row)) + r" \\" for row in table.values.tolist()]
    head = " & ".join(map(tex, table.columns)) + r" \\"
    start = rf"\begin{{tabular}}{{l{'r' * (len(table.columns) - 1)}}}"
    before = [r"% \usepackage{booktabs}", r"\begin{table}", r"\centering"]
    body = [start, r"\toprule", head, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}"]
    return "\n".join([*before, rf"\caption{{{tex(note)}}}", *body, r"\end{table}"]) + "\n"


def head_table(tree: xr.DataTree) -> pd.DataFrame:
    """One row per head: model, revision, layer, head, name, labels, kinds.

    labels  with their numbers, strongest first, joined by "; "; "unlabelled" where there are none
    kinds   the same in words of `label_rules.RULES`, joined by ";"; "" where there are none
    """
    names = names_of(tree)
    rows = [
        {
            **_model(tree),
            "layer": names.number(layer),
            "head": head,
            "name": names.head(layer, head),
            "labels": one.text,
            "kinds": ";".join(label.kind for label in one.labels),
        }
        for (layer, head), one in head_labels(tree).items()
    ]
    return pd.DataFrame(rows)


def label_table(tree: xr.DataTree) -> pd.DataFrame:
    """One row per label of a head, none for unlabelled heads; empty, with its columns, if all are.

    returns  model, revision, layer, head, rank (1 = strongest), kind, label (without numbers), text
             (with them), sentence, where (in inputs of which lengths); value, ci_low, ci_high and
             reference as shares of 1; effect, n (documents), analysis; in a run with a control,
             `control`: the largest value of such a claim about a head of it, missing where no claim
             of its heads is made
    """
    names, more = names_of(tree), ["control"] if controls(tree) else []
    columns = [*_model(tree), "layer", "head", *LABEL_COLUMNS, *more]
    rows = [
        {**_model(tree), "layer": names.number(layer), "head": head, "rank": place, **label.row}
        | dict.fromkeys(more, label.control)
        for (layer, head), one in head_labels(tree).items()
        for place, label in enumerate(one.labels, start=1)
    ]
    whole = dict.fromkeys(("layer", "head", "rank", "n"), "int64")  # also where there is no row
    shares = dict.fromkeys(("value", "ci_low", "ci_high", "reference", "effect", *more), "float64")
    return pd.DataFrame(rows, columns=columns).astype(whole | shares)


def _model(tree: xr.DataTree) -> dict[str, str]:
    return {name: str(tree.attrs.get(name, "")) for name in ("model", "revision")}


def _group_table(tree: xr.DataTree, name: str) -> pd.DataFrame:
    dataset = tree.children[name].to_dataset()
    parts = [_variable_table(tree, name, variable) for variable in estimates(dataset)]
    if not parts:
        return pd.DataFrame(columns=LEADING)
    table = pd.concat(parts, ignore_index=True)
    for column in UNIT_COLUMNS & set(table.columns):
        table[column] = table[column].astype("Int64")  # concat makes a column with gaps float
    return table[LEADING + [column for column in table.columns if column not in LEADING]]


def _variable_table(tree: xr.DataTree, name: str, variable: str) -> pd.DataFrame:
    dataset = tree.children[name].to_dataset()
    array = dataset[variable]
    parts = estimate(dataset, variable)
    columns = {str(dim): _spread(array, str(dim)) for dim in array.dims}
    layer, head, count = columns.get("layer"), columns.get("head"), array.size
    if "unit" in columns:  # layer · heads + head
        units = np.asarray(columns["unit"], dtype=np.int64)
        layer, head = (part.tolist() for part in divmod(units, shape(tree)[1]))
        layer = [*map(names_of(tree).number, layer)]
    n = dataset.get(f"{variable}_n")
    table = {
        **_model(tree),
        "analysis": name,
        "metric": variable,
        # Missing where the metric has no such dimension.
        "layer": pd.Series(layer or [None] * count, dtype="Int64"),
        "head": pd.Series(head or [None] * count, dtype="Int64"),
        "value": parts.value.reshape(-1),  # [row]
        "n": documents(tree, array) if n is None else n.values.reshape(-1),  # [row]
        "ci_low": parts.low.reshape(-1),  # [row]
        "ci_high": parts.high.reshape(-1),  # [row]
    }
    rest = {dim: values for dim, values in columns.items() if dim not in table}
    return pd.DataFrame(table | rest, index=range(count))


def _spread(array: xr.DataArray, dim: str) -> list[object]:
    own = [-1 if name == dim else 1 for name in array.dims]  # its shape among the other axes
    flat: list[object] = (
        np.broadcast_to(array[dim].values.reshape(own), array.shape).ravel().tolist()
    )
    return flat


def _escaped(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", text)


def tex(text: str) -> str:
    """The text with LaTeX's own characters escaped."""
    return "".join(_TEX.get(c, c) for c in text).replace("−", "$-$").replace("–", "--")
