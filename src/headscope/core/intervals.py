"""95 % intervals from leaving out one group of documents after another.

A statistic is computed on all documents, and once without each group of them (one document each
where there are at most `accumulators.REPLICATES`). How far it moves says how much it depends on the
documents: the jackknife (Efron and Stein 1981; Korn and Graubard 1998 for shares). Documents are
few, of unequal length, and one may decide everything, so these things make the interval wider:

- Student's t has the degrees of freedom that the moves carry (Satterthwaite 1946), and at most
  those of the effective number of documents (Kish 1965): unequal ones are worth fewer;
- the interval is longer on the side to which the moves are skewed;
- of means and ratios, the most influential group counts twice, and the error grows with how unequal
  the documents are, as the few that matter most may not have come;
- bounds are kept by a scale on which there are none, and a share of counted questions gets
  Jeffreys's interval at its effective number of questions (Franco et al. 2019), which has a width
  even where all answers were right;
- where all documents give the same, n of them only tell that others are rare: of Jeffreys's share
  at most (the rule of three: about 3 in n), and these may be anything within the bounds.

`benchmarks/coverage.py` tries whether they hold the true value 95 times in 100; LONGER, SHORTER and
UNEQUAL were chosen with it, on other seeds than those of its table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

from headscope.core.accumulators import Float64, correlation, generator, ratio
from headscope.core.confidence import stretch, tail

FEWEST = 5  # documents, or heads: of fewer there is no interval
LEAST_RANKS = 4  # units: of fewer, ranks say nothing
FEWEST_RANKED = 10  # units: of fewer, a correlation of ranks has no interval that means anything
LEFT_OUT = 64  # ours: units left out one by one, at a time: each needs ranks of all others
LONGER, SHORTER = 0.5, 0.2  # by so much at most, on the side of the skew and on the other
UNEQUAL = 0.15  # how much of the squared variation of documents' sizes is added to the error's
ROUNDING = 3e-7  # of the value, as float32 leaves it: a smaller move is none
Bounds = tuple[float, float]
Made = TypeVar("Made", bound=Callable[..., "Estimate"])
ANY, POSITIVE, SHARE, CORRELATION = (-np.inf, np.inf), (0.0, np.inf), (0.0, 1.0), (-1.0, 1.0)
DIFFERENCE = CORRELATION  # of two shares


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval; `low` and `high` are NaN without one.

    draws  [replicate + 1, *cell] what it was estimated from; None where that was not kept. Those of
           two models on the same documents left out the same ones, so they may be subtracted
    sizes  draws of what it is a mean over, broadcast to `draws`; None where groups weigh the same
    """

    value: Float64
    low: Float64
    high: Float64
    draws: Float64 | None = field(default=None, repr=False, compare=False)
    sizes: Float64 | None = field(default=None, repr=False, compare=False)

    def map(self, function: Callable[[Float64], Float64]) -> Estimate:
        """The estimate after a function of value and ends, without draws: to select or reshape."""
        return Estimate(function(self.value), function(self.low), function(self.high))

    def last(self, which: int | slice) -> Estimate:
        """The estimate at places of its last axis, with its draws."""
        draws, sizes = self.draws, self.sizes
        if sizes is not None:
            all_alike = slice(None) if isinstance(which, slice) else 0
            sizes = sizes[..., which if sizes.shape[-1] > 1 else all_alike]
        draws = None if draws is None else draws[..., which]
        return replace(self.map(lambda end: end[..., which]), draws=draws, sizes=sizes)


def _where_asked(made: Made) -> Made:
    """No intervals for columns in which fewer than FEWEST groups take part: rare relations.

    made  from draws and their sizes
    """

    @wraps(made)
    def of_some(draws: Float64, sizes: Float64 | None = None, **more: Any) -> Estimate:
        if sizes is None or sizes.ndim < 2 or sizes.shape[-1] != draws.shape[-1]:
            return made(draws, sizes, **more)
        parts = (sizes[1:] != sizes[0]).sum(0)  # [*cell]
        there = parts.reshape(-1, parts.shape[-1]).max(0) >= FEWEST  # [column]
        if there.all():
            return made(draws, sizes, **more)
        some, (low, high) = (
            made(draws[..., there], sizes[..., there], **more),
            np.full((2, *draws[0].shape), np.nan),
        )
        low[..., there], high[..., there] = some.low, some.high
        return Estimate(draws[0], low, high, draws, sizes)

    return cast(Made, of_some)


