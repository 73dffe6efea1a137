"""What does a head really gather, once the length of the vectors counts?

Beside each attention weight α_ij stands ‖f(x_j)‖, the norm of the vector it scales, and their
product ‖α_ij f(x_j)‖ (Kobayashi et al. 2020). Per category of key: mean over queries of the sum
over the keys of the category (attention, weighted norm) or mean over those keys (value norm); then
over examples. An example without the category counts 0 for what it receives and is left out of the
mean value norm. Where no special token opens the inputs of a decoder, the first token is a category
of its own. Spread of ‖f‖, cancellation and word frequency: see `measure_relations`.

The largest and smallest ‖f‖ of a head have no interval: without some documents they can only be
missed, never exceeded.
"""

from functools import partial
from typing import ClassVar

import numpy as np
import torch
import xarray as xr

from headscope.analyses.norms import QUESTION
from headscope.analyses.norms.measure_relations import Cancellation, FrequencyRelation
from headscope.core.accumulators import Float64, Largest, Sums, ratio
from headscope.core.intervals import POSITIVE, SHARE, Estimate, estimate
from headscope.core.results import Variable, labelled
from headscope.model.batch import CATEGORIES, FIRST, Batch, to_float64
from headscope.model.layer import LayerView
from headscope.run.analysis import Analysis, Scope, ratio_of, sizes_of

EVERY = 8  # ours: one of this number of queries is read, for cancellation


