"""Tidy tables of all results, and the further tables of questions, as files for any tool.

Tidy: one row per number, with layers and heads 0-based, as in the data. Left out is what is no
number, what names a place (best_layer, …), and what says so (`tidy` = 0).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from headscope.core.claim import Claim, rank
from headscope.core.control import controls
from headscope.core.head_labels import all_claims, head_labels, label_rules
from headscope.core.head_metrics import HeadMetric, first_metrics, head_metrics
from headscope.core.question import parts
from headscope.core.results import (
    derived_once,
    documents,
    estimate,
    estimates,
    head_name,
    layer_number,
    layer_numbers,
    naming_layers,
    place_name,
    shape,
)
from headscope.core.whole_file import write_whole
from headscope.errors import InputError

LEADING = [
    "model", "revision", "analysis", "metric", "layer", "head", "value", "n", "ci_low", "ci_high",
]  # fmt: skip
_TEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_TEX |= {character: "\\" + character for character in "&%$#_{}"}
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~])")
UNIT_COLUMNS = {"unit", "unit_other"}
LABEL_COLUMNS = (
    "rank", "kind", "label", "text", "sentence", "value", "ci_low", "ci_high", "reference",
    "effect", "n", "analysis",
)  # fmt: skip


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
    added = {name: table for of in parts("tables") for name, table in of(tree).items()}
    tables = {
        **tidy(tree),
        **{name: of for name, of in added.items() if len(of[0] if isinstance(of, tuple) else of)},
        "heads": head_table(tree),
        "head_labels": label_table(tree),
    }
    written: dict[str, Callable[[str], object] | bytes] = {}
    for name, given in tables.items():
        table, note = given if isinstance(given, tuple) else (given, None)
        written[f"{name}.csv"] = partial(table.to_csv, index=False)
        if note is None:
            written[f"{name}.parquet"] = partial(table.to_parquet, index=False)
        else:
            written[f"{name}.md"] = markdown(table, note).encode()
            written[f"{name}.tex"] = latex(table, note).encode()
    return [write_whole(folder / name, write) for name, write in written.items()]


def markdown(table: pd.DataFrame, note: str) -> str:
    """The table as Markdown, numbers to the right, with a note below."""
    lines = [list(table.columns), ["---", *["---:"] * (len(table.columns) - 1)]]
    lines += [list(map(_escaped, row)) for row in table.values.tolist()]
    rows = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return f"{rows}\n\n{_escaped(note)}\n"


def latex(table: pd.DataFrame, note: str) -> str:
    """The table as a LaTeX table with the rules of booktabs; the note is its caption."""
    rows = [" & ".join(map(_tex, row)) + r" \\" for row in table.values.tolist()]
    head = " & ".join(map(_tex, table.columns)) + r" \\"
    start = rf"\begin{{tabular}}{{l{'r' * (len(table.columns) - 1)}}}"
    before = [r"% \usepackage{booktabs}", r"\begin{table}", r"\centering"]
    body = [start, r"\toprule", head, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}"]
    return "\n".join([*before, rf"\caption{{{_tex(note)}}}", *body, r"\end{table}"]) + "\n"


def head_table(tree: xr.DataTree) -> pd.DataFrame:
    """One row per head: model, revision, layer, head, name, labels, kinds.

    labels  with their numbers, strongest first, joined by "; "; "unlabelled" where there are none
    kinds   the same in words of `label_rules.RULES`, joined by ";"; "" where there are none
    """
    heads = shape(tree)[1]
    rows = [
        {
            **_model(tree), "layer": _own(tree, layer), "head": head,
            "name": head_name(layer * heads + head, heads), "labels": one.text,
            "kinds": ";".join(label.kind for label in one.labels),
        }
        for (layer, head), one in head_labels(tree).items()
    ]  # fmt: skip
    return pd.DataFrame(rows)


def label_table(tree: xr.DataTree) -> pd.DataFrame:
    """One row per label of a head, none for unlabelled heads; empty, with its columns, if all are.

    returns  model, revision, layer, head, rank (1 = strongest), kind, label (without numbers), text
             (with them), sentence; value, ci_low, ci_high and reference as shares of 1; effect, n
             (documents), analysis; in a run with a control, `control`: the largest value of such a
             claim about a head of it, missing where no claim of its heads is made
    """
    more = ["control"] if controls(tree) else []
    columns = [*_model(tree), "layer", "head", *LABEL_COLUMNS, *more]
    rows = [
        {**_model(tree), "layer": _own(tree, layer), "head": head, "rank": place, **label.row}
        | dict.fromkeys(more, label.control)
        for (layer, head), one in head_labels(tree).items()
        for place, label in enumerate(one.labels, start=1)
    ]
    whole = dict.fromkeys(("layer", "head", "rank", "n"), "int64")  # also where there is no row
    shares = dict.fromkeys(("value", "ci_low", "ci_high", "reference", "effect", *more), "float64")
    return pd.DataFrame(rows, columns=columns).astype(whole | shares)


def _model(tree: xr.DataTree) -> dict[str, str]:
    return {name: str(tree.attrs.get(name, "")) for name in ("model", "revision")}


def _own(tree: xr.DataTree, layer: int) -> int:
    """The model's own number of a layer."""
    numbers = layer_numbers(tree)
    return numbers[layer] if numbers else layer


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
        layer = [_own(tree, place) for place in layer]
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


