"""Measures how a score changes without heads, and tests the change against chance.

Every variant answers the same examples as the whole model, so differences are paired; intervals are
over examples. That a difference is none is tested exactly where the score is an accuracy (McNemar
1947: of the answers that changed in rightness, is one direction rarer than a fair coin would have
it?), and by Student's t elsewhere; as many heads are looked at, p is corrected by Benjamini and
Hochberg (1995): of the heads called helpful or harmful, 5 % are expected not to be. An effect that
is not significant is not absent: no effect is only said where the whole interval lies within a
margin about 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import entr, log_softmax, stdtr

from headscope.claims.verdict import SIGNIFICANT, Outcome, within
from headscope.core.accumulators import Array, Float64, left_out, means_over
from headscope.core.intervals import (
    DIFFERENCE,
    Estimate,
    estimate,
    even,
    moves_of,
    standard_error,
)
from headscope.tasks.metrics import draws_of, predicted
from headscope.tasks.task import Task

HELPFUL, HARMFUL, NO_EFFECT = "helpful", "harmful", "no effect"
Answers = npt.NDArray[np.floating[Any]]
MARGIN = 0.01  # ours: a change that counts as none, a point of the score, or such a share of the
# loss of the best answer that is always the same


@dataclass(frozen=True)
class Effects:
    """Effect of each variant on the score and on the loss.

    score, loss      [variant] with the heads off
    difference       [variant] score less that of the whole model, by the same examples
    loss_difference  [variant] likewise
    p, loss_p        [variant] that the difference in score, in loss, is none
    loss_margin      a change of the loss that counts as none
    lost, gained     [variant] right answers that became wrong, and wrong ones that became right;
                     NaN in a regression
    """

    score: Float64
    difference: Estimate
    loss: Float64
    loss_difference: Estimate
    p: Float64
    loss_p: Float64
    lost: Float64
    gained: Float64
    loss_margin: float

    @property
    def q(self) -> Float64:
        """[variant] p-values, adjusted for the number of these variants."""
        return corrected(self.p)

    @property
    def loss_q(self) -> Float64:
        """[variant] p-values of the loss, adjusted likewise."""
        return corrected(self.loss_p)

    @property
    def verdict(self) -> list[str]:
        """Helpful where the score falls without the heads, harmful where it rises."""
        return verdicts(self.difference, self.q, MARGIN)

    @property
    def loss_verdict(self) -> list[str]:
        """As `verdict`, by the loss, which is lower in a better model."""
        fall = self.loss_difference.map(np.negative)
        turned = Estimate(fall.value, fall.high, fall.low)
        return verdicts(turned, self.loss_q, self.loss_margin)

    def of(self, places: slice) -> Effects:
        """The effects of some variants, adjusted as a family of their own."""
        kept: dict[str, Any] = {
            name: part.map(lambda end: end[places]) if isinstance(part, Estimate) else part[places]
            for name, part in vars(self).items()
            if name != "loss_margin"
        }
        return Effects(**kept, loss_margin=self.loss_margin)


def effects(task: Task, labels: Array, answers: Answers, *, replicates: int) -> Effects:
    """Compares every variant with the whole model.

    labels   [example]
    answers  [variant + 1, example, output] logits; first the whole model's
    """
    outputs = numbers_told(task, answers)
    losses = np.stack([losses_of(task, labels, a) for a in outputs])  # [variant + 1, example]
    draws = np.stack(
        [draws_of(task, labels, a, replicates=replicates) for a in outputs], 1
    )  # [replicate + 1, variant + 1]
    apart = draws[:, 1:] - draws[:, :1]  # [replicate + 1, variant]
    if task.is_regression:
        lost = gained = np.full(len(outputs) - 1, np.nan)
    else:
        right = np.stack([predicted(task, a) == labels for a in outputs])  # [variant + 1, example]
        lost, gained = (
            (one & other).sum(1).astype(np.float64)
            for one, other in ((right[:1], ~right[1:]), (~right[:1], right[1:]))
        )
    if task.metrics[0] == "accuracy":
        from scipy.stats import binomtest  # half a second, which reports of other runs need not

        moved = lost + gained  # McNemar's exact test; 1 where nothing changed
        counts = [(int(fell), int(many)) for fell, many in zip(lost, moved, strict=True)]
        p = np.array([binomtest(*one).pvalue if one[1] else 1.0 for one in counts])
    else:
        p = two_sided(apart)
    more = losses[1:] - losses[:1]  # [variant, example]
    kept = left_out(list(map(str, range(len(labels)))), replicates=replicates)
    loss_draws = means_over(kept, more.T)  # [replicate + 1, variant]
    return Effects(
        score=draws[0, 1:],
        difference=difference_estimate(apart),
        loss=losses[1:].mean(1),
        loss_difference=estimate(loss_draws),
        p=p,
        lost=lost,
        gained=gained,
        loss_margin=MARGIN * _constant_loss(task, labels),
        loss_p=two_sided(loss_draws),
    )


def numbers_told(task: Task, answers: Answers) -> Answers:
    """[…, example, class] logits unchanged; for a regression [..., example], its only output."""
    return answers[..., 0] if task.is_regression else answers


def losses_of(task: Task, labels: Array, answers: Answers) -> Float64:
    """[example] cross-entropy in nats, or the squared error of a regression.

    answers  [example, class] logits, or [example] predictions of a regression
    """
    if task.is_regression:
        return np.asarray((answers.astype(np.float64) - labels.astype(np.float64)) ** 2)
    log_probabilities = log_softmax(answers.astype(np.float64), axis=-1)
    return np.asarray(-log_probabilities[np.arange(len(labels)), labels.astype(np.int64)])


def difference_estimate(apart: Float64) -> Estimate:
    """The interval of a change of the score; also where the change is the same in all examples.

    apart  [replicate + 1, *cell] draws of the change
    """
    parts, same = estimate(apart), estimate(apart, bounds=DIFFERENCE, sizes=even(apart))
    none = np.isnan(parts.low)
    low, high = (np.where(none, *pair) for pair in ((same.low, parts.low), (same.high, parts.high)))
    return replace(parts, low=low, high=high)


def _constant_loss(task: Task, labels: Array) -> float:
    """Loss of the best constant answer: an entropy in nats, or a variance."""
    if task.is_regression:
        return float(np.var(labels.astype(np.float64)))
    shares = np.bincount(labels.astype(np.int64)) / len(labels)
    return float(entr(shares).sum())


def verdicts(difference: Estimate, q: Float64, margin: float) -> list[str]:
    """The verdict on each change: helpful, harmful, no effect, cannot tell.

    A significant change that surely lies within the margin is no effect: else more examples
    would turn one verdict into the other.

    difference  [variant] of the score, or of what falls as the loss rises
    margin      a change that counts as none
    """
    rows = zip(
        *(part.tolist() for part in (difference.value, difference.low, difference.high, q)),
        strict=True,
    )
    return [
        NO_EFFECT
        if within(value, low, high, margin).holds
        else (HELPFUL if value < 0 else HARMFUL)
        if chance < SIGNIFICANT and abs(value) > 0
        else str(Outcome.CANNOT_TELL)
        for value, low, high, chance in rows
    ]


def corrected(p: Float64) -> Float64:
    """p-values adjusted by Benjamini and Hochberg (1995); NaN stays and is not counted."""
    from scipy.stats import false_discovery_control

    out = np.full_like(p, np.nan)
    there = ~np.isnan(p)
    if there.any():
        out[there] = false_discovery_control(p[there], method="bh")
    return out


def two_sided(draws: Float64) -> Float64:
    """[*cell] p of Student's t, of draws [replicate + 1, *cell] of a difference: that it is none.

    1 where the difference is 0, NaN where it has no error.
    """
    differences, (errors, freedom) = draws[0], standard_error(moves_of(draws), twice=True)
    t = np.divide(differences, errors, out=np.full_like(differences, np.nan), where=errors > 0)
    return np.where(differences == 0, 1.0, 2 * stdtr(freedom, -np.abs(t)))
