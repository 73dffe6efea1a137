"""95 % intervals from leaving out one group of documents after another.

A statistic is computed on all documents, and once without each group of them (one document each
where there are at most `accumulators.REPLICATES`). How far it moves says how much hangs on which
documents came: the jackknife (Efron and Stein 1981; Korn and Graubard 1998 for shares). Documents
are few, of unequal length, and one may decide everything, so three things make the interval wider:

- the most influential group counts as if there were two of it;
- Student's t has the degrees of freedom that the influences carry (Satterthwaite 1946), which
  unequal documents lower;
- bounds are kept by a scale on which there are none, and a share of counted questions gets
  Jeffreys's interval at its effective number of questions (Franco et al. 2019), which has a width
  even where all answers were right.

`benchmarks/coverage.py` tries whether they hold the true value 95 times in 100.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.special import betaincinv, stdtrit

from headscope.core.accumulators import Float64, correlation, generator, mean_ranks, ratio

CONFIDENCE = 0.95
TAIL = (1 - CONFIDENCE) / 2
FEWEST = 5  # documents, or heads: of fewer there is no interval
LEAST_RANKS = 4  # units: of fewer, ranks say nothing
ROUNDING = 3e-7  # of the value, as float32 leaves it: a smaller move is none
Bounds = tuple[float, float]
ANY, POSITIVE, SHARE, CORRELATION = (-np.inf, np.inf), (0.0, np.inf), (0.0, 1.0), (-1.0, 1.0)


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval; `low` and `high` are NaN where there is none.

    draws  [replicate + 1, *cell] what it was estimated from; None where that was not kept. Those of
           two models on the same documents left out the same ones, so they may be subtracted
    """

    value: Float64
    low: Float64
    high: Float64
    draws: Float64 | None = field(default=None, repr=False, compare=False)

    def map(self, function: Callable[[Float64], Float64]) -> Estimate:
        """The function of the value and of both ends, without draws: some cells, another shape."""
        return Estimate(function(self.value), function(self.low), function(self.high))


def estimate(
    draws: Float64,
    *,
    bounds: Bounds = ANY,
    asked: Float64 | None = None,
    difference: bool = False,
) -> Estimate:
    """The value and its 95 % interval.

    draws   [replicate + 1, *cell] the statistic on the data, then without each group
    bounds  between which it lies by its nature
    asked   draws of how many questions a share is of, if it is one; broadcast to `draws`
    difference  of two shares, each of `asked` questions
    returns no interval where fewer than FEWEST groups have a part in the value, or leaving one out
            leaves nothing; nor where groups do not differ at all, unless it is a share
    """
    value = draws[0]
    if len(draws) <= FEWEST:
        return without_interval(value, draws)
    moves = moves_of(draws)
    if asked is None:
        taking_part = (moves != 0).sum(0)
        low, high = _on_scale(value, *spread(moves), bounds)
    else:
        taking_part = np.broadcast_to((asked[1:] != asked[0]).sum(0), value.shape)
        low, high = _share(
            value, *spread(moves), np.broadcast_to(asked[0], value.shape), difference=difference
        )
    there = (taking_part >= FEWEST) & np.isfinite(draws).all(0)
    return Estimate(value, np.where(there, low, np.nan), np.where(there, high, np.nan), draws)


def without_interval(value: Float64, draws: Float64 | None = None) -> Estimate:
    """The value alone."""
    nothing = np.full_like(value, np.nan, dtype=np.float64)
    return Estimate(value, nothing, nothing, draws)


def left_one_out(parts: Float64) -> Float64:
    """[unit + 1, …] draws of the mean over units: of all, then without each; NaN ones left out.

    parts  [unit, …] one number of each, such as the silhouette of each head
    """
    there = np.isfinite(parts)
    total, count = np.where(there, parts, 0).sum(0), there.sum(0)
    without = ratio(total - np.where(there, parts, 0), count - there + 0.0)
    return np.concatenate([ratio(total, count + 0.0)[None], without])


