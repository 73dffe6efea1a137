"""Means over seeds, with intervals over seeds and examples, and how often something replicates.

Each seed s is a training of its own, scored on the same examples. What it gives is

    d_s = δ + a_s + c + r_s

with δ the truth, a_s what is special to the seed (variance τ²), c the error of the examples that
all seeds share, and r_s the error of the examples in this seed alone (variance ρ²). Of n seeds,

    Var(mean of d) = τ²/n + Var(c) + ρ²/n.

The variance s² of d over seeds estimates τ² + ρ², and leaves out c, which is the same in all. The
error over examples of the mean, by leaving examples out of all seeds together, has the variance
σ² = Var(c) + ρ²/n, and leaves out the seeds. Their sum s²/n + σ² counts ρ²/n twice, so it errs on
the long side. Seeds are few and examples many, so each part gets a quantile of its own:

    half width² = (t_{n−1} s/√n)² + (half width over examples)².

Of one seed nothing is known about others: there is no interval.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, stdtrit

from headscope.core.accumulators import Float64
from headscope.core.confidence import TAIL
from headscope.core.intervals import ANY, Estimate, without_interval

Mask = npt.NDArray[np.bool_]
CellBounds = tuple[Float64 | float, Float64 | float]  # of each cell, or of all
FEWEST_SEEDS = 2  # of fewer there is no spread


def absent(*shape: int) -> Estimate:
    """No number, in a shape."""
    return without_interval(np.full(shape, np.nan))


def stacked(cells: Sequence[Estimate], *leading: int) -> Estimate:
    """Estimates as one, with leading dimensions."""
    return Estimate(
        *(
            np.stack([np.asarray(getattr(cell, part), np.float64) for cell in cells]).reshape(
                *leading, *np.shape(cells[0].value)
            )
            for part in ("value", "low", "high")
        )
    )


def with_seeds(
    values: Float64,
    down: Float64 | None = None,
    up: Float64 | None = None,
    bounds: CellBounds = ANY,
) -> Estimate:
    """The mean over seeds with its interval.

    values    [seed, *cell] one number of each seed
    down, up  [*cell] the lower and the upper half of the mean's interval over examples; None: the
              interval is over seeds alone
    bounds    between which the number lies by its nature
    returns   [*cell]; NaN ends for fewer than two seeds, where no interval over examples is known,
              or where seeds alone are asked and all give the same; NaN throughout for none
    """
    values = np.asarray(values, np.float64)
    count = len(values)
    if not count:
        return absent(*values.shape[1:])
    mean = values.mean(0)
    if count < FEWEST_SEEDS:
        return without_interval(mean)
    seeds = stdtrit(count - 1, 1 - TAIL) * values.std(0, ddof=1) / np.sqrt(count)
    low = np.maximum(mean - np.hypot(seeds, 0 if down is None else down), bounds[0])
    high = np.minimum(mean + np.hypot(seeds, 0 if up is None else up), bounds[1])
    alike = (np.ptp(values, axis=0) == 0) & (down is None)  # how far others are is not known
    return Estimate(mean, np.where(alike, np.nan, low), np.where(alike, np.nan, high))


def paired_mean(
    seeds: Sequence[Estimate], interval: Callable[[Float64], Estimate], bounds: CellBounds = ANY
) -> Estimate:
    """The mean over seeds whose draws leave out the same examples.

    interval  makes an estimate of the draws [replicate + 1, *cell] of the mean
    """
    draws = [seed.draws for seed in seeds]
    values = np.stack([seed.value for seed in seeds])
    if any(one is None for one in draws):
        return estimated_mean(seeds, bounds)
    of_examples = interval(np.mean(np.stack([one for one in draws if one is not None]), axis=0))
    down, up = of_examples.value - of_examples.low, of_examples.high - of_examples.value
    return with_seeds(values, down, up, bounds)


def estimated_mean(seeds: Sequence[Estimate], bounds: CellBounds = ANY) -> Estimate:
    """The mean over seeds of which only intervals over the same examples are known.

    The interval of a mean is at most as long as their mean length, as if all errors were one.
    """
    values, low, high = (
        np.stack([getattr(seed, part) for seed in seeds]) for part in ("value", "low", "high")
    )
    return with_seeds(values, (values - low).mean(0), (high - values).mean(0), bounds)


def replication(holds: Mask) -> Estimate:
    """The share of seeds in which something holds, with Clopper and Pearson's interval (1934).

    holds    [seed, *cell]
    returns  [*cell]; NaN without seeds
    """
    count, hits = len(holds), holds.sum(0).astype(np.float64)
    if not count:
        return absent(*holds.shape[1:])
    with np.errstate(invalid="ignore"):
        low = betaincinv(np.maximum(hits, 0.5), count - hits + 1, TAIL)
        high = betaincinv(hits + 1, np.maximum(count - hits, 0.5), 1 - TAIL)
    return Estimate(hits / count, np.where(hits == 0, 0, low), np.where(hits == count, 1, high))
