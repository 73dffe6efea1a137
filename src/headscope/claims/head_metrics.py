"""Every number per head in a run, with its words, unit and interval."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from headscope.claims import dictionary
from headscope.claims.control import controls
from headscope.claims.question import Question, questions
from headscope.claims.reading import Reading
from headscope.core.intervals import Estimate
from headscope.core.results import Floats, derived, documents, estimate, estimates

SHARES = ("accuracy", "accuracy_strict")  # written as percentages, though their unit is 1
# Dimensions of variables that are no menu of numbers per head.
_NOT_OF_HEADS = {"neuron", "rank", "distance", "quantile", "kind"}


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


@derived
def head_metrics(tree: xr.DataTree) -> list[HeadMetric]:
    """Every number per head, ordered by question, then others; without those that are all NaN."""
    known = {question.name: question for question in questions() if question.name in tree.children}
    metrics = [
        metric
        for name in [*known, *(str(name) for name in tree.children if name not in known)]
        for variable in estimates(tree.children[name].to_dataset())
        for metric in _metrics_of(tree, name, variable, known.get(name))
    ]
    return [metric for metric in metrics if np.isfinite(metric.estimate.value).any()]


@derived
def control_ranges(tree: xr.DataTree) -> dict[str, tuple[float, float]]:
    """Key of a number per head -> its minimum and maximum over all heads of the control."""
    values: dict[str, list[Floats]] = {}
    for metric in (metric for network in controls(tree) for metric in head_metrics(network)):
        values.setdefault(metric.key, []).append(metric.estimate.value)
    return {
        key: (float(np.nanmin(all_of)), float(np.nanmax(all_of))) for key, all_of in values.items()
    }


def chosen_metrics(metrics: Sequence[HeadMetric], place: str) -> list[HeadMetric]:
    """The numbers per head that questions show in a place (`Question.shown`)."""
    known = {metric.key: metric for metric in metrics}
    return [known[key] for key in chosen_keys(known, place)]


def chosen_keys(known: Collection[str], place: str) -> list[str]:
    """The keys of the numbers per head that questions show in a place, in order."""
    chosen = []
    for question in questions():
        for key in question.part("shown", {}).get(place, ()):
            names = [f"{question.name}.{one}" for one in key.split("|")]
            chosen += [name for name in names if name in known][:1]
    return chosen


def first_metrics(metrics: Sequence[HeadMetric]) -> list[HeadMetric]:
    """The numbers per head that come first on the page of an experiment."""
    starts = tuple(
        f"{question.name}.{key.rstrip('*')}"
        for question in questions()
        for key in question.part("shown", {}).get("first", ())
    )
    return [metric for metric in metrics if metric.key.startswith(starts)]


def _metrics_of(
    tree: xr.DataTree, name: str, variable: str, question: Question | None
) -> list[HeadMetric]:
    special = None if question is None else question.part("metrics")
    if question is not None and special is not None:
        metrics: list[HeadMetric] | None = special(Reading(tree, question), variable)
        if metrics is not None:
            return metrics
    array = tree.children[name].to_dataset()[variable]
    dims = [str(dim) for dim in array.dims]
    if dims[:2] != ["layer", "head"] or len(dims) > 3 or _NOT_OF_HEADS & set(dims):
        return []
    choices = [{dims[2]: value} for value in array[dims[2]].values] if dims[2:] else [{}]
    return [_metric(tree, name, variable, choice) for choice in choices]


def _metric(tree: xr.DataTree, name: str, variable: str, choice: dict[str, Any]) -> HeadMetric:
    dataset = tree.children[name].to_dataset()
    words = [str(value) for value in choice.values()]
    attrs = dataset[variable].attrs
    return HeadMetric(
        key=".".join([name, variable, *words]),
        label=dictionary.label(name, variable, *words, long_name=str(attrs.get("long_name", ""))),
        unit="probability" if variable in SHARES else str(attrs.get("units", "1")),
        estimate=estimate(dataset, variable, **choice),
        n=documents(tree, dataset[variable]),
        place=(name, variable, choice),
    )
