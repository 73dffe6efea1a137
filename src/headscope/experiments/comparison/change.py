"""Tests which numbers of which heads change by more than the choice of documents explains.

Both models were asked the same of the same documents, and replicate k of both is the same resample.
So the difference of their replicates is the difference in a resample: its interval is that of the
paired bootstrap. Whoever looks at all heads finds some outside any 95 % interval; a head counts as
changed only outside the simultaneous one, which holds all heads of a number together in 95 % of
resamples (the studentised maximum; Romano and Wolf 2005).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import xarray as xr

from headscope.core.accumulators import (
    ALONE,
    CONFIDENCE,
    Estimate,
    Float64,
    estimate,
    estimate_by_spread,
    ratio,
    spread,
)
from headscope.core.head_metrics import HeadMetric, head_metrics
from headscope.core.labelled import DRAWS, Variable, labelled
from headscope.core.results import pick

GRID = ("quantity", "layer", "head")
_SOURCE = "ours"
Results = Mapping[str, xr.Dataset]


@dataclass(frozen=True)
class Quantity:
    """One number per head in both models.

    before, after  [replicate + 1, layer, head]; replicates of both are of the same documents
    few            whether there are too few replicates for tail quantiles
    """

    metric: HeadMetric
    before: Float64
    after: Float64
    few: bool

    def estimate(self, draws: Float64) -> Estimate:
        """The number on the data, with its interval."""
        return (estimate_by_spread if self.few else estimate)(draws, documents=self.metric.n)


def change_of(
    before: Results, after: Results, *, shape: tuple[int, int], documents: int, replicates: int
) -> xr.Dataset | None:
    """What changes from one model's results to the other's; None where no head has a number.

    before, after  results made inside `result.keeping_draws`
    shape          layers and heads
    returns        before, after, difference [quantity, layer, head], simultaneous_low and _high of
                   the difference, and `sure`: 1 where it lies above 0 for sure, -1 below, else 0
                   (NaN without an interval); layer_… [quantity, layer] and model_… [quantity],
                   means over heads; rose, fell [quantity], how many heads are sure
    """
    found = list(quantities(before, after, shape, documents=documents, replicates=replicates))
    if not found:
        return None
    parts: dict[str, list[Estimate]] = {}
    for one in found:
        for name, drawn in _sides(one).items():
            parts.setdefault(name, []).append(one.estimate(drawn))
            parts.setdefault(f"layer_{name}", []).append(one.estimate(over_heads(drawn)))
            parts.setdefault(f"model_{name}", []).append(
                one.estimate(over_heads(over_heads(drawn)[:, None])[:, 0])
            )
    both = [simultaneous(_sides(one)["difference"], documents=one.metric.n) for one in found]
    low, high = (np.stack(ends) for ends in zip(*both, strict=True))  # [quantity, layer, head]
    sure = np.where(np.isnan(low), np.nan, (low > 0) * 1.0 - (high < 0))
    variables = {name: _variable(name, stacked(few)) for name, few in parts.items()}
    variables |= _counted(low, high, sure)
    return _named(labelled(variables, coords={"quantity": [o.metric.key for o in found]}), found)


def quantities(
    before: Results, after: Results, shape: tuple[int, int], *, documents: int, replicates: int
) -> Iterator[Quantity]:
    """Every number per head that both models have, with its replicates."""
    trees = [_tree(results, shape, documents) for results in (before, after)]
    theirs = {metric.key for metric in head_metrics(trees[1])}
    for metric in head_metrics(trees[0]):
        if metric.key not in theirs:
            continue
        mine, other = (_draws(results, metric) for results in (before, after))
        if mine is not None and other is not None and mine.shape == other.shape:
            few = len(mine) <= replicates
            yield Quantity(metric, mine, other, few)


def simultaneous(draws: Float64, *, documents: int) -> tuple[Float64, Float64]:
    """Intervals that in 95 % of resamples hold all cells at once; NaN as in `estimate`.

    draws    [replicate + 1, *cell]
    returns  low and high [*cell]: value ± c · spread, where c is the 95 % point, over resamples, of
             the largest |draw - value| / spread of any cell
    """
    value = draws[0]
    if documents < 2 or len(draws) < 3:
        return np.full_like(value, np.nan), np.full_like(value, np.nan)
    size = spread(draws[1:])
    absent = np.isnan(value) | (np.isnan(draws[1:]).mean(0) > ALONE)
    away = np.abs(ratio(np.where(absent, np.nan, draws[1:] - value), size))  # NaN: never differs
    largest = np.nan_to_num(away).reshape(len(away), -1).max(1, initial=0)  # [replicate]
    reach = np.quantile(largest, CONFIDENCE) * size
    return np.where(absent, np.nan, value - reach), np.where(absent, np.nan, value + reach)


def over_heads(draws: Float64) -> Float64:
    """Mean over the last axis of the finite values; NaN where there is none."""
    there = np.isfinite(draws)
    return ratio(np.where(there, draws, 0).sum(-1), there.sum(-1).astype(np.float64))


def stacked(parts: list[Estimate]) -> Estimate:
    """[quantity, …] several estimates as one."""
    return Estimate(
        *(np.stack([getattr(p, end) for p in parts]) for end in ("value", "low", "high"))
    )


# --- steps of change_of ---------------------------------------------------------------------


def _sides(one: Quantity) -> dict[str, Float64]:
    return {"before": one.before, "after": one.after, "difference": one.after - one.before}


_WORDS = {"before": "in the first model", "after": "in the second", "difference": "second - first"}


def _variable(name: str, parts: Estimate) -> Variable:
    scope, _, side = name.rpartition("_")
    mean = {"": "", "layer": ", mean over heads", "model": ", mean over all heads"}[scope]
    dims = {"": GRID, "layer": GRID[:2], "model": GRID[:1]}[scope]
    return Variable(parts, dims, f"{_WORDS[side]}{mean}", "1", _SOURCE)


def _counted(low: Float64, high: Float64, sure: Float64) -> dict[str, Variable]:
    ends = {"simultaneous_low": low, "simultaneous_high": high}
    words = "end of the interval that holds for all heads together"
    found = {name: Variable(end, GRID, words, "1", _SOURCE) for name, end in ends.items()}
    found["sure"] = Variable(sure, GRID, "1: rises for sure, -1: falls, 0: neither", "1", _SOURCE)
    for name, sign in (("rose", 1), ("fell", -1)):
        count = (sure == sign).sum((1, 2))
        found[name] = Variable(count, GRID[:1], f"heads that {name} for sure", "1", _SOURCE)
    return found


def _named(dataset: xr.Dataset, found: list[Quantity]) -> xr.Dataset:
    """The dataset with what each quantity is called, its unit and its documents."""
    metrics = [one.metric for one in found]
    coords = {
        "label": [m.label for m in metrics], "unit": [m.unit for m in metrics],
        "analysis": [m.place[0] for m in metrics], "n": [m.n for m in metrics],
    }  # fmt: skip
    named = dataset.assign_coords({name: ("quantity", values) for name, values in coords.items()})
    return named.assign_attrs(tidy=0)  # `change` and `change_summary` are its tables


def _tree(results: Results, shape: tuple[int, int], documents: int) -> xr.DataTree:
    root = xr.Dataset(attrs={"layers": shape[0], "heads": shape[1], "documents": documents})
    return xr.DataTree.from_dict(
        {"/": root, **{f"/{name}": found for name, found in results.items()}}
    )


def _draws(results: Results, metric: HeadMetric) -> Float64 | None:
    """[replicate + 1, layer, head]; None where the analysis gave none."""
    group, variable, choice = metric.place
    dataset = results[group]
    if variable + DRAWS not in dataset:
        return None
    drawn = pick(dataset[variable + DRAWS], **choice).transpose(..., "layer", "head")
    return np.asarray(drawn.values, np.float64)