class Norms(Analysis, question=QUESTION):
    """Weights, vector norms and their products, by category of key.

    layer_norms   whether ‖Σ_h α f_h‖, the norm over all heads together, is computed too
    cancellation  "sampled": weight against norm over one of `every` queries; "all": over all of
                  them. Ranks are of bins either way, and the correlation within 1e-3
    """

    whole_maps: ClassVar[bool] = False

    def __init__(
        self,
        scope: Scope,
        *,
        layer_norms: bool = True,
        cancellation: str = "sampled",
        every: int = EVERY,
    ) -> None:
        super().__init__(scope)
        self.checked(every=every, cancellation=cancellation)
        self.categories = (*CATEGORIES, FIRST) if scope.first_token else CATEGORIES
        cells = (scope.layers, scope.heads, len(self.categories))
        self.attention, self.value_norm, self.weighted_norm = (self.sums(*cells) for _ in range(3))
        self.layer_weighted_norm = self.sums(scope.layers, len(self.categories))
        self.examples = self.sums()
        self.examples_with = self.sums(len(self.categories))
        self.powers = self.sums(scope.layers, scope.heads, 2)  # Σ ‖f‖ and Σ ‖f‖² over tokens
        self.tokens = self.sums()
        # Of ‖f‖, and of -‖f‖: the smallest ‖f‖.
        self.largest, self.negative = (Largest.empty(scope.layers, scope.heads) for _ in range(2))
        self.layer_norms = layer_norms and not scope.control
        self.pairs = not scope.control  # claims about all heads together have no control
        if self.pairs:
            self.cancellation = Cancellation(scope, every=every if cancellation == "sampled" else 1)
            self.frequency = FrequencyRelation(scope)

    def observe(self, layer: LayerView, batch: Batch) -> None:
        """Add each example's category averages for one layer."""
        at, groups, n = (layer.index,), batch.groups, batch.lengths[:, None]
        columns = layer.column_sums(batch).sum(2)  # [example, head, key]
        of_key = batch.categories_and_first if self.scope.first_token else batch.categories
        if self.layer_norms:  # first: it has the value norms as a by-product
            summed = layer.summed_norm_received(batch)[:, None]  # [example, 1, key]
            in_category = (summed @ of_key.to(summed.dtype))[:, 0]
            self.layer_weighted_norm.add(to_float64(in_category) / n, groups, at=at)
        norm = layer.value_norm * batch.mask[:, None]  # [example, head, key]
        categories = of_key.to(norm.dtype)  # [example, key, category]
        self.attention.add(to_float64(columns @ categories) / n[..., None], groups, at=at)
        weighted = to_float64((columns * norm) @ categories) / n[..., None]
        self.weighted_norm.add(weighted, groups, at=at)
        sizes = to_float64(categories.sum(1))  # [example, category]
        mean = to_float64(norm @ categories) / np.maximum(sizes, 1)[:, None]
        self.value_norm.add(mean, groups, at=at)
        powers = [to_float64(norm.sum(-1)), to_float64(norm.double().square().sum(-1))]
        self.powers.add(np.stack(powers, -1), groups, at=at)
        self.largest.add(to_float64(norm.amax((0, 2))), at=at)
        real = norm.masked_fill(~batch.mask[:, None], torch.inf)
        self.negative.add(-to_float64(real.amin((0, 2))), at=at)
        if layer.index == 0:
            self.examples.add(np.ones(len(n)), groups)
            self.examples_with.add((sizes > 0) * 1.0, groups)
            self.tokens.add(batch.lengths * 1.0, groups)
        if self.pairs:
            self.cancellation.observe(layer, norm, batch)
            self.frequency.observe(layer, norm, columns, batch)

    def finish(self, batch: Batch) -> None:
        """Count the batch's tokens by frequency rank."""
        if self.pairs:
            self.cancellation.finish(batch)
            self.frequency.finish(batch)

    def result(self) -> xr.Dataset:
        """Category averages, spread, cancellation and frequency; see the contract in the docs."""
        received, transformed = "mean attention received", "norm of the transformed vector ‖f(x)‖"
        rows = {
            "attention": (self.attention, self.examples, received, "probability"),
            "value_norm": (self.value_norm, self.examples_with, transformed, "1"),
            "weighted_norm": (self.weighted_norm, self.examples, "mean weighted norm ‖αf(x)‖", "1"),
        }
        if self.layer_norms:
            name = "norm ‖Σ_h αf(x)‖ over all heads"
            rows["layer_weighted_norm"] = (self.layer_weighted_norm, self.examples, name, "1")
        variables = {name: self._by_category(*row) for name, row in rows.items()}
        variables |= self._spread()
        if not self.pairs:
            return labelled(variables, coords={"category": self.categories})
        variables |= self.cancellation.result() | self.frequency.result()
        coords = (
            {"category": self.categories} | self.cancellation.coords() | self.frequency.coords()
        )
        return labelled(variables, coords=coords)

    def _by_category(self, total: Sums, count: Sums, name: str, units: str) -> Variable:
        """Means from sums [layer, …, category]; NaN where this tokenizer cannot have one."""
        draws = ratio_of(total, count)  # [replicate + 1, layer, …, category]
        for index, category in enumerate(self.categories):
            if category in ("cls", "sep") and category not in self.scope.special_tokens:
                draws[..., index] = np.nan
        bounds = SHARE if units == "probability" else POSITIVE
        dims = ("layer", "head", "category") if draws.ndim == 4 else ("layer", "category")
        number = estimate(draws, bounds=bounds, sizes=sizes_of(total, count))
        return Variable(number, dims, name, units, self.source)

    def _spread(self) -> dict[str, Variable]:
        moments = ratio_of(self.powers, self.tokens)  # [replicate, layer, head, power]
        mean, sizes = moments[..., 0], sizes_of(self.powers, self.tokens)[..., 0]
        sd = np.sqrt(np.maximum(moments[..., 1] - mean**2, 0))
        positive = partial(estimate, bounds=POSITIVE, sizes=sizes)
        whole = "of ‖f(x)‖ over all tokens"
        rows: dict[str, tuple[Estimate | Float64, str]] = {
            "max": (self.largest.seen, "largest ‖f(x)‖ of any token"),
            "min": (-self.negative.seen, "smallest ‖f(x)‖ of any token"),
            "mean": (positive(mean), f"mean {whole}"),
            "sd": (positive(sd), f"standard deviation {whole}"),
            "cv": (positive(ratio(sd, mean)), f"coefficient of variation {whole}"),
        }
        dims, source = ("layer", "head"), f"{self.source}, Table 1"
        return {
            f"value_norm_{name}": Variable(value, dims, words, "1", source)
            for name, (value, words) in rows.items()
        }
