"""How much of a first-layer score comes from words, positions and segments?

The relative score s · q·(k - mean k) is bilinear in query and key, and in the first layer of a
family that adds embeddings both split into PARTS (`families.embeddings`), so it splits exactly into
PARTS × PARTS. The part "bias" of a key is the same for every key and cancels.
"""

from __future__ import annotations

import torch

from headscope.analyses.neurons.keys_seen import CONTRASTS, KeysSeen
from headscope.core.accumulators import Float64, Sums, estimate, ratio
from headscope.core.labelled import Variable
from headscope.errors import ModelError
from headscope.model.batch import Batch, to_float64
from headscope.model.families.embeddings import PARTS
from headscope.model.layer import LayerView
from headscope.run.analysis import AnalysisPart, Scope, ratio_of

TOLERANCE = 0.05  # of the length of q: in bfloat16 the embeddings' sum is rounded by about 0.01
_PAIR = ("part", "part_other")


class Sources(AnalysisPart):
    """Sums of the first layer, by part of the query and part of the key."""

    def __init__(self, scope: Scope) -> None:
        pairs = (len(PARTS), len(PARTS))
        self.documents = scope.documents
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
        self.attended.add(_split(used, queries, attended - seen.mean(keys)), batch.bootstrap)
        for at, difference, there in seen.contrasts(keys):
            share = there.to(queries) / there.sum(1, keepdim=True).clamp_min(1)
            share = share[..., None].expand_as(used)
            self.separating.add(_split(share, queries, difference), batch.bootstrap, at=(at,))
            self.count.add(to_float64(there.any(1)), batch.bootstrap, at=(at,))

    def result(self) -> dict[str, Variable]:
        """embedding_share[head, part, part_other], embedding_separation[head, contrast, …]."""
        whole = Sums(self.attended.sums.sum((-2, -1)))  # [replicate, head]
        shares = ratio(self.attended.sums, whole.sums[..., None, None])
        by_contrast = self.separating.sums.transpose(0, 2, 3, 4, 1)  # [replicate, …, contrast]
        split = ratio_of(Sums(by_contrast), self.count).transpose(0, 1, 4, 2, 3)
        words = "by part of the query's and of the key's first-layer embedding"
        return {
            "embedding_share": Variable(
                estimate(shares, documents=self.documents), ("head", *_PAIR),
                f"share of the attended key's score above the mean key's, {words}", "1", "ours",
            ),
            "embedding_separation": Variable(
                estimate(split, documents=self.documents), ("head", "contrast", *_PAIR),
                f"difference of scores between keys of the kind and other keys, {words}", "1",
                "ours",
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
