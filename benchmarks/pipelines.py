"""What is compared? Bare forward passes, and headscope's own analyses during one.

Everything is what a run of headscope uses (`engine.compute`): its batches, instrument, analyses and
choice of linear maps. Left out is what happens once in a run or a shard: loading, reading a corpus,
factors of W_O, merging.
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
from headscope.corpus.contents import Annotations
from headscope.model import linears
from headscope.model.batch import Batch
from headscope.model.instrument import Instrument
from headscope.model.layer import LayerView
from headscope.model.model import forward
from headscope.run.analysis import Analysis, Scope
from headscope.run.known_analyses import known_analyses

BASIC: dict[str, dict[str, Any]] = {
    "surface": {},
    "entropy": {},
    "norms": {"layer_norms": False},
}
LAYER: dict[str, dict[str, Any]] = {"surface": {}, "entropy": {}, "norms": {}}
MIXING = {**LAYER, "mixing": {}}
EVERYTHING: dict[str, dict[str, Any]] = {**MIXING, "divergence": {}}
ALL_QUERIES = EVERYTHING | {"divergence": {"queries": "all"}}


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


class Streamed:
    """Analyses, {name: options}, during forward passes over the inputs.

    Made once and run again and again, as a process of headscope runs batch after batch of a shard:
    instrument, factors of W_O and accumulators stay.
    """

    def __init__(
        self, network: BertModel, inputs: Inputs, options: Mapping[str, Mapping[str, Any]]
    ) -> None:
        self.network, self.inputs = network, inputs
        config = network.config
        self.scope = Scope(
            config.num_hidden_layers,
            config.num_attention_heads,
            documents=len(inputs.examples),
            special_tokens=SPECIAL,
            frequency_rank=np.arange(config.vocab_size) + 1,
            relations=Annotations.of(inputs.examples).labels,
        )
        known = known_analyses()
        # In the order of a run: by name.
        self.analyses = [known[name](self.scope, **options[name]) for name in sorted(options)]
        self.instrument = Instrument(network, observers=[self._observe])
        self._batch: Batch | None = None

    def __call__(self) -> dict[str, Analysis]:
        """One pass; returns the analyses by name."""
        with self.instrument, torch.inference_mode():
            for rows in self.inputs.rows:
                batch = self._batch = self.inputs.batch(rows, replicates=self.scope.replicates)
                forward(self.network, batch.input_ids, batch.mask, batch.segment_ids)
                for analysis in self.analyses:
                    analysis.finish(batch)
        return {analysis.name: analysis for analysis in self.analyses}

    def _observe(self, layer: LayerView) -> None:
        assert self._batch is not None
        for analysis in self.analyses:
            analysis.observe(layer, self._batch)


# --- the fastest forward pass ---------------------------------------------------------------


def fastest(network: BertModel, inputs: Inputs) -> str:
    """ "onednn" or "stock": what headscope chooses, timed on the longest inputs as a run does."""
    batch = inputs.batch(inputs.rows[0])

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
