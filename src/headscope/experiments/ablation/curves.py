"""What do the answers along the removal of heads amount to: scores, and how many heads can go?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from headscope.core.accumulators import Estimate, estimate, halves
from headscope.core.labelled import Variable, labelled
from headscope.core.results import printable
from headscope.experiments.ablation.removal import Head
from headscope.tasks.metrics import main_score, resampled
from headscope.tasks.task import Task

OURS = "headscope"
MICHEL = "Michel et al. 2019"
Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Curves:
    """Answers along several orders.

    labels   [example]
    ids      [example]
    shape    layers, heads
    orders   name → all heads, those that go first coming first
    removed  [point] how many heads are gone; 0 first
    answers  [order, point, example, class] or [order, point, example]
    """

    task: Task
    labels: npt.NDArray[Any]
    ids: Sequence[str]
    shape: tuple[int, int]
    orders: Mapping[str, Sequence[Head]]
    removed: Sequence[int]
    answers: Float64


def pruning_result(curves: Curves, *, allowance: float, replicates: int, seed: int) -> xr.Dataset:
    """The group `pruning`.

    allowance  how much of the score may be lost, on its own scale
    """
    task, labels = curves.task, curves.labels
    draws = np.stack([
        np.stack([resampled(task, labels, a, replicates=replicates, seed=seed) for a in points], 1)
        for points in curves.answers
    ], 1)  # [replicate + 1, order, point]  # fmt: skip
    apart = estimate(draws - draws[..., :1], documents=len(labels))
    can_go = _most(apart.value, curves.removed, allowance)
    in_half, held_out = _held_out(curves, allowance=allowance, replicates=replicates, seed=seed)
    metric, order = task.metrics[0], ("order",)
    both = ("order", "removed")
    variables = {
        "score": Variable(draws[0], both, f"{metric} once heads are gone", "1", MICHEL),
        "difference": Variable(apart, both, f"change of {metric} once heads are gone", "1", OURS),
        "can_go": Variable(
            can_go.astype(np.float64), order, "most heads gone within the allowance", "1", OURS
        ),
        "can_go_half": Variable(
            in_half.astype(np.float64), order, "the same, chosen on half of the examples", "1", OURS
        ),
        "held_out": Variable(
            held_out, order, f"change of {metric} on the other half with as many heads gone", "1",
            OURS,
        ),
        "turn": Variable(
            _turns(curves), ("layer", "head", "order"), "heads removed before this one", "1", OURS
        ),
    }  # fmt: skip
    found = labelled(
        variables, coords={"order": list(curves.orders), "removed": list(curves.removed)}
    )
    return found.assign_attrs(
        task=printable(task.name), metric=metric, allowance=allowance, examples=len(labels),
        heads=curves.shape[0] * curves.shape[1],
    )  # fmt: skip


def _most(differences: Float64, removed: Sequence[int], allowance: float) -> npt.NDArray[np.int64]:
    """[order] the most heads gone whose difference [order, point] is within the allowance."""
    within = np.nan_to_num(differences, nan=-np.inf) >= -allowance - 1e-12
    return np.array([max(np.array(removed)[row]) for row in within], np.int64)


def _held_out(
    curves: Curves, *, allowance: float, replicates: int, seed: int
) -> tuple[npt.NDArray[np.int64], Estimate]:
    """[order] how many heads can go by one half of the examples, and what that costs the other."""
    task, labels = curves.task, curves.labels
    half = halves(curves.ids, seed=seed)
    first, second = np.flatnonzero(half == 0), np.flatnonzero(half == 1)
    none = np.full(len(curves.orders), np.nan)
    if min(len(first), len(second)) < 2 or any(
        np.ptp(labels[half == side]) == 0 for side in (0, 1)
    ):
        return np.zeros(len(none), np.int64), Estimate(none, none, none)
    scores = np.array([
        [main_score(task, labels[first], a[first]) for a in points] for points in curves.answers
    ])  # [order, point]  # fmt: skip
    can_go = _most(scores - scores[:, :1], curves.removed, allowance)
    at = [list(curves.removed).index(int(count)) for count in can_go]

    def drawn(answers: Float64) -> Float64:
        return resampled(task, labels[second], answers[second], replicates=replicates, seed=seed)

    apart = [
        drawn(points[chosen]) - drawn(points[0])
        for points, chosen in zip(curves.answers, at, strict=True)
    ]
    return can_go, estimate(np.stack(apart, 1), documents=len(second))


def _turns(curves: Curves) -> Float64:
    """[layer, head, order] how many heads go before each."""
    found = np.full((*curves.shape, len(curves.orders)), np.nan)
    for at, order in enumerate(curves.orders.values()):
        for turn, (layer, head) in enumerate(order):
            found[layer, head, at] = turn
    return found
