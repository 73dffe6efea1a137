"""How far does each head look: |i - j| between a token and what it attends to, in tokens.

Per example the attention at each distance, mean over all its queries; from this profile the mean
distance, and the distance within which half of the attention and nine tenths of it stay; then the
mean over examples. Where rows leave a weight for no token, distances are of what is left.

Streaming share: what queries give to the first S and the last W keys, their own among them (Xiao et
al. 2024 keep only these; Xiao et al. 2025 with S = 128, W = 256), mean over the queries from S + W
on, which see something else. Of decoders; NaN where no input has such a query.
"""

from typing import ClassVar

import numpy as np
import xarray as xr
from scipy.special import digamma

from headscope.analyses.distance import QUESTION, WINDOWS, windows_of
from headscope.core.accumulators import Float64, Sums, ratio
from headscope.core.intervals import POSITIVE, SHARE, Estimate, estimate
from headscope.core.results import Variable, labelled
from headscope.core.terms import OURS
from headscope.model.batch import Batch, to_float64
from headscope.model.lags import Lags
from headscope.model.layer import LayerView
from headscope.run.analysis import Analysis, Scope, ratio_of, sizes_of

BINS = np.array([0, *(1 << power for power in range(18))])  # from each up to the next
NEAR = 3  # ours: tokens; what is as near stands in a phrase
QUANTILES = (0.5, 0.9)
SIDES = ("before", "after")
ROUNDING = 1e-6  # of a sum of weights that ought to be a quantile