def _tex(text: str) -> str:
    return "".join(_TEX.get(c, c) for c in text).replace("−", "$-$").replace("–", "--")


LABEL = ("label", "effect", "value", "ci_low", "ci_high", "reference", "n")
FOUND = ("is_label", *LABEL, "sentence")
MOST_NAMES = 24  # of an error


@derived_once()
def head_frame(tree: xr.DataTree, *numbers: str) -> pd.DataFrame:
    """One row per head, in the order of layers and heads.

    numbers  further numbers per head, each with its interval; names as in the data, group.variable
             or group.variable.choice: "surface.attention.previous". Without any, those that come
             first in the report of an experiment
    returns  layer and head (from 0), name (L1·H1), labels (with their numbers, strongest first,
             joined by "; "), kinds; label, effect, value, ci_low, ci_high, reference (shares
             of 1) and n (documents) of the strongest label, missing for unlabelled heads; and each
             number KEY with KEY_ci_low, KEY_ci_high
    raises   InputError for a number that the run does not have, with near names
    """
    frame = head_table(tree).drop(columns=["model", "revision"])
    firsts = [one.labels[0] if one.labels else None for one in head_labels(tree).values()]
    for name in LABEL:
        frame[name] = [None if first is None else first.row[name] for first in firsts]
    frame = frame.astype({name: "Int64" if name == "n" else "float64" for name in LABEL[1:]})
    for metric in _numbers(tree, numbers):
        parts = metric.estimate
        for end, values in (("", parts.value), ("_ci_low", parts.low), ("_ci_high", parts.high)):
            frame[f"{metric.key}{end}"] = values.ravel()  # [layer · heads + head]
    return frame


def _numbers(tree: xr.DataTree, names: tuple[str, ...]) -> list[HeadMetric]:
    every = head_metrics(tree)
    known = {metric.key: metric for metric in every}
    for name in names:
        if name not in known:
            raise InputError(f"no number {name!r} per head in this run; {_near(name, known)}")
    return [known[name] for name in names] if names else first_metrics(every)


@derived_once()
def find_heads(tree: xr.DataTree, what: str) -> pd.DataFrame:
    """The heads of which something is said, labels first, then the largest effect.

    what     part of a label's name ("direct object", "previous token"), or exactly a relation of
             the data ("obj") or a kind of label ("sink"); lower or upper case
    returns  layer and head (from 0), name, is_label (whether the claim passes the rule of its kind
             and departs from the control: others are only above an ordinary head), label, effect,
             value, ci_low, ci_high, reference, n, sentence
    raises   InputError where nothing of the kind is claimed of any head, with near names
    """
    asked, claims = what.strip().casefold(), all_claims(tree)
    titles = {kind: rule.title for kind, rule in label_rules().items()}
    said = {id(one): (one.name, one.about, one.kind, titles[one.kind]) for one in claims}
    found = [
        claim for claim in claims
        if asked and (asked in claim.name.casefold() or asked in map(str.casefold, said[id(claim)]))
    ]  # fmt: skip
    if not found:
        words = [word for some in said.values() for word in some if word]
        near = _near(what, dict.fromkeys(claim.name for claim in claims), words)
        raise InputError(f"no head of this run is said to do {what!r}; {near}")
    labels = {label for one in head_labels(tree).values() for label in map(_same, one.labels)}
    found.sort(key=lambda claim: (_same(claim) not in labels, rank(claim)))
    with naming_layers(tree):
        rows = [
            {"layer": layer_number(one.layer), "head": one.head,
             "name": place_name(one.layer, one.head), "is_label": _same(one) in labels, **one.row}
            for one in found
        ]  # fmt: skip
    return pd.DataFrame(rows)[["layer", "head", "name", *FOUND]]


def _same(claim: Claim) -> tuple[int, int, str, str]:
    return claim.layer, claim.head, claim.kind, claim.name


def _near(name: str, known: Iterable[str], more: Iterable[str] = ()) -> str:
    """What may have been meant, of `known` or `more`, and what there is."""
    names = list(known)
    lower = {one.casefold(): one for one in (*names, *more)}
    near = [lower[one] for one in get_close_matches(name.casefold(), lower, 3, 0.5)]
    meant = f"did you mean {' or '.join(near)}? " if near else ""
    there = ", ".join(names[:MOST_NAMES]) or "none"
    return f"{meant}there are: {there}{', …' if len(names) > MOST_NAMES else ''}"
