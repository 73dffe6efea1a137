"""Do few neurons of a query and key make the score, and are they the same at every position?

A head's score of a key is Σ_d c_d with c_d = s · q_d · k_d over its neurons d. What makes a query
choose one key is how c differs there from the mean over the keys that it sees:
c' = s · q ⊙ (k* - mean k), with k* the key attended to most. Vig (2019) saw by eye that delimiter
heads use few, fixed neurons and next-word heads many changing ones; here that is measured. Softmax
cap, position bias (T5) and mask belong to no neuron and are left out; where a family rotates its
vectors (RoPE), neurons are those of the rotated ones.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
import xarray as xr

from headscope.analyses.neurons.measure_keys import CONTRASTS, KeysSeen
from headscope.analyses.neurons.measure_parts import (
    QUANTITIES,
    SET,
    TARGETS,
    EmbeddingSources,
    TargetCorrelation,
    chance,
    important,
    mean_overlap,
)
from headscope.core.accumulators import Estimate, Float64, Sums, estimate, estimate_by_spread, ratio
from headscope.core.labelled import Variable, labelled
from headscope.errors import HeadscopeError
from headscope.model.batch import Batch, to_float64
from headscope.model.families.embeddings import PARTS
from headscope.model.layer import LayerView
from headscope.run.analysis import Analysis, Scope

TOP = (1, 4, 16)
# One number per neuron of every head: standard errors within 15 % of their value, not quantiles.
NEURON_REPLICATES = 24
VIG = "Vig 2019; the measure is ours"


class Neurons(Analysis):
    """Effective number, share, overlap and names of the neurons that make the attended key's score.

    Means over an example's queries, then over examples. A query that sees one key only has nothing
    to choose and is left out, as is one whose c' is 0 throughout.
    """

    name: ClassVar[str] = "neurons"
    needs: ClassVar[frozenset[str]] = frozenset({"attention", "queries_keys"})
    summary: ClassVar[str] = "how many neurons of queries and keys make the scores, and which"
    source: ClassVar[str] = "Vig 2019"

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope)
        heads = (scope.layers, scope.heads)
        self.count, self.pair_count, self.effective, self.overlap, self.score = (
            self.sums(*heads) for _ in range(5)
        )
        self.top_share = self.sums(*heads, len(TOP))
        few, each = NEURON_REPLICATES, (scope.heads, scope.neurons)
        self.importance = self.sums(scope.layers, *each, replicates=few)
        kinds = (scope.layers, len(CONTRASTS))
        self.separation = self.sums(*kinds, *each, replicates=few)
        self.separation_score = self.sums(*kinds, scope.heads)
        self.separation_effective, self.effective_count = (
            self.sums(*kinds, scope.heads) for _ in range(2)
        )
        self.separation_count = self.sums(*kinds)
        self.sources, self.roles = EmbeddingSources(scope), TargetCorrelation(scope)

    def observe(self, layer: LayerView, batch: Batch) -> None:
        """Add each example's means for one layer."""
        queries, keys = _by_token(layer.queries), _by_token(layer.keys)
        if queries.shape[-1] != self.scope.neurons:
            raise HeadscopeError(
                f"layer {layer.index} has {queries.shape[-1]} neurons per head, wanted "
                f"{self.scope.neurons}: leave out the analysis neurons for this model"
            )
        queries = queries * layer.scaling
        seen = KeysSeen.of(layer, batch)
        top = layer.attention.argmax(-1).transpose(1, 2)  # [example, query, head]
        keys = seen.less_mean(keys)
        relative = queries * (_picked(keys, top) - seen.mean(keys))
        used = self._chosen(layer.index, relative, batch, seen)
        for at, difference, there in seen.contrasts(keys):
            self._separated((layer.index, at), queries * difference, there, batch)
        self.sources.observe(layer, batch, seen, top, used)
        self.roles.observe(layer, batch)

    def _chosen(
        self, layer: int, relative: torch.Tensor, batch: Batch, seen: KeysSeen
    ) -> torch.Tensor:
        """Add what singles out the key attended to most.

        relative  [example, query, head, neuron] c'
        returns   [example, query, head] weights of the queries used
        """
        size = relative.abs()
        whole = size.sum(-1)  # [example, query, head]
        used = ((seen.count > 1) & batch.mask)[..., None] & (whole > 0)
        share = _shares(used, size.dtype)
        safe = torch.where(used, whole, 1)
        largest = size.topk(min(max(TOP), size.shape[-1]), dim=-1).values
        running = largest.cumsum(-1) / safe[..., None]
        tops = torch.stack([running[..., min(k, running.shape[-1]) - 1] for k in TOP], -1)
        effective = whole.square() / torch.where(used, size.square().sum(-1), 1)
        at, weights = (layer,), batch.bootstrap
        self.count.add(to_float64(used.any(1)), weights, at=at)
        self.effective.add(to_float64((effective * share).sum(1)), weights, at=at)
        self.score.add(to_float64((relative.sum(-1) * share).sum(1)), weights, at=at)
        self.top_share.add(to_float64((tops * share[..., None]).sum(1)), weights, at=at)
        each = torch.einsum("bqh,bqhd->bhd", share / safe, size)
        self.importance.add(to_float64(each), weights, at=at)
        overlap, pairs = mean_overlap(important(size, largest, used), used)
        self.overlap.add(overlap, weights, at=at)
        self.pair_count.add(pairs, weights, at=at)
        return share

    def _separated(
        self, at: tuple[int, int], each: torch.Tensor, there: torch.Tensor, batch: Batch
    ) -> None:
        """Add what tells keys of a kind from the others.

        each   [example, query, head, neuron] mean contribution of the kind less that of the rest
        there  [example, query] bool
        """
        weights = batch.bootstrap
        mean = torch.einsum("bq,bqhd->bhd", _shares(there, each.dtype), each)
        self.separation.add(to_float64(mean), weights, at=at)
        self.separation_score.add(to_float64(mean).sum(-1), weights, at=at)
        self.separation_count.add(to_float64(there.any(1)), weights, at=at)
        whole, square = each.abs().sum(-1), each.square().sum(-1)
        used = there[..., None] & (whole > 0)  # [example, query, head]
        effective = whole.square() / torch.where(used, square, 1)
        effective = (effective * _shares(used, each.dtype)).sum(1)  # [example, head]
        self.separation_effective.add(to_float64(effective), weights, at=at)
        self.effective_count.add(to_float64(used.any(1)), weights, at=at)

    def result(self) -> xr.Dataset:
        """See the variables' long names; contrasts are CONTRASTS, parts those of embeddings."""
        heads, relative = ("layer", "head"), "the attended key's score above the mean key's"
        by_kind, ours = (*heads, "contrast"), "ours"
        variables = {
            "effective": Variable(
                self._mean(self.effective, self.count), heads,
                f"effective number of neurons that make {relative}", "1", VIG,
            ),
            "top_share": Variable(
                self._mean(self.top_share, self.count), (*heads, "k"),
                f"share of the k largest neurons in {relative}", "1", VIG,
            ),
            "position_overlap": Variable(
                self._mean(self.overlap, self.pair_count), heads,
                f"overlap of the top {SET} neurons between two positions (Jaccard)", "1", VIG,
            ),
            "chance_overlap": Variable(
                self._chance(), (), f"overlap of two random sets of {SET} neurons", "1", ours
            ),
            "neuron_importance": Variable(
                _within(self._mean(self.importance, self.count), 0, 1), (*heads, "neuron"),
                f"mean share of each neuron in {relative}", "1", VIG,
            ),
            "relative_score": Variable(
                self._mean(self.score, self.count), heads, relative, "1", ours
            ),
            "separation": Variable(
                self._by_kind(self.separation, self.separation_count), (*by_kind, "neuron"),
                "difference of a neuron's contribution between keys of the kind and other keys",
                "1", VIG,
            ),
            "separation_score": Variable(
                self._by_kind(self.separation_score, self.separation_count), by_kind,
                "difference of scores between keys of the kind and other keys", "1", ours,
            ),
            "separation_effective": Variable(
                self._by_kind(self.separation_effective, self.effective_count), by_kind,
                "effective number of neurons that tell keys of the kind from other keys", "1", VIG,
            ),
            "rank_correlation": self.roles.result(
                _over(self.effective, self.count), _over(self.overlap, self.pair_count)
            ),
            **self.sources.result(),
        }  # fmt: skip
        coords = {"k": TOP, "contrast": CONTRASTS, "part": PARTS, "part_other": PARTS}
        coords |= {"quantity": QUANTITIES, "target": TARGETS}
        return labelled(variables, coords=coords).assign_attrs(set=SET)

    def _mean(self, total: Sums, count: Sums) -> Estimate:
        """[layer, head, …] from sums [layer, head, …] and counts [layer, head]."""
        return self._estimate(_over(total, count))

    def _by_kind(self, total: Sums, count: Sums) -> Estimate:
        """[layer, head, contrast, …] from sums [layer, contrast, head, …] and counts."""
        return self._estimate(np.moveaxis(_over(total, count), 2, 3))

    def _estimate(self, draws: Float64) -> Estimate:
        """The interval is by the spread of the replicates where only a few were kept."""
        few = len(draws) <= self.scope.replicates
        return (estimate_by_spread if few else estimate)(draws, documents=self.scope.documents)

    def _chance(self) -> float:
        """Expected Jaccard of two random sets; NaN where nothing was seen."""
        seen = self.scope.neurons and self.pair_count.sums[0].any()
        return chance(self.scope.neurons) if seen else float("nan")


