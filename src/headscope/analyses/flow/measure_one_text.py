"""From which tokens of one text a model's representations come.

Two ways to put layer matrices together (Abnar & Zuidema 2020). Rollout adds up all paths from an
output to an input token, a path's weight being the product of its steps. Flow asks how much can run
through the layers at once when every step is a pipe as wide as its weight: the maximum flow.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

import numpy as np
import torch
import xarray as xr
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from headscope.analyses.flow import SOURCES, check_methods
from headscope.analyses.flow.measure_matrices import layer_matrix
from headscope.core.accumulators import Float64
from headscope.errors import InputError, ModelError
from headscope.model.batch import Batch, to_float64
from headscope.model.layer import LayerView
from headscope.model.model import Model, load, show_layers
from headscope.run.plan import encoded

PATHS = {
    "product": "share of a representation that comes from an input token",
    "max_flow": "maximum flow from a representation to an input token",
    "none": "contribution of each token to each token's output of one layer",
}


def flow(
    model: Model | str | Path,
    text: str,
    text_pair: str | None = None,
    *,
    method: str = "rollout",
    paths: str = "product",
    layers: Sequence[int] | None = None,
) -> xr.DataArray:
    """How much of each token at the output of each layer comes from each token of the input.

    model      a loaded model, or what `load` takes; of an encoder-decoder, the encoder
    text_pair  the second segment
    method     what a layer's matrix is: "rollout" (mean attention and oneself, half and half),
               "weighted_norm", "weighted_norm_residual", "globenc", "alti", "value_zeroing"; see
               `headscope.analyses.flow.measure_matrices`
    paths      how the layers up to and including one are combined: "product" (rollout), "max_flow"
               (at most 64 tokens), "none" (each layer by itself)
    layers     from 0; None: all, but for max_flow the last
    returns    [layer, query, key], 0 … 1, counted from 0, with the tokens as coordinates
               `query_token` and `key_token`; rows sum to 1, except those of max_flow
    raises     InputError for an unknown method, empty text, too many tokens, layers that are not
               there; ModelError where the method has no meaning for the model
    """
    (method,) = check_methods([method])
    if paths not in PATHS:
        raise InputError(f"paths is {paths!r}; wanted one of {', '.join(PATHS)}")
    loaded = load(model)
    check_stack(loaded, each_alone=paths == "none")
    count = loaded.shape.layers
    usual = range(count - 1 if paths == "max_flow" else 0, count)
    chosen = _checked_layers(usual if layers is None else layers, count)
    example = encoded(loaded, text, text_pair)
    batch = loaded.batch([example])
    layers_seen = LayerMatrices((method,), batch)
    show_layers(loaded, batch, layers_seen.look)
    tokens = list(loaded.tokens(example.input_ids))
    own = loaded.shape.numbers or range(count)
    return xr.DataArray(
        layers_seen.along(paths, method, chosen),
        dims=("layer", "query", "key"),
        coords={
            "layer": [own[at] for at in chosen],
            "query": range(len(tokens)),
            "key": range(len(tokens)),
            "query_token": ("query", tokens),
            "key_token": ("key", tokens),
        },
        name=method,
        attrs={
            "long_name": PATHS[paths],
            "units": "1" if paths == "max_flow" else "probability",
            "source": SOURCES[method],
            "paths": paths,
            "model": loaded.name,
        },
    )


def _checked_layers(layers: Iterable[int], count: int) -> list[int]:
    if wrong := [layer for layer in layers if not 0 <= layer < count]:
        raise InputError(f"found the layer {wrong[0]}; wanted 0 to {count - 1}")
    return list(layers)


def check_stack(model: Model, *, each_alone: bool = False) -> None:
    """Raises ModelError where a model mixes tokens, or gives weight, past its attention maps.

    each_alone  layers are not put together, so that it does not matter what is between them
    """
    shape = model.shape
    if "every_layer" not in shape.allows and not each_alone:
        raise ModelError(
            f"{model.name!r} has {shape.size}: some layers mix tokens without attention, so no "
            "flow can be followed through them; wanted a model that mixes tokens by attention "
            "alone, or paths='none'"
        )
    if shape.sinks:
        raise ModelError(
            f"{model.name!r} has a learned sink, so rows of attention do not sum to 1 and shares "
            "mean nothing; wanted a model without sinks"
        )


@dataclass
class LayerMatrices:
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

    def matrices(self, method: str) -> Float64:
        """[layer, query, key] of the example's real tokens; rows sum to 1."""
        return self._cut(self._seen[method])

    def rollout(self, method: str) -> Float64:
        """[layer, query, key] their products from the first layer on."""
        return self._cut(list(rollout(self._seen[method])))

    def max_flow(self, method: str, layers: Sequence[int]) -> Float64:
        """[layer, query, key] the maximum flows to the input from these layers, from 0."""
        matrices = self.matrices(method)
        return np.stack([max_flow(matrices[: layer + 1]) for layer in layers])

    def along(self, paths: str, method: str, layers: Sequence[int]) -> Float64:
        """[layer, query, key] of these layers, from 0, put together as one of PATHS says."""
        if paths == "max_flow":
            return self.max_flow(method, layers)
        every = self.rollout(method) if paths == "product" else self.matrices(method)
        return every[np.array(layers, np.int64)]

    def _cut(self, layers: Sequence[torch.Tensor]) -> Float64:
        n = len(self.batch.examples[0])
        return np.stack([to_float64(layer[0, :n, :n]) for layer in layers])


# scipy's flows are whole numbers of 32 bits; rows sum to 1, so no flow is larger than this.
UNITS = 1 << 30
MOST_TOKENS = 64  # one maximum flow per pair of tokens: about 4 s for 64 tokens and 12 layers


def rollout(matrices: Iterable[torch.Tensor]) -> Iterable[torch.Tensor]:
    """Products of each layer's matrix [example, query, key] and all before; rows sum to 1."""
    return accumulate(matrices, lambda product, matrix: matrix @ product)


def max_flow(matrices: Float64) -> Float64:
    """[query, key] the largest flow from each token of the last layer to each token of the input.

    matrices  [layer, query, key] capacities from 0 to 1; rows sum to at most 1
    returns   0 … 1. Capacities are rounded to 2⁻³⁰, so a flow is right to 2⁻³¹ times the number of
              steps in a narrowest cut: below 1e-5 for 64 tokens and 12 layers. Rows do not sum to 1
              (the authors' code divides them by their sum, the paper does not)
    raises    InputError for more than MOST_TOKENS tokens
    """
    layers, tokens = matrices.shape[:2]
    if tokens > MOST_TOKENS:
        raise InputError(
            f"found {tokens} tokens; wanted at most {MOST_TOKENS} for max_flow, which solves "
            "every pair of tokens separately: give a shorter text, or use rollout"
        )
    layer, query, key = np.nonzero(matrices > 0)
    capacity = np.rint(matrices[layer, query, key] * UNITS).astype(np.int32)
    nodes = (layers + 1) * tokens  # layer · tokens + token, layer 0 being the input
    places = ((layer + 1) * tokens + query, layer * tokens + key)
    graph = csr_array((capacity, places), shape=(nodes, nodes), dtype=np.int32)
    flows = np.zeros((tokens, tokens))
    for query, key in np.ndindex(tokens, tokens):
        flows[query, key] = maximum_flow(graph, layers * tokens + query, key).flow_value / UNITS
    return flows