class Distance(Analysis, question=QUESTION):
    """Attention by distance and side, and what first and latest tokens get together.

    windows  how many first and last keys count as first and latest: "4+64,128+256"
    """

    whole_maps: ClassVar[bool] = False

    def __init__(self, scope: Scope, *, windows: str = WINDOWS) -> None:
        super().__init__(scope)
        self.checked(windows=windows)
        self.windows = windows_of("windows", windows)
        cuts = tuple(sorted({first + last for first, last in self.windows}))
        self.diagonals = cuts, max(first for first, _ in self.windows)
        cell = scope.layers, scope.heads
        self.profile, self.quantiles = self.sums(*cell, len(BINS)), self.sums(*cell, len(QUANTILES))
        self.mean_distance, self.nearby = self.sums(*cell), self.sums(*cell)
        self.side, self.two_sided = self.sums(*cell, len(SIDES)), self.sums()
        self.uniform, self.examples = self.sums(), self.sums()
        self.even_profile, self.reached = self.sums(len(BINS)), self.sums(len(BINS))
        self.streaming = self.sums(*cell, len(self.windows))
        self.even, self.long = (self.sums(len(self.windows)) for _ in range(2))

    def observe(self, layer: LayerView, batch: Batch) -> None:
        """Add each example's profile, distances and shares."""
        at, groups, n = (layer.index,), batch.groups, batch.lengths
        cuts, first = self.diagonals or ((), 0)
        lags, causal = layer.lags(batch, cuts, first=first), layer.stack == "decoder"
        tokens = layer.shape[3]
        by_lag = to_float64(lags.by_lag.sum(0)) / n[:, None, None]  # [example, head, lag]
        before, after = by_lag[..., tokens - 1 :: -1].copy(), by_lag[..., tokens - 1 :]
        before[..., 0] = 0  # [example, head, distance]
        both = before + after
        self.profile.add(_binned(both), groups, at=at)
        self.nearby.add(both[..., : NEAR + 1].sum(-1), groups, at=at)
        mass = both.sum(-1)  # [example, head]
        self.mean_distance.add(ratio(both @ np.arange(tokens), mass, absent=0), groups, at=at)
        within = both.cumsum(-1)
        wanted = (np.array(QUANTILES) - ROUNDING) * mass[..., None]  # [example, head, quantile]
        far = [(within < wanted[..., [q]]).sum(-1) for q in range(len(QUANTILES))]
        self.quantiles.add(np.stack(far, -1), groups, at=at)
        if not causal:
            self.side.add(np.stack([before.sum(-1), after[..., 1:].sum(-1)], -1), groups, at=at)
        else:
            share = np.stack([_streamed(lags, *window) for window in self.windows], -1)
            queries = np.maximum(n[:, None] - [s + w for s, w in self.windows], 0)
            self.streaming.add(ratio(share, queries[:, None], absent=0), groups, at=at)
        if layer.index == 0:
            self._count(batch, causal)

    def _count(self, batch: Batch, causal: bool) -> None:
        n, groups = batch.lengths[:, None] * 1.0, batch.groups  # [example, 1]
        even = np.stack(
            [_even(one, batch.input_ids.shape[1], causal) for one in batch.lengths.tolist()]
        )
        self.uniform.add(even @ np.arange(even.shape[1]), groups)
        self.even_profile.add(_binned(even), groups)
        self.examples.add(np.ones(len(n)), groups)
        self.reached.add((n > BINS) * 1.0, groups)
        if not causal:
            self.two_sided.add(np.ones(len(n)), groups)
            return
        seen = np.array([s + w for s, w in self.windows])
        queries = np.maximum(n - seen, 0)
        inverse = digamma(np.maximum(n, seen) + 1) - digamma(seen + 1)  # Σ 1 / (i + 1)
        self.even.add(ratio(seen * inverse, queries, absent=0), groups)
        self.long.add((queries > 0) * 1.0, groups)

    def result(self) -> xr.Dataset:
        """Profile and distances; side of encoders, streaming of decoders, else NaN."""
        heads, words = ("layer", "head"), "attention"
        share = "probability"
        variables = {
            "profile": Variable(
                self._by_distance(self.profile), (*heads, "distance"),
                f"{words} by distance, from each up to the next", share, OURS,
            ),
            "uniform_profile": Variable(
                self._by_distance(self.even_profile), ("distance",),
                "uniform attention by distance, from each up to the next", share, OURS,
            ),
            "nearby": Variable(
                self.mean(self.nearby, self.examples, bounds=SHARE), heads,
                f"{words} within {NEAR} tokens", share, OURS,
            ),
            "mean_distance": Variable(
                self.mean(self.mean_distance, self.examples, bounds=POSITIVE), heads,
                "mean distance of attention", "tokens", OURS,
            ),
            "distance_quantile": Variable(
                self.mean(self.quantiles, self.examples, bounds=POSITIVE), (*heads, "quantile"),
                "distance within which so much of the attention stays, mean over inputs", "tokens",
                OURS,
            ),
            "uniform_distance": Variable(
                self.mean(self.uniform, self.examples, bounds=POSITIVE), (),
                "mean distance of uniform attention", "tokens", OURS,
            ),
            "side_share": Variable(
                self.mean(self.side, self.two_sided, bounds=SHARE), (*heads, "side"),
                f"{words} to tokens before and after, in encoders", share, OURS,
            ),
            "streaming": Variable(
                self.mean(self.streaming, self.long, bounds=SHARE), (*heads, "window"),
                f"{words} to the first and the latest tokens", share, self.source,
            ),
            "uniform_streaming": Variable(
                self.mean(self.even, self.long, bounds=SHARE), ("window",),
                "uniform attention to the first and the latest tokens", share, OURS,
            ),
        }  # fmt: skip
        coords = {
            "distance": BINS.tolist(), "quantile": QUANTILES, "side": SIDES,
            "window": [f"{first}+{last}" for first, last in self.windows],
        }  # fmt: skip
        return labelled(variables, coords=coords)

    def _by_distance(self, total: Sums) -> Estimate:
        """The mean over examples; NaN for distances that no input reaches."""
        draws = ratio_of(total, self.examples)
        draws[..., self.reached.total == 0] = np.nan
        return estimate(draws, bounds=SHARE, sizes=sizes_of(total, self.examples))


def _binned(by_distance: Float64) -> Float64:
    """[…, distance] -> […, bin]"""
    bins = np.add.reduceat(by_distance, BINS[by_distance.shape[-1] > BINS], -1)
    return np.pad(bins, (*[(0, 0)] * (bins.ndim - 1), (0, len(BINS) - bins.shape[-1])))


def _even(n: int, tokens: int, causal: bool) -> Float64:
    """[distance] what uniform attention of an input of n tokens gives, mean over queries."""
    distance = np.arange(n)
    if causal:
        even = (digamma(n + 1) - digamma(distance + 1)) / n  # Σ over i ≥ d of 1 / (i + 1)
    else:
        even = np.where(distance, 2, 1) * (n - distance) / n**2
    return np.pad(even, (0, tokens - n))


def _streamed(lags: Lags, first: int, last: int) -> Float64:
    """[example, head] what the first and last keys get from the queries that see more, summed."""
    at, middle = lags.cuts.index(first + last) + 1, lags.by_lag.shape[-1] // 2
    latest = lags.by_lag[at:, ..., max(middle - last + 1, 0) : middle + 1].sum((0, -1))
    return to_float64(latest + lags.first[at:, ..., :first].sum((0, -1)))
