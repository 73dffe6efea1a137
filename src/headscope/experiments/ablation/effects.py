"""Measures how much a score changes when heads are off, and tests whether that is more than chance.

Every variant answers the same examples as the whole model, so differences are paired. Intervals are
the bootstrap's over examples. That a difference is none is tested exactly where the score is an
accuracy (McNemar 1947: of the answers that changed in rightness, is one direction rarer than a fair
coin would have it?), and by the bootstrap's standard deviation elsewhere; as many heads are looked
at, p is corrected by Benjamini and Hochberg (1995): of the heads called helpful or harmful, 5 % are
expected not to be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax
from scipy.stats import binomtest, false_discovery_control, norm

from headscope.core.accumulators import CONFIDENCE, Estimate, estimate, spread
from headscope.tasks.metrics import predicted, resampled
from headscope.tasks.task import Task

Array = npt.NDArray[np.float64]
LEVEL = 0.05  # of the false discovery rate
HELPFUL, HARMFUL, INDIFFERENT, UNKNOWN = "helpful", "harmful", "indifferent", "unknown"
_WITHIN = float(norm.ppf(0.5 + CONFIDENCE / 2))


@dataclass(frozen=True)
class Effects:
    """What becomes of the score and the loss in each variant.

    score, loss              [variant] with the heads off
    difference               [variant] score less that of the whole model, paired bootstrap
    loss_difference          [variant] likewise; normal approximation
    p, q                     [variant] that the difference in score is none; q is corrected
    loss_p, loss_q           [variant] of the difference in loss
    lost, gained             [variant] right answers that became wrong, and wrong ones that became
                             right; NaN in a regression
    """

    score: Array
    difference: Estimate
    loss: Array
    loss_difference: Estimate
    p: Array
    q: Array
    loss_p: Array
    loss_q: Array
    lost: Array
    gained: Array

    @property
    def verdict(self) -> list[str]:
        """Helpful where the score falls without the heads, harmful where it rises."""
        return verdicts(self.difference.value, self.q)

    @property
    def loss_verdict(self) -> list[str]:
        """The same by the loss, which is lower in a better model."""
        return verdicts(-self.loss_difference.value, self.loss_q)

    def of(self, places: slice) -> Effects:
        """Some of the variants, corrected as a family of their own."""
        kept: dict[str, Any] = {f.name: _of(getattr(self, f.name), places) for f in fields(self)}
        kept |= {"q": corrected(kept["p"]), "loss_q": corrected(kept["loss_p"])}
        return Effects(**kept)


def effects(
    task: Task, labels: npt.NDArray[np.generic], answers: npt.NDArray[np.floating], *,
    replicates: int, seed: int = 0,
) -> Effects:  # fmt: skip
    """Compares every variant with the whole model.

    labels   [example]
    answers  [variant + 1, example, output] logits; first the whole model's
    """
    given = [a[:, 0] if task.is_regression else a for a in answers]
    losses = np.stack([losses_of(task, labels, a) for a in given])  # [variant + 1, example]
    draws = np.stack(
        [resampled(task, labels, a, replicates=replicates, seed=seed) for a in given], 1
    )  # [replicate + 1, variant + 1]
    apart = draws[:, 1:] - draws[:, :1]  # [replicate + 1, variant]
    lost, gained = _changed(task, labels, given)
    if task.metrics[0] == "accuracy":
        p = np.array([_coin(a, b) for a, b in zip(lost, gained, strict=True)])
    else:
        p = _by_spread(apart)
    more = losses[1:] - losses[:1]  # [variant, example]
    loss_difference = _mean_with_interval(more)
    loss_p = _two_sided(loss_difference.value, _standard_error(more))
    return Effects(
        score=draws[0, 1:], difference=estimate(apart, documents=len(labels)),
        loss=losses[1:].mean(1), loss_difference=loss_difference,
        p=p, q=corrected(p), loss_p=loss_p, loss_q=corrected(loss_p), lost=lost, gained=gained,
    )  # fmt: skip


def losses_of(
    task: Task, labels: npt.NDArray[np.generic], answers: npt.NDArray[np.floating]
) -> Array:
    """[example] cross-entropy in nats, or the squared error of a regression.

    answers  [example, class] logits, or [example] predictions of a regression
    """
    if task.is_regression:
        return np.asarray((answers.astype(np.float64) - labels.astype(np.float64)) ** 2)
    told = log_softmax(answers.astype(np.float64), axis=-1)
    return np.asarray(-told[np.arange(len(labels)), labels.astype(np.int64)])


def verdicts(differences: Array, q: Array) -> list[str]:
    """What each difference says of the heads that were off."""
    words = []
    for difference, chance in zip(differences.tolist(), q.tolist(), strict=True):
        if np.isnan(difference) or np.isnan(chance):
            words.append(UNKNOWN)
        elif chance >= LEVEL:
            words.append(INDIFFERENT)
        else:
            words.append(HELPFUL if difference < 0 else HARMFUL)
    return words


def corrected(p: Array) -> Array:
    """p as Benjamini and Hochberg adjust them; NaN stays and does not count."""
    out = np.full_like(p, np.nan)
    there = ~np.isnan(p)
    if there.any():
        out[there] = false_discovery_control(p[there], method="bh")
    return out


def baseline(
    task: Task, labels: npt.NDArray[np.generic], whole: npt.NDArray[np.floating], *,
    replicates: int, seed: int = 0,
) -> Estimate:  # fmt: skip
    """The whole model's score; whole [example, output]."""
    given = whole[:, 0] if task.is_regression else whole
    draws = resampled(task, labels, given, replicates=replicates, seed=seed)
    return estimate(draws, documents=len(labels))


