"""How does derived, drawing and report code read a result, and which numbers does each head have?

The result contract: one group per analysis; an estimate `x` has `x_ci_low` and `x_ci_high`.
Groups and intervals may be absent: absent is None or NaN here, never an error.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from headscope.core import dictionary as terms
from headscope.core.accumulators import Estimate
from headscope.core.relation_names import TOTALS, arrow

Floats = npt.NDArray[np.float64]
LIMITS = ("_ci_low", "_ci_high")
# In which papers tell them.
ORDER = (
    "surface", "entropy", "norms", "mixing", "divergence", "dependency", "coreference", "frames",
    "features", "pairs", "neurons",
)  # fmt: skip
COMPANIONS = (*LIMITS, "_n")
PLACES = ("best_layer", "best_head", "best_direction", "best_offset")  # where, not how much
SHARES = ("accuracy", "accuracy_strict")
BESIDE = ("distribution", "score_quantile", "chance", "p_value")  # of frames: they go with a score
NO_SYNTAX = ("root", "punct", "P")  # no head finds the root; punctuation hangs by convention
MOST_RELATIONS = 20  # ours: as metrics; the rest stands in the tables
LEAST_WORDS = 25  # ours: of fewer words, an accuracy says little


@dataclass(frozen=True, slots=True)
class HeadMetric:
    """One number per head.

    key       group.variable or group.variable.choice, as in the data
    label     the same in words
    unit      as in the data: probability, nats, tokens, 1; an accuracy is written as a share too
    estimate  [layer, head]
    n         documents behind it
    place     its group, its variable, and at which value of each dimension but layer and head
    """

    key: str
    label: str
    unit: str
    estimate: Estimate
    n: int
    place: tuple[str, str, dict[str, Any]]


def group(tree: xr.DataTree, name: str) -> xr.Dataset | None:
    """The dataset of an analysis; None where the run did not include it."""
    if name not in tree.children:
        return None
    return tree.children[name].to_dataset()


def estimates(dataset: xr.Dataset) -> list[str]:
    """Names of the variables that are numbers of their own: no companions, PLACES or strings, and
    none that says of itself that it is no table (`tidy` = 0).
    """
    names = [
        str(name)
        for name, variable in dataset.data_vars.items()
        if variable.dtype.kind in "biuf" and variable.attrs.get("tidy", 1)
    ]
    return [name for name in names if name not in PLACES and not _is_companion(name, names)]


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


def surely(parts: Estimate) -> Floats:
    """The lower ends of the intervals; the values where there are none."""
    return np.asarray(np.where(np.isfinite(parts.low), parts.low, parts.value))


def at(parts: Estimate, layer: int, head: int) -> tuple[float, float, float]:
    """The value of one head with the ends of its interval; parts [layer, head]."""
    cells: list[Floats] = [parts.value, parts.low, parts.high]
    value, low, high = (float(cell[layer, head]) for cell in cells)
    return value, low, high


def pick(array: xr.DataArray, **choice: Any) -> xr.DataArray:
    """`array` at one coordinate value per named dimension; NaN where that value is missing."""
    for dim, wanted in choice.items():
        if wanted in array[dim].values:
            array = array.sel({dim: wanted})
        else:
            array = array.isel({dim: 0}, drop=True) * np.nan
    return array


def shown_relations(dependency: xr.Dataset, *, least: int = LEAST_WORDS) -> list[int]:
    """Positions of the relations of at least `least` words, the most frequent first.

    TOTALS, root and punctuation are left out: the paper does not show them, and no head is known
    by them.
    """
    names = [str(name) for name in dependency["relation"].values]
    counts = dependency["count"].values
    return [
        at
        for at in range(len(TOTALS), len(names))
        if counts[at] >= least and names[at].partition(":")[0] not in NO_SYNTAX
    ]


def documents(tree: xr.DataTree, array: xr.DataArray | None = None) -> int:
    """The documents behind a variable: its own attribute `n`, else the run's `documents`."""
    own = {} if array is None else array.attrs
    return int(own.get("n", tree.attrs.get("documents", 0)))


def counted(tree: xr.DataTree) -> str:
    """What `documents` are: the examples of a task, or documents."""
    return str(tree.attrs.get("counted", "documents"))


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


def model_name(tree: xr.DataTree) -> str:
    """The model of the run as a title: a local folder by its own name, hub ids as they are."""
    return title_name(printable(tree.attrs.get("model", "the model")))


def title_name(model: str) -> str:
    """A local folder by its own name, as its place says nothing of the model; hub ids stay."""
    local = model.startswith(("/", "./", "../", "~")) or "\\" in model
    return re.split(r"[/\\]", model.rstrip("/\\"))[-1] or model if local else model


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
    if (name, variable) == ("dependency", "accuracy"):
        return [
            _relation_metric(tree, dataset, at) for at in shown_relations(dataset)[:MOST_RELATIONS]
        ]
    if name == "frames" and variable.removesuffix("_reversed") in BESIDE:
        return []
    if dims[:2] != ["layer", "head"] or len(dims) > 3 or {"neuron", "rank"} & set(dims):
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
        unit="probability" if variable in SHARES else str(attrs.get("units", "1")),
        estimate=estimate(dataset, variable, **choice),
        n=documents(tree, dataset[variable]),
        place=(name, variable, choice),
    )


def _relation_metric(tree: xr.DataTree, dependency: xr.Dataset, at: int) -> HeadMetric:
    """The accuracy at one relation, in the direction in which its best head is best."""
    relation = str(dependency["relation"].values[at])
    way = int(np.nan_to_num(dependency["best_direction"].values[at]))
    direction = str(dependency["direction"].values[way])
    return HeadMetric(
        key=".".join(["dependency", "accuracy", direction, relation]),
        label=arrow(printable(relation), direction),
        unit="probability",
        estimate=estimate(dependency.isel(relation=at, direction=way), "accuracy"),
        n=documents(tree, dependency["accuracy"]),
        place=("dependency", "accuracy", {"relation": relation, "direction": direction}),
    )


def _is_companion(name: str, names: list[str]) -> bool:
    return any(name.endswith(end) and name.removesuffix(end) in names for end in COMPANIONS)
