"""From which input tokens does a token's representation come, layer by layer?

Every method of `flow` gives each layer a matrix of contributions; the product of the
matrices up to a layer (rollout, Abnar & Zuidema 2020) says how much of each token at that layer's
output comes from each token of the input. The tokens of the input are sorted into TARGETS, each
into the first that applies, so that the shares of a token add up to 1.

Mean over the tokens of an example, special ones included, then over examples. A method that a model
does not allow is NaN; see `flow.why_not`.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
import xarray as xr

from headscope.analyses.flow import NEEDS, QUESTION, check_methods, why_not
from headscope.analyses.flow.measure_matrices import layer_matrix
from headscope.claims.head_attention import OFFSETS
from headscope.core.accumulators import Sums, ratio
from headscope.core.intervals import POSITIVE, SHARE, Estimate, estimate
from headscope.core.results import Variable, labelled
from headscope.model.batch import CATEGORIES, Batch, to_float64
from headscope.model.layer import LayerView
from headscope.run.analysis import Analysis, Scope

TARGETS = (*OFFSETS, *CATEGORIES)
DEFAULT = ("rollout", "weighted_norm_residual", "globenc")


class Flow(Analysis, question=QUESTION):
    """Where the representations of a layer's output come from, by several methods.

    methods  names of `flow` with commas between them; value_zeroing runs each layer once
             for every token, and alti takes about as long as the model
    """

    def __init__(self, scope: Scope, *, methods: str = ",".join(DEFAULT)) -> None:
        super().__init__(scope)
        self.methods = check_methods(str(methods).split(","))
        cells = (len(self.methods), scope.layers)
        self.shares, self.cls_share = (self.sums(*cells, len(TARGETS)) for _ in range(2))
        self.effective_tokens, self.examples, self.examples_with_cls = (
            self.sums(*cells) for _ in range(3)
        )
        self._product: dict[str, torch.Tensor] = {}  # of the batch that is being looked at

    @classmethod
    def needs_with(cls, options: Mapping[str, Any]) -> frozenset[str]:
        """Requested methods must be possible; of the default ones, the possible are used."""
        if "methods" not in options:
            return cls.needs
        return cls.needs.union(
            *(NEEDS[method] for method in check_methods(str(options["methods"]).split(",")))
        )

    def observe(self, layer: LayerView, batch: Batch) -> None:
        """Follow the batch through one more layer and add its shares, method by method."""
        if layer.index == 0:
            self._product = {}
        for place, method in enumerate(self.methods):
            before = self._product.pop(method, None)
            if (layer.index and before is None) or why_not(layer, method):
                continue
            matrix = layer_matrix(layer, batch, method)
            # [example, query, key]; the layer before may be on another device
            product = matrix if before is None else matrix @ before.to(matrix.device)
            self._product[method] = product
            self._add(product, batch, at=(place, layer.index))

    def finish(self, batch: Batch) -> None:
        """Let go of the batch."""
        self._product = {}

    def result(self) -> xr.Dataset:
        """share and cls_share[variant, layer, target], effective_tokens[variant, layer]."""
        dims = ("variant", "layer", "target")
        share = "share of a representation that comes from the target"
        of_all = self._shares(self.shares, self.examples)
        of_cls = self._shares(self.cls_share, self.examples_with_cls)
        number = self.mean(self.effective_tokens, self.examples, bounds=POSITIVE)
        variables = {
            "share": Variable(of_all, dims, share, "probability", self.source),
            "cls_share": Variable(
                of_cls,
                dims,
                f"{share}, of the opening special token alone",
                "probability",
                self.source,
            ),
            "effective_tokens": Variable(
                number,
                dims[:2],
                "effective number of input tokens of a representation",
                "tokens",
                "ours",
            ),
        }
        return labelled(variables, coords={"variant": self.methods, "target": TARGETS})

    def _add(self, product: torch.Tensor, batch: Batch, *, at: tuple[int, int]) -> None:
        """Add what one product [example, query, key] says, method and layer being `at`."""
        shares = shares_of(product, batch)  # [example, target, query]
        opening = batch.is_cls & (batch.is_cls.cumsum(-1) == 1)  # [example, query]
        of_cls = (shares * opening[:, None].to(shares.dtype)).sum(-1)  # [example, target]
        number = 1 / product.square().sum(-1)  # [example, query]
        for total, values in (
            (self.shares, batch.mean_over_queries(shares)),
            (self.cls_share, to_float64(of_cls)),
            (self.effective_tokens, batch.mean_over_queries(number)),
            (self.examples, np.ones(len(shares))),
            (self.examples_with_cls, to_float64(opening.any(-1))),
        ):
            total.add(values, batch.groups, at=at)

    def _shares(self, total: Sums, count: Sums) -> Estimate:
        """[variant, layer, target]; NaN for special tokens that the tokenizer does not have."""
        sizes = count.sums[..., None]
        draws = ratio(total.sums, sizes)
        for place, target in enumerate(TARGETS):
            if target in ("cls", "sep") and target not in self.scope.special_tokens:
                draws[..., place] = np.nan
        return estimate(draws, bounds=SHARE, sizes=sizes)


def shares_of(product: torch.Tensor, batch: Batch) -> torch.Tensor:
    """[example, target, query] shares from TARGETS, sum 1; product [example, query, key]."""
    rest, near = product.clone(), []
    for offset in OFFSETS.values():
        band = product.diagonal(offset, dim1=1, dim2=2)  # [example, query that has one]
        near.append(torch.nn.functional.pad(band, (max(-offset, 0), max(offset, 0))))
        rest.diagonal(offset, dim1=1, dim2=2).zero_()
    categories = batch.categories.to(product.dtype)  # [example, key, category]
    others = (rest @ categories).transpose(1, 2)  # [example, category, query]
    return torch.cat([torch.stack(near, 1), others], 1)  # [example, target, query]
