"""Which heads are best at language: at each relation, at each kind of mention, at frames?

One row per relation, kind of mention or head. Layers and heads are 0-based, as in the data. A head
beats a baseline if the interval of its advantage, held out, lies above 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from headscope.core.accumulators import Estimate
from headscope.core.results import Floats, estimate, group


def best_heads(tree: xr.DataTree) -> pd.DataFrame:
    """The best head of every relation beside its best fixed offset; empty without `dependency`.

    returns  relation ("all", "all_but_root_and_punctuation", then the treebank's labels, the most
             frequent first), count (words), layer, head, direction; accuracy and baseline, chosen
             on the data that they are scored on; baseline_offset (words, minus: to the left);
             held_out (chosen on one half of the documents, scored on the other), advantage (that
             less the baseline's held-out accuracy); each of the four with _ci_low and _ci_high;
             beats_baseline, missing where there is no interval
    """
    dataset = group(tree, "dependency")
    if dataset is None:
        return pd.DataFrame()
    direction = dataset["best_direction"].values
    names = dataset["direction"].values.tolist()
    advantage = estimate(dataset, "advantage")
    columns: dict[str, Any] = {
        "relation": dataset["relation"].values.tolist(),
        "count": dataset["count"].values,
        "layer": whole(dataset["best_layer"].values),
        "head": whole(dataset["best_head"].values),
        "direction": [None if np.isnan(d) else names[int(d)] for d in direction],
        **_with_ends("accuracy", estimate(dataset, "best_accuracy")),
        **_with_ends("held_out", estimate(dataset, "held_out")),
        **_with_ends("baseline", estimate(dataset, "baseline")),
        "baseline_offset": whole(dataset["best_offset"].values),
        **_with_ends("advantage", advantage),
        "beats_baseline": _above_zero(advantage.low),
    }
    return _named(tree, columns)


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
        "layer": whole(layer),
        "head": whole(head),
        **_with_ends("accuracy", estimate(dataset, "best_accuracy")),
        **_with_ends("accuracy_strict", at_heads(dataset, "accuracy_strict", layer, head)),
        **_with_ends("held_out", estimate(dataset, "held_out")),
    }
    for system in dataset["system"].values.tolist():
        advantage = estimate(dataset, "advantage", system=system)
        columns |= _with_ends(f"baseline_{system}", estimate(dataset, "baseline", system=system))
        columns |= _with_ends(f"advantage_{system}", advantage)
        columns[f"beats_{system}"] = _above_zero(advantage.low)
    return _named(tree, columns)


def top_frame_heads(tree: xr.DataTree, *, count: int | None = 10) -> pd.DataFrame:
    """The heads of largest score, the largest first; empty without `frames`.

    count    rows at most; None for all heads
    returns  layer, head; score (from frame element to target) and score_reversed, with _ci_low and
             _ci_high; chance and p_value of both; quantile_0.05 … of the sentences' scores
    """
    dataset = group(tree, "frames")
    if dataset is None:
        return pd.DataFrame()
    layers, heads = dataset["score"].shape
    units = np.arange(layers * heads)  # [layer*head]
    columns: dict[str, Any] = {"layer": units // heads, "head": units % heads}
    for end in ("", "_reversed"):
        columns |= _with_ends(f"score{end}", estimate(dataset, f"score{end}"))
        for name in (f"chance{end}", f"p_value{end}"):
            columns[name] = dataset[name].values.reshape(-1)  # [layer*head]
    spread = dataset["score_quantile"].transpose("quantile", "layer", "head")
    for level, values in zip(spread["quantile"].values, spread.values, strict=True):
        columns[f"quantile_{level:g}"] = values.reshape(-1)  # [layer*head]
    table = _named(tree, columns).sort_values("score", ascending=False, kind="stable")
    return table[table["score"].notna()].head(count or len(table)).reset_index(drop=True)


def at_heads(dataset: xr.Dataset, variable: str, layer: Floats, head: Floats) -> Estimate:
    """[column] `variable` [layer, head, column] at one head per column; NaN where there is none."""
    found = estimate(dataset, variable)
    there = np.isfinite(layer) & np.isfinite(head)
    place = np.where(there, layer, 0).astype(int), np.where(there, head, 0).astype(int)
    columns = np.arange(len(layer))
    parts = (found.value, found.low, found.high)
    return Estimate(*(np.where(there, part[(*place, columns)], np.nan) for part in parts))


def whole(values: Sequence[float] | Floats) -> pd.Series[int]:
    """Whole numbers, missing where the value is NaN."""
    return pd.Series([None if np.isnan(v) else int(v) for v in values], dtype="Int64")


def _above_zero(low: Floats) -> pd.Series[bool]:
    return pd.Series([None if np.isnan(v) else bool(v > 0) for v in low], dtype="boolean")


def _with_ends(name: str, parts: Estimate) -> dict[str, Any]:
    """Three columns, in the order of the cells."""
    return {
        name: parts.value.reshape(-1),  # [row]
        f"{name}_ci_low": parts.low.reshape(-1),  # [row]
        f"{name}_ci_high": parts.high.reshape(-1),  # [row]
    }


def _named(tree: xr.DataTree, columns: dict[str, Any]) -> pd.DataFrame:
    """The columns behind the name of the model, so that tables of several runs can be joined."""
    names = {name: str(tree.attrs.get(name, "")) for name in ("model", "revision")}
    rows = len(next(iter(columns.values())))
    return pd.DataFrame(names | columns, index=range(rows))
