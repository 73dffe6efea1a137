"""Overlap of neurons between positions, sources of first-layer scores, and heads' targets.

Sets: of every query the SET largest neurons; of every pair of queries of an input the Jaccard
overlap of their sets: 1 if they are the same, `chance` if they have nothing to do with each other.

Sources: the relative score s · q·(k - mean k) is bilinear in query and key, and in the first layer
of a family that adds embeddings both split into PARTS (`families.embeddings`), so it splits exactly
into PARTS × PARTS. The part "bias" of a key is the same for every key and cancels.

Targets: over all heads, the rank correlation of number and overlap of neurons with the share of a
head's attention that goes to separators, to the next and the previous token.
"""

from __future__ import annotations

from math import comb

import numpy as np
import torch

from headscope.analyses.neurons.measure_keys import CONTRASTS, KeysSeen
from headscope.core.accumulators import Float64, ratio
from headscope.core.head_attention import NEIGHBOURS, OFFSETS
from headscope.core.intervals import CORRELATION, estimate, spearman_over_units
from headscope.core.results import Variable
from headscope.errors import ModelError
from headscope.model import kernels
from headscope.model.batch import Batch, to_float64
from headscope.model.families.embeddings import PARTS
from headscope.model.layer import LayerView
from headscope.run.analysis import AnalysisPart, Scope

SET = 8
_WORD = 64  # bits


def important(size: torch.Tensor, largest: torch.Tensor, used: torch.Tensor) -> torch.Tensor:
    """[example, query, head, neuron] bool: at least as large as the SET-th largest, and not 0.

    Equal ones are all in or all out, so that no order of neurons matters.

    size     [example, query, head, neuron] at least 0
    largest  [example, query, head, rank]   the largest of them, falling
    used     [example, query, head] bool    the others have no set
    """
    least = largest[..., :SET][..., -1:]
    return (size >= least) & (size > 0) & used[..., None]


def mean_overlap(sets: torch.Tensor, used: torch.Tensor) -> tuple[Float64, Float64]:
    """Mean overlap over pairs of queries, and 1 where there are pairs, else 0.

    sets     [example, query, head, neuron] bool, used [example, query, head] bool
    returns  [example, head] each
    """
    queries = to_float64(used.sum(1))  # [example, head]
    total = _compiled(sets) if sets.device.type == "cpu" else _by_product(sets)
    pairs = queries * (queries - 1) / 2
    return total / np.maximum(pairs, 1), (pairs > 0).astype(np.float64)


