"""How do the best heads look in the layout of the field's tables?

Clark et al. (2019), Tables 1 and 2: numbers in per cent with one decimal, heads as layer-head
counted from 1, as the paper has them. Intervals and held-out figures stand in `best_heads`.
"""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import xarray as xr

from headscope.analyses.language.best_head_tables import at_heads
from headscope.core.accumulators import Estimate
from headscope.core.relation_names import shown_relations
from headscope.core.results import Floats, estimate, group, printable, shape

CLARK_LEAST_WORDS = 100  # Clark et al. 2019, Table 1
SYSTEMS = {"nearest": "Nearest", "head_match": "Head match", "rule_based": "Rule based"}
MISSING = "–"
_TEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_TEX |= {character: "\\" + character for character in "&%$#_{}"}
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~])")


def clark_table_1(tree: xr.DataTree, *, least: int = CLARK_LEAST_WORDS) -> pd.DataFrame:
    """Relation, Head, Accuracy, Baseline: all words first, then relations by frequency.

    least    words that a relation has at least
    returns  text; Baseline holds the best offset in brackets; root and punctuation are not shown.
             Empty without `dependency`
    """
    dataset = group(tree, "dependency")
    if dataset is None:
        return pd.DataFrame()
    rows = []
    for at in [0, *shown_relations(dataset, least=least)]:
        here = dataset.isel(relation=at)
        offset = float(here["best_offset"])
        places = f" ({offset:.0f})" if np.isfinite(offset) else ""
        rows.append(
            {
                "Relation": "All" if at == 0 else printable(dataset["relation"].values[at]),
                "Head": _head(float(here["best_layer"]), float(here["best_head"])),
                "Accuracy": _percent(float(here["best_accuracy"])),
                "Baseline": _percent(float(here["baseline"])) + places,
            }
        )
    return pd.DataFrame(rows)


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
            SYSTEMS.get(system, printable(system)),
            kinds,
            estimate(dataset, "baseline", system=system),
        )
        for system in dataset["system"].values.tolist()
    ]
    layer, head = (float(dataset[name].values[0]) for name in ("best_layer", "best_head"))
    same = np.full(len(kinds), layer), np.full(len(kinds), head)
    name = f"Head {_head(layer, head)}"
    return pd.DataFrame([*rows, _row(name, kinds, at_heads(dataset, "accuracy", *same))])


def note_1(tree: xr.DataTree) -> str:
    """What stands below the first table; '' without it."""
    dataset = group(tree, "dependency")
    if dataset is None:
        return ""
    names = dataset["direction"].values.tolist()
    turned = [
        "All" if at == 0 else printable(dataset["relation"].values[at])
        for at in [0, *shown_relations(dataset, least=CLARK_LEAST_WORDS)]
        if dataset["best_direction"].values[at] == names.index("head_to_dependent")
    ]
    ways = "From dependent to head"
    ways += f", but from head to dependent for {', '.join(turned)}." if turned else " throughout."
    layers, heads = shape(tree)
    return (
        f"Share of words (%) whose syntactic head is found{_by(dataset)}: the best of "
        f"{layers * heads} heads in two directions, and in brackets the best fixed offset, each "
        "chosen on the words that it is scored on; best_heads holds the held-out figures and the "
        f"intervals. {ways} Relations of at least {CLARK_LEAST_WORDS} words, root and punctuation "
        "not shown. Heads are layer-head, counted from 1. Layout of Clark et al. (2019), Table 1."
    )


def note_2(tree: xr.DataTree) -> str:
    """What stands below the second table; '' without it."""
    dataset = group(tree, "coreference")
    if dataset is None:
        return ""
    return (
        f"Share of mentions (%) for which an antecedent is found{_by(dataset)} among the head "
        "words of the mentions before it. The head is the best for all mentions, chosen on the "
        "mentions that it is scored on; best_coreference_heads holds the held-out figures and the "
        "intervals. Heads are layer-head, counted from 1. Layout of Clark et al. (2019), Table 2."
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


def _row(name: str, kinds: list[str], parts: Estimate) -> dict[str, str]:
    values: Floats = parts.value
    return {"Model": name} | dict(zip(kinds, map(_percent, values.tolist()), strict=True))


def _head(layer: float, head: float) -> str:
    there = np.isfinite(layer) and np.isfinite(head)
    return f"{int(layer) + 1}-{int(head) + 1}" if there else MISSING


def _percent(share: float) -> str:
    return f"{100 * share:.1f}" if np.isfinite(share) else MISSING


def _escaped(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", text)


def _tex(text: str) -> str:
    return "".join(_TEX.get(c, c) for c in text).replace("−", "$-$").replace("–", "--")


def _by(dataset: xr.Dataset) -> str:
    return " by weighted norm" if dataset.attrs.get("measure") == "weighted_norm" else ""