@_where_asked
def estimate(draws: Float64, sizes: Float64 | None = None, *, bounds: Bounds = ANY) -> Estimate:
    """The value of a mean or a ratio, with its 95 % interval.

    draws   [replicate + 1, *cell] the statistic on the data, then without each group
    bounds  between which it lies by its nature
    sizes   draws of what it is a mean over, such as words: how much each group weighs; broadcast to
            `draws`. Without them groups are taken to weigh the same, and to have a part where they
            move the value: see `even`
    returns no interval where fewer than FEWEST groups have a part in the value, or leaving one out
            leaves nothing; nor where groups do not differ at all and there are no two bounds
    """
    if len(draws) <= FEWEST:
        return without_interval(draws[0], draws)
    moves = moves_of(draws)
    error, freedom = standard_error(moves, sizes, twice=True)
    beyond = tail(groups := _parts(moves, sizes), len(moves))
    ends = _on_scale(draws[0], _halves(moves, error, freedom, beyond), bounds)
    if sizes is not None and np.isfinite(bounds).all():
        worth, still = np.minimum(groups, _effective(sizes)[0]), (moves != 0).sum(0) < FEWEST
        low, high = _without_spread(draws[0], worth, bounds, beyond)
        ends = np.where(still, low, ends[0]), np.where(still, high, ends[1])
        low, high = _of_coins(draws[0], worth, bounds, beyond)
        ends = np.fmax(ends[0], low), np.fmin(ends[1], high)
    return replace(_where(draws, groups, *ends), sizes=sizes)


def estimate_correlation(draws: Float64, sizes: Float64 | None = None) -> Estimate:
    """A correlation from -1 to 1 with its 95 % interval; `sizes` of what it is over, say pairs."""
    if len(draws) <= FEWEST:
        return without_interval(draws[0], draws)
    moves = moves_of(draws)
    beyond = tail(groups := (moves != 0).sum(0), len(moves))
    half = _student(*standard_error(moves, sizes), beyond)
    return _where(draws, groups, *_on_scale(draws[0], (half, half), CORRELATION))


@_where_asked
def estimate_share(draws: Float64, questions: Float64, *, twice: bool = False) -> Estimate:
    """A share of questions answered right, with Jeffreys's interval at the effective number of
    questions.

    twice   see `standard_error`: for shares of what was chosen by other documents
    questions  draws of how many questions there are; broadcast to `draws`. The effective number is
            at most this, and at least the number of groups, were they of equal size. Where all or
            none were right the error is unknown: all questions count, and the interval ends at the
            share
    """
    if len(draws) <= FEWEST:
        return without_interval(draws[0], draws)
    moves, share, most = moves_of(draws), draws[0], np.broadcast_to(questions[0], draws[0].shape)
    error, freedom = standard_error(moves, questions, twice=twice)
    beyond = tail(groups := _asking(draws, questions), len(moves))
    halves = _halves(moves, error, freedom, beyond)
    least = np.zeros(1) if twice else np.minimum(_effective(questions)[0], most)
    low, high = (
        _jeffreys(share, np.maximum(_worth(share, half, most, beyond), least), end)
        for half, end in zip(halves, (beyond, 1 - beyond), strict=True)
    )
    return replace(_where(draws, groups, low, high), sizes=questions)


def estimate_independent(draws: Float64, count: int) -> Estimate:
    """A share of independent questions, with Jeffreys's interval.

    count   questions, such as the examples of a task; Jeffreys's interval
    """
    if len(draws) <= FEWEST:
        return without_interval(draws[0], draws)
    questions = np.full_like(draws[0], count)
    beyond = tail(np.ones_like(questions), 1)  # of all documents
    low, high = (_jeffreys(draws[0], questions, end) for end in (beyond, 1 - beyond))
    return Estimate(draws[0], low, high, draws)


@_where_asked
def estimate_difference(draws: Float64, questions: Float64, *, twice: bool = False) -> Estimate:
    """The difference of two shares over the same number of `questions`, with its interval.

    Where it is the same in all documents it is taken as a share, from 0 at -1 to 1 at 1.
    """
    if len(draws) <= FEWEST:
        return without_interval(draws[0], draws)
    moves = moves_of(draws)
    error, freedom = standard_error(moves, questions, twice=twice)
    beyond = tail(groups := _asking(draws, questions), len(moves))
    halves = _halves(moves, error, freedom, beyond)
    students = (np.clip(end, *DIFFERENCE) for end in _on_scale(draws[0], halves, ANY))
    most = np.broadcast_to(questions[0], error.shape)
    same = (2 * _jeffreys((draws[0] + 1) / 2, most, end) - 1 for end in (beyond, 1 - beyond))
    ends = (np.where(error > 0, *both) for both in zip(students, same, strict=True))
    return replace(_where(draws, groups, *ends), sizes=questions)


def without_interval(value: Float64, draws: Float64 | None = None) -> Estimate:
    """The value without an interval."""
    nothing = np.full_like(value, np.nan, dtype=np.float64)
    return Estimate(value, nothing, nothing, draws)


