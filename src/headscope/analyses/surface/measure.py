"""How much does each head attend to itself, its neighbours and special tokens?

Per example the mean over all its queries, special tokens included; then the mean over examples
(Clark et al. 2019, §3.1-3.2). Two departures from the authors' code: attention from and to
separators is divided by how many separators there are, not by 2; and `first`, the first position,
is ours, for models without [CLS]. What their first token leaves of the attention, and where that
goes, is summed over queries and examples, the share taken last. Own and other sentence, and
identical words: `measure_segments`.
"""

from typing import ClassVar

import numpy as np
import torch
import xarray as xr
from torch import nn

from headscope.analyses.surface import NO_TOKEN, QUESTION
from headscope.analyses.surface.claims import REST
from headscope.analyses.surface.measure_segments import SegmentShares
from headscope.analyses.surface.query_bands import BY_PLACE, GOALS, WEIGHT
from headscope.claims import head_attention
from headscope.claims.head_attention import OFFSETS, PREVIOUS, SELF, WORD_KINDS
from headscope.claims.length_bands import LAST_TOKENS, NAMES
from headscope.claims.terms import OURS
from headscope.core.accumulators import ratio
from headscope.core.intervals import SHARE
from headscope.core.results import Variable, labelled
from headscope.model.batch import Batch, to_float64
from headscope.model.layer import LayerView
from headscope.run.analysis import Analysis, Scope
from headscope.run.band_sums import GROUPS

TARGETS = (*head_attention.TARGETS, "sep_from_sep", "sep_from_other")


