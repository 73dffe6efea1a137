"""How much of what leaves an attention layer comes from other tokens?

For each token i the layer's output is split into what came from i itself and from all others; the
ratio is ‖others‖ / (‖others‖ + ‖self‖), averaged over all tokens that anything reaches (Kobayashi
et al. 2021, "Incorporating Residual and Normalization Layers into Analysis of Masked Language
Models"). Five methods:

    attn_w       1 - mean over heads of α_ii                (weights alone)
    attn_n       vectors Σ_h α f(x_j)                       (norms)
    attnres_w    half of attn_w                             (the residual is weight 1 to oneself)
    attnres_n    as attn_n, with x_i added to token i's own part
    attnresln_n  as attnres_n, after the LayerNorm's centring and scale γ

By category of token: the share of Σ_i Σ_{j≠i} ‖Σ_h α_ij f_h(x_j)‖ that comes from the tokens j of
the category, over all tokens i; norms are added, so that vectors which cancel count all the same.

The biases b_O and β belong to no token and are left out. Models that normalise before attention
have no attnresln_n; models that change attention before adding it have none with the residual: NaN.

Frequency: Spearman's correlation of a token's frequency rank with its ratio, mean over the layers
that have one, over all occurrences. Ranks of ratios are taken from histograms, as in
`run.rank_histograms`; attnres_w has the ranks of attn_w, of which it is half.
"""

from typing import ClassVar

import numpy as np
import torch
import xarray as xr

from headscope.analyses.mixing import QUESTION
from headscope.claims.head_attention import PLACES
from headscope.core.accumulators import Float64, LogBins, ratio
from headscope.core.intervals import SHARE, estimate
from headscope.core.results import Variable, labelled
from headscope.model import kernels
from headscope.model.batch import CATEGORIES, FIRST, Batch, to_float64
from headscope.model.kernels import compiled
from headscope.model.layer import LayerView
from headscope.run.analysis import Analysis, Scope
from headscope.run.rank_histograms import BINNED, RankHistograms, around

METHODS = ("attn_w", "attn_n", "attnres_w", "attnres_n", "attnresln_n")
RANKED = tuple(method for method in METHODS if method != "attnres_w")
ODDS = LogBins(-7, 10, 64)  # of r / (1 - r): as fine near 0 as near 1
COARSE_ODDS = LogBins(-6, 10, 4)