def even(draws: Float64) -> Float64:
    """[replicate + 1, 1, …] sizes of groups of equal weight."""
    sizes = np.full((len(draws), *[1] * (draws.ndim - 1)), len(draws) - 2.0)
    sizes[0] += 1
    return sizes


def left_one_out(parts: Float64) -> Float64:
    """[unit + 1, …] draws of the mean over units: of all, then without each; NaN is left out.

    parts  [unit, …] one number of each, such as the silhouette of each head
    """
    there = np.isfinite(parts)
    total, count = np.where(there, parts, 0).sum(0), there.sum(0)
    without = ratio(total - np.where(there, parts, 0), count - there + 0.0)
    return np.concatenate([ratio(total, count + 0.0)[None], without])


def spearman_over_units(one: Float64, other: Float64) -> Float64:
    """[unit + 1] draws of Spearman's correlation over units: of all, then without each.

    one, other  [unit] numbers of each, such as of each head; a unit without both does not count
    returns     NaN for fewer than 4 units, or where all have the same number; for fewer than 10 the
                first alone, so that there is no interval
    """
    from scipy.stats import rankdata  # half a second of imports, which views need not

    there = np.flatnonzero(np.isfinite(one) & np.isfinite(other))
    if len(there) < LEAST_RANKS:
        return np.full(len(one) + 1, np.nan)
    pairs = np.stack([one[there], other[there]])  # [2, unit]
    units = np.arange(len(there))
    parts = np.array_split(units[:, None], len(units) // LEFT_OUT + 1)  # [unit left out, 1]
    without = (np.take(pairs, units[:-1] + (units[:-1] >= left), 1) for left in parts)
    rho = np.hstack([correlation(*rankdata(some, axis=-1)) for some in without])
    draws = np.full(len(one) + 1, correlation(*rankdata(pairs, axis=-1)))
    draws[1 + there] = rho if len(there) >= FEWEST_RANKED else np.nan
    return draws


def drawn_anew(draws: Float64, *, count: int = 1000, seed: int = 0) -> Float64:
    """[draw, *cell] values of resampled documents, all cells together.

    Normal, about the value, with the covariance that the moves of `draws` tell: for statistics that
    jump, such as which of several is the largest.
    """
    moves = moves_of(draws).reshape(len(draws) - 1, draws[0].size)  # [replicate, cell]
    normal = generator(seed, "drawn anew").standard_normal((count, len(moves)))
    return np.asarray(draws[0] + (normal @ moves).reshape(count, *draws.shape[1:]))


def surely_above(gain: Estimate, tests: int) -> Float64:
    """Lower ends of simultaneous intervals (Bonferroni); NaN without an interval."""
    return np.asarray(gain.value - stretch(tests) * (gain.value - gain.low))


def moves_of(draws: Float64) -> Float64:
    """[replicate, *cell] change of the value without each group; 0 where only by rounding."""
    moves = np.nan_to_num(draws[1:] - draws[0])
    return np.where(np.abs(moves) <= ROUNDING * np.abs(np.nan_to_num(draws[0])), 0, moves)


def standard_error(
    moves: Float64, sizes: Float64 | None = None, *, twice: bool = False
) -> tuple[Float64, Float64]:
    """[*cell] the standard error and its degrees of freedom; 0 where nothing changes.

    sizes  see `estimate`
    twice  whether the most influential group counts twice, and unequal sizes add to the error
    """
    groups = (moves != 0).sum(0)
    square = moves**2
    total = square.sum(0)
    unequal = ratio((square**2).sum(0), total**2) - ratio(np.ones(total.shape), groups + 0.0)
    freedom = np.minimum(2 / np.maximum(unequal, 1e-12), groups - 1.0)
    most = square.max(0, initial=0) if twice else 0.0
    variance = ratio(groups - 1.0, groups + 0.0) * (total + most)
    if sizes is not None:
        effective, varying = _effective(sizes)
        freedom = np.minimum(freedom, effective - 1)
        variance = variance * (1 + UNEQUAL * varying if twice else 1.0)
    return np.sqrt(np.nan_to_num(variance)), np.maximum(np.nan_to_num(freedom), 1)


def _effective(sizes: Float64) -> tuple[Float64, Float64]:
    """[*cell] Kish's effective number of groups; the squared variation coefficient of their sizes.

    Groups of size 0 are none.
    """
    of_group = np.abs(sizes[:1] - sizes[1:])  # [replicate, *cell]
    effective = ratio(of_group.sum(0) ** 2, (of_group**2).sum(0))
    return effective, np.maximum(ratio((of_group != 0).sum(0) + 0.0, effective) - 1, 0)


def _student(error: Float64, freedom: Float64, beyond: Float64) -> Float64:
    """Half of Student's interval; NaN where nothing changes."""
    from scipy.special import stdtrit  # not for who reads arguments only

    return np.where(error > 0, -stdtrit(freedom, beyond) * error, np.nan)


def _halves(
    moves: Float64, error: Float64, freedom: Float64, beyond: Float64
) -> tuple[Float64, Float64]:
    """The lower and upper half of the interval; longer on the side of the skew."""
    half, root = _student(error, freedom, beyond), np.sqrt((moves != 0).sum(0))
    skewness = -root * ratio((moves**3).sum(0), (moves**2).sum(0) ** 1.5)
    side = np.nan_to_num(np.tanh(skewness))
    down, up = (
        half * (1 + np.where(of_side > 0, LONGER, SHORTER) * of_side) for of_side in (-side, side)
    )
    return down, up


def _on_scale(
    value: Float64, halves: tuple[Float64, Float64], bounds: Bounds
) -> tuple[Float64, Float64]:
    """The interval on a scale without bounds, and back."""
    least, most = bounds
    down, up = halves
    if not np.isfinite(least):
        return value - down, value + up
    above = np.maximum(value - least, 0)
    if not np.isfinite(most):
        with np.errstate(over="ignore"):
            low, high = (above * np.exp(ratio(half, above)) for half in (-down, up))
        return least + low, least + high
    below, span = np.maximum(most - value, 0), most - least
    with np.errstate(over="ignore"):  # so far that it is the bound
        low, high = (
            least + span * ratio(above, above + below * np.exp(-ratio(half * span, above * below)))
            for half in (-down, up)
        )
    return low, high


def _without_spread(
    value: Float64, groups: Float64, bounds: Bounds, beyond: Float64
) -> tuple[Float64, Float64]:
    """The interval of a mean that is equal in all groups: unseen documents may have any value.

    NaN without two bounds, as then nothing is known of the unseen ones.
    """
    from scipy.special import betaincinv

    if not np.isfinite(bounds).all():
        return np.full_like(value, np.nan), np.full_like(value, np.nan)
    seen = betaincinv(np.maximum(groups, 0) + 0.5, 0.5, beyond)  # at least this share of all
    least, most = bounds
    low, high = least + seen * (value - least), most - seen * (most - value)
    return np.maximum(low, least), np.minimum(high, most)


def _of_coins(
    value: Float64, groups: Float64, bounds: Bounds, beyond: Float64
) -> tuple[Float64, Float64]:
    """The widest interval of a value between two bounds: one coin toss per group.

    Where one group differs from all others, no more is known of the spread.
    """
    least, most = bounds
    share = (value - least) / (most - least)
    low, high = (_jeffreys(share, groups, end) for end in (beyond, 1 - beyond))
    low, high = np.minimum(low, share), np.maximum(high, share)  # it passes by one near 0 or 1
    return least + (most - least) * low, least + (most - least) * high


def _worth(share: Float64, half: Float64, questions: Float64, beyond: Float64) -> Float64:
    """The number of questions whose interval has this half width, at most `questions`."""
    from scipy.special import stdtrit

    student = stdtrit(np.maximum(questions - 1, 1), beyond)
    worth = ratio(share * (1 - share) * student**2, half**2)
    return np.where(np.isfinite(worth), np.minimum(worth, questions), questions)


def _jeffreys(share: Float64, questions: Float64, quantile: Float64) -> Float64:
    """One end of Jeffreys's interval of a share; 0 or 1 for a share of 0 or 1."""
    right, wrong = (np.maximum(part * questions, 0) + 0.5 for part in (share, 1 - share))
    from scipy.special import betaincinv

    end = betaincinv(right, wrong, quantile)
    return np.where(np.where(quantile < 0.5, share <= 0, share >= 1), share, end)


def _parts(moves: Float64, sizes: Float64 | None) -> Float64:
    """[*cell] number of groups that take part in the value; without sizes, that change it."""
    parts: Float64 = (moves != 0).sum(0)
    return parts if sizes is None else np.maximum(parts, (sizes[1:] != sizes[0]).sum(0))


def _asking(draws: Float64, questions: Float64) -> Float64:
    """[*cell] number of groups with a question."""
    return np.broadcast_to((questions[1:] != questions[0]).sum(0), draws[0].shape)


def _where(draws: Float64, groups: Float64, low: Float64, high: Float64) -> Estimate:
    """The interval, if enough groups take part in the value and none is all of it."""
    there = (groups >= FEWEST) & np.isfinite(draws).all(0)
    return Estimate(draws[0], np.where(there, low, np.nan), np.where(there, high, np.nan), draws)