class Surface(Analysis, question=QUESTION):
    """Mean attention to each target, for every layer and head.

    edge_tokens  "count": the first token has no previous one, yet counts as a query (Clark);
                 "leave_out": the mean is over queries that have such a neighbour
    """

    whole_maps: ClassVar[bool] = False

    def __init__(self, scope: Scope, *, edge_tokens: str = "count") -> None:
        super().__init__(scope)
        self.checked(edge_tokens=edge_tokens)
        self.leave_out = edge_tokens == "leave_out"
        self.targets = (*TARGETS, NO_TOKEN) if scope.sinks else TARGETS
        self.total = self.sums(scope.layers, scope.heads, len(self.targets))
        self.count = self.sums(len(self.targets))
        self.segments = SegmentShares(scope)
        self.bands = not scope.control  # of the place of the query
        if self.bands:
            goals = (scope.layers, scope.heads, len(GOALS))
            self.by_place = self.sums(*goals, len(NAMES), replicates=GROUPS)
            self.placed = self.sums(len(NAMES), replicates=GROUPS)
        if scope.first_token:  # per example, of a query: what goes to REST; what there is to go
            cells = (scope.layers, scope.heads, len(REST))
            self.rest, self.left = (self.sums(*cells) for _ in range(2))

    def observe(self, layer: LayerView, batch: Batch) -> None:
        """Add each example's mean attention to every target."""
        n = batch.lengths[:, None].astype(np.float64)  # [example, 1]
        separators = to_float64(batch.is_sep.sum(-1))[:, None]
        columns = layer.column_sums(batch)  # [example, head, class, key]
        categories = batch.categories[:, None].to(columns.dtype)
        received = to_float64(columns @ categories)  # [example, head, class, category]
        both = received.sum(2)  # [example, head, category]
        first = to_float64(columns[..., 0].sum(-1))
        beside = {name: _neighbour(layer, batch, k) for name, k in OFFSETS.items()}
        means = {name: to_float64(diagonal.sum(-1)) for name, diagonal in beside.items()}
        per_query = {
            **means,
            "first": first,
            "cls": both[..., 0],
            "sep": both[..., 1],
            "punctuation": both[..., 2],
        }
        if NO_TOKEN in self.targets:
            per_query[NO_TOKEN] = to_float64((layer.rest * batch.mask[:, None]).sum(-1))
        queries = dict.fromkeys(per_query, n)
        if self.leave_out:
            queries |= {name: np.maximum(n - abs(k), 0) for name, k in OFFSETS.items()}
        per_query |= {"sep_from_sep": received[:, :, 1, 1], "sep_from_other": received[:, :, 0, 1]}
        queries |= {"sep_from_sep": separators, "sep_from_other": n - separators}
        values = np.stack([ratio(per_query[t], queries[t], absent=0) for t in self.targets], -1)
        self.total.add(values, batch.groups, at=(layer.index,))
        if layer.index == 0:
            counted = np.stack([(queries[t] > 0)[:, 0] for t in self.targets], -1)
            self.count.add(counted * 1.0, batch.groups)
        self.segments.observe(layer, batch)
        if self.bands:
            self._by_place(layer, batch, beside)
        if self.scope.first_token:
            two = torch.arange(2, device=batch.mask.device).expand(len(n), -1)
            opening = to_float64(layer.rows(two)[..., 0] * batch.mask[:, None, :2])
            mark = to_float64(batch.is_punctuation[:, :1])  # [example, 1]
            to = {
                SELF: means[SELF] - opening[..., 0],
                PREVIOUS: means[PREVIOUS] - opening[..., 1:].sum(-1),
                "punctuation": both[..., 2] - mark * first,
            }
            left = n - per_query.get(NO_TOKEN, 0) - first
            self.rest.add(np.stack([to[t] / n for t in REST], -1), batch.groups, at=(layer.index,))
            every = np.repeat((left / n)[..., None], len(REST), -1)
            self.left.add(every, batch.groups, at=(layer.index,))

    def _by_place(self, layer: LayerView, batch: Batch, beside: dict[str, torch.Tensor]) -> None:
        """Add what the queries of each band of places give, each 1/n of its input of n tokens."""
        mask, tokens = batch.mask, layer.shape[2]
        example, query = mask.nonzero(as_tuple=True)
        first = layer.pairs(example, query, torch.zeros_like(query))  # [pair, head]
        to_first = first.new_zeros(len(mask), tokens, layer.shape[1])
        to_first[example, query] = first
        missing = [tokens - beside[name].shape[-1] for name in OFFSETS]
        shares = [  # of each goal [example, head, query]
            nn.functional.pad(beside[name], (lack, 0) if k < 0 else (0, lack))
            for (name, k), lack in zip(OFFSETS.items(), missing, strict=True)
        ]
        shares.append(to_first.transpose(1, 2))
        ends = torch.tensor(LAST_TOKENS, device=mask.device)
        band = torch.bucketize(torch.arange(1, tokens + 1, device=mask.device), ends)
        of_band = nn.functional.one_hot(band, len(NAMES)).to(first)  # [query, band]
        sums = to_float64(torch.stack(shares, 2) @ of_band)  # [example, head, goal, band]
        n = batch.lengths[:, None].astype(np.float64)  # [example, 1]
        self.by_place.add(sums / n[..., None, None], batch.groups, at=(layer.index,))
        if layer.index == 0:
            self.placed.add(to_float64(mask.to(first) @ of_band) / n, batch.groups)

    def result(self) -> xr.Dataset:
        """attention[layer, head, target]; NaN for tokens that the tokenizer does not have.

        And what `SegmentShares` gives; NaN where no input has two segments. And of the queries of
        each band of places, attention_by_place[layer, head, goal, query_band]: its mean over bands,
        weighted by query_weight[query_band], is the attention of all.
        """
        mean = self.mean(self.total, self.count, bounds=SHARE)
        for index, target in enumerate(self.targets):
            token = target.partition("_")[0]
            if token in ("cls", "sep") and token not in self.scope.special_tokens:
                for array in (mean.value, mean.low, mean.high):
                    array[..., index] = np.nan
        variable = Variable(
            mean,
            ("layer", "head", "target"),
            "mean attention to the target",
            "probability",
            self.source,
        )
        coords = {"target": self.targets, "word_kind": WORD_KINDS}
        variables = {"attention": variable, **self.segments.result()}
        if self.bands:
            coords |= {"goal": GOALS, "query_band": NAMES}
            variables[BY_PLACE] = Variable(
                self.mean(self.by_place, self.placed, bounds=SHARE),
                ("layer", "head", "goal", "query_band"),
                "mean attention to the goal, of queries at these places from the start",
                "probability",
                OURS,
                tidy=False,
            )
            variables[WEIGHT] = Variable(
                ratio(self.placed.total, np.asarray(self.placed.total.sum())),
                ("query_band",),
                "share of queries at these places, mean over inputs",
                "1",
                OURS,
                tidy=False,
            )
        if self.scope.first_token:
            coords["rest_target"] = REST
            variables["rest_attention"] = Variable(
                self.mean(self.rest, self.left, bounds=SHARE),
                ("layer", "head", "rest_target"),
                "share of the attention that the first token leaves",
                "probability",
                OURS,
            )
        return labelled(variables, coords=coords)


def _neighbour(layer: LayerView, batch: Batch, offset: int) -> torch.Tensor:
    """[example, head, query] attention to the token `offset` positions on, of real queries."""
    diagonal = layer.neighbour(offset)  # [example, head, query]
    tokens = layer.shape[-1]
    key_is_real = batch.mask[:, max(offset, 0) : tokens + min(offset, 0)]
    query_is_real = batch.mask[:, max(-offset, 0) : tokens - max(offset, 0)]
    return diagonal * (key_is_real & query_is_real)[:, None]
