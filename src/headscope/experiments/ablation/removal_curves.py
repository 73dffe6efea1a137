"""Removes heads one after another in several orders, and scores the model on the way.

alone    by how little the loss rises without each head, the others being there
greedy   step by step: of the heads that looked least needed, those without which the loss rises
         least now that others are gone
given    by an importance that another run found, least important first
random   by chance, which the others are compared with

Heads are removed as in `pruned_checkpoint`, so every point of a curve is the model that would be
kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from headscope.core.accumulators import Estimate, estimate, generator, halves
from headscope.core.labelled import Variable, labelled
from headscope.core.results import printable
from headscope.experiments.ablation.effects import losses_of
from headscope.experiments.ablation.pruned_checkpoint import disabled
from headscope.experiments.ablation.replace import StandIn
from headscope.experiments.ablation.variant_answers import (
    Answers,
    Way,
    answering,
    small_batches,
    sweep,
)
from headscope.experiments.ablation.variants import Head, Variant
from headscope.model.linears import linears
from headscope.tasks.metrics import main_score, resampled
from headscope.tasks.predict import EncodedTask, outputs
from headscope.tasks.task import Task
from headscope.tasks.task_model import TaskModel

LOOKED_AT = 3  # ours: greedy looks at so many times the heads of a step
Told = Callable[[], object]
OURS = "headscope"
MICHEL = "Michel et al. 2019"
Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Pruner:
    """A model, the examples by which heads are chosen, and how it is run.

    way           how single heads are switched off, see `variant_answers.choose_way`
    kind          linear maps, "onednn" or "stock"
    batch_tokens  of one forward pass
    told          called after each look at the examples
    """

    model: TaskModel
    choosing: EncodedTask
    way: Way
    kind: str = "stock"
    batch_tokens: int = 2048
    told: Told = lambda: None

    @property
    def heads(self) -> list[Head]:
        """All heads, in order."""
        shape = self.model.model.shape
        return [(layer, head) for layer in range(shape.layers) for head in range(shape.heads)]

    def rises_without(self, heads: Sequence[Head], removed: Sequence[Head]) -> list[float]:
        """[head] by how much the mean loss rises without each of these, others being gone."""
        model, examples = self.model.model, self.choosing.examples
        variants: list[Variant] = [frozenset({head}) for head in heads]
        total = np.zeros(len(heads) + 1)
        with self._without(removed), self._answers() as answers:
            for places in small_batches(examples, variants, batch_tokens=self.batch_tokens):
                told = sweep(model, examples, places, variants, answers)
                given = told[..., 0] if self.model.task.is_regression else told
                labels = self.choosing.labels[places]
                total += [losses_of(self.model.task, labels, a).sum() for a in given]
                self.told()
        rises: list[float] = ((total[1:] - total[0]) / len(examples)).tolist()
        return rises

    def answers_without(
        self, scoring: EncodedTask, removed: Sequence[Head]
    ) -> npt.NDArray[np.float64]:
        """[example, class] or [example] what the model answers once these heads are gone."""
        with self._without(removed):
            return outputs(self.model, scoring, batch_tokens=self.batch_tokens)

    @contextmanager
    def _without(self, removed: Sequence[Head]) -> Iterator[None]:
        model = self.model.model
        shape, network = model.shape, model.network
        gone = disabled(network, frozenset(removed), layers=shape.layers, per_layer=shape.heads)
        with gone, linears(network, self.kind):  # packed weights are those of that moment
            yield

    @contextmanager
    def _answers(self) -> Iterator[Answers]:
        zero = StandIn("zero")
        network = self.model.model.network
        with answering(network, self.way, zero, batch_tokens=self.batch_tokens) as answers:
            yield answers


def alone(pruner: Pruner) -> dict[Head, float]:
    """Head → by how much the loss rises without it alone; those that rise least come first."""
    rises = dict(zip(pruner.heads, pruner.rises_without(pruner.heads, []), strict=True))
    return dict(sorted(rises.items(), key=lambda item: item[1]))


def greedy(pruner: Pruner, *, step: int, start: Mapping[Head, float]) -> list[Head]:
    """All heads in the order in which they are removed: at each step those that are missed least.

    step   heads removed between two looks; candidates are LOOKED_AT times as many, those whose loss
           rose least when they were last looked at (lazy greedy: Minoux 1978)
    start  a first look, see `alone`
    """
    rises, order = dict(start), list[Head]()
    while rises:
        seen = sorted(rises, key=rises.__getitem__)[: LOOKED_AT * step]
        if len(rises) > step:
            rises |= zip(seen, pruner.rises_without(seen, order), strict=True)
        gone = sorted(seen, key=rises.__getitem__)[:step]
        order += gone
        rises = {head: rise for head, rise in rises.items() if head not in gone}
    return order


def given(importance: npt.NDArray[np.float64]) -> list[Head]:
    """All heads, least important first; importance [layer, head], NaN counts as 0."""
    flat = np.nan_to_num(importance).ravel()  # [unit]
    heads = importance.shape[1]
    return [divmod(int(unit), heads) for unit in np.argsort(flat, kind="stable")]


def random(heads: Sequence[Head], *, seed: int) -> list[Head]:
    """All heads in an order drawn by the seed."""
    drawn = generator(seed, "order of removal").permutation(len(heads))
    return [heads[int(at)] for at in drawn]


def counts(heads: int, step: int, *, also: int | None = None) -> list[int]:
    """How many heads are gone at each point of a curve: none, every step, one more, all."""
    return sorted({*range(0, heads, step), heads, *(() if also is None else (also,))})


# --- scores along the orders ------------------------------------------------------------------


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
