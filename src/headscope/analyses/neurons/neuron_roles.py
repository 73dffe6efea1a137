"""Do heads that attend to [SEP] use few, fixed neurons, and next-word heads many, changing ones?

So Vig (2019) saw it in single heads. Over all heads of a model: the rank correlation of how many
neurons a head uses, and of how far they stay the same, with the share of its attention that goes to
separators, to the next and to the previous token.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from headscope.core.accumulators import Float64, estimate, ratio
from headscope.core.labelled import Variable
from headscope.model.batch import Batch, to_float64
from headscope.model.layer import LayerView
from headscope.run.analysis import AnalysisPart, Scope

TARGETS = ("sep", "next", "previous")
QUANTITIES = ("effective", "position_overlap")
LEAST_HEADS = 4  # of fewer, ranks say nothing


class Roles(AnalysisPart):
    """Attention of every head to TARGETS, as `surface` has it, to be held against its neurons."""

    def __init__(self, scope: Scope) -> None:
        self.documents, self.has_sep = scope.documents, "sep" in scope.special_tokens
        self.total = scope.sums(scope.layers, scope.heads, len(TARGETS))
        self.examples = scope.sums()

    def observe(self, layer: LayerView, batch: Batch) -> None:
        """Add each example's mean over queries."""
        real = batch.mask[:, None, 1:]  # [example, 1, later token]
        columns = layer.column_sums(batch).sum(2)  # [example, head, key]
        to = {
            "sep": (columns * batch.is_sep[:, None]).sum(-1),
            "next": (layer.attention.diagonal(1, 2, 3) * real).sum(-1),
            "previous": (layer.attention.diagonal(-1, 2, 3) * real).sum(-1),
        }
        values = np.stack([to_float64(to[name]) for name in TARGETS], -1)  # [example, head, target]
        self.total.add(values / batch.lengths[:, None, None], batch.bootstrap, at=(layer.index,))
        if layer.index == 0:
            self.examples.add(np.ones(len(batch.lengths)), batch.bootstrap)

    def result(self, effective: Float64, overlap: Float64) -> Variable:
        """rank_correlation[quantity, target] of draws [replicate, layer, head]."""
        share = ratio(self.total.sums, self.examples.sums[:, None, None, None])
        if not self.has_sep:
            share[..., TARGETS.index("sep")] = np.nan
        draws = np.full((len(share), len(QUANTITIES), len(TARGETS)), np.nan)
        for replicate, row in enumerate(share):
            for q, quantity in enumerate((effective, overlap)):
                for t in range(len(TARGETS)):
                    draws[replicate, q, t] = _spearman(quantity[replicate], row[..., t])
        return Variable(
            estimate(draws, documents=self.documents), ("quantity", "target"),
            "Spearman's correlation over heads with the share of attention to the target", "1",
            "Vig 2019; the measure is ours",
        )  # fmt: skip


def _spearman(one: Float64, other: Float64) -> float:
    """NaN where fewer than LEAST_HEADS have both, or all have the same."""
    there = np.isfinite(one) & np.isfinite(other)
    if there.sum() < LEAST_HEADS:
        return float("nan")
    a, b = (rankdata(values[there]) for values in (one, other))
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum()) / size if size > 0 else float("nan")
