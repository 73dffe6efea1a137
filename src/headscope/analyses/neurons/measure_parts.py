"""Sources of first-layer scores, and heads' targets.

Sources: the relative score s · q·(k - mean k) is bilinear in query and key, and in the first layer
of a family that adds embeddings both split into PARTS (`families.embeddings`), so it splits exactly
into PARTS × PARTS. The part "bias" of a key is the same for every key and cancels.

Targets: over all heads, the rank correlation of number and overlap of neurons with the share of a
head's attention that goes to separators, to the next and the previous token. Where a head spreads
over the own sentence no single key is meant: `own_segment` compares how far it is a bag of words
with the neurons that tell words of the own sentence from those of the other.
"""

import numpy as np
import torch

from headscope.analyses.neurons.measure_keys import CONTRASTS, OWN, KeysSeen
from headscope.claims.head_attention import NEIGHBOURS, OFFSETS
from headscope.core.accumulators import Float64, ratio
from headscope.core.intervals import estimate, estimate_correlation, spearman_over_units
from headscope.core.results import Variable
from headscope.errors import ModelError
from headscope.model.batch import Batch, to_float64
from headscope.model.families.embeddings import PARTS
from headscope.model.layer import LayerView
from headscope.run.analysis import AnalysisPart, Scope

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
            "embedding_share": Variable(estimate(shares), ("head", *pair), of_share, "1", "ours"),
            "embedding_separation": Variable(
                estimate(split),
                ("head", "contrast", *pair),
                apart,
                "1",
                "ours",
            ),
        }


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
            "combines them in an unknown way; please report it, and leave out the analysis neurons"
        )


ATTENDED = ("sep", *reversed(NEIGHBOURS))
TARGETS = (*ATTENDED, OWN)
Each = tuple[Float64, Float64]  # [layer, head] of QUANTITIES
QUANTITIES = ("effective", "position_overlap")


class TargetCorrelation(AnalysisPart):
    """Attention of every head to ATTENDED, as `surface` has it, to be compared with its neurons."""

    def __init__(self, scope: Scope) -> None:
        self.has_sep = "sep" in scope.special_tokens
        self.total = scope.sums(scope.layers, scope.heads, len(ATTENDED))
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
        each = [to_float64(to[name]) for name in ATTENDED]
        values = np.stack(each, -1)  # [example, head, target]
        self.total.add(values / batch.lengths[:, None, None], batch.groups, at=(layer.index,))
        if layer.index == 0:
            self.examples.add(np.ones(len(batch.lengths)), batch.groups)

    def result(self, of_attended: Each, bag: Float64, of_own: Each) -> Variable:
        """rank_correlation[quantity, target]; the interval is over heads.

        of_attended  of the neurons that make the attended key's score
        bag          [layer, head] how far a head is a bag of words, and `of_own` of its neurons

        What is said is of heads in general, so that heads are left out, not documents.
        """
        share = ratio(self.total.total, self.examples.total)  # [layer, head, target]
        if not self.has_sep:
            share[..., ATTENDED.index("sep")] = np.nan
        held = [(of_attended, share[..., to]) for to in range(len(ATTENDED))] + [(of_own, bag)]
        parts = [
            [spearman_over_units(numbers[at].ravel(), goal.ravel()) for numbers, goal in held]
            for at in range(len(QUANTITIES))
        ]
        return Variable(
            estimate_correlation(np.moveaxis(np.array(parts), -1, 0)),
            ("quantity", "target"),
            "Spearman's correlation over heads with the share of attention to the target",
            "1",
            "Vig 2019; the measure is ours",
            "heads",
        )
