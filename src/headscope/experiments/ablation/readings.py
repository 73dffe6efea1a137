"""What do the answers without a head say, head by head, and which examples change?

`verdict_counts` is the sentence that a summary begins with, `effect_table` has a row for every
head, layer and group, and `flip_table` one for every answer that became another.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from headscope.core.results import Floats, estimate, group, head_name, shape
from headscope.core.wording import fixed, number, percent
from headscope.tasks.task import GLUE

RANDOM = "random "  # how the names of random orders of removal begin
VERDICTS = ("helpful", "harmful", "indifferent", "unknown")
MOVED = 0.1  # ours: of a regression, a change by this share of the labels' range is told
METRICS = {
    "matthews": "Matthews’ correlation", "pearson": "Pearson’s r", "spearman": "Spearman’s ρ",
    "f1": "F1",
}  # fmt: skip
CASES = {"cola": "CoLA"}  # tasks that are not written in capitals
_PLAIN = ("p", "q", "lost", "gained", "loss", "loss_p", "loss_q", "verdict", "loss_verdict")


def verdict_counts(ablation: xr.Dataset, variable: str = "verdict") -> dict[str, int]:
    """How many are helpful, harmful, indifferent; `unknown` only where there are some."""
    counts = Counter(str(word) for word in ablation[variable].values.ravel())
    return {word: counts[word] for word in VERDICTS if counts[word] or word != "unknown"}


def verdict_words(tree: xr.DataTree, unit: int) -> list[str]:
    """What a head is for the task, `helpful by the loss`; nothing where that is not known."""
    found = group(tree, "ablation")
    if found is None:
        return []
    by = {"verdict": metric_name(found), "loss_verdict": "the loss"}
    words = {name: str(found[name].values.ravel()[unit]) for name in by}
    return [f"{word} by {by[name]}" for name, word in words.items() if word in VERDICTS[:2]]


def metric_name(result: xr.Dataset) -> str:
    """The score's name in running text."""
    metric = str(result.attrs["metric"])
    return METRICS.get(metric, metric)


def task_name(result: xr.Dataset) -> str:
    """The task as papers write it: `SST-2`; one of the user's as it is."""
    name = str(result.attrs["task"])
    return CASES.get(name, name.upper()) if name in GLUE else name


def in_percent(result: xr.Dataset) -> bool:
    """Whether the score is a share, told in percent and its changes in points."""
    return str(result.attrs["metric"]) in ("accuracy", "f1")


def score_text(ablation: xr.Dataset, variable: str = "baseline") -> str:
    """A score with its interval, `87 % [85, 89]` or `0.83 [0.80, 0.85]`."""
    parts = estimate(ablation, variable)
    write = percent if in_percent(ablation) else number
    return write(float(parts.value), float(parts.low), float(parts.high))


def points_text(result: xr.Dataset, value: float, *, signed: bool = False) -> str:
    """A difference of scores: `0.5 points` of a share, else as it is; signed with + or −."""
    scaled = 100 * value if in_percent(result) else value
    text = fixed(scaled, 1 if in_percent(result) else 3)
    plus = "+" if signed and float(text.replace("−", "-")) > 0 else ""
    return f"{plus}{text} points" if in_percent(result) else f"{plus}{text}"


def best_order(pruning: xr.Dataset) -> str:
    """The order, not by chance, in which most heads can go; of equals the first."""
    names = chosen_orders(pruning)
    can = [float(pruning["can_go"].sel(order=name)) for name in names]
    return names[int(np.argmax(can))]


def chosen_orders(pruning: xr.Dataset) -> list[str]:
    """The orders of removal that are not by chance."""
    names = [str(name) for name in pruning["order"].values]
    return [name for name in names if not name.startswith(RANDOM)]


def effect_table(tree: xr.DataTree) -> pd.DataFrame:
    """One row per head, then per layer, then per group; empty where the run has no ablation.

    returns  name (as papers count), layer and head (from 0; missing where there is none), score,
             difference with ci_low and ci_high, p, q, verdict, lost, gained, loss,
             loss_difference with its interval, loss_p, loss_q, loss_verdict
    """
    found = group(tree, "ablation")
    if found is None:
        return pd.DataFrame()
    parts = [_effects(found, prefix, rows) for prefix, rows in _rows(found).items()]
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
    found = group(tree, "ablation")
    if found is None:
        return pd.DataFrame()
    parts = [_flips(found, prefix, rows) for prefix, rows in _rows(found).items()]
    table = pd.concat(parts, ignore_index=True)
    for column in ("layer", "head"):
        table[column] = table[column].astype("Int64")
    return table


def moves(ablation: xr.Dataset) -> Floats:
    """[example] how many single heads change the answer; of a regression, the mean size of what
    a head changes.
    """
    after = ablation["prediction"].transpose("layer", "head", "example").values
    apart = np.abs(after - ablation["baseline_prediction"].values)  # [layer, head, example]
    if ablation.attrs["classes"]:
        return np.asarray((apart > 0).sum((0, 1)), np.float64)
    return np.asarray(apart.mean((0, 1)), np.float64)


def most_moved(ablation: xr.Dataset) -> list[int]:
    """Places of the examples whose answers single heads change, those that most change first."""
    size = moves(ablation)
    return [int(at) for at in np.argsort(-size, kind="stable") if size[at] > 0]


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


def tables(tree: xr.DataTree) -> dict[str, pd.DataFrame]:
    """The tables of effects and of answers that flip."""
    return {"ablation_effects": effect_table(tree), "ablation_flips": flip_table(tree)}


def remarks(tree: xr.DataTree) -> list[list[str]]:
    """[unit] what becomes of the task without each head, in words."""
    layers, heads = shape(tree)
    return [verdict_words(tree, unit) for unit in range(layers * heads)]
