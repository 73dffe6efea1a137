"""How are analyses run by hand, on a tiny model, on planted attention and beside the references?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
import xarray as xr

from headscope.corpus.contents import Annotations
from headscope.corpus.document import Example
from headscope.model.batch import Batch
from headscope.model.instrument import AttentionCall, Instrument
from headscope.model.layer import LayerView
from headscope.model.vocabulary import Vocabulary
from headscope.run.analysis import Analysis, Scope
from headscope.run.contract_bench import (
    CLS,
    COMMA,
    SEP,
    STOP,
    TOKENS,
    VOCABULARY,
    tiny_examples,
    tiny_network,
)
from headscope.run.known_analyses import known_analyses
from reference import extraction

SPECIAL = {"cls": "[CLS]", "sep": "[SEP]"}
RANK = np.random.default_rng(1).permutation(TOKENS) + 1
Plant = Callable[[Batch, int], torch.Tensor]  # batch, layer -> [example, head, query, key]


def run(
    wanted: Mapping[str, Mapping[str, Any]],
    *,
    network: Any = None,
    examples: Sequence[Example] | None = None,
    size: int = 3,
    plant: Plant | None = None,
    change: Callable[[AttentionCall], None] | None = None,
    vocabulary: Vocabulary = VOCABULARY,
    special: Mapping[str, str] = SPECIAL,
    rank: np.ndarray | None = RANK,
    first_token: bool = False,
) -> dict[str, xr.Dataset]:
    """The results of the wanted analyses, {name: options}, over the examples in batches."""
    network = tiny_network(torch.float64) if network is None else network
    examples = tiny_examples() if examples is None else examples
    running: list[Analysis] = []
    listed = {name: at for at, name in enumerate(dict.fromkeys(e.document for e in examples))}
    for start in range(0, len(examples), size):
        batch = Batch.of(examples[start : start + size], vocabulary, replicates=20, listed=listed)
        views = observe(network, batch, plant=plant, change=change)
        if not running:
            documents = len({e.document for e in examples})
            heads = views[0].attention.shape[1]
            relations = Annotations.of(examples).labels
            neurons = 0 if views[0].queries is None else views[0].queries.shape[-1]
            scope = Scope(
                len(views),
                heads,
                documents,
                special,
                rank,
                relations,
                replicates=20,
                neurons=neurons,
                first_token=first_token,
            )
            running = [known_analyses()[name](scope, **o) for name, o in wanted.items()]
        with torch.no_grad():
            for analysis in running:
                for view in views:
                    analysis.observe(view, batch)
                analysis.finish(batch)
    return {analysis.name: analysis.result() for analysis in running}


def observe(
    network: Any,
    batch: Batch,
    *,
    plant: Plant | None = None,
    change: Callable[[AttentionCall], None] | None = None,
) -> list[LayerView]:
    """The layers of a batch, with planted attention or changed values."""

    def intervene(call: AttentionCall) -> None:
        if plant is not None:
            call.attention = plant(batch, call.layer).to(call.attention)
        if change is not None:
            change(call)

    seen: list[LayerView] = []
    inputs = {"input_ids": batch.input_ids, "attention_mask": batch.mask.long()}
    if getattr(network.config, "type_vocab_size", 0) > 1:
        inputs["token_type_ids"] = batch.segment_ids
    interventions = [intervene] if plant or change else []
    with (
        torch.no_grad(),
        Instrument(network, observers=[seen.append], interventions=interventions),
    ):
        network(**inputs)
    return seen


# --- planted attention ----------------------------------------------------------------------


def planted(*layers: Sequence[str]) -> Plant:
    """Exact heads: for every layer, the kind of each head; rows of padding attend to token 0."""

    def plant(batch: Batch, layer: int) -> torch.Tensor:
        tokens = batch.input_ids.shape[1]
        shape = (len(batch.lengths), len(layers[layer]), tokens, tokens)
        maps = torch.zeros(shape, dtype=torch.float64)
        maps[..., 0] = 1
        for row, (example, n) in enumerate(zip(batch.examples, batch.lengths, strict=True)):
            for head, kind in enumerate(layers[layer]):
                maps[row, head, :n] = 0
                maps[row, head, :n, :n] = torch.from_numpy(_exact(kind, example.input_ids))
        return maps

    return plant


def _exact(kind: str, ids: np.ndarray) -> np.ndarray:
    """[query, key] one head of one example; at the edge, and without separator, it stays itself."""
    n = len(ids)
    itself = np.eye(n)
    if kind == "uniform":
        return np.full((n, n), 1 / n)
    if kind == "causal":
        return np.tril(np.ones((n, n))) / np.arange(1, n + 1)[:, None]
    if kind == "sep":
        seps = ids == SEP
        return np.tile(seps / seps.sum(), (n, 1)) if seps.any() else itself
    moves = {"self": 0, "previous": -1, "next": 1}
    return itself[np.clip(np.arange(n) + moves[kind], 0, n - 1)]


# --- the references -------------------------------------------------------------------------


def blocks(examples: Sequence[Example]) -> list[extraction.Blocks]:
    """What the float64 reference sees in the tiny model, one unpadded example at a time."""
    network = _eager()
    return [extraction.bert_blocks(network, e.input_ids, e.segment_ids) for e in examples]


@cache
def _eager() -> Any:
    return extraction.float64_copy(tiny_network(torch.float64))


def flags(examples: Sequence[Example]) -> dict[str, list[np.ndarray]]:
    """[token] bool per example and category, read off the ids."""
    named = {"cls": (CLS,), "sep": (SEP,), "punctuation": (STOP, COMMA)}
    found = {k: [np.isin(e.input_ids, v) for e in examples] for k, v in named.items()}
    found["other"] = [
        ~np.logical_or.reduce([found[k][i] for k in named]) for i in range(len(examples))
    ]
    return found
