"""Writes the scores, tasks and verdicts of an ablation, and finds the examples that change most."""

from __future__ import annotations

from collections import Counter

import numpy as np
import xarray as xr

from headscope.core.results import Floats, estimate, group, shape
from headscope.core.wording import fixed, number, percent
from headscope.tasks.task import GLUE

RANDOM = "random "  # how the names of random orders of removal begin
VERDICTS = ("helpful", "harmful", "indifferent", "unknown")
METRICS = {
    "matthews": "Matthews’ correlation", "pearson": "Pearson’s r", "spearman": "Spearman’s ρ",
    "f1": "F1",
}  # fmt: skip
CASES = {"cola": "CoLA"}  # tasks that are not written in capitals


def verdict_counts(ablation: xr.Dataset, variable: str = "verdict") -> dict[str, int]:
    """How many are helpful, harmful, indifferent; `unknown` only where there are some."""
    counts = Counter(str(word) for word in ablation[variable].values.ravel())
    return {word: counts[word] for word in VERDICTS if counts[word] or word != "unknown"}


def verdict_words(tree: xr.DataTree, unit: int) -> list[str]:
    """What a head is for the task, `helpful by the loss`; nothing where that is not known."""
    ablation = group(tree, "ablation")
    if ablation is None:
        return []
    by = {"verdict": metric_name(ablation), "loss_verdict": "the loss"}
    words = {name: str(ablation[name].values.ravel()[unit]) for name in by}
    return [f"{word} by {by[name]}" for name, word in words.items() if word in VERDICTS[:2]]


def remarks(tree: xr.DataTree) -> list[list[str]]:
    """[unit] what becomes of the task without each head, in words."""
    layers, heads = shape(tree)
    return [verdict_words(tree, unit) for unit in range(layers * heads)]


def metric_name(result: xr.Dataset) -> str:
    """The score's name in running text."""
    metric = str(result.attrs["metric"])
    return METRICS.get(metric, metric)


def task_name(result: xr.Dataset) -> str:
    """The name of the task as papers write it, `SST-2`; a task of the user keeps its name."""
    name = str(result.attrs["task"])
    return CASES.get(name, name.upper()) if name in GLUE else name


def in_percent(result: xr.Dataset) -> bool:
    """Whether the score is a share, written in percent, and its changes in points."""
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
    """The order in which most heads can go, random ones left out; the first of equals."""
    names = chosen_orders(pruning)
    can = [float(pruning["can_go"].sel(order=name)) for name in names]
    return names[int(np.argmax(can))]


def chosen_orders(pruning: xr.Dataset) -> list[str]:
    """The orders of removal that are not random."""
    names = [str(name) for name in pruning["order"].values]
    return [name for name in names if not name.startswith(RANDOM)]


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
