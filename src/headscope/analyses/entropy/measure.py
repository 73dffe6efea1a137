"""How widely does each head spread its attention?

Shannon entropy of each query's attention in nats, mean over an example's queries, then over
examples; beside it that of the first row alone ([CLS] in BERT) (Clark et al. 2019, §3.3). The
authors smooth p to 0.9999·p + 0.0001/n first; `smoothing=1e-4` does the same.
"""

import numpy as np
import xarray as xr
from scipy.special import gammaln

from headscope.analyses.entropy import QUESTION
from headscope.core.accumulators import Float64
from headscope.core.intervals import POSITIVE, SHARE
from headscope.core.results import Variable, labelled
from headscope.model.batch import Batch, to_float64
from headscope.model.layer import LayerView
from headscope.run.analysis import Analysis, Scope

QUERIES = ("all", "cls")


class Entropy(Analysis, question=QUESTION):
    """Mean entropy of attention over all queries and of the first query.

    smoothing  share of uniform attention mixed in before the entropy is taken, 0 ≤ s < 1
    """

    def __init__(self, scope: Scope, *, smoothing: float = 0.0) -> None:
        super().__init__(scope)
        self.checked(smoothing=smoothing)
        self.smoothing = smoothing
        self.total = self.sums(scope.layers, scope.heads, len(QUERIES))
        self.uniform = self.sums()
        self.count = self.sums()

    def observe(self, layer: LayerView, batch: Batch) -> None:
        """Add each example's mean entropy and that of its first row."""
        nats = layer.entropy(batch, smoothing=self.smoothing)  # [example, head, query]
        values = np.stack([batch.mean_over_queries(nats), to_float64(nats[..., 0])], -1)
        self.total.add(values, batch.groups, at=(layer.index,))
        if layer.index == 0:
            self.uniform.add(_uniform(batch, causal=layer.stack == "decoder"), batch.groups)
            self.count.add(np.ones(len(batch.lengths)), batch.groups)

    def result(self) -> xr.Dataset:
        """entropy, relative_entropy[layer, head, query] (cls: NaN without [CLS]); uniform."""
        mean = self.mean(self.total, self.count, bounds=POSITIVE)
        uniform = self.mean(self.uniform, self.count, bounds=POSITIVE)
        of_even = self.mean(self.total, self.uniform, bounds=SHARE)
        if "cls" not in self.scope.special_tokens:  # the first row is a word like any other
            for parts in (mean, of_even):
                for array in (parts.value, parts.low, parts.high):
                    array[..., QUERIES.index("cls")] = np.nan
        words = ("mean entropy of attention", "nats", self.source)
        of_uniform = ("mean entropy of uniform attention", "nats", self.source)
        variables = {
            "entropy": Variable(mean, ("layer", "head", "query"), *words),
            "relative_entropy": Variable(
                of_even,
                ("layer", "head", "query"),
                "mean entropy over that of uniform attention",
                "1",
                "ours",
            ),
            "uniform": Variable(uniform, (), *of_uniform),
        }
        return labelled(variables, coords={"query": QUERIES})


def _uniform(batch: Batch, *, causal: bool) -> Float64:
    """[example] mean entropy of uniform attention: ln n, or ln(n!)/n where the future is hidden."""
    n = batch.lengths.astype(np.float64)
    return gammaln(n + 1) / n if causal else np.log(n)
