"""Which heads behave alike?

The Jensen-Shannon divergence between the attention of every two heads, in nats: mean over the
queries of an example, then over examples; 0 for equal heads, at most ln 2. The authors (Clark et
al. 2019, §6) mix in 0.001 of uniform attention first and sum over tokens and documents instead:
`smoothing=1e-3, reduction="sum"`. The map of heads is metric MDS of that matrix.
"""

from math import ceil, prod
from typing import ClassVar

import numpy as np
import torch
import xarray as xr
from scipy.spatial.distance import squareform

from headscope.analyses.divergence import QUESTION
from headscope.analyses.divergence.head_clusters import cluster_results, control_results
from headscope.core.accumulators import Array, Float64, generator
from headscope.core.intervals import POSITIVE, Estimate, estimate
from headscope.core.results import Variable, labelled
from headscope.model import kernels
from headscope.model.batch import Batch, to_float64
from headscope.model.kernels import compiled
from headscope.model.layer import LN2, LayerView
from headscope.run.analysis import Analysis, Scope, ratio_of, sizes_of

# One replicate of 144 heads holds 10,296 pairs: enough for a standard error within 10 %.
PAIR_REPLICATES = 50
# Ours: queries compared in an input without whole maps: as many as fit, within these bounds.
MOST_WEIGHTS, SAMPLED = 1 << 26, (4, 32)