def _within(parts: Estimate, least: float, most: float) -> Estimate:
    """The interval cut off where the number itself cannot be."""
    low, high = np.maximum(parts.low, least), np.minimum(parts.high, most)
    return Estimate(parts.value, low, high, parts.draws)


def _over(total: Sums, count: Sums) -> Float64:
    """[replicate, *cell of total] total / count, whose cells are the leading ones of total's."""
    cells = count.sums[: len(total.sums)]
    return ratio(total.sums, cells.reshape(*cells.shape, *[1] * (total.sums.ndim - cells.ndim)))


def _shares(used: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """[example, query, …] weights of the queries used, which add up to 1 where there are any."""
    return used.to(dtype) / used.sum(1, keepdim=True).clamp_min(1)


def _by_token(vectors: torch.Tensor | None) -> torch.Tensor:
    """[example, token, head, neuron] in float32 or wider, from [example, head, token, neuron]."""
    assert vectors is not None
    return vectors.transpose(1, 2).to(torch.promote_types(vectors.dtype, torch.float32))


def _picked(keys: torch.Tensor, top: torch.Tensor) -> torch.Tensor:
    """[example, query, head, neuron] of keys [example, key, head, neuron] the one at top."""
    row = torch.arange(len(keys), device=keys.device)[:, None, None]
    return keys[row, top, torch.arange(keys.shape[2], device=keys.device)]
