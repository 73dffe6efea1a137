"""Makes tables of an ablation: of heads, layers and groups, and of the answers that change."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from headscope.core.results import estimate, group, head_name

MOVED = 0.1  # ours: of a regression, a change by this share of the labels' range is told
_PLAIN = ("p", "q", "lost", "gained", "loss", "loss_p", "loss_q", "verdict", "loss_verdict")


def tables(tree: xr.DataTree) -> dict[str, pd.DataFrame]:
    """The tables of effects and of answers that change."""
    return {"ablation_effects": effect_table(tree), "ablation_flips": flip_table(tree)}


def effect_table(tree: xr.DataTree) -> pd.DataFrame:
    """One row per head, then per layer, then per group; empty where the run has no ablation.

    returns  name (as papers count), layer and head (from 0; missing where there is none), score,
             difference with ci_low and ci_high, p, q, verdict, lost, gained, loss,
             loss_difference with its interval, loss_p, loss_q, loss_verdict
    """
    ablation = group(tree, "ablation")
    if ablation is None:
        return pd.DataFrame()
    parts = [_effects(ablation, prefix, rows) for prefix, rows in _rows(ablation).items()]
    table = pd.concat(parts, ignore_index=True)
    for column in ("layer", "head"):
        table[column] = table[column].astype("Int64")
    return table


def flip_table(tree: xr.DataTree) -> pd.DataFrame:
    """One row per example and variant whose answer is another than the whole model's.

    returns  name, layer, head, example (its id), text, label, before, after, and change: "lost"
             (right before), "gained" (right now), "other" (wrong both times); of a regression the
             numbers, and only changes by MOVED of the labels' range or more, "nearer" or "farther"
    """
    ablation = group(tree, "ablation")
    if ablation is None:
        return pd.DataFrame()
    parts = [_flips(ablation, prefix, rows) for prefix, rows in _rows(ablation).items()]
    table = pd.concat(parts, ignore_index=True)
    for column in ("layer", "head"):
        table[column] = table[column].astype("Int64")
    return table


def _rows(ablation: xr.Dataset) -> dict[str, pd.DataFrame]:
    """By the first part of a variable's name: name, layer and head of each variant."""
    layers, heads = ablation["score"].shape
    units = np.arange(layers * heads)
    names = [head_name(int(unit), heads) for unit in units]
    single = pd.DataFrame({"name": names, "layer": units // heads, "head": units % heads})
    whole = pd.DataFrame({"name": [f"L{at + 1}" for at in range(layers)], "layer": range(layers)})
    found = {"": single, "layer_": whole}
    if "group_score" in ablation:
        found["group_"] = pd.DataFrame({"name": [str(x) for x in ablation["group"].values]})
    for table in found.values():
        for column in {"layer", "head"} - set(table.columns):
            table[column] = pd.NA
    return found


def _effects(ablation: xr.Dataset, prefix: str, rows: pd.DataFrame) -> pd.DataFrame:
    table = rows.assign(score=ablation[f"{prefix}score"].values.ravel())
    for name, start in (("difference", ""), ("loss_difference", "loss_")):
        parts = estimate(ablation, prefix + name)
        table[name] = parts.value.ravel()
        table[f"{start}ci_low"], table[f"{start}ci_high"] = parts.low.ravel(), parts.high.ravel()
    for name in _PLAIN:
        if prefix + name in ablation:
            table[name] = ablation[prefix + name].values.ravel()
    return table


def _flips(ablation: xr.Dataset, prefix: str, rows: pd.DataFrame) -> pd.DataFrame:
    before, right = ablation["baseline_prediction"].values, ablation["label"].values  # [example]
    after = ablation[f"{prefix}prediction"].values.reshape(-1, len(before))  # [variant, example]
    classes = [name for name in str(ablation.attrs["classes"]).split("\n") if name]
    least = MOVED * float(np.ptp(right)) if not classes else 0
    variant, example = np.nonzero(np.abs(after - before) > least)
    found: dict[str, Any] = {
        column: rows[column].to_numpy()[variant] for column in ("name", "layer", "head")
    }
    a, b, y = after[variant, example], before[example], right[example]  # [flip]
    found["example"] = ablation["example"].values[example]
    if "text" in ablation.coords:
        found["text"] = ablation["text"].values[example]
    for column, told in (("label", y), ("before", b), ("after", a)):
        found[column] = [classes[int(x)] for x in told] if classes else told
    found["change"] = _changes(a, b, y, of_classes=bool(classes))
    return pd.DataFrame(found)


def _changes(
    after: npt.NDArray[Any], before: npt.NDArray[Any], right: npt.NDArray[Any], *, of_classes: bool
) -> npt.NDArray[Any]:
    if not of_classes:
        return np.where(np.abs(after - right) < np.abs(before - right), "nearer", "farther")
    return np.where(before == right, "lost", np.where(after == right, "gained", "other"))
