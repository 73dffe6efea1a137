"""Score a model's answers, and leave examples out to see how far chance moves the score.

Accuracy, F1, Matthews' and the two correlations as GLUE computes them.
Examples are left out in groups, the same for every model and every ablation, so differences of two
`draws_of` are paired.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from headscope.claims.reading import NOTHING_SAID
from headscope.claims.verdict import above, below
from headscope.core.accumulators import Array, Float64, left_out
from headscope.core.intervals import (
    SHARE,
    Estimate,
    estimate,
    estimate_correlation,
    estimate_independent,
    even,
)
from headscope.core.wording import capital, number, percent
from headscope.errors import HeadscopeError
from headscope.tasks.task import OF_REGRESSION, Task

METRICS = {
    "matthews": "Matthews’ correlation",
    "pearson": "Pearson’s r",
    "spearman": "Spearman’s ρ",
    "f1": "F1",
}
GROUPS = 200  # ours: of examples, for the interval of a score that may lie below chance


def score(task: Task, labels: Array, outputs: Array) -> dict[str, float]:
    """Every metric of the task, by name, in its order.

    labels    [example] ids of classes, or numbers
    outputs   [example, class] logits, or [example] predictions of a regression
    returns   accuracy and f1 in 0..1, matthews and the correlations in -1..1. f1 is that of class
              1 where there are two classes, else the mean over all classes; a correlation is NaN
              where the predictions, or the labels, are all the same
    raises    HeadscopeError if an output is not finite
    """
    predictions = predicted(task, outputs)
    return {metric: _metric(metric, task, labels, predictions) for metric in task.metrics}


def main_score(task: Task, labels: Array, outputs: Array) -> float:
    """The first metric of the task."""
    return _metric(task.metrics[0], task, labels, predicted(task, outputs))


def chance(task: Task, labels: Array) -> float:
    """The main score of the best constant answer; 0 for a correlation."""
    metric = task.metrics[0]
    if metric in OF_REGRESSION:
        return 0.0
    always = (np.full(len(labels), answer) for answer in range(len(task.labels)))
    return max(_metric(metric, task, labels, answers) for answers in always)


def below_chance(task: Task, labels: Array, outputs: Array) -> str:
    """Why nothing is claimed of a model's heads: it scores surely below a constant answer, as one
    does whose label names are exchanged; "" otherwise.

    By F1 a constant answer may beat a model that knows much: Matthews' correlation is taken then.
    """
    if task.metrics[0] == "f1":
        task = replace(task, metrics=("matthews",))
    draws = draws_of(task, labels, outputs, replicates=GROUPS)
    parts, constant = score_estimate(task, draws, len(labels)), chance(task, labels)
    three = float(parts.value), float(parts.low), float(parts.high)
    if not (three[0] < -1 + 1e-9 or below(*three, constant).holds):
        return ""
    metric, is_share = task.metrics[0], task.metrics[0] == "accuracy"
    usual = f"{percent(constant)} of the best constant answer" if is_share else "0"
    what = "the sign of its answers is reversed"
    if not task.is_regression:
        from scipy.optimize import linear_sum_assignment

        counts = _confusions(task, np.ones((1, len(labels))), labels, predicted(task, outputs))[0]
        best = float(counts[linear_sum_assignment(counts, maximize=True)].sum() / counts.sum())
        what = f"its label names are exchanged (put right, accuracy would be {percent(best)})"
        if best <= counts.sum(1).max() / counts.sum():  # no other order of the names helps
            what = "its head has not learned this task"
    written = (percent if is_share else number)(*three)
    return (
        f"{capital(METRICS.get(metric, metric))} of the model is {written}, surely below the "
        f"{usual}: probably {what}, or it was trained for another task. {NOTHING_SAID}"
    ).replace("the 0:", "0:")


def learned(task: Task, labels: Array, outputs: Array) -> bool:
    """Whether a model scores surely above a constant answer; by Matthews' correlation for F1."""
    if task.metrics[0] == "f1":
        task = replace(task, metrics=("matthews",))
    draws = draws_of(task, labels, outputs, replicates=GROUPS)
    parts = score_estimate(task, draws, len(labels))
    three = float(parts.value), float(parts.low), float(parts.high)
    return above(*three, chance(task, labels)).holds


