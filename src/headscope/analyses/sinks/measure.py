"""In how many inputs is a token a sink: most queries that see it give it much of their attention?

a_k = Σ_{i≥k} α_ik / (T - k), the mean of what the queries that see token k (from 0) give it; above
0.3 it is a sink (Gu et al. 2025). As there a decoder is asked of the first T = 64 tokens of an
input; an encoder, where first tokens also look at those behind, of all. Ours: a token counts that
half of the queries see, as the last ones are seen by few, and an input of 16 tokens or more, as
under uniform attention the first of nine gets more than 0.3. Massive activations: `Massive`.
"""

from typing import ClassVar

import numpy as np
import torch
import xarray as xr

from headscope.analyses.sinks import QUESTION
from headscope.analyses.sinks.measure_massive import Massive
from headscope.core.accumulators import Float64, ratio
from headscope.core.head_attention import PLACES
from headscope.core.intervals import SHARE
from headscope.core.results import Variable, labelled
from headscope.model.batch import CATEGORIES, FIRST, Batch, to_float64
from headscope.model.layer import LayerView
from headscope.run.analysis import Analysis, Scope


class Sinks(Analysis, question=QUESTION):
    """Share of inputs in which a head has a sink, by kind of token; share of heads, by position.

    tokens     of a decoder's input that are looked at
    threshold  of a_k, above which a token is a sink
    least      tokens of an input that counts
    """

    whole_maps: ClassVar[bool] = False

    def __init__(
        self, scope: Scope, *, tokens: int = 64, threshold: float = 0.3, least: int = 16
    ) -> None:
        super().__init__(scope)
        self.checked(tokens=tokens, threshold=threshold, least=least)
        self.tokens, self.threshold, self.least = tokens, threshold, min(least, tokens)
        self.kinds = (*CATEGORIES, FIRST) if scope.first_token else CATEGORIES
        # Of each kind, and of any.
        self.with_sink = self.sums(scope.layers, scope.heads, len(self.kinds) + 1)
        self.inputs = self.sums()
        self.at_position, self.positions = (self.sums(tokens) for _ in range(2))
        self.massive = Massive(scope)

    def observe(self, layer: LayerView, batch: Batch) -> None:
        """Count the sinks of each example."""
        received, counted = self._received(layer, batch)
        counts = np.asarray(counted.any(-1), np.float64)  # [example]
        sink = (received > self.threshold) & counted[:, None]  # [example, head, key]
        keys = sink.shape[-1]
        of_key = batch.categories_and_first if self.scope.first_token else batch.categories
        kinds = to_float64(of_key)[:, :keys]  # [example, key, category]
        has = np.concatenate([sink @ kinds, sink.sum(-1)[..., None]], -1) > 0
        self.with_sink.add(has * 1.0, batch.groups, at=(layer.index,))
        few = min(keys, self.tokens)
        by_position, seen = np.zeros((2, len(counts), self.tokens))
        by_position[:, :few], seen[:, :few] = sink.mean(1)[:, :few], counted[:, :few]
        self.at_position.add(by_position, batch.groups)
        self.positions.add(seen, batch.groups)
        if layer.index == 0:
            self.inputs.add(counts, batch.groups)
        if not self.scope.control:
            self.massive.observe(layer, batch)

    def _received(self, layer: LayerView, batch: Batch) -> tuple[Float64, np.ndarray]:
        """[example, head, key] a_k; [example, key] whether the token counts."""
        n = batch.lengths[:, None]  # [example, 1]
        place = np.arange(layer.shape[3])
        if layer.stack != "decoder":
            total = to_float64(layer.column_sums(batch).sum(2))
            return total / n[..., None], (place < n) & (n >= self.least)
        seen, most = np.minimum(n, self.tokens), min(self.tokens, layer.shape[3])
        place = place[:most]
        if most == layer.shape[3]:
            total = to_float64(layer.column_sums(batch).sum(2))
        else:
            if layer.whole:
                rows = layer.attention[:, :, :most, :most]
            else:
                first = torch.arange(most, device=batch.mask.device).expand(len(n), -1)
                rows = layer.rows(first)[..., :most]
            total = to_float64((rows * batch.mask[:, None, :most, None]).sum(2))
        counted = (2 * place <= seen) & (place < seen) & (n >= self.least)
        return ratio(total, np.maximum(seen - place, 1)[:, None] * 1.0), counted

    def result(self) -> xr.Dataset:
        """sink_share[layer, head], sink_share_of[…, kind], sink_rate[position]; `Massive`’s."""
        share, heads = self.share(self.with_sink, self.inputs), ("layer", "head")
        special = self.scope.special_tokens
        absent = [kind in PLACES and kind not in special for kind in (*self.kinds, "any")]
        for array in (share.value, share.low, share.high):
            array[..., absent] = np.nan
        words = f"above {self.threshold:g} of the attention of those that see it"
        variables = {
            "sink_share": Variable(
                share.map(lambda part: part[..., -1]), heads,
                f"share of inputs in which a token gets {words}", "probability", self.source,
            ),
            "sink_share_of": Variable(
                share.map(lambda part: part[..., :-1]), (*heads, "kind"),
                f"share of inputs in which a token of the kind gets {words}", "probability",
                self.source,
            ),
            "sink_rate": Variable(
                self.mean(self.at_position, self.positions, bounds=SHARE), ("position",),
                f"share of heads in which the token at a position gets {words}", "probability",
                self.source,
            ),
            **self.massive.variables(),
        }  # fmt: skip
        dataset = labelled(variables, coords={"kind": self.kinds})
        return dataset.assign_coords(self.massive.coords())
