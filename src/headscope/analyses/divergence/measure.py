"""Which heads behave alike?

The Jensen-Shannon divergence between the attention of every two heads, in nats: mean over the
queries of an example, then over examples; 0 for equal heads, at most ln 2. The authors (Clark et
al. 2019, §6) mix in 0.001 of uniform attention first and sum over tokens and documents instead:
`smoothing=1e-3, reduction="sum"`. The map of heads is metric MDS of that matrix.
"""

from math import prod
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch
import xarray as xr
from scipy.spatial.distance import squareform
from torch.nn.utils.rnn import pad_sequence

from headscope.analyses.divergence import QUERIES, QUESTION
from headscope.analyses.divergence.head_clusters import cluster_results, control_results
from headscope.claims.terms import OURS
from headscope.core.accumulators import Array, Float64
from headscope.core.intervals import POSITIVE, Estimate, estimate
from headscope.core.results import Variable, labelled
from headscope.corpus.input_sample import drawn_queries
from headscope.model import kernels
from headscope.model.batch import Batch
from headscope.model.kernel_operations import LANES, LN2
from headscope.model.kernels import compiled
from headscope.model.layer import LayerView
from headscope.run.analysis import Analysis, Scope, ratio_of, sizes_of

Weights = npt.NDArray[np.float32]

# One replicate of 144 heads holds 10,296 pairs: enough for a standard error within 10 %.
PAIR_REPLICATES = 50
# Ours: weights of all heads that are held of an input without whole maps, and the fewest queries.
MOST_WEIGHTS, FEWEST = 1 << 26, 4


