"""How is a number of a line read off a run, with its interval?

Runs of a battery keep the bootstrap's draws, so that any statistic (a mean over heads, the largest
of them, a difference of layers) is computed on every resample and has its own interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.accumulators import Float64, estimate
from headscope.core.labelled import DRAWS
from headscope.core.results import documents, pick
from headscope.core.wording import fixed
from headscope.papers.reproduce.line import Answer, NotRun, Results
from headscope.run.finished_run import Run

DEPTH = 12  # layers of the model that the papers looked at


def drawn(dataset: xr.Dataset, variable: str, **choice: Any) -> Float64:
    """[replicate + 1, …] a variable on the data and every resample; alone where none are kept."""
    if variable not in dataset:
        raise NotRun(f"needs {variable}, which these results do not have")
    kept = dataset[variable + DRAWS] if variable + DRAWS in dataset else dataset[variable]
    array = pick(kept, **choice)
    values = np.asarray(array.values, np.float64)
    return values if variable + DRAWS in dataset else values[None]  # [replicate + 1, …]


def answer(draws: Float64, run: Run, *, n: str = "", **more: Any) -> Answer:
    """Of draws [replicate + 1] the value with its interval."""
    found = estimate(draws, documents=documents(run.tree))
    return Answer(
        float(found.value), float(found.low), float(found.high), n or counted(run), **more
    )


def ends(dataset: xr.Dataset, variable: str, **choice: Any) -> tuple[float, float, float]:
    """A number with the interval that the results hold; NaN where there is none."""
    if variable not in dataset:
        raise NotRun(f"needs {variable}, which these results do not have")
    value = float(pick(dataset[variable], **choice))
    limits = [
        float(pick(dataset[variable + end], **choice)) if variable + end in dataset else np.nan
        for end in ("_ci_low", "_ci_high")
    ]
    return value, limits[0], limits[1]


def over_heads(draws: Float64) -> Float64:
    """[replicate + 1] mean over layers and heads of [replicate + 1, layer, head], NaN left out."""
    there = np.isfinite(draws)
    total = np.where(there, draws, 0.0).sum((1, 2))
    count = there.sum((1, 2))
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def counted(run: Run) -> str:
    """`60 documents`; of a task's data, examples."""
    many = str(run.tree.attrs.get("counted", "documents"))
    count = documents(run.tree)
    return f"{count:,} {many.removesuffix('s') if count == 1 else many}"


def layer_at(number: int, layers: int) -> int:
    """The 0-based layer that stands where layer `number` (from 1) does in a model of DEPTH."""
    return round((number - 1) * (layers - 1) / (DEPTH - 1))


def layers_at(numbers: Sequence[int], layers: int) -> list[int]:
    """0-based layers, each once."""
    return sorted({layer_at(number, layers) for number in numbers})


def named(layer: int, head: int) -> str:
    """A head from 0-based places, as papers write it."""
    return f"L{layer + 1}·H{head + 1}"


def places_of(values: Float64) -> list[tuple[int, int]]:
    """[layer, head] places, the largest value first; NaN left out."""
    order = np.argsort(-np.nan_to_num(values, nan=-np.inf), axis=None, kind="stable")
    rows, columns = np.unravel_index(order, values.shape)
    there = np.isfinite(values[rows, columns])
    return [(int(r), int(c)) for r, c in zip(rows[there], columns[there], strict=True)]


def paper_head(results: Results, values: Float64, head: tuple[int, int]) -> tuple[int, int]:
    """The paper's own head (from 0) in its own model; in another, the one of the largest value."""
    if results.own and head[0] < values.shape[0] and head[1] < values.shape[1]:
        return head
    found = places_of(values)
    if not found:
        raise NotRun("the number does not exist for any head")
    return found[0]


def percent(value: float, digits: int = 1) -> str:
    """A share as text."""
    return f"{fixed(100 * value, digits)} %"


def surely_above(draws: Float64, run: Run, bound: float = 0.0) -> bool:
    """Whether the lower end of the interval is above; the value, where there is no interval."""
    found = estimate(draws, documents=documents(run.tree))
    low = float(found.low)
    return bool((low if np.isfinite(low) else float(found.value)) > bound)
