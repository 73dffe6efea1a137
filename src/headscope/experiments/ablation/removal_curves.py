"""Orders in which heads are removed one by one, and the scores along the way.

alone    by how little the loss rises without each head, the others being there
greedy   step by step: of the heads that looked least needed, those without which the loss rises
         least now that others are gone
given    by an importance that another run found, least important first
random   by chance, which the others are compared with

Heads are removed as in `pruned_checkpoint`, so every point of a curve is the model that would be
kept.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from headscope.claims.reading import WITHHELD
from headscope.core.accumulators import Array, Float64, generator, halves
from headscope.core.display import printable
from headscope.core.intervals import Estimate, estimate
from headscope.core.progress import Advance, unheard
from headscope.core.results import Variable, labelled
from headscope.errors import InputError
from headscope.experiments.ablation.effects import losses_of, numbers_told
from headscope.experiments.ablation.pruned_checkpoint import disabled
from headscope.model.linears import linears
from headscope.model.variant_answers import Way, answering, small_batches, sweep
from headscope.model.variants import Head, StandIn, Variant
from headscope.tasks.metrics import below_chance, draws_of, main_score
from headscope.tasks.predict import EncodedTask, outputs
from headscope.tasks.task import Task
from headscope.tasks.task_model import TaskModel

LOOKED_AT = 3  # ours: greedy tries this many times the heads of a step
OURS = "headscope"


@dataclass(frozen=True)
class Pruner:
    """A model, the examples by which heads are chosen, and how variants are run.

    way           how single heads are switched off, see `variant_answers.choose_way`
    kind          linear maps, "onednn" or "stock"
    batch_tokens  of one forward pass
    advance       gets the number of finished forward passes of one example
    """

    model: TaskModel
    choosing: EncodedTask
    way: Way
    kind: str = "stock"
    batch_tokens: int = 2048
    advance: Advance = unheard

    @property
    def heads(self) -> list[Head]:
        """All heads, in order."""
        shape = self.model.model.shape
        return [(layer, head) for layer in range(shape.layers) for head in range(shape.heads)]

    def rises_without(self, heads: Sequence[Head], removed: Sequence[Head]) -> list[float]:
        """[head] rise of the mean loss without each of these heads, given those already removed."""
        model, task, examples = self.model.model, self.model.task, self.choosing.examples
        variants: list[Variant] = [frozenset({head}) for head in heads]
        total, size = np.zeros(len(heads) + 1), self.batch_tokens
        off = answering(model.network, self.way, StandIn("zero"), batch_tokens=size)
        with self._without(removed), off as answers:
            for places in small_batches(examples, variants, batch_tokens=size):
                outputs = numbers_told(task, sweep(model, examples, places, variants, answers))
                labels = self.choosing.labels[places]
                total += [losses_of(task, labels, a).sum() for a in outputs]
                self.advance(len(places) * len(outputs))
        rises: list[float] = ((total[1:] - total[0]) / len(examples)).tolist()
        return rises

    def answers_without(self, scoring: EncodedTask, removed: Sequence[Head]) -> Float64:
        """[example, class] or [example] answers of the model without these heads."""
        with self._without(removed):
            answers = outputs(self.model, scoring, batch_tokens=self.batch_tokens)
        self.advance(len(answers))
        return answers

    @contextmanager
    def _without(self, removed: Sequence[Head]) -> Iterator[None]:
        model = self.model.model
        shape, network = model.shape, model.network
        gone = disabled(network, frozenset(removed), layers=shape.layers, per_layer=shape.heads)
        with gone, linears(network, self.kind):  # packed weights are those of that moment
            yield


def alone(pruner: Pruner) -> dict[Head, float]:
    """Head → rise of the loss without it alone; the smallest rise comes first."""
    rises = dict(zip(pruner.heads, pruner.rises_without(pruner.heads, []), strict=True))
    return dict(sorted(rises.items(), key=lambda item: item[1]))


def greedy(pruner: Pruner, *, step: int, start: Mapping[Head, float]) -> list[Head]:
    """All heads in order of removal: each step removes those whose absence costs least.

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


def greedy_variants(heads: int, step: int) -> int:
    """Number of variants that `greedy` evaluates on all examples."""
    return sum(min(LOOKED_AT * step, left) + 1 for left in range(heads, 0, -step) if left > step)


def given(importance: Float64) -> list[Head]:
    """All heads, least important first; importance [layer, head], NaN counts as 0."""
    flat = np.nan_to_num(importance).ravel()  # [unit]
    heads = importance.shape[1]
    return [divmod(unit, heads) for unit in np.argsort(flat, kind="stable").tolist()]


