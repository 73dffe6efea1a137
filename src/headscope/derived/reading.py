"""How does derived, drawing and report code read a result, and which numbers does each head have?

The result contract: one group per analysis; an estimate `x` has `x_ci_low` and `x_ci_high`.
Groups and intervals may be absent: absent is None or NaN here, never an error.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from headscope import terms
from headscope.accumulate import Estimate

Floats = npt.NDArray[np.float64]
LIMITS = ("_ci_low", "_ci_high")
ORDER = ("surface", "entropy", "norms", "mixing", "divergence")  # in which papers tell them
COMPANIONS = (*LIMITS, "_n")


@dataclass(frozen=True, slots=True)
class HeadMetric:
    """One number per head.

    key       group.variable or group.variable.choice, as in the data
    label     the same in words
    unit      as in the data: probability, nats, tokens, 1
    estimate  [layer, head]
    n         documents behind it
    """

    key: str
    label: str
    unit: str
    estimate: Estimate
    n: int


def group(tree: xr.DataTree, name: str) -> xr.Dataset | None:
    """The dataset of an analysis; None where the run did not include it."""
    if name not in tree.children:
        return None
    return tree.children[name].to_dataset()


def estimates(dataset: xr.Dataset) -> list[str]:
    """Names of the variables of a dataset that are estimates, not the companions of one."""
    names = [str(name) for name in dataset.data_vars]
    return [name for name in names if not _is_companion(name, names)]


def estimate(dataset: xr.Dataset, variable: str, **choice: Any) -> Estimate:
    """`variable` with its interval at `choice`, which names one coordinate value per dimension.

    returns  arrays of the dimensions left, NaN throughout if the choice is not in the data
    """
    value = pick(dataset[variable], **choice)
    limits = [
        pick(dataset[variable + end], **choice) if variable + end in dataset else value * np.nan
        for end in LIMITS
    ]
    arrays = [np.asarray(part.values, dtype=np.float64) for part in (value, *limits)]
    return Estimate(*arrays)


def pick(array: xr.DataArray, **choice: Any) -> xr.DataArray:
    """`array` at one coordinate value per named dimension; NaN where that value is missing."""
    for dim, wanted in choice.items():
        if wanted in array[dim].values:
            array = array.sel({dim: wanted})
        else:
            array = array.isel({dim: 0}, drop=True) * np.nan
    return array


def documents(tree: xr.DataTree, array: xr.DataArray | None = None) -> int:
    """The documents behind a variable: its own attribute `n`, else the run's `documents`."""
    own = {} if array is None else array.attrs
    return int(own.get("n", tree.attrs.get("documents", 0)))


def shape(tree: xr.DataTree) -> tuple[int, int]:
    """Layers and heads of the run."""
    return int(tree.attrs["layers"]), int(tree.attrs["heads"])


def head_name(unit: int, heads: int) -> str:
    """How papers name a head: 1-based, `L8·H10`; `unit` is layer · heads + head, 0-based."""
    return f"L{unit // heads + 1}·H{unit % heads + 1}"


def token_names(tree: xr.DataTree) -> dict[str, str]:
    """What the tokenizer calls the tokens of the categories cls and sep; '' where it has none."""
    return {kind: printable(tree.attrs.get(f"{kind}_token", "")) for kind in ("cls", "sep")}


def printable(value: object) -> str:
    """A name as text that any file can hold: control characters and lone surrogates become �."""
    text = "" if value is None else str(value)
    return "".join("\ufffd" if unicodedata.category(c) in ("Cc", "Cs") else c for c in text)


def head_metrics(tree: xr.DataTree) -> list[HeadMetric]:
    """Every number per head in the run, groups in ORDER, then others; all-NaN ones are left out."""
    known = [name for name in ORDER if name in tree.children]
    found = [
        metric
        for name in [*known, *(name for name in tree.children if name not in ORDER)]
        for variable in estimates(tree.children[name].to_dataset())
        for metric in _metrics_of(tree, str(name), variable)
    ]
    return [metric for metric in found if np.isfinite(metric.estimate.value).any()]


def _metrics_of(tree: xr.DataTree, name: str, variable: str) -> list[HeadMetric]:
    dataset = tree.children[name].to_dataset()
    array = dataset[variable]
    dims = [str(dim) for dim in array.dims]
    if dims[:2] != ["layer", "head"] or len(dims) > 3:
        return []
    choices = [{dims[2]: value} for value in array[dims[2]].values] if dims[2:] else [{}]
    return [_metric(tree, name, variable, choice) for choice in choices]


def _metric(tree: xr.DataTree, name: str, variable: str, choice: dict[str, Any]) -> HeadMetric:
    dataset = tree.children[name].to_dataset()
    words = [str(value) for value in choice.values()]
    attrs = dataset[variable].attrs
    return HeadMetric(
        key=".".join([name, variable, *words]),
        label=terms.label(name, variable, *words, long_name=str(attrs.get("long_name", ""))),
        unit=str(attrs.get("units", "1")),
        estimate=estimate(dataset, variable, **choice),
        n=documents(tree, dataset[variable]),
    )


def _is_companion(name: str, names: list[str]) -> bool:
    return any(name.endswith(end) and name.removesuffix(end) in names for end in COMPANIONS)
