"""What are the layer matrices of one example, by several methods at once?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch

from headscope.analyses.flow.matrices import layer_matrix
from headscope.analyses.flow.paths import max_flow, rollout
from headscope.model.batch import Batch, to_float64
from headscope.model.layer import LayerView

Floats = npt.NDArray[np.float64]


@dataclass
class Watch:
    """An observer that keeps the layer matrices of a batch of one example.

    methods  names of METHODS
    batch    the example as it is run
    """

    methods: Sequence[str]
    batch: Batch
    _seen: dict[str, list[torch.Tensor]] = field(default_factory=dict)

    def look(self, layer: LayerView) -> None:
        """Keep one layer; raises ModelError where a method has no meaning for it."""
        for method in self.methods:
            matrix = layer_matrix(layer, self.batch, method)
            self._seen.setdefault(method, []).append(matrix.double())

    def matrices(self, method: str) -> Floats:
        """[layer, query, key] of the example's real tokens; rows sum to 1."""
        return self._cut(self._seen[method])

    def rollout(self, method: str) -> Floats:
        """[layer, query, key] their products from the first layer on."""
        return self._cut(list(rollout(self._seen[method])))

    def max_flow(self, method: str, layers: Sequence[int]) -> Floats:
        """[layer, query, key] the maximum flows to the input from these layers, from 0."""
        matrices = self.matrices(method)
        return np.stack([max_flow(matrices[: layer + 1]) for layer in layers])

    def _cut(self, layers: Sequence[torch.Tensor]) -> Floats:
        n = len(self.batch.examples[0])
        return np.stack([to_float64(layer[0, :n, :n]) for layer in layers])
