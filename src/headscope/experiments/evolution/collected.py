"""Collect what was measured of every step into one dataset with the dimension `step`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from headscope.claims.control import CONTROL
from headscope.claims.head_labels import head_labels
from headscope.claims.head_metrics import HeadMetric, control_ranges, head_metrics
from headscope.claims.terms import OURS
from headscope.core.accumulators import Float64
from headscope.core.intervals import Estimate, without_interval
from headscope.core.results import Variable, derived_once, labelled, shape
from headscope.errors import InputError

Trees = Sequence[xr.DataTree]  # what was measured of one step: an atlas, circuits
# The first of each that a run has is drawn where none is named.
USUAL = (
    "circuits.score.induction",
    "circuits.score.previous_token",
    "circuits.copied_attention",
    "surface.attention.previous",
    "surface.attention.next",
    "surface.attention.cls",
    "surface.attention.sep",
    "surface.attention.first",
    "entropy.relative_entropy.all",
)
MOST_NAMED = 16


def metrics_of(trees: Trees) -> dict[str, HeadMetric]:
    """Every number per head of one step, by its key."""
    return {metric.key: metric for tree in trees for metric in head_metrics(tree)}


def chosen_measures(trees: Trees, wanted: Sequence[str] | None) -> list[str]:
    """The keys of the numbers that are followed; InputError for one that the runs do not have."""
    known = metrics_of(trees)
    if wanted is None:
        return [key for key in USUAL if key in known] or list(known)[:1]
    for key in wanted:
        if key not in known:
            some = ", ".join(list(known)[:MOST_NAMED])
            raise InputError(f"no number {key!r} per head is measured; there are: {some}, …")
    return list(wanted)


def labels_of(trees: Trees) -> dict[tuple[str, str], set[tuple[int, int]]]:
    """(kind, name) of every label of one step -> the heads that have it: those of the runs."""
    having = dict[tuple[str, str], set[tuple[int, int]]]()
    for tree in trees:
        for place, one in head_labels(tree).items():
            for label in one.labels:
                having.setdefault((label.kind, label.name), set()).add(place)
    return having


def with_controls(steps: Mapping[int, Trees]) -> dict[int, list[xr.DataTree]]:
    """The same, where a run without a control gets that of the last step that has one.

    Untrained networks of one architecture differ between steps only in the scale of their weights;
    while a training goes on, to measure them at each step would cost more than all the rest.
    """
    donors = dict[int, xr.DataTree]()  # by the place of the run among those of a step
    for trees in steps.values():
        donors |= {at: tree.children[CONTROL] for at, tree in enumerate(trees) if CONTROL in tree}
    return {
        step: [
            tree
            if CONTROL in tree or at not in donors
            else xr.DataTree(
                tree.to_dataset(), children={**tree.children, CONTROL: donors[at]}, name=tree.name
            )
            for at, tree in enumerate(trees)
        ]
        for step, trees in steps.items()
    }


def own_controls(steps: Mapping[int, Trees]) -> list[bool]:
    """[step] whether a control was read at it."""
    return [any(CONTROL in tree for tree in trees) for trees in steps.values()]


def evolution(
    steps: Mapping[int, Trees],
    wanted: Sequence[str] | None,
    names: Mapping[int, str],
    own: Sequence[bool],
) -> xr.Dataset:
    """The group `evolution`: the chosen numbers and all labels of every head at every step.

    steps   in order; what was measured of each, `with_controls`
    wanted  keys of numbers per head; None: a few usual ones
    names   of the checkpoint of each step
    own     whether its control was read at the step itself
    """
    measures = chosen_measures(next(reversed(list(steps.values()))), wanted)
    size = shape(next(iter(steps.values()))[0])
    parts = list[tuple[list[Estimate], Float64]]()
    labels = list[dict[tuple[str, str], set[tuple[int, int]]]]()
    for trees in steps.values():
        with derived_once():
            parts.append(_numbers(trees, measures, size))
            labels.append(labels_of(trees))
            said = metrics_of(trees)
    estimates = [
        np.stack([[getattr(one, end) for one in some] for some, _ in parts])
        for end in ("value", "low", "high")
    ]  # each [step, measure, layer, head]
    ends = np.stack([of_control for _, of_control in parts])  # [step, measure, end]
    about = ("step", "measure")
    variables = {
        "value": Variable(
            Estimate(*estimates), (*about, "layer", "head"), "the number of each head", "1", OURS
        ),
        "control_least": Variable(
            ends[..., 0], about, "the least head of the control", "1", OURS, tidy=False
        ),
        "control_most": Variable(
            ends[..., 1], about, "the largest head of the control", "1", OURS, tidy=False
        ),
    }
    every = sorted({key for some in labels for key in some})
    if every:
        having = np.zeros((len(labels), len(every), *size))
        for at, some in enumerate(labels):
            for row, key in enumerate(every):
                for place in some.get(key, ()):
                    having[(at, row, *place)] = 1.0
        dims = ("step", "label", "layer", "head")
        variables["labelled"] = Variable(
            having, dims, "whether a head has it", "1", OURS, tidy=False
        )
    made = labelled(variables, coords={"step": list(steps), "measure": measures})
    made = made.assign_coords(_coordinates(measures, said, every, [names[s] for s in steps], own))
    return made.assign_attrs(inputs=max(said[key].n for key in measures))


def _coordinates(
    measures: Sequence[str],
    said: Mapping[str, HeadMetric],
    labels: Sequence[tuple[str, str]],
    names: Sequence[str],
    own: Sequence[bool],
) -> dict[str, Any]:
    coordinates: dict[str, Any] = {
        "measure_name": ("measure", [said[key].label for key in measures]),
        "unit": ("measure", [said[key].unit for key in measures]),
        "measured_over": ("measure", [said[key].n for key in measures]),
        "checkpoint": ("step", list(names)),
        "own_control": ("step", np.array(own, np.int8)),
    }
    if labels:
        coordinates |= {
            "label": [name for _, name in labels],
            "kind": ("label", [kind for kind, _ in labels]),
        }
    return coordinates


def _numbers(
    trees: Trees, measures: Sequence[str], size: tuple[int, int]
) -> tuple[list[Estimate], Float64]:
    """Each measure’s estimate [layer, head]; [measure, end] least and largest of the control.

    A number that a step lacks, as all of it is undefined there, is NaN.
    """
    known, absent = metrics_of(trees), without_interval(np.full(size, np.nan))
    ranges = {key: ends for tree in trees for key, ends in control_ranges(tree).items()}
    numbers = [known[key].estimate if key in known else absent for key in measures]
    return numbers, np.array([ranges.get(key, (np.nan, np.nan)) for key in measures])