class Mixing(Analysis, question=QUESTION):
    """Mixing ratio of every layer by five methods, and what it has to do with word frequency."""

    whole_maps: ClassVar[bool] = False

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope)
        self.total, self.count = (self.sums(scope.layers, len(METHODS)) for _ in range(2))
        self.categories = (*CATEGORIES, FIRST) if scope.first_token else CATEGORIES
        self.taken = self.sums(scope.layers, len(self.categories))
        self.by_rank = RankHistograms(scope, len(RANKED), ODDS, COARSE_ODDS)
        # Of the batch at hand, [variant, example, token]: sums over the layers that have a ratio.
        self._ratios: Float64 = np.zeros((0, 0, 0))
        self._layers: Float64 = np.zeros((0, 0, 0))

    def observe(self, layer: LayerView, batch: Batch) -> None:
        """Add the ratios of all real tokens that have one, method by method."""
        ratios = mixing_ratios(layer)
        if layer.index == 0:
            shape = (len(RANKED), *batch.input_ids.shape)
            self._ratios, self._layers = (np.zeros(shape) for _ in range(2))
        values, counts = np.zeros((2, len(batch.lengths), len(METHODS)))
        for method, of_token in ratios.items():
            index = METHODS.index(method)
            counted = batch.mask & ~of_token.isnan()  # 0/0: nothing reaches the token
            values[:, index] = to_float64(of_token.where(counted, 0).sum(-1))
            counts[:, index] = to_float64(counted.sum(-1))
            if method in RANKED and self.scope.frequency_rank is not None:
                ratio_of_token = to_float64(of_token)  # [example, token]
                there = np.isfinite(ratio_of_token)
                self._ratios[RANKED.index(method)] += np.where(there, ratio_of_token, 0)
                self._layers[RANKED.index(method)] += there
        self.total.add(values, batch.groups, at=(layer.index,))
        self.count.add(counts, batch.groups, at=(layer.index,))
        # [example, key] to other tokens
        norms = layer.summed_norm_received(batch) - layer.summed_norm_own(batch)
        of_key = batch.categories_and_first if self.scope.first_token else batch.categories
        in_category = (norms.clamp_min(0)[:, None] @ of_key.to(norms.dtype))[:, 0]
        self.taken.add(to_float64(in_category), batch.groups, at=(layer.index,))

    def finish(self, batch: Batch) -> None:
        """Count every real token that has a ratio under its rank."""
        if self.scope.frequency_rank is None:
            return
        mask = batch.mask.cpu().numpy()
        for index in range(len(RANKED)):
            counted = mask & (self._layers[index] > 0)
            if counted.any():  # else this model does not have the method
                mean = np.where(counted, ratio(self._ratios[index], self._layers[index]), 0)
                odds = np.clip(mean, 0, 1) / np.maximum(1 - mean, 1e-9)
                self.by_rank.add(index, odds, counted, batch)

    def result(self) -> xr.Dataset:
        """ratio[layer, variant] and taken_share[layer, category] in 0 … 1;
        spearman_frequency[variant] in -1 … 1.
        """
        whole = self.taken.sums.sum(-1, keepdims=True)  # [replicate + 1, layer, 1]
        draws = ratio(self.taken.sums, whole)  # [replicate + 1, layer, category]
        special = self.scope.special_tokens
        draws[..., [c in PLACES and c not in special for c in self.categories]] = np.nan
        variables = {
            "ratio": Variable(
                self.mean(self.total, self.count, bounds=SHARE),
                ("layer", "variant"),
                "mixing ratio: share of a token's output that comes from other tokens",
                "1",
                self.source,
            ),
            "taken_share": Variable(
                estimate(draws, bounds=SHARE, sizes=whole),
                ("layer", "category"),
                "share of a category of tokens in the norms ‖Σ_h αf(x)‖ of what tokens take from "
                "others",
                "probability",
                self.source,
            ),
        }
        if self.scope.frequency_rank is not None:
            places = [RANKED.index(m if m in RANKED else "attn_w") for m in METHODS]
            # [variant], [replicate + 1, variant] twice
            fine, coarse, sizes = (part[..., places] for part in self.by_rank.correlations())
            if not self.by_rank.counts.counts[RANKED.index("attnres_n")].any():  # no residual
                fine[METHODS.index("attnres_w")] = np.nan
            variables["spearman_frequency"] = Variable(
                around(fine, coarse, sizes, agreement=self.by_rank.agreement()),
                ("variant",),
                "Spearman correlation of a token's mixing ratio, mean over layers, with its "
                f"frequency rank (1 = most frequent), {BINNED}",
                "1",
                self.source,
            )
        return labelled(variables, coords={"variant": METHODS, "category": self.categories})


def mixing_ratios(layer: LayerView) -> dict[str, torch.Tensor]:
    """The ratio of every token by each method that this model has: {method: [example, query]}."""
    own_weight = layer.neighbour(0)  # [example, head, query]
    far, near, kept, far_normed, kept_normed = _part_norms(layer, layer.own)
    by_weight = (1 - own_weight.mean(1)).clamp_min(0)
    ratios = {"attn_w": by_weight, "attn_n": far / (far + near)}
    if layer.residual is not None:
        ratios |= {"attnres_w": by_weight / 2, "attnres_n": far / (far + kept)}
        if layer.site.post_norm is not None:
            # Both parts are divided by the same standard deviation, which the ratio cancels.
            ratios["attnresln_n"] = far_normed / (far_normed + kept_normed)
    return ratios


def _part_norms(layer: LayerView, own: torch.Tensor) -> torch.Tensor:
    """[5, example, query] ‖others‖, ‖own‖, ‖own + x‖ and the LayerNorm's of the first and third.

    own  [example, query, model]  Σ_h α_ii f_h(x_i) + b_O. Where the model has no residual or no
    LayerNorm here, what depends on it has no meaning.
    """
    assert layer.output is not None
    size = own.shape[-1]
    output = layer.output.to(own.dtype)
    zeros, ones = own.new_zeros(size), own.new_ones(size)
    bias = zeros if layer.projection.bias is None else layer.projection.bias.to(own.dtype)
    residual = own if layer.residual is None else layer.residual.to(own.dtype)
    norm = layer.site.post_norm
    scale = ones if norm is None else norm.scale.to(own.dtype)
    if compiled(own):
        rows = [t.reshape(-1, size).numpy() for t in (own, output, residual)]
        out = np.empty((5, len(rows[0])), np.float32)
        kernels.part_norms(rows[0], rows[1], bias.numpy(), rows[2], scale.numpy(), out)
        return torch.from_numpy(out).view(5, *own.shape[:2])
    others, mine = output - own, own - bias
    parts = [others, mine, mine + residual]
    centred = [(p - p.mean(-1, keepdim=True)) * scale for p in (parts[0], parts[2])]
    return torch.stack([torch.linalg.vector_norm(p, dim=-1) for p in (*parts, *centred)])