def random(heads: Sequence[Head], *, seed: int) -> list[Head]:
    """All heads in a random order, drawn from the seed."""
    drawn = generator(seed, "order of removal").permutation(len(heads))
    return [heads[at] for at in drawn.tolist()]


def counts(heads: int, step: int, *, also: int | None = None) -> list[int]:
    """Number of heads removed at each point of a curve: 0, every step, one more, all."""
    return sorted({*range(0, heads, step), heads, *(() if also is None else (also,))})


# --- scores along the orders ------------------------------------------------------------------


@dataclass(frozen=True)
class Curves:
    """Answers along several orders.

    shape    layers, heads
    orders   name → all heads, those that go first coming first
    removed  [point] how many heads are gone; 0 first
    answers  [order, point, example, class] or [order, point, example]
    """

    task: Task
    labels: Array
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
    draws = np.stack(
        [
            np.stack([draws_of(task, labels, a, replicates=replicates) for a in points], 1)
            for points in curves.answers
        ],
        1,
    )  # [replicate + 1, order, point]
    apart = estimate(draws - draws[..., :1])
    can_go = _most(apart.value, curves.removed, allowance)
    in_half, held_out = _held_out(curves, allowance=allowance, replicates=replicates, seed=seed)
    turns = np.full((*curves.shape, len(curves.orders)), np.nan)  # [layer, head, order]
    for at, order in enumerate(curves.orders.values()):
        for turn, (layer, head) in enumerate(order):
            turns[layer, head, at] = turn
    metric, single, both = task.metrics[0], ("order",), ("order", "removed")
    other = f"change of {metric} on the other half with as many heads gone"
    rows: dict[str, tuple[Any, tuple[str, ...], str, str]] = {
        "score": (draws[0], both, f"{metric} once heads are gone", "Michel et al. 2019"),
        "difference": (apart, both, f"change of {metric} once heads are gone", OURS),
        "can_go": (can_go, single, "most heads gone within the allowance", OURS),
        "can_go_half": (in_half, single, "the same, chosen on half of the examples", OURS),
        "held_out": (held_out, single, other, OURS),
        "turn": (turns, ("layer", "head", "order"), "heads removed before this one", OURS),
    }
    variables = {
        name: Variable(value, dims, words, "1", source)
        for name, (value, dims, words, source) in rows.items()
    }
    pruning = labelled(
        variables, coords={"order": list(curves.orders), "removed": list(curves.removed)}
    )
    if why := below_chance(task, labels, curves.answers[0][0]):
        pruning.attrs[WITHHELD] = printable(why)
    return pruning.assign_attrs(
        task=printable(task.name),
        metric=metric,
        allowance=allowance,
        examples=len(labels),
        heads=curves.shape[0] * curves.shape[1],
    )


def _most(differences: Float64, removed: Sequence[int], allowance: float) -> Float64:
    """[order] the most heads removed whose difference [order, point] is within the allowance."""
    within = np.nan_to_num(differences, nan=-np.inf) >= -allowance - 1e-12
    if not within.any(1).all():  # not even with every head in its place
        raise InputError(
            "found a score that is undefined on these examples, wanted a number, to decide which "
            "heads can go: give more examples, with different labels"
        )
    return np.asarray(np.where(within, np.array(removed, np.float64), 0).max(1))


def _held_out(
    curves: Curves, *, allowance: float, replicates: int, seed: int
) -> tuple[Float64, Estimate]:
    """[order] heads that can go by one half of the examples, and the cost on the other half."""
    task, labels = curves.task, curves.labels
    half = halves(curves.ids, seed=seed)
    first, second = half == 0, half == 1
    if min(first.sum(), second.sum()) < 2 or not (np.ptp(labels[first]) and np.ptp(labels[second])):
        none = np.full(len(curves.orders), np.nan)
        return np.zeros(len(none)), Estimate(none, none, none)
    scores = np.array(
        [[main_score(task, labels[first], a[first]) for a in points] for points in curves.answers]
    )  # [order, point]
    can_go = _most(scores - scores[:, :1], curves.removed, allowance)

    def drawn(answers: Float64) -> Float64:
        return draws_of(task, labels[second], answers[second], replicates=replicates)

    apart = [
        drawn(points[list(curves.removed).index(count)]) - drawn(points[0])
        for points, count in zip(curves.answers, can_go.astype(int).tolist(), strict=True)
    ]
    return can_go, estimate(np.stack(apart, 1))