def spearman_over_units(one: Float64, other: Float64) -> Float64:
    """[unit + 1] draws of Spearman's correlation over units: of all, then without each.

    one, other  [unit] numbers of each, such as of each head; a unit without both does not count
    returns     NaN for fewer than 4 units, or where all have the same number
    """
    there = np.flatnonzero(np.isfinite(one) & np.isfinite(other))
    if len(there) < LEAST_RANKS:
        return np.full(len(one) + 1, np.nan)
    pairs = np.stack([one[there], other[there]])  # [2, unit]
    some = [pairs, *(np.delete(pairs, at, 1) for at in range(len(there)))]
    rho = np.array([correlation(*map(mean_ranks, each)) for each in some])
    draws = np.full(len(one) + 1, rho[0])
    draws[1 + there] = rho[1:]
    return draws


def drawn_anew(draws: Float64, *, count: int = 1000, seed: int = 0) -> Float64:
    """[draw, *cell] what other documents might have given, all cells together.

    Normal, about the value, with the covariance that the moves of `draws` tell: for statistics that
    jump, such as which of several is the largest.
    """
    moves = moves_of(draws).reshape(len(draws) - 1, draws[0].size)  # [replicate, cell]
    normal = generator(seed, "drawn anew").standard_normal((count, len(moves)))
    return np.asarray(draws[0] + (normal @ moves).reshape(count, *draws.shape[1:]))


def moves_of(draws: Float64) -> Float64:
    """[replicate, *cell] how far the value moves without each group; 0 where only by rounding."""
    moves = np.nan_to_num(draws[1:] - draws[0])
    return np.where(np.abs(moves) <= ROUNDING * np.abs(np.nan_to_num(draws[0])), 0, moves)


def spread(moves: Float64) -> tuple[Float64, Float64]:
    """[*cell] the standard error of a value, and its degrees of freedom; 0 where nothing moves."""
    groups = (moves != 0).sum(0)
    square = moves**2
    total = square.sum(0)
    error = np.sqrt(ratio(groups - 1.0, groups + 0.0) * (total + square.max(0, initial=0)))
    unequal = ratio((square**2).sum(0), total**2) - ratio(np.ones(total.shape), groups + 0.0)
    freedom = np.clip(2 / np.maximum(unequal, 1e-12), 1, np.maximum(groups - 1, 1))
    return np.nan_to_num(error), freedom


def _on_scale(
    value: Float64, error: Float64, freedom: Float64, bounds: Bounds
) -> tuple[Float64, Float64]:
    """Student's interval on a scale without bounds, and back; NaN where nothing moves."""
    least, most = bounds
    half = np.where(error > 0, -stdtrit(freedom, TAIL) * error, np.nan)
    if not np.isfinite(least):
        return value - half, value + half
    up = np.maximum(value - least, 0)
    if not np.isfinite(most):
        factor = np.exp(ratio(half, up))
        return least + up / factor, least + up * factor
    down = np.maximum(most - value, 0)
    factor = np.exp(ratio(half * (most - least), up * down))
    return tuple(  # type: ignore[return-value]  # of the two ends
        least + (most - least) * ratio(up * f, up * f + down) for f in (1 / factor, factor)
    )


def _share(
    value: Float64, error: Float64, freedom: Float64, asked: Float64, *, difference: bool
) -> tuple[Float64, Float64]:
    """Jeffreys's interval of a share, of as many questions as its error is worth, at most `asked`.

    Where all or none were right the error is unknown: then it is that of `asked` questions, and the
    interval ends at the share. A difference, from -1 to 1, has Student's interval; only where it is
    the same in all documents it is taken as such a share, from 0 to 1.
    """
    share = (value + 1) / 2 if difference else value
    worth = ratio(share * (1 - share), error**2)
    worth *= (stdtrit(np.maximum(asked - 1, 1), TAIL) / stdtrit(freedom, TAIL)) ** 2
    worth = np.where(error > 0, np.minimum(worth, asked), asked)
    right, wrong = (np.maximum(part, 0) + 0.5 for part in (share * worth, (1 - share) * worth))
    low = np.where(share <= 0, 0.0, betaincinv(right, wrong, TAIL))
    high = np.where(share >= 1, 1.0, betaincinv(right, wrong, 1 - TAIL))
    if not difference:
        return low, high
    ends = zip(_on_scale(value, error, freedom, ANY), (2 * low - 1, 2 * high - 1), strict=True)
    first, last = (np.where(error > 0, students, same) for students, same in ends)
    return first, last
