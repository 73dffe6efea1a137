"""Do few neurons of a query and key make the score, and are they the same at every position?

A head's score of a key is Σ_d c_d with c_d = s · q_d · k_d over its neurons d. What makes a query
choose one key is how c differs there from the mean over the keys that it sees:
c' = s · q ⊙ (k* - mean k), with k* the key attended to most. Vig (2019) saw by eye that delimiter
heads use few, fixed neurons and next-word heads many changing ones; here that is measured. Softmax
cap, position bias (T5) and mask belong to no neuron and are left out; where a family rotates its
vectors (RoPE), neurons are those of the rotated ones.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr

from headscope.analyses.neurons import QUESTION
from headscope.analyses.neurons.measure_keys import CONTRASTS, OWN, KeysSeen
from headscope.analyses.neurons.measure_parts import (
    QUANTITIES,
    TARGETS,
    EmbeddingSources,
    TargetCorrelation,
)
from headscope.analyses.neurons.measure_sets import (
    SET,
    OwnSentence,
    chance,
    falling,
    important,
    mean_overlap,
)
from headscope.core.accumulators import Float64, Sums, ratio
from headscope.core.intervals import ANY, POSITIVE, SHARE, Bounds, Estimate, estimate
from headscope.core.results import Variable, labelled
from headscope.errors import HeadscopeError
from headscope.model.batch import Batch, to_float64
from headscope.model.families.embeddings import PARTS
from headscope.model.layer import LayerView
from headscope.run.analysis import Analysis, Scope

TOP = (1, 4, 16)
# One number per neuron of every head: standard errors within 15 % of their value.
NEURON_REPLICATES = 24
VIG = "Vig 2019; the measure is ours"


class Neurons(Analysis, question=QUESTION):
    """Effective number, share, overlap and names of the neurons that make the attended key's score.

    Means over an example's queries, then over examples. A query that sees one key only has nothing
    to choose and is left out, as is one whose c' is 0 throughout.
    """

    costly: ClassVar[bool] = True

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope)
        heads, kinds = (scope.layers, scope.heads), (scope.layers, len(CONTRASTS))
        few, each = NEURON_REPLICATES, (scope.heads, scope.neurons)
        self.count, self.pair_count, self.effective, self.overlap, self.score = (
            self.sums(*heads) for _ in range(5)
        )
        self.top_share = self.sums(*heads, len(TOP))
        self.importance = self.sums(scope.layers, *each, replicates=few)
        self.separation = self.sums(*kinds, *each, replicates=few)
        self.separation_score, self.separation_effective, self.effective_count = (
            self.sums(*kinds, scope.heads) for _ in range(3)
        )
        self.separation_count = self.sums(*kinds)
        self.sources, self.roles = EmbeddingSources(scope), TargetCorrelation(scope)
        self.own = OwnSentence(scope)

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
        if not self.scope.control:
            self.sources.observe(layer, batch, seen, top, used)
        self.roles.observe(layer, batch)
        self.own.attends(layer, batch)

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
        largest = falling(size, max(TOP))
        running = largest.cumsum(-1) / safe[..., None]
        tops = torch.stack([running[..., min(k, running.shape[-1]) - 1] for k in TOP], -1)
        effective = whole.square() / torch.where(used, size.square().sum(-1), 1)
        at, groups = (layer,), batch.groups
        self.count.add(to_float64(used.any(1)), groups, at=at)
        self.effective.add(to_float64((effective * share).sum(1)), groups, at=at)
        self.score.add(to_float64((relative.sum(-1) * share).sum(1)), groups, at=at)
        self.top_share.add(to_float64((tops * share[..., None]).sum(1)), groups, at=at)
        each = torch.einsum("bqh,bqhd->bhd", share / safe, size)
        self.importance.add(to_float64(each), groups, at=at)
        overlap, pairs = mean_overlap(important(size, largest, used), used)
        self.overlap.add(overlap, groups, at=at)
        self.pair_count.add(pairs, groups, at=at)
        return share

    def _separated(
        self, at: tuple[int, int], each: torch.Tensor, there: torch.Tensor, batch: Batch
    ) -> None:
        """Add what tells keys of a kind from the others.

        each   [example, query, head, neuron] mean contribution of the kind less that of the rest
        there  [example, query] bool
        """
        groups = batch.groups
        mean = torch.einsum("bq,bqhd->bhd", _shares(there, each.dtype), each)
        self.separation.add(to_float64(mean), groups, at=at)
        self.separation_score.add(to_float64(mean).sum(-1), groups, at=at)
        self.separation_count.add(to_float64(there.any(1)), groups, at=at)
        whole, square = each.abs().sum(-1), each.square().sum(-1)
        used = there[..., None] & (whole > 0)  # [example, query, head]
        effective = whole.square() / torch.where(used, square, 1)
        effective = (effective * _shares(used, each.dtype)).sum(1)  # [example, head]
        self.separation_effective.add(to_float64(effective), groups, at=at)
        self.effective_count.add(to_float64(used.any(1)), groups, at=at)
        if CONTRASTS[at[1]] == OWN:
            self.own.tells_apart(at[0], each.abs(), used, batch)

    def _rows(self) -> dict[str, tuple[Any, Sequence[str], str, str]]:
        """name → its value, dimensions, what it is, its source."""
        heads, relative = ("layer", "head"), "the attended key's score above the mean key's"
        by_kind, kinds = (*heads, "contrast"), "between keys of the kind and other keys"
        seen = self.scope.neurons and self.pair_count.total.any()
        return {
            "effective": (
                _mean(self.effective, self.count, bounds=POSITIVE),
                heads,
                f"effective number of neurons that make {relative}",
                VIG,
            ),
            "top_share": (
                _mean(self.top_share, self.count, bounds=SHARE),
                (*heads, "k"),
                f"share of the k largest neurons in {relative}",
                VIG,
            ),
            "position_overlap": (
                _mean(self.overlap, self.pair_count, bounds=SHARE),
                heads,
                f"overlap of the top {SET} neurons between two positions (Jaccard)",
                VIG,
            ),
            "chance_overlap": (
                chance(self.scope.neurons) if seen else np.nan,
                (),
                f"overlap of two random sets of {SET} neurons",
                "ours",
            ),
            "neuron_importance": (
                _mean(self.importance, self.count, bounds=SHARE),
                (*heads, "neuron"),
                f"mean share of each neuron in {relative}",
                VIG,
            ),
            "relative_score": (_mean(self.score, self.count), heads, relative, "ours"),
            "separation": (
                self._by_kind(self.separation, self.separation_count),
                (*by_kind, "neuron"),
                f"difference of a neuron's contribution {kinds}",
                VIG,
            ),
            "separation_score": (
                self._by_kind(self.separation_score, self.separation_count),
                by_kind,
                f"difference of scores {kinds}",
                "ours",
            ),
            "separation_effective": (
                self._by_kind(self.separation_effective, self.effective_count, bounds=POSITIVE),
                by_kind,
                "effective number of neurons that tell keys of the kind from other keys",
                VIG,
            ),
        }

    def result(self) -> xr.Dataset:
        """See the variables' long names; contrasts are CONTRASTS, parts those of embeddings."""
        rows = self._rows()
        variables = {
            name: Variable(value, dims, text, "1", source)
            for name, (value, dims, text, source) in rows.items()
        }
        own, shown = CONTRASTS.index(OWN), self.separation_effective
        telling = ratio(shown.sums, _beside(shown, self.effective_count))[0, :, own]
        bag, same = (draws[0] for draws in self.own.draws())
        variables |= self.own.result()
        both = tuple(rows[name][0].value for name in ("effective", "position_overlap"))
        variables |= {"rank_correlation": self.roles.result(both, bag, (telling, same))}
        if not self.scope.control:
            variables |= self.sources.result()
        coords = {"k": TOP, "contrast": CONTRASTS, "part": PARTS, "part_other": PARTS}
        coords |= {"quantity": QUANTITIES, "target": TARGETS}
        return labelled(variables, coords=coords).assign_attrs(set=SET)

    def _by_kind(self, total: Sums, count: Sums, *, bounds: Bounds = ANY) -> Estimate:
        """[layer, head, contrast, …] from sums [layer, contrast, head, …] and counts."""
        sizes = _beside(total, count)
        draws, sizes = (np.moveaxis(x, 2, 3) for x in (ratio(total.sums, sizes), sizes))
        return estimate(draws, bounds=bounds, sizes=sizes)


def _mean(total: Sums, count: Sums, *, bounds: Bounds = ANY) -> Estimate:
    """[*cell of total] total / count, where count has the leading cells of total."""
    sizes = _beside(total, count)
    return estimate(ratio(total.sums, sizes), bounds=bounds, sizes=sizes)


def _beside(total: Sums, count: Sums) -> Float64:
    """[replicate + 1, *cell of count, 1, …] the counts, with as many axes as draws of `total`."""
    sizes = count.folded(len(total.by_group)).sums
    return sizes.reshape(*sizes.shape, *[1] * (total.by_group.ndim - sizes.ndim))


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
