"""Numbers of heads before and after each training, mean over all heads: `compare`'s, over seeds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from headscope.claims.reading import Reading
from headscope.core.accumulators import Array, Float64
from headscope.core.intervals import DIFFERENCE, SHARE, Estimate
from headscope.core.results import LIMITS, Variable, at, estimate
from headscope.experiments.study.over_seeds import estimated_mean, stacked
from headscope.run.shard_files import State

ANALYSES = ("surface", "entropy", "norms", "patterns")
SIDES = {  # name here -> name in a comparison, and its words
    "before": ("before", "before training"),
    "after": ("after", "after training"),
    "change": ("difference", "after training less before"),
}
GRID = ("variant", "task", "seed", "quantity")


def feature_state(change: xr.Dataset) -> State:
    """What a part of a study keeps of the changes of `compare`, by the names of GRID.

    returns  features [side, end, quantity]; feature_names: key, label and unit of each, as JSON
    """
    named = [change[name].values.tolist() for name in ("quantity", "label", "unit")]
    sides = [
        [change[f"model_{side}{end}"].values for end in ("", *LIMITS)] for side, _ in SIDES.values()
    ]
    return {
        "features": np.array(sides, np.float64),
        "feature_names": np.frombuffer(json.dumps(named).encode(), np.uint8),
    }


def feature_variables(
    states: Sequence[Sequence[State]], *leading: int
) -> tuple[dict[str, Variable], dict[str, list[str]]]:
    """The numbers of all trainings, and key, label and unit of each.

    states   [variant · task][seed]; what a training lacks is NaN
    leading  how many variants, and tasks
    """
    named = dict[str, tuple[str, str]]()
    for state in (one for seeds in states for one in seeds):
        for key, label, unit in zip(*_names(state), strict=True):
            named.setdefault(key, (label, unit))
    is_share = np.array([unit == "probability" for _, unit in named.values()])
    every = np.stack([np.stack([_aligned(one, list(named)) for one in some]) for some in states])
    variables = dict[str, Variable]()
    for place, (name, (side, words)) in enumerate(SIDES.items()):
        least, most = DIFFERENCE if side == "difference" else SHARE
        bounds = np.where(is_share, least, -np.inf), np.where(is_share, most, np.inf)
        sides = every[:, :, place]  # [variant · task, seed, end, quantity]
        seeds = [[Estimate(*ends) for ends in some] for some in sides]
        each = stacked([one for some in seeds for one in some], *leading, sides.shape[1])
        mean = stacked([estimated_mean(some, bounds) for some in seeds], *leading)
        what = f"mean over heads of a number {words}"
        variables[f"feature_{name}"] = Variable(each, GRID, what, "1", "headscope", tidy=False)
        variables[f"mean_feature_{name}"] = Variable(
            mean,
            (*GRID[:2], GRID[3]),
            f"{what}, mean over seeds",
            "1",
            "headscope",
            "seeds and examples",
            tidy=False,
        )
    labels, units = ([pair[at] for pair in named.values()] for at in (0, 1))
    return variables, {"quantity": list(named), "label": labels, "unit": units}


def feature_ends(run: Reading, key: str, **choice: Any) -> list[Estimate]:
    """Before, after and change of one number, mean over seeds."""
    names = (f"mean_feature_{side}" for side in SIDES)
    return [estimate(run.data, name, quantity=key, **choice) for name in names]


def tables(run: Reading) -> dict[str, pd.DataFrame]:
    """`study_features`: a row for each number, variant and task, mean over seeds."""
    data, rows = run.data, list[dict[str, Any]]()
    for variant in data["variant"].values.tolist():
        for task in data["task"].values.tolist():
            for key in data["quantity"].values.tolist():
                row = {"variant": variant, "task": task, "quantity": key}
                row |= {n: str(data[n].sel(quantity=key).values) for n in ("label", "unit")}
                ends = feature_ends(run, key, variant=variant, task=task)
                for side, one in zip(SIDES, ends, strict=True):
                    row |= dict(zip((side, *(side + end for end in LIMITS)), at(one), strict=True))
                rows.append(row)
    return {"study_features": pd.DataFrame(rows)}


def _names(state: State) -> list[list[str]]:
    names: list[list[str]] = json.loads(state["feature_names"].tobytes())
    return names


def _aligned(state: State, keys: Sequence[str]) -> Float64:
    """[side, end, quantity] in the order of the keys."""
    values: Array = state["features"]
    known = {key: values[..., at] for at, key in enumerate(_names(state)[0])}
    lacking = np.full(values.shape[:-1], np.nan)
    return np.stack([known.get(key, lacking) for key in keys], -1)
