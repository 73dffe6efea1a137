"""What is compared? Bare forward passes, and headscope's own analyses during one.

Everything is what a run of headscope uses (`engine.compute`): its batches, instrument, analyses and
choice of linear maps. Only the reading of a corpus and the merging of shards are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import BertModel

from benchmarks.inputs import FULL, SPECIAL, Inputs
from headscope import linears
from headscope.analysis import Analysis, Scope, known_analyses
from headscope.batch import Batch
from headscope.instrument import Instrument
from headscope.layer import LayerView
from headscope.model import forward

BASIC: dict[str, dict[str, Any]] = {
    "surface": {}, "entropy": {}, "norms": {"layer_norms": False},
}  # fmt: skip
LAYER: dict[str, dict[str, Any]] = {"surface": {}, "entropy": {}, "norms": {}}
MIXING = {**LAYER, "mixing": {}}
EVERYTHING: dict[str, dict[str, Any]] = {**MIXING, "divergence": {}}


def bare(network: BertModel, inputs: Inputs) -> None:
    """Forward passes of which nothing is kept."""
    for rows in inputs.rows:
        batch = inputs.batch(rows)
        forward(network, batch.input_ids, batch.mask, batch.segment_ids)


def bare_padded(network: BertModel, inputs: Inputs) -> None:
    """The same with every example padded to 128 tokens, 16 to a batch, in reading order."""
    for start in range(0, len(inputs.examples), 16):
        some = inputs.examples[start : start + 16]
        ids, mask = np.zeros((2, len(some), FULL), np.int64)
        for row, example in enumerate(some):
            ids[row, : len(example)], mask[row, : len(example)] = example.input_ids, 1
        ids_t, mask_t = torch.from_numpy(ids), torch.from_numpy(mask)
        forward(network, ids_t, mask_t.bool(), torch.zeros_like(ids_t))


def streamed(
    network: BertModel, inputs: Inputs, options: Mapping[str, Mapping[str, Any]]
) -> dict[str, Analysis]:
    """Analyses by name, {name: options}, after one pass over the inputs."""
    config = network.config
    scope = Scope(
        config.num_hidden_layers, config.num_attention_heads, documents=len(inputs.examples),
        special_tokens=SPECIAL, frequency_rank=np.arange(config.vocab_size) + 1,
    )  # fmt: skip
    known = known_analyses()
    # In the order of a run: by name.
    running = [known[name](scope, **options[name]) for name in sorted(options)]
    shown: list[Batch] = []

    def observe(layer: LayerView) -> None:
        for analysis in running:
            analysis.observe(layer, shown[-1])

    with Instrument(network, observers=[observe]), torch.inference_mode():
        for rows in inputs.rows:
            batch = inputs.batch(rows, replicates=scope.replicates)
            shown[:] = [batch]
            forward(network, batch.input_ids, batch.mask, batch.segment_ids)
            for analysis in running:
                analysis.finish(batch)
    return {analysis.name: analysis for analysis in running}


# --- the fastest forward pass ---------------------------------------------------------------


def fastest(network: BertModel, inputs: Inputs) -> str:
    """ "onednn" or "stock": what headscope chooses, timed on the last batch as a run does."""
    batch = inputs.batch(inputs.rows[-1])

    def once() -> torch.Tensor:
        return forward(network, batch.input_ids, batch.mask, batch.segment_ids)[0]

    return linears.choose(network, once)


@contextmanager
def fused_gelu(network: BertModel) -> Iterator[None]:
    """Inside the context oneDNN applies the feed-forward layers' gelu as it writes the product."""
    layers: Sequence[Any] = network.encoder.layer
    before = [layer.intermediate.intermediate_act_fn for layer in layers]
    try:
        for layer in layers:
            layer.intermediate.dense.forward = _with_gelu(layer.intermediate.dense)
            layer.intermediate.intermediate_act_fn = nn.Identity()
        yield
    finally:
        for layer, activation in zip(layers, before, strict=True):
            del layer.intermediate.dense.forward
            layer.intermediate.intermediate_act_fn = activation


def _with_gelu(linear: nn.Linear) -> Any:
    weight = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach().contiguous(), None)

    def product(inputs: torch.Tensor) -> torch.Tensor:
        multiply = torch.ops.mkldnn._linear_pointwise
        return multiply(inputs, weight, linear.bias, "gelu", [], "none")  # type: ignore[no-any-return]

    return product