def predicted(task: Task, outputs: Array) -> Array:
    """[example] the class of the largest logit, or the number itself."""
    bad = int((~np.isfinite(outputs.reshape(len(outputs), -1)).all(-1)).sum())  # [example]
    if bad:
        raise HeadscopeError(
            f"the outputs for {bad} of {len(outputs)} examples are not finite (NaN or infinite); "
            "wanted numbers: the training may have diverged, try a lower rate or float32"
        )
    return outputs.astype(np.float64) if task.is_regression else outputs.argmax(-1)


def draws_of(task: Task, labels: Array, outputs: Array, *, replicates: int) -> Float64:
    """[replicate + 1] the main score of all examples, then without each group of them.

    replicates  groups at most. Examples of one number are in the same group for every model and
                every ablation: subtract two results for paired differences
    """
    predictions, metric = predicted(task, outputs), task.metrics[0]
    kept = left_out(
        list(map(str, range(len(labels)))), replicates=replicates
    ).T  # [replicate + 1, …]
    if metric == "spearman":  # ranks differ in every replicate
        rest = [_metric(metric, task, labels[row], predictions[row]) for row in kept[1:] > 0]
    elif metric == "pearson":
        rest = list(_pearsons(kept[1:] @ _moments(labels, predictions)))
    else:
        rest = list(_of_counts(metric, _confusions(task, kept[1:], labels, predictions)))
    return np.array([_metric(metric, task, labels, predictions), *rest], np.float64)


def score_estimate(task: Task, draws: Float64, examples: int) -> Estimate:
    """The main score with its interval over examples, from `draws_of`."""
    metric = task.metrics[0]
    if metric == "accuracy":
        return estimate_independent(draws, examples)
    return (
        estimate(draws, bounds=SHARE, sizes=even(draws))
        if metric == "f1"
        else estimate_correlation(draws)
    )


def _metric(metric: str, task: Task, labels: Array, predictions: Array) -> float:
    if metric in OF_REGRESSION:
        from scipy.stats import pearsonr, spearmanr

        if np.ptp(labels) == 0 or np.ptp(predictions) == 0:
            return float("nan")
        correlation: Any = pearsonr if metric == "pearson" else spearmanr
        return float(correlation(labels, predictions).statistic)
    once = np.ones((1, len(labels)))
    return float(_of_counts(metric, _confusions(task, once, labels, predictions))[0])


# --- many replicates at once: sums over the examples that each keeps ----------------------------


def _confusions(task: Task, kept: Float64, labels: Array, predictions: Array) -> Float64:
    """[replicate, label, prediction] counts."""
    classes = len(task.labels)
    cell = labels.astype(np.int64) * classes + predictions
    indicator = (cell[:, None] == np.arange(classes**2)).astype(np.float64)  # [example, cell]
    return np.asarray(
        (kept @ indicator).reshape(-1, classes, classes)
    )  # [replicate, label, prediction]


def _of_counts(metric: str, counts: Float64) -> Float64:
    """[replicate] accuracy, f1 or matthews of confusion matrices [replicate, label, prediction]."""
    right = np.einsum("rcc->rc", counts)  # [replicate, class]
    called, there, total = counts.sum(1), counts.sum(2), counts.sum((1, 2))
    if metric == "accuracy":
        return np.asarray(right.sum(-1) / total)
    if metric == "f1":
        f1 = _ratio(2 * right, called + there)  # [replicate, class]
        return np.asarray(f1[:, 1] if counts.shape[1] == 2 else f1.mean(-1))
    # Gorodkin (2004): the correlation of label and prediction as indicator vectors
    covariance = right.sum(-1) * total - (called * there).sum(-1)
    spread = (total**2 - (called**2).sum(-1)) * (total**2 - (there**2).sum(-1))
    return _ratio(covariance, np.sqrt(spread))


def _ratio(above: Float64, below: Float64) -> Float64:
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


def _moments(labels: Array, predictions: Array) -> Float64:
    """[example, 6] 1, x, y, x², y², xy; centred, for precision."""
    x, y = labels - labels.mean(), predictions - predictions.mean()
    return np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], -1)  # [example, 6]


def _pearsons(sums: Float64) -> Float64:
    """[replicate] correlations of sums [replicate, 6] of `_moments`; NaN where one is constant."""
    count, x, y, xx, yy, xy = sums.T
    below = np.sqrt(np.clip(xx - x * x / count, 0, None) * np.clip(yy - y * y / count, 0, None))
    # What rounding leaves of a constant is no spread.
    there = below > 1e-12 * np.sqrt(xx * yy)
    absent = np.full_like(below, np.nan)
    return np.asarray(np.divide(xy - x * y / count, below, out=absent, where=there))
