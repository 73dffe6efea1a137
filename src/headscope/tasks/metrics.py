"""Score a model's answers, and resample the examples to see how far chance moves the score.

Accuracy, F1, Matthews' and the two correlations as GLUE computes them.
The bootstrap resamples examples; the same seed draws the same examples for every model and every
ablation, so differences of two `resampled` are paired.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from headscope.core.accumulators import Array, Float64, generator
from headscope.errors import HeadscopeError
from headscope.tasks.task import OF_REGRESSION, Task

Float32 = npt.NDArray[np.float32]
AT_ONCE = 100  # replicates whose counts are held in float64 together


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


def predicted(task: Task, outputs: Array) -> Array:
    """[example] the class of the largest logit, or the number itself."""
    bad = int((~np.isfinite(outputs.reshape(len(outputs), -1)).all(-1)).sum())  # [example]
    if bad:
        raise HeadscopeError(
            f"the outputs for {bad} of {len(outputs)} examples are not finite (NaN or infinite); "
            "wanted numbers: the training may have diverged, try a lower rate or float32"
        )
    return outputs.astype(np.float64) if task.is_regression else outputs.argmax(-1)


def resampled(
    task: Task, labels: Array, outputs: Array, *, replicates: int, seed: int = 0
) -> Float64:
    """[replicate + 1] the main score of the data (replicate 0), and of examples drawn from it.

    Each replicate draws as many examples as there are, with replacement. The draws depend on the
    seed and the number of examples only: subtract two results for paired differences.
    """
    predictions, metric = predicted(task, outputs), task.metrics[0]
    times = drawn_times(len(labels), replicates=replicates, seed=seed)
    if metric == "spearman":  # ranks have to be found anew in every replicate
        places = (np.repeat(np.arange(len(labels)), row) for row in times.astype(np.int64))
        rest = [_metric(metric, task, labels[at], predictions[at]) for at in places]
    elif metric == "pearson":
        rest = list(_pearsons(_sums(times, _moments(labels, predictions))))
    else:
        rest = list(_of_counts(metric, _confusions(task, times, labels, predictions)))
    return np.array([_metric(metric, task, labels, predictions), *rest], np.float64)


@lru_cache(maxsize=2)
def drawn_times(examples: int, *, replicates: int, seed: int) -> Float32:
    """[replicate, example] how often each example is drawn; shared, so nobody may write."""
    rng = generator(seed, "bootstrap over examples")
    times = np.empty((replicates, examples), np.float32)
    for row in times:
        row[:] = np.bincount(rng.integers(0, examples, examples), minlength=examples)
    times.setflags(write=False)
    return times


def _metric(metric: str, task: Task, labels: Array, predictions: Array) -> float:
    if metric in OF_REGRESSION:
        from scipy.stats import pearsonr, spearmanr

        if np.ptp(labels) == 0 or np.ptp(predictions) == 0:
            return float("nan")
        correlation: Any = pearsonr if metric == "pearson" else spearmanr
        return float(correlation(labels, predictions).statistic)
    once = np.ones((1, len(labels)), np.float32)
    return float(_of_counts(metric, _confusions(task, once, labels, predictions))[0])


# --- many replicates at once: sums over examples, weighted by how often each is drawn ----------


def _sums(times: Float32, values: Float64) -> Float64:
    """[replicate, column] sums of values [example, column]; a part of the replicates at a time."""
    parts = [times[at : at + AT_ONCE].astype(np.float64) @ values
             for at in range(0, len(times), AT_ONCE)]  # fmt: skip
    return np.concatenate(parts) if parts else np.empty((0, values.shape[1]))


def _confusions(task: Task, times: Float32, labels: Array, predictions: Array) -> Float64:
    """[replicate, label, prediction] counts."""
    classes = len(task.labels)
    cell = labels.astype(np.int64) * classes + predictions
    indicator = (cell[:, None] == np.arange(classes**2)).astype(np.float64)  # [example, cell]
    return _sums(times, indicator).reshape(-1, classes, classes)  # [replicate, label, prediction]


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
    """[example, 6] 1, x, y, x², y², xy; about the mean of all, so that little cancels."""
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