class Divergence(Analysis, question=QUESTION):
    """Jensen-Shannon divergence between all pairs of heads, a map of the heads, and clusters.

    smoothing  share of uniform attention mixed in first, 0 ≤ s < 1
    reduction  "mean" over tokens and examples, or "sum" (Clark)
    queries    how many are drawn in each input, see `drawn_queries`; "all" (Clark): all of an input
               with a whole map, QUERIES of others. They are drawn for each input by itself, so
               that intervals over documents include the draw
    """

    costly: ClassVar[bool] = True
    whole_maps: ClassVar[bool] = False

    def __init__(
        self,
        scope: Scope,
        *,
        smoothing: float = 0.0,
        reduction: str = "mean",
        queries: int | str = QUERIES,
    ) -> None:
        super().__init__(scope)
        self.checked(reduction=reduction, smoothing=smoothing, queries=queries)
        self.smoothing, self.reduction, self.queries = smoothing, reduction, queries
        self.units = scope.layers * scope.heads
        pairs = self.units * (self.units - 1) // 2
        self.total = self.sums(pairs, replicates=PAIR_REPLICATES)
        self.count = self.sums(replicates=PAIR_REPLICATES)
        self._held = self._maps = torch.empty(0)
        self._rows: torch.Tensor | None = None  # [example, row] queries of the batch; None: all
        self._weights: list[Weights] = []  # of each example [row]
        self._entropy: list[Float64] = []

    def observe(self, layer: LayerView, batch: Batch) -> None:
        """Keep the rows that are compared until the batch's last layer has been seen."""
        if layer.index == 0:
            self._entropy = []
            self._draw(layer, batch)
        heads = slice(layer.index * self.scope.heads, (layer.index + 1) * self.scope.heads)
        if self._rows is None:
            rows = layer.attention
            nats = layer.entropy(batch, smoothing=self.smoothing)
            self._entropy.append(batch.mean_over_queries(nats))
        else:
            rows = layer.rows(self._rows.to(batch.mask.device))  # [example, head, row, key]
        kept = self._room(rows)[:, heads, :, : rows.shape[-1]]
        kept.copy_(rows)
        if self.smoothing:  # of padding, too, which is not read
            n = torch.from_numpy(batch.lengths).to(kept)[:, None, None, None]
            kept.mul_(1 - self.smoothing).add_(self.smoothing / n)

    def _draw(self, layer: LayerView, batch: Batch) -> None:
        """Choose the queries of a batch that are compared."""
        if self.queries == "all" and layer.whole:
            self._rows, self._weights = None, [np.ones(n, np.float32) for n in batch.lengths]
            return
        most = QUERIES if self.queries == "all" else int(self.queries)
        drawn = []
        for example, n in zip(batch.examples, batch.lengths, strict=True):
            fit = most if layer.whole else max(FEWEST, MOST_WEIGHTS // (self.units * n))
            drawn.append(drawn_queries(example, min(most, fit), seed=self.scope.seed))
        self._weights = [weights.astype(np.float32) for _, weights in drawn]
        rows = [torch.from_numpy(queries) for queries, _ in drawn]
        self._rows = pad_sequence(rows, batch_first=True)  # with query 0, whose row is not read

    def finish(self, batch: Batch) -> None:
        """Compare all pairs of maps, example by example."""
        entropy = np.concatenate(self._entropy, 1) if self._entropy else None  # [example, unit]
        upper = np.triu_indices(self.units, 1)
        divergences = np.empty((len(batch.lengths), len(upper[0])))
        for row, (n, weights) in enumerate(zip(batch.lengths, self._weights, strict=True)):
            # JS(a,b) = ln 2 - ½ Σ (a+b) ln(a+b) - ½ (H(a) + H(b)), mean over the queries
            sums = _pair_sums(self._maps[row], weights, int(n))
            both = sums[upper] * (LN2 / 2 / n)
            nats = LN2 - np.diag(sums) * (LN2 / 2 / n) if entropy is None else entropy[row]
            own = (nats[upper[0]] + nats[upper[1]]) / 2
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
        queries = Variable(
            np.nan if self.queries == "all" or np.isnan(draws[0]).all() else float(self.queries),
            (),
            "queries that are drawn and compared in each input; NaN: all",
            "1",
            OURS,
            tidy=False,
        )
        if scope.control:
            return labelled({"js": js, **control_results(draws[0], seed=scope.seed)})
        places, stress = head_map(square.value)
        mds = Variable(places, ("unit", "axis"), "place in the map of heads", unit, self.source)
        left = Variable(stress, (), "stress-1 of the map of heads", "1", "Kruskal 1964")
        more, coords = cluster_results(draws, heads=scope.heads, seed=scope.seed, unit=unit)
        variables = {"js": js, "queries": queries, "mds": mds, "mds_stress": left, **more}
        return labelled(variables, coords={"axis": ("x", "y"), **coords})

    def _room(self, like: torch.Tensor) -> torch.Tensor:
        """[example, unit, row, key] room for all rows of a batch, kept between batches.

        A row is as long as whole vectors; what it has beyond its keys counts for nothing.
        """
        examples, _, rows, keys = like.shape
        shape = (examples, self.units, rows, -(-keys // LANES) * LANES)
        if self._held.numel() < prod(shape) or self._held.dtype != like.dtype:
            self._held = like.new_empty(prod(shape))
        self._maps = self._held[: prod(shape)].view(shape)
        return self._maps

    def _square(self, pairs: Float64) -> Float64:
        """Pairs as a symmetric matrix with zero diagonal, clipped to what a divergence can be."""
        square = np.asarray(squareform(np.maximum(pairs, 0), checks=False), np.float64)
        if pairs.size and np.isnan(pairs).all():
            square[:] = np.nan
        return np.minimum(square, LN2) if self.reduction == "mean" else square


def _pair_sums(maps: torch.Tensor, weights: Weights, n: int) -> Float64:
    """[unit, unit] Σ w·(a+b)·log2(a+b) over weighted queries and n keys; no lower triangle."""
    out = np.zeros((len(maps), len(maps)))
    if compiled(maps):
        kernels.pair_sums(maps.numpy(), weights, n, out)
        return out
    rows, weight = maps[:, : len(weights), :n], torch.from_numpy(weights).to(maps)[:, None]
    for unit in range(len(rows)):
        both = torch.special.entr(rows[unit] + rows[unit:]) * weight  # [unit, query, key]
        out[unit, unit:] = -both.flatten(1).sum(-1).double().cpu().numpy() / LN2
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
