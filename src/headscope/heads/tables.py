"""Tidy tables of all results, and the further tables of questions, as files for any tool.

One row per number: model, revision, analysis, metric, layer, head, value, n, ci_low, ci_high,
then the remaining dimensions under their own names. Layers and heads are 0-based, as in the data.
What is no number (strings) and what names a place (best_layer, …) is left out, and groups and
variables that say so (`tidy` = 0). Beside the tidy tables stand those of the best heads, and what
each head is (`head_tables`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from headscope.core.question import parts
from headscope.core.results import documents, estimate, estimates, shape
from headscope.core.whole_file import write_whole
from headscope.heads.head_tables import head_table, label_table

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


def tidy(tree: xr.DataTree) -> dict[str, pd.DataFrame]:
    """One table per group of the result, rows in the order of the data.

    returns  group name → columns of LEADING, then the group's other dimensions; a dimension that
             a metric does not have is missing there, as are layer and head
    """
    kept = [str(name) for name, child in tree.children.items() if child.attrs.get("tidy", 1)]
    return {name: _group_table(tree, name) for name in kept}


def write_tables(tree: xr.DataTree, folder: Path) -> list[Path]:
    """Writes every table; each file appears whole or not at all.

    The tidy tables, those of the best heads, `heads` and `head_labels` become .parquet and .csv,
    the tables in a paper's layout .csv, .md and .tex.

    returns  the paths written
    raises   OSError if the folder cannot be written
    """
    folder.mkdir(parents=True, exist_ok=True)
    written: dict[str, Callable[[str], None]] = {}
    labels = {"heads": head_table(tree), "head_labels": label_table(tree)}
    plain, noted = question_tables(tree)
    for name, table in {**tidy(tree), **plain, **labels}.items():
        written[f"{name}.parquet"] = partial(_parquet, table)
        written[f"{name}.csv"] = partial(_csv, table)
    for name, (table, note) in noted.items():
        written[f"{name}.csv"] = partial(_csv, table)
        for kind, write in (("md", markdown), ("tex", latex)):
            written[f"{name}.{kind}"] = partial(_text, write(table, note))
    return [write_whole(folder / name, write) for name, write in written.items()]


def question_tables(
    tree: xr.DataTree,
) -> tuple[dict[str, pd.DataFrame], dict[str, tuple[pd.DataFrame, str]]]:
    """The tables that questions add, by the names of their files: plain ones, and those in the
    layout of a paper with their note. Empty ones are left out.
    """
    plain, noted = {}, {}
    for tables_of in parts("tables"):
        for name, table in tables_of(tree).items():
            if isinstance(table, tuple):
                noted[name] = table
            else:
                plain[name] = table
    return (
        {name: table for name, table in plain.items() if len(table)},
        {name: (table, note) for name, (table, note) in noted.items() if len(table)},
    )


def markdown(table: pd.DataFrame, note: str) -> str:
    """The table as Markdown, numbers to the right, with a note below."""
    lines = [list(table.columns), ["---", *["---:"] * (len(table.columns) - 1)]]
    lines += [list(map(_escaped, row)) for row in table.values.tolist()]
    rows = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return f"{rows}\n\n{_escaped(note)}\n"


def latex(table: pd.DataFrame, note: str) -> str:
    """The table as a LaTeX tabular with the rules of booktabs, the note as a comment above."""
    rows = [" & ".join(map(_tex, row)) + r" \\" for row in table.values.tolist()]
    head = " & ".join(map(_tex, table.columns)) + r" \\"
    start = rf"\begin{{tabular}}{{l{'r' * (len(table.columns) - 1)}}}"
    body = [start, r"\toprule", head, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}"]
    return "\n".join([f"% {note}", *body]) + "\n"


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
    layer, head = _layer_and_head(tree, columns)
    count = array.size
    table = {
        "model": str(tree.attrs.get("model", "")),
        "revision": str(tree.attrs.get("revision", "")),
        "analysis": name,
        "metric": variable,
        "layer": _whole(layer, count),
        "head": _whole(head, count),
        "value": parts.value.reshape(-1),  # [row]
        "n": _counts(tree, dataset, variable),
        "ci_low": parts.low.reshape(-1),  # [row]
        "ci_high": parts.high.reshape(-1),  # [row]
    }
    rest = {dim: values for dim, values in columns.items() if dim not in table}
    return pd.DataFrame(table | rest, index=range(count))


def _whole(values: list[object], count: int) -> pd.Series[int]:
    """Whole numbers, or missing ones where the metric has no such dimension."""
    return pd.Series(values or [None] * count, dtype="Int64")


def _spread(array: xr.DataArray, dim: str) -> list[object]:
    """The coordinate of one dimension, repeated for every cell of the array."""
    along = xr.broadcast(array[dim], array)[0].transpose(*array.dims)
    flat: list[object] = along.values.reshape(-1).tolist()  # [row]
    return flat


def _layer_and_head(
    tree: xr.DataTree, columns: dict[str, list[object]]
) -> tuple[list[object], list[object]]:
    """Layer and head columns; where the dimension is `unit` = layer · heads + head, from it."""
    if "unit" in columns:
        heads = shape(tree)[1]
        units = np.asarray(columns["unit"], dtype=np.int64)
        return (units // heads).tolist(), (units % heads).tolist()
    return columns.get("layer", []), columns.get("head", [])


def _counts(tree: xr.DataTree, dataset: xr.Dataset, variable: str) -> object:
    if f"{variable}_n" in dataset:
        return dataset[f"{variable}_n"].values.reshape(-1)  # [row]
    return documents(tree, dataset[variable])


def _parquet(table: pd.DataFrame, path: str) -> None:
    table.to_parquet(path, index=False)


def _text(text: str, path: str) -> None:
    Path(path).write_text(text, encoding="utf-8", newline="\n")


def _csv(table: pd.DataFrame, path: str) -> None:
    table.to_csv(path, index=False)


def _escaped(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", text)


def _tex(text: str) -> str:
    return "".join(_TEX.get(c, c) for c in text).replace("−", "$-$").replace("–", "--")
