"""Tests which numbers of which heads change by more than sampling of documents explains.

Both models read the same documents, and draw k of both leaves out the same ones.
So the difference of their draws is the difference without these documents: its interval is that of
pairs. Among all heads some lie outside any 95 % interval by chance; a head counts as changed
only outside one that is widened for all heads of the number (Bonferroni, by Student's t; how often
that holds all of them stands in docs/intervals.md). Tables of what changes stand below.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr
from scipy.special import stdtrit

from headscope.claims.head_metrics import HeadMetric, head_metrics
from headscope.claims.reading import Reading
from headscope.core.accumulators import Float64, finite_mean
from headscope.core.confidence import TAIL
from headscope.core.head_names import names_of
from headscope.core.intervals import (
    ANY,
    DIFFERENCE,
    FEWEST,
    SHARE,
    Bounds,
    Estimate,
    estimate,
    moves_of,
    standard_error,
)
from headscope.core.results import DRAWS, LIMITS, SIZES, Variable, group, labelled, pick
from headscope.core.results import estimate as results_estimate

HEAVIER = 3  # ours, tried by benchmarks/coverage.py: far tails are heavier than few documents tell
GRID = ("quantity", "layer", "head")
SIDES = {
    "before": "in the first model",
    "after": "in the second",
    "difference": "second - first",
}
Results = Mapping[str, xr.Dataset]


@dataclass(frozen=True)
class Quantity:
    """One number per head, in both models.

    sides  before, after, difference: [replicate + 1, layer, head]; replicates of both models are
           without the same documents
    stored before, after [layer, head], with their intervals as the results hold them
    sizes  draws of how much documents weigh, the same in both, broadcast to those of `sides`; None
           where they are not known
    """

    metric: HeadMetric
    sides: Mapping[str, Float64]
    stored: Mapping[str, Estimate]
    sizes: Float64 | None = None


def change_of(
    before: Results, after: Results, *, shape: tuple[int, int], documents: int
) -> xr.Dataset | None:
    """Changes from one model's results to the other's; None where no head has a number.

    before, after  results with draws
    shape          layers and heads
    returns        before, after, difference [quantity, layer, head], simultaneous_low and _high of
                   the difference, and `sure`: 1 where it rises significantly, -1 falls, else 0
                   (NaN without an interval); layer_… [quantity, layer] and model_… [quantity],
                   means over heads; rose, fell [quantity], how many heads are sure
    """
    compared = list(quantities(before, after, shape, documents=documents))
    if not compared:
        return None
    variables = _estimates(compared)
    both = [
        simultaneous(one.sides["difference"], one.sizes, bounds=_bounds(one, "difference"))
        for one in compared
    ]
    low, high = (np.stack(ends) for ends in zip(*both, strict=True))  # [quantity, layer, head]
    sure = np.where(np.isnan(low), np.nan, (low > 0) * 1.0 - (high < 0))
    for name, end in (("simultaneous_low", low), ("simultaneous_high", high)):
        variables[name] = _variable(end, "end of the interval that holds for all heads together")
    variables["sure"] = _variable(sure, "1: rises significantly, -1: falls, 0: neither")
    for name, sign in (("rose", 1), ("fell", -1)):
        count = (sure == sign).sum((1, 2))
        variables[name] = _variable(count, f"heads that {name} significantly", GRID[:1])
    metrics = [one.metric for one in compared]
    dataset = labelled(variables, coords={"quantity": [metric.key for metric in metrics]})
    coords = {
        "label": [m.label for m in metrics],
        "unit": [m.unit for m in metrics],
        "analysis": [m.place[0] for m in metrics],
        "n": [m.n for m in metrics],
    }
    named = dataset.assign_coords({name: ("quantity", values) for name, values in coords.items()})
    return named.assign_attrs(tidy=0)  # `change` and `change_summary` are its tables


def quantities(
    before: Results, after: Results, shape: tuple[int, int], *, documents: int
) -> Iterator[Quantity]:
    """Every number per head that both models have, with its draws."""
    root = xr.Dataset(attrs={"layers": shape[0], "heads": shape[1], "documents": documents})
    mine, theirs = (
        {m.key: m for m in head_metrics(xr.DataTree.from_dict({"/": root, **results}))}
        for results in (before, after)
    )
    for key, metric in mine.items():
        if key not in theirs:
            continue
        first, second = (_draws(results, metric) for results in (before, after))
        if first is not None and second is not None and first.shape == second.shape:
            sides = {"before": first, "after": second, "difference": second - first}
            stored = {"before": _stored(before, metric), "after": _stored(after, metric)}
            yield Quantity(metric, sides, stored, _sizes(before, metric))


def simultaneous(
    draws: Float64, sizes: Float64 | None = None, *, bounds: Bounds = ANY
) -> tuple[Float64, Float64]:
    """Simultaneous intervals for all cells (Bonferroni); NaN where `estimate` has none.

    draws    [replicate + 1, *cell]
    sizes, bounds  see `estimate`
    returns  low and high [*cell]: those of `estimate`, widened by how much farther Student's t
             reaches where the tail is divided among the cells. It has a third of the degrees of
             freedom that the documents tell: what far tails are like, few documents do not tell
    """
    alone = _difference(draws, bounds=bounds, sizes=sizes)
    _, freedom = standard_error(moves_of(draws), sizes, twice=True)
    freedom = np.maximum(freedom / HEAVIER, 1)
    cells = max(np.isfinite(alone.low).sum(), 1)
    wider = stdtrit(freedom, TAIL / cells) / stdtrit(freedom, TAIL)
    value = draws[0]
    low, high = value - wider * (value - alone.low), value + wider * (alone.high - value)
    return np.maximum(low, bounds[0]), np.minimum(high, bounds[1])


def _bounds(one: Quantity, side: str) -> Bounds:
    if one.metric.unit != "probability":
        return ANY
    return DIFFERENCE if side == "difference" else SHARE


def _stored(results: Results, metric: HeadMetric) -> Estimate:
    name, variable, choice = metric.place
    return results_estimate(results[name].transpose("layer", "head", ...), variable, **choice)


def _difference(draws: Float64, *, bounds: Bounds, sizes: Float64 | None) -> Estimate:
    """As `estimate`; a number that is identical in both models has the difference 0, exactly."""
    difference = estimate(draws, bounds=bounds, sizes=sizes)
    same = (draws == 0).all(0) & (len(draws) > FEWEST)
    return Estimate(
        draws[0], np.where(same, 0.0, difference.low), np.where(same, 0.0, difference.high)
    )


def _estimates(compared: Sequence[Quantity]) -> dict[str, Variable]:
    variables = {}
    for side, words in SIDES.items():
        make = _difference if side == "difference" else estimate
        drawn, sizes = [one.sides[side] for one in compared], [one.sizes for one in compared]
        for start, mean in (
            ("", ""),
            ("layer_", ", mean over heads"),
            ("model_", ", mean over all heads"),
        ):
            name = start + side
            if start:
                drawn = [finite_mean(draws) for draws in drawn]
                sizes = [None if size is None else finite_mean(size) for size in sizes]
            parts = [
                one.stored.get(name) or make(draws, bounds=_bounds(one, side), sizes=size)
                for one, draws, size in zip(compared, drawn, sizes, strict=True)
            ]
            ends = ([getattr(part, end) for part in parts] for end in ("value", "low", "high"))
            value = Estimate(*map(np.stack, ends))  # [quantity, …]
            variables[name] = _variable(value, f"{words}{mean}", GRID[: value.value.ndim])
    return variables


def _variable(value: Estimate | Float64, words: str, dims: Sequence[str] = GRID) -> Variable:
    return Variable(value, dims, words, "1", "ours")


def _draws(results: Results, metric: HeadMetric) -> Float64 | None:
    """[replicate + 1, layer, head] draws; None where the analysis has none."""
    name, variable, choice = metric.place
    dataset = results[name]
    if variable + DRAWS not in dataset:
        return None
    drawn = pick(dataset[variable + DRAWS], **choice).transpose(..., "layer", "head")
    return np.asarray(drawn.values, np.float64)


def _sizes(results: Results, metric: HeadMetric) -> Float64 | None:
    """[replicate + 1, layer or 1, head or 1] sizes; None where the analysis has none."""
    name, variable, choice = metric.place
    if (sizes := results[name].get(variable + SIZES)) is None:
        return None
    picked = pick(sizes, **{dim: at for dim, at in choice.items() if dim in sizes.dims})
    missing = [dim for dim in GRID[1:] if dim not in picked.dims]
    shaped = picked.expand_dims(missing).transpose(..., "layer", "head")
    return np.asarray(shaped.values, np.float64)


def comparison_tables(run: Reading) -> dict[str, pd.DataFrame]:
    """`change`, `change_by_layer`, `change_summary` and `changed_examples`.

    Layers and heads are 0-based, as in the data; `name` as they are counted in print.
    """
    tree, change, similarity = run.tree, group(run.tree, "change"), run.data
    by_name: dict[str, pd.DataFrame] = {}
    if change is not None:
        heads = _rows(change, "", GRID, "simultaneous_low", "simultaneous_high", "sure")
        places = zip(heads["layer"].tolist(), heads["head"].tolist(), strict=True)
        names = [names_of(tree).own(*place) for place in places]
        heads.insert(list(heads.columns).index("head") + 1, "name", names)
        words = {1: "rose", -1: "fell", 0: "unsure"}
        by_name["change"] = heads.assign(sure=heads["sure"].map(words).fillna("unknown"))
        by_name["change_by_layer"] = _rows(change, "layer_", GRID[:2])
        summary = _rows(change, "model_", GRID[:1], "rose", "fell")
        by_name["change_summary"] = summary.rename(
            columns={"rose": "heads_rose", "fell": "heads_fell"}
        )
    if similarity.sizes.get("rank", 0):
        parts = ("id", "document", "tokens", "change", "text")
        columns = {part: similarity[f"example_{part}"].values for part in parts}
        by_name["changed_examples"] = pd.DataFrame(
            {"rank": similarity["rank"].values + 1, **columns}
        )
    for name, table in by_name.items():
        models = {"base": "base_model", "model": "model", "revision": "revision"}
        if name == "changed_examples":
            del models["revision"]
        for place, (column, attr) in enumerate(models.items()):
            table.insert(place, column, str(tree.attrs.get(attr, "")))
    return by_name


def _rows(change: xr.Dataset, start: str, dims: Sequence[str], *more: str) -> pd.DataFrame:
    """Rows of every number at `dims`: both models, the difference, intervals, and `more`."""
    sides = [side + end for side in SIDES for end in ("", *LIMITS)]
    table = change[[*(start + side for side in sides), *more]].to_dataframe(dim_order=list(dims))
    table = table.reset_index().rename(columns={start + side: side for side in sides})
    return table[["analysis", "quantity", "label", "unit", "n", *dims[1:], *sides, *more]].copy()