def _compiled(sets: torch.Tensor) -> Float64:
    """[example, head] the sum over pairs of queries."""
    packed = np.packbits(sets.transpose(1, 2).numpy(), axis=-1)  # [example, head, query, byte]
    missing = -packed.shape[-1] % (_WORD // 8)
    whole = np.pad(packed, [(0, 0)] * 3 + [(0, missing)])
    out = np.zeros(whole.shape[:2])
    kernels.overlaps(np.ascontiguousarray(whole).view(np.uint64), out)
    return out


def _by_product(sets: torch.Tensor) -> Float64:
    """The same by a matrix product, on any device."""
    members = sets.transpose(1, 2).float()  # [example, head, query, neuron]
    common = members @ members.transpose(2, 3)  # [example, head, query, query]
    count = members.sum(-1)
    union = (count[..., None] + count[..., None, :] - common).clamp_min_(1)
    each_with_itself = (count > 0).sum(-1)
    return (to_float64(common.div_(union).sum((-2, -1))) - to_float64(each_with_itself)) / 2


def chance(neurons: int) -> float:
    """The expected overlap of two sets drawn at random."""
    size = min(SET, neurons)
    common = np.arange(size + 1)
    ways = [comb(size, both) * comb(neurons - size, size - both) for both in range(size + 1)]
    drawn = np.array([way / comb(neurons, size) for way in ways])  # hypergeometric
    return float((drawn * common / (2 * size - common)).sum())


TOLERANCE = 0.05  # of the length of q: in bfloat16 the embeddings' sum is rounded by about 0.01


class EmbeddingSources(AnalysisPart):
    """Sums of the first layer, by part of the query and part of the key."""

    def __init__(self, scope: Scope) -> None:
        pairs = (len(PARTS), len(PARTS))
        self.attended = scope.sums(scope.heads, *pairs)
        self.separating = scope.sums(len(CONTRASTS), scope.heads, *pairs)
        self.count = scope.sums(len(CONTRASTS))

    def observe(
        self, layer: LayerView, batch: Batch, seen: KeysSeen, top: torch.Tensor, used: torch.Tensor
    ) -> None:
        """Add a batch; nothing where the layer's embeddings are unknown.

        top   [example, query, head]  the key attended to most
        used  [example, query, head]  weights that add up to 1 over the queries used, or to 0
        """
        if layer.index or layer.site.embeddings is None:
            return
        heads = layer.attention.shape[1]
        queries, keys = layer.site.embeddings.queries_and_keys(
            batch.input_ids, batch.segment_ids, heads=heads
        )  # [example, token, part, head, neuron]
        _check_whole(layer, batch, queries)
        queries, keys = queries * layer.scaling, seen.less_mean(keys)
        row = torch.arange(len(top), device=top.device)[:, None, None]
        attended = keys[row, top, :, torch.arange(heads, device=top.device)].transpose(2, 3)
        self.attended.add(_split(used, queries, attended - seen.mean(keys)), batch.groups)
        for at, difference, there in seen.contrasts(keys):
            share = there.to(queries) / there.sum(1, keepdim=True).clamp_min(1)
            share = share[..., None].expand_as(used)
            self.separating.add(_split(share, queries, difference), batch.groups, at=(at,))
            self.count.add(to_float64(there.any(1)), batch.groups, at=(at,))

    def result(self) -> dict[str, Variable]:
        """embedding_share[head, part, part_other], embedding_separation[head, contrast, …]."""
        attended = self.attended.sums  # [replicate + 1, head, part, part_other]
        shares = ratio(attended, attended.sum((-2, -1), keepdims=True))
        apart_by = np.moveaxis(self.separating.sums, 1, -1)  # [replicate + 1, …, contrast]
        split = ratio(apart_by, self.count.sums[:, None, None, None])
        split = split.transpose(0, 1, 4, 2, 3)  # [replicate + 1, head, contrast, …]
        words = "by part of the query's and of the key's first-layer embedding"
        of_share = f"share of the attended key's score above the mean key's, {words}"
        apart = f"difference of scores between keys of the kind and other keys, {words}"
        pair = ("part", "part_other")
        return {
            "embedding_share": Variable(
                estimate(shares), ("head", *pair), of_share, "1", "ours"
            ),
            "embedding_separation": Variable(
                estimate(split), ("head", "contrast", *pair), apart,
                "1", "ours",
            ),
        }  # fmt: skip


def _split(weights: torch.Tensor, queries: torch.Tensor, keys: torch.Tensor) -> Float64:
    """[example, head, part, part_other] float64 Σ over queries and neurons.

    weights        [example, query, head]
    queries, keys  [example, query, part, head, neuron]; keys may have one query for all
    """
    return to_float64(torch.einsum("bqh,bqphd,bqrhd->bhpr", weights.to(queries), queries, keys))


def _check_whole(layer: LayerView, batch: Batch, queries: torch.Tensor) -> None:
    """Raises ModelError unless the parts add up to the queries that were seen."""
    assert layer.queries is not None
    whole = layer.queries.transpose(1, 2)[batch.mask].to(queries)  # [token, head, neuron]
    apart = queries.sum(2)[batch.mask] - whole
    if float(apart.norm()) > TOLERANCE * float(whole.norm()):
        raise ModelError(
            f"the embeddings before {layer.site.path} do not add up to its queries: this model "
            "puts them together in a way that headscope does not know; please report it, and "
            "leave out the analysis neurons"
        )


TARGETS = ("sep", *reversed(NEIGHBOURS))
QUANTITIES = ("effective", "position_overlap")


class TargetCorrelation(AnalysisPart):
    """Attention of every head to TARGETS, as `surface` has it, to be held against its neurons."""

    def __init__(self, scope: Scope) -> None:
        self.has_sep = "sep" in scope.special_tokens
        self.total = scope.sums(scope.layers, scope.heads, len(TARGETS))
        self.examples = scope.sums()

    def observe(self, layer: LayerView, batch: Batch) -> None:
        """Add each example's mean over queries."""
        real = batch.mask[:, None, 1:]  # [example, 1, later token]
        columns = layer.column_sums(batch).sum(2)  # [example, head, key]
        to = {
            "sep": (columns * batch.is_sep[:, None]).sum(-1),
            **{
                name: (layer.attention.diagonal(OFFSETS[name], 2, 3) * real).sum(-1)
                for name in NEIGHBOURS
            },
        }
        values = np.stack([to_float64(to[name]) for name in TARGETS], -1)  # [example, head, target]
        self.total.add(values / batch.lengths[:, None, None], batch.groups, at=(layer.index,))
        if layer.index == 0:
            self.examples.add(np.ones(len(batch.lengths)), batch.groups)

    def result(self, effective: Float64, overlap: Float64) -> Variable:
        """rank_correlation[quantity, target] of numbers [layer, head]; the interval is over heads.

        What is said is of heads in general, so that heads are left out, not documents.
        """
        share = ratio(self.total.total, self.examples.total)  # [layer, head, target]
        if not self.has_sep:
            share[..., TARGETS.index("sep")] = np.nan
        parts = [
            [
                spearman_over_units(quantity.ravel(), share[..., to].ravel())
                for to in range(len(TARGETS))
            ]
            for quantity in (effective, overlap)
        ]
        return Variable(
            estimate(np.moveaxis(np.array(parts), -1, 0), bounds=CORRELATION),
            ("quantity", "target"),
            "Spearman's correlation over heads with the share of attention to the target", "1",
            "Vig 2019; the measure is ours", "heads",
        )  # fmt: skip
