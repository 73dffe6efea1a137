"""From which tokens of a text do a model's representations come?

    hs.flow("demo", "The cat sat on the mat.", method="globenc")

gives an xarray DataArray [layer, query, key].
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import xarray as xr

from headscope.analyses.flow.methods import SOURCES, check_methods
from headscope.analyses.flow.watch import Floats, Watch
from headscope.errors import InputError
from headscope.model.batch import Batch
from headscope.model.instrument import Instrument
from headscope.model.model import Model, evaluating, forward, load
from headscope.views.capture import encoded

PATHS = {
    "product": "share of a representation that comes from an input token",
    "max_flow": "maximum flow from a representation to an input token",
    "none": "contribution of each token to each token's output of one layer",
}


def flow(
    model: Model | str,
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
               `headscope.analyses.flow.matrices`
    paths      what becomes of the layers up to and including one: "product" (rollout), "max_flow"
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
    loaded = model if isinstance(model, Model) else load(model)
    count = loaded.shape.layers
    usual = range(count) if paths != "max_flow" else range(count - 1, count)
    chosen = list(usual if layers is None else layers)
    if wrong := [layer for layer in chosen if not 0 <= layer < count]:
        raise InputError(f"found the layer {wrong[0]}; wanted 0 to {count - 1}")
    example = encoded(loaded, text, text_pair)
    batch = Batch.of([example], loaded.vocabulary, replicates=0, device=loaded.device)
    watch = _watched(loaded, batch, method)
    maps = _put_together(watch, method, paths, chosen)
    tokens = list(loaded.tokens(example.input_ids))
    return xr.DataArray(
        maps,
        dims=("layer", "query", "key"),
        coords={
            "layer": chosen, "query": range(len(tokens)), "key": range(len(tokens)),
            "query_token": ("query", tokens), "key_token": ("key", tokens),
        },
        name=method,
        attrs={
            "long_name": PATHS[paths], "units": "1" if paths == "max_flow" else "probability",
            "source": SOURCES[method], "paths": paths, "model": loaded.name,
        },
    )  # fmt: skip


def _watched(model: Model, batch: Batch, method: str) -> Watch:
    watch = Watch((method,), batch)
    with (
        evaluating(model.network),
        torch.inference_mode(),
        Instrument(model.network, observers=[watch.look], stacks=[model.shape.stack]),
    ):
        forward(model.network, batch.input_ids, batch.mask, batch.segment_ids)
    return watch


def _put_together(watch: Watch, method: str, paths: str, layers: list[int]) -> Floats:
    """[layer, query, key] for the layers that are asked for."""
    if paths == "max_flow":
        return watch.max_flow(method, layers)
    maps = watch.rollout(method) if paths == "product" else watch.matrices(method)
    return maps[np.array(layers, np.int64)]