class Divergence(Analysis, question=QUESTION):
    """Jensen-Shannon divergence between all pairs of heads, a map of the heads, and clusters.

    smoothing  share of uniform attention mixed in first, 0 ≤ s < 1
    reduction  "mean" over tokens and examples, or "sum" (Clark)
    """

    costly: ClassVar[bool] = True
    whole_maps: ClassVar[bool] = False

    def __init__(self, scope: Scope, *, smoothing: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(scope)
        self.checked(reduction=reduction, smoothing=smoothing)
        self.smoothing, self.reduction = smoothing, reduction
        self.units = scope.layers * scope.heads
        pairs = self.units * (self.units - 1) // 2
        self.total = self.sums(pairs, replicates=PAIR_REPLICATES)
        self.count = self.sums(replicates=PAIR_REPLICATES)
        self._maps: torch.Tensor | None = None
        self._rows = self._side = np.empty(0, np.int64)  # of each example: queries, and of a square
        self._entropy: list[Float64] = []

    def observe(self, layer: LayerView, batch: Batch) -> None:
        """Keep this layer's maps until the batch's last layer has been seen."""
        if layer.index == 0:
            self._entropy = []
        first = layer.index * self.scope.heads
        own = slice(first, first + self.scope.heads)
        if not layer.whole:
            self._keep_rows(layer, batch, own)
            return
        self._rows, self._side = batch.lengths, batch.lengths
        nats = layer.entropy(batch, smoothing=self.smoothing)
        self._entropy.append(batch.mean_over_queries(nats))
        kept = self._buffer(layer.attention)[:, own]
        kept.copy_(layer.attention)
        if self.smoothing:
            n = torch.from_numpy(batch.lengths).to(kept)[:, None, None, None]
            kept.mul_(1 - self.smoothing).add_(self.smoothing / n)

    def _keep_rows(self, layer: LayerView, batch: Batch, own: slice) -> None:
        """Keep some rows of each long input, laid into a square: sums do not depend on the layout.

        They are drawn for each input, so that intervals over documents include the sampling.
        """
        keys = layer.shape[-1]
        most = int(np.clip(MOST_WEIGHTS / (self.units * keys), *SAMPLED))
        chosen = np.full((len(batch.examples), most), -1)
        for row, example, n in zip(chosen, batch.examples, batch.lengths, strict=True):
            draw = generator(self.scope.seed, "divergence", example.document, example.id)
            row[:n] = np.sort(draw.choice(n, min(most, n), replace=False))
        there = torch.from_numpy(chosen >= 0)[:, None, :, None]
        rows = layer.rows(torch.from_numpy(np.maximum(chosen, 0)).to(batch.mask.device))
        rows = rows * there.to(rows)  # [example, head, row, key]
        if self.smoothing:
            n = torch.from_numpy(batch.lengths).to(rows)[:, None, None, None]
            real = batch.mask[:, None, None] & there.to(batch.mask.device)
            rows = (rows * (1 - self.smoothing) + self.smoothing / n) * real
        self._rows = (chosen >= 0).sum(1)
        self._entropy.append(
            to_float64(torch.special.entr(rows).sum((-1, -2))) / self._rows[:, None]
        )
        side = ceil((most * keys) ** 0.5)
        self._side = np.full(len(rows), side)
        square = rows.new_zeros(len(rows), rows.shape[1], side, side)
        square.flatten(2)[..., : most * keys] = rows.flatten(2)
        self._buffer(square)[:, own].copy_(square)

    def finish(self, batch: Batch) -> None:
        """Compare all pairs of maps, example by example."""
        assert self._maps is not None
        entropy = np.concatenate(self._entropy, 1)  # [example, unit]
        upper = np.triu_indices(self.units, 1)
        tokens = batch.input_ids.shape[1] if self._rows is batch.lengths else int(self._side[0])
        maps = self._view(len(batch.lengths), tokens)
        divergences = np.empty((len(batch.lengths), len(upper[0])))
        for row, n in enumerate(batch.lengths):
            # JS(a,b) = ln 2 - ½ Σ (a+b) ln(a+b) - ½ (H(a) + H(b)), mean over the queries
            sums = _pair_sums(maps[row], int(self._side[row]))[upper]
            both = sums * (LN2 / 2 / self._rows[row])
            own = (entropy[row][upper[0]] + entropy[row][upper[1]]) / 2
            divergences[row] = np.maximum(LN2 - both - own, 0)
            if self.reduction == "sum":
                divergences[row] *= n
        self.total.add(divergences, batch.groups)
        self.count.add(np.ones(len(batch.lengths)), batch.groups)

    def result(self) -> xr.Dataset:
        """js[unit, unit_other]; mds[unit, axis] and its stress-1; see `head_clusters` for more."""
        draws = ratio_of(self.total, self.count)
        if self.reduction == "sum":
            draws = np.where(np.isnan(draws[0]), np.nan, self.total.sums)  # NaN: nothing seen
        bounds = (0, LN2) if self.reduction == "mean" else POSITIVE
        mean = estimate(draws, bounds=bounds, sizes=sizes_of(self.total, self.count))
        square = Estimate(*(self._square(a) for a in (mean.value, mean.low, mean.high)))
        unit = "nats" if self.reduction == "mean" else "nats·tokens"
        name = "Jensen-Shannon divergence between heads"
        js = Variable(square, ("unit", "unit_other"), name, unit, self.source)
        scope = self.scope
        if scope.control:
            return labelled({"js": js, **control_results(draws[0], seed=scope.seed)})
        places, stress = head_map(square.value)
        mds = Variable(places, ("unit", "axis"), "place in the map of heads", unit, self.source)
        left = Variable(stress, (), "stress-1 of the map of heads", "1", "Kruskal 1964")
        more, coords = cluster_results(draws, heads=scope.heads, seed=scope.seed, unit=unit)
        variables = {"js": js, "mds": mds, "mds_stress": left, **more}
        return labelled(variables, coords={"axis": ("x", "y"), **coords})

    def _buffer(self, like: torch.Tensor) -> torch.Tensor:
        """[example, unit, query, key] room for all maps of a batch, kept between batches."""
        examples, _, queries, keys = like.shape
        size = examples * self.units * queries * _padded(keys)
        if self._maps is None or self._maps.numel() < size or self._maps.dtype != like.dtype:
            self._maps = like.new_empty(size)
        return self._view(examples, keys)[..., :keys]

    def _view(self, examples: int, tokens: int) -> torch.Tensor:
        assert self._maps is not None
        shape = (examples, self.units, tokens, _padded(tokens))
        return self._maps[: prod(shape)].view(shape)

    def _square(self, pairs: Float64) -> Float64:
        """Pairs as a symmetric matrix with zero diagonal, clipped to what a divergence can be."""
        square = np.asarray(squareform(np.maximum(pairs, 0), checks=False), np.float64)
        if pairs.size and np.isnan(pairs).all():
            square[:] = np.nan
        return np.minimum(square, LN2) if self.reduction == "mean" else square


def _padded(keys: int) -> int:
    """The length of a row of whole vectors; what it has beyond its keys counts for nothing."""
    return -(-keys // kernels.LANES) * kernels.LANES


def _pair_sums(maps: torch.Tensor, n: int) -> Float64:
    """[unit, unit] Σ (a+b)·log2(a+b) over the first n queries and keys; upper triangle."""
    out = np.zeros((len(maps), len(maps)))
    if compiled(maps):
        kernels.pair_sums(maps.numpy(), n, out)
        return out
    flat = maps[:, :n, :n].flatten(1)  # [unit, query·key]
    for unit in range(len(flat) - 1):
        both = flat[unit] + flat[unit + 1 :]
        out[unit, unit + 1 :] = -torch.special.entr(both).sum(-1).double().cpu().numpy() / LN2
    return out


def head_map(distances: Float64) -> tuple[Array, float]:
    """Metric MDS in two dimensions, started from classical scaling, turned to its main axes.

    distances  [unit, unit] symmetric, zero diagonal
    returns    places [unit, axis] in the distances' unit, and Kruskal's stress-1
    """
    from sklearn.manifold import MDS

    if len(distances) < 3 or not np.isfinite(distances).all() or not distances.any():
        return np.full((len(distances), 2), np.nan), float("nan")
    mds = MDS(
        2,
        metric="precomputed",
        init="classical_mds",
        n_init=1,
        max_iter=1000,
        eps=1e-9,
        normalized_stress=False,
    )
    places = mds.fit_transform(distances)
    centred = places - places.mean(0)
    turned = centred @ np.linalg.svd(centred, full_matrices=False)[2].T
    turned *= np.where(np.abs(turned.max(0)) >= np.abs(turned.min(0)), 1, -1)
    gaps = np.linalg.norm(turned[:, None] - turned[None], axis=-1)
    return turned, float(np.sqrt(((gaps - distances) ** 2).sum() / (distances**2).sum()))