# --- chance ---------------------------------------------------------------------------------


def _changed(
    task: Task, labels: npt.NDArray[np.generic], answers: Sequence[npt.NDArray[np.floating]]
) -> tuple[Array, Array]:
    """[variant] right answers that became wrong, and the reverse."""
    if task.is_regression:
        none = np.full(len(answers) - 1, np.nan)
        return none, none
    right = np.stack([predicted(task, a) == labels for a in answers])  # [variant + 1, example]
    lost, gained = right[:1] & ~right[1:], ~right[:1] & right[1:]
    return lost.sum(1).astype(np.float64), gained.sum(1).astype(np.float64)


def _coin(lost: float, gained: float) -> float:
    """Two-sided p of McNemar's exact test; 1 where nothing changed."""
    changed = int(lost + gained)
    return float(binomtest(int(lost), changed).pvalue) if changed else 1.0


def _by_spread(apart: Array) -> Array:
    """[variant] two-sided p of differences [replicate + 1, variant] by their spread."""
    return _two_sided(apart[0], spread(apart[1:]))


def _two_sided(differences: Array, errors: Array) -> Array:
    """Normal approximation; 1 where the difference is 0, NaN where it has no error."""
    z = np.divide(differences, errors, out=np.full_like(differences, np.nan), where=errors > 0)
    return np.where(differences == 0, 1.0, 2 * norm.sf(np.abs(z)))


def _standard_error(values: Array) -> Array:
    """[variant] of the mean of values [variant, example]."""
    examples = values.shape[1]
    if examples < 2:
        return np.full(len(values), np.nan)
    return np.asarray(values.std(1, ddof=1) / np.sqrt(examples))


def _mean_with_interval(values: Array) -> Estimate:
    mean, half = values.mean(1), _WITHIN * _standard_error(values)
    return Estimate(mean, mean - half, mean + half)


def _of(value: Array | Estimate, places: slice) -> Array | Estimate:
    if isinstance(value, Estimate):
        return Estimate(value.value[places], value.low[places], value.high[places])
    return value[places]
