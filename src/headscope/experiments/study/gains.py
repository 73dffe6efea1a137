"""Why does switching a head off help? What is left of a gain elsewhere.

The best of many heads gains on the examples that chose it, whatever it does: the largest of many
errors is above 0. So the gain is tried where it was not chosen: in the other seeds, in the other
half of the examples, with other replacements, and beside the other heads of its layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headscope.core.accumulators import Array, Float64, generator
from headscope.core.intervals import Estimate
from headscope.experiments.ablation.effects import Answers, Effects, effects
from headscope.experiments.study.over_seeds import absent, estimated_mean
from headscope.tasks.task import Task


@dataclass(frozen=True)
class HeadGain:
    """The head whose absence raises a seed's score most, and its gain in other places.

    unit       layer · heads + head
    chosen     on the examples that chose it
    elsewhere  in the other seeds that learned the task, mean over them
    half       chosen by one half of the examples, on that half; mean over both halves
    held_out   the same heads on the other half
    replaced   [replacement] with each other replacement, on the examples that chose it
    beside     mean over the other heads of its layer, of the seed
    """

    unit: int
    chosen: Estimate
    elsewhere: Estimate
    half: float
    held_out: Estimate
    replaced: Estimate
    beside: float


def best_head(gain: Float64, loss: Float64) -> int:
    """The unit with the largest gain; of equal ones that with the smallest loss."""
    return int(np.lexsort((loss, -gain))[0])


def gains(
    task: Task,
    labels: Array,
    answers: Sequence[Answers],
    others: Sequence[Answers],
    without: Sequence[Effects],
    *,
    heads: int,
    replicates: int,
    seed: int,
) -> list[HeadGain]:
    """[seed] the gain of each seed's best head; all seeds learned the task.

    labels   [example]
    answers  [seed][unit + 1, example, output] first the whole model's
    others   [seed][replacement, example, output] without the best head, otherwise replaced
    without  [seed] effects of these answers
    heads    of a layer
    """
    order = generator(seed, "halves of dev").permutation(len(labels))
    halves = np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])
    best = [best_head(one.difference.value, one.loss_difference.value) for one in without]
    rows: list[HeadGain] = []
    for at, unit in enumerate(best):
        rest = [_of_unit(one.difference, unit) for one in without]
        del rest[at]
        half, held_out = _halves(task, labels, answers[at], halves, replicates)
        both = np.concatenate([answers[at][:1], others[at]])
        layer = unit // heads
        own = without[at].difference.value.reshape(-1, heads)[layer]
        rows.append(
            HeadGain(
                unit,
                _of_unit(without[at].difference, unit),
                estimated_mean(rest) if rest else absent(),
                half,
                held_out,
                effects(task, labels, both, replicates=replicates).difference,
                float(np.delete(own, unit % heads).mean()) if heads > 1 else np.nan,
            )
        )
    return rows


def _of_unit(parts: Estimate, unit: int) -> Estimate:
    return parts.map(lambda end: end[unit])


def _halves(
    task: Task, labels: Array, answers: Answers, halves: Sequence[Array], replicates: int
) -> tuple[float, Estimate]:
    """The gain on the half that chose the head, and on the other; means of both ways round.

    The halves share no example, so squared half widths add.
    """
    chosen, tried = [], []
    for first, second in (halves, halves[::-1]):
        alone = effects(task, labels[first], answers[:, first], replicates=0)
        unit = best_head(alone.difference.value, alone.loss_difference.value)
        chosen.append(float(alone.difference.value[unit]))
        pair = answers[[0, unit + 1]][:, second]
        one = effects(task, labels[second], pair, replicates=replicates).difference
        tried.append(_of_unit(one, 0))
    value = np.mean([one.value for one in tried])
    down = np.sqrt(np.sum([(one.value - one.low) ** 2 for one in tried])) / len(tried)
    up = np.sqrt(np.sum([(one.high - one.value) ** 2 for one in tried])) / len(tried)
    return float(np.mean(chosen)), Estimate(np.array(value), value - down, value + up)
