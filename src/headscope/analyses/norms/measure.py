"""What does a head really gather, once the length of the vectors counts?

Beside each attention weight α_ij stands ‖f(x_j)‖, the norm of the vector it scales, and their
product ‖α_ij f(x_j)‖ (Kobayashi et al. 2020). Per category of key: mean over queries of the sum
over the keys of the category (attention, weighted norm) or mean over those keys (value norm); then
over examples. An example without the category counts 0 for what it receives and is left out of the
mean value norm. Spread of ‖f‖, cancellation and word frequency: see `measure_relations`.

The largest and smallest ‖f‖ of a head have no interval: a resample of the documents can only miss
them, never exceed them, so that its percentiles would all lie on one side of the value.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
import xarray as xr

from headscope.analyses.norms.measure_relations import Cancellation, FrequencyRelation
from headscope.core.accumulators import Estimate, Float64, Largest, estimate, ratio
from headscope.core.labelled import Variable, labelled
from headscope.model.batch import CATEGORIES, Batch, to_float64
from headscope.model.layer import LayerView
from headscope.run.analysis import Analysis, Scope, ratio_of

_BY_HEAD = ("layer", "head", "category")


class Norms(Analysis):
    """Weights, vector norms and their products, by category of key.

    layer_norms   whether ‖Σ_h α f_h‖, the norm over all heads together, is computed too
    cancellation  "sampled": weight against norm over `rows` queries of every example; "exact": over
                  all of them
    """

    name: ClassVar[str] = "norms"
    needs: ClassVar[frozenset[str]] = frozenset({"attention", "values", "projection"})
    summary: ClassVar[str] = "vector norms ‖αf(x)‖ beside attention weights"
    source: ClassVar[str] = "Kobayashi et al. 2020"

    def __init__(
        self,
        scope: Scope,
        *,
        layer_norms: bool = True,
        cancellation: str = "sampled",
        rows: int = 4,
    ) -> None:
        super().__init__(scope)
        if cancellation not in ("sampled", "exact"):
            raise ValueError(f"cancellation is {cancellation!r}; wanted 'sampled' or 'exact'")
        cells = (scope.layers, scope.heads, len(CATEGORIES))
        self.attention, self.value_norm, self.weighted_norm = (self.sums(*cells) for _ in range(3))
        self.layer_weighted_norm = self.sums(scope.layers, len(CATEGORIES))
        self.examples = self.sums()
        self.examples_with = self.sums(len(CATEGORIES))
        self.powers = self.sums(scope.layers, scope.heads, 2)  # Σ ‖f‖ and Σ ‖f‖² over tokens
        self.tokens = self.sums()
        self.largest = Largest.empty(scope.layers, scope.heads)
        self.negative = Largest.empty(scope.layers, scope.heads)  # of -‖f‖: the smallest ‖f‖
        self.layer_norms = layer_norms
        self.cancellation = Cancellation(scope, rows=rows if cancellation == "sampled" else None)
        self.frequency = FrequencyRelation(scope)

    def observe(self, layer: LayerView, batch: Batch) -> None:
        """Add each example's category averages for one layer."""
        at, weights, n = (layer.index,), batch.bootstrap, batch.lengths[:, None]
        columns = layer.column_sums(batch).sum(2)  # [example, head, key]
        if self.layer_norms:  # first: it has the value norms as a by-product
            summed = layer.summed_norm_columns(batch)[:, None]  # [example, 1, key]
            in_category = (summed @ batch.categories.to(summed.dtype))[:, 0]
            self.layer_weighted_norm.add(to_float64(in_category) / n, weights, at=at)
        norm = layer.value_norm * batch.mask[:, None]  # [example, head, key]
        categories = batch.categories.to(norm.dtype)  # [example, key, category]
        self.attention.add(to_float64(columns @ categories) / n[..., None], weights, at=at)
        weighted = to_float64((columns * norm) @ categories) / n[..., None]
        self.weighted_norm.add(weighted, weights, at=at)
        sizes = to_float64(categories.sum(1))  # [example, category]
        mean = to_float64(norm @ categories) / np.maximum(sizes, 1)[:, None]
        self.value_norm.add(mean, weights, at=at)
        powers = np.stack(
            [to_float64(norm.sum(-1)), to_float64(norm.double().square().sum(-1))], -1
        )
        self.powers.add(powers, weights, at=at)
        self.largest.add(to_float64(norm.amax((0, 2))), at=at)
        real = norm.masked_fill(~batch.mask[:, None], torch.inf)
        self.negative.add(-to_float64(real.amin((0, 2))), at=at)
        if layer.index == 0:
            self.examples.add(np.ones(len(n)), weights)
            self.examples_with.add((sizes > 0) * 1.0, weights)
            self.tokens.add(batch.lengths * 1.0, weights)
        self.cancellation.observe(layer, norm, batch)
        self.frequency.observe(layer, norm, columns, batch)

    def finish(self, batch: Batch) -> None:
        """Count the batch's tokens by frequency rank."""
        self.cancellation.finish(batch)
        self.frequency.finish(batch)

    def result(self) -> xr.Dataset:
        """Category averages, spread, cancellation and frequency; see the contract in the docs."""
        variables = {
            "attention": self._received(self.attention, "attention received", "probability"),
            "value_norm": Variable(
                self._only_present(ratio_of(self.value_norm, self.examples_with)), _BY_HEAD,
                "norm of the transformed vector ‖f(x)‖", "1", self.source,
            ),
            "weighted_norm": self._received(self.weighted_norm, "weighted norm ‖αf(x)‖", "1"),
        }  # fmt: skip
        if self.layer_norms:
            name = "norm ‖Σ_h αf(x)‖ over all heads"
            draws = ratio_of(self.layer_weighted_norm, self.examples)
            by_layer = self._only_present(draws)
            variables["layer_weighted_norm"] = Variable(
                by_layer, ("layer", "category"), name, "1", self.source
            )
        variables |= self._spread() | self.cancellation.result() | self.frequency.result()
        coords = {"category": CATEGORIES} | self.cancellation.coords() | self.frequency.coords()
        return labelled(variables, coords=coords)

    def _received(self, total: object, name: str, units: str) -> Variable:
        draws = ratio_of(total, self.examples)  # type: ignore[arg-type]
        return Variable(self._only_present(draws), _BY_HEAD, f"mean {name}", units, self.source)

    def _only_present(self, draws: Float64) -> Estimate:
        """NaN for the categories that this tokenizer cannot produce."""
        draws = draws.copy()
        for index, name in enumerate(CATEGORIES):
            if name in ("cls", "sep") and name not in self.scope.special_tokens:
                draws[..., index] = np.nan
        return estimate(draws, documents=self.scope.documents)

    def _spread(self) -> dict[str, Variable]:
        """Mean, population sd, coefficient of variation, largest and smallest ‖f‖ over tokens."""
        moments = ratio_of_tokens(self.powers.sums, self.tokens.sums)
        mean = moments[..., 0]
        sd = np.sqrt(np.maximum(moments[..., 1] - mean**2, 0))
        spread = {"mean": (mean, "mean"), "sd": (sd, "standard deviation")}
        spread["cv"] = (ratio(sd, mean), "coefficient of variation")
        source = "Kobayashi et al. 2020, Table 1"
        ends = {"max": (self.largest.seen, "largest"), "min": (-self.negative.seen, "smallest")}
        extremes = {
            f"value_norm_{key}": Variable(
                values, ("layer", "head"), f"{words} ‖f(x)‖ of any token", "1", source
            )
            for key, (values, words) in ends.items()
        }
        return extremes | {
            f"value_norm_{key}": Variable(
                estimate(draws, documents=self.scope.documents), ("layer", "head"),
                f"{words} of ‖f(x)‖ over all tokens", "1", source,
            )
            for key, (draws, words) in spread.items()
        }  # fmt: skip


def ratio_of_tokens(powers: Float64, tokens: Float64) -> Float64:
    """[replicate, layer, head, power] sums over tokens divided by the number of tokens."""
    return ratio(powers, tokens[:, None, None, None])
