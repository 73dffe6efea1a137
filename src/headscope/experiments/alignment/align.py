"""Aligns words by cross-attention weights and by vector norms, in every head and layer.

    gold = read_gold(["DeEn"])
    run = align(load_translator("Helsinki-NLP/opus-mt-de-en", languages=gold.languages), gold)
    run["alignment"]["best_aer"].sel(setting="AWI", measure="norm")

Every pair is run once, with the reference target (teacher forcing). Subwords become words by sums
over the tokens of a source word and means over those of a target word; the largest value of a row
is the link, and there is none where that lies on a token outside of words, such as the end token
(Kobayashi et al. 2020, §5 and released code).
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
import xarray as xr
from torch.nn.utils.rnn import pad_sequence

from headscope.core.accumulators import REPLICATES, Float64, Ints
from headscope.corpus.document import Example
from headscope.corpus.files import described
from headscope.corpus.packing import batches
from headscope.errors import CorpusError
from headscope.experiments.alignment.gold_alignments import GoldAlignments
from headscope.experiments.alignment.result import SETTINGS, alignment_result, scores_of
from headscope.experiments.alignment.translator import EncodedPair, PairSide, Translator, encode
from headscope.model.instrument import Instrument
from headscope.model.layer import LayerView, norms_of_sum
from headscope.model.linears import linears
from headscope.run.execution import Execution
from headscope.run.experiment import ExperimentRequest, run_experiment
from headscope.run.life_cycle import RunInProgress
from headscope.run.shard_files import State, joined
from headscope.run.store import Run

PART = 64  # pairs that are kept together
BATCH_TOKENS = 1024  # of the longer side
STOCK = Execution(linears="stock")
COUNTED = ("links", "possible", "sure")  # all links, and those that are right


def align(
    translator: Translator,
    gold: GoldAlignments,
    *,
    output: str | Path | None = None,
    limit: int | None = None,
    replicates: int = REPLICATES,
    seed: int = 0,
    execution: Execution | None = None,
) -> Run:
    """Computes a run with the group `alignment`, see `result.alignment_result`.

    output  run folder; an interrupted run of the same spec there goes on. None: in memory
    limit   the largest number of pairs
    raises  CorpusError where no pair fits the model; ModelError as `translator.encode`
    """
    pairs = gold.pairs[:limit]
    encoded = [encode(translator, pair, gold.languages) for pair in pairs]
    fitting = [one for one in encoded if len(one) <= translator.limit]
    if not fitting:
        raise CorpusError(
            f"found no pair of sentences of at most {translator.limit} tokens, the limit of "
            f"{translator.name!r}; wanted sentences with their translations"
        )
    request = ExperimentRequest(
        "reproduce",
        translator,
        examples=[_example(one) for one in fitting],
        settings={},
        corpus={
            "kind": "word alignment",
            "files": described(gold.files),
            "rows_sha256": gold.sha256,
            "counted": "sentence pairs",
            "words_from": gold.first,
        },
        counts={"skipped": len(encoded) - len(fitting)},
        seed=seed,
        replicates=replicates,
    )

    def compute(run: RunInProgress) -> dict[str, xr.Dataset]:
        states = [
            run.part(number, partial(_counts, translator, fitting[at : at + PART], run.linears))
            for number, at in enumerate(range(0, len(fitting), PART))
        ]
        ids = [one.pair.id for one in fitting]
        scores = scores_of(joined(states), ids, replicates=replicates, seed=seed)
        return {"alignment": alignment_result(scores)}

    return run_experiment(request, compute, output=output, execution=execution or STOCK)


def _counts(translator: Translator, encoded: Sequence[EncodedPair], kind: str) -> State:
    """`counts_of` for a part, in batches of similar length, in the order of the pairs."""
    rows = list(batches(encoded, budget=BATCH_TOKENS))
    with linears(translator.network, kind):
        states = [counts_of(translator, [encoded[row] for row in some]) for some in rows]
    order = np.argsort(np.concatenate(rows))
    return {name: values[order] for name, values in joined(states).items()}


def _example(one: EncodedPair) -> Example:
    """Both sentences as one example for the manifest: the source is segment 0, the target 1."""
    ids = np.concatenate([one.source.ids, one.target.ids])
    word = np.concatenate([one.source.word, one.target.word])
    segments = np.repeat([0, 1], [len(one.source), len(one.target)])
    return Example(one.pair.id, one.pair.id, ids, segments, word < 0, word)


def counts_of(translator: Translator, batch: Sequence[EncodedPair]) -> State:
    """Counts the links of a batch of pairs, with the reference translation as decoder input.

    head     [pair, layer, head, setting, measure, COUNTED] links of each head
    layer    [pair, layer, setting, measure, COUNTED] links of each layer: by the mean weight of its
             heads, and by the norm of the sum of their vectors
    norm     [pair, layer, head] ‖αf(x)‖ summed over all queries and keys, special tokens too
    cells    [pair] how many those are
    wanted   [pair] sure links
    """
    shape = translator.shape
    counts = np.zeros((len(batch), shape.layers, shape.heads + 1, 2, 2, 3), np.int32)
    norm = np.zeros((len(batch), shape.layers, shape.heads))

    def look(view: LayerView) -> None:
        maps = maps_of(view)  # [measure, example, head + 1, query, key]
        for row, one in enumerate(batch):
            real = maps[:, row, :, : len(one.target), : len(one.source)]
            norm[row, view.index] = real[1, :-1].sum((1, 2))
            for at, setting in enumerate(SETTINGS):
                links = links_of(real, one.source, one.target, later=setting == "AWI")
                # [head + 1, measure, COUNTED]
                counts[row, view.index, :, at] = right(links, one).swapaxes(0, 1)

    with Instrument(translator.network, observers=[look], stacks=["cross"]):
        translator.run(*tensors(translator, batch))
    return {
        "head": counts[:, :, :-1],
        "layer": counts[:, :, -1],
        "norm": norm,
        "cells": np.array([len(one.source) * len(one.target) for one in batch], np.int64),
        "wanted": np.array([len(one.pair.sure) for one in batch], np.int64),
    }


def maps_of(view: LayerView) -> Float64:
    """[measure, example, head + 1, query, key] weights and norms; the last head index is the whole
    layer.
    """
    weight, norm = view.attention, view.measured("weighted_norm")
    whole = norms_of_sum(weight, view.gram)[:, None]  # [example, 1, query, key]
    weights = torch.cat([weight, weight.mean(1, keepdim=True)], 1)
    both = torch.stack([weights, torch.cat([norm, whole], 1)])
    return np.asarray(both.double().cpu().numpy())


def links_of(maps: Float64, source: PairSide, target: PairSide, *, later: bool) -> Ints:
    """[…, word of the target] index of the source word it is linked to; -1 for none.

    maps   […, query, key] at least 0; query i generates target token i
    later  take the row one place later: that of the query which reads the token
    """
    words = int(target.word.max(initial=-1)) + 1
    keys = int(source.word.max(initial=-1)) + 1
    tokens = np.flatnonzero(target.word >= 0)
    rows = np.zeros((words, maps.shape[-2]))  # [word, query]
    rows[target.word[tokens], tokens + later] = 1
    rows /= np.maximum(rows.sum(1, keepdims=True), 1)
    # Behind the words a place for each token of no word: the words come first among equals.
    place = np.where(source.word >= 0, source.word, keys + np.cumsum(source.word < 0) - 1)
    columns = (place[:, None] == np.arange(place.max() + 1)).astype(np.float64)  # [key, place]
    merged = rows @ maps @ columns  # […, word, place]
    best = merged.argmax(-1)
    there = np.bincount(target.word[tokens], minlength=words) > 0  # a word may have no tokens
    return np.where((best < keys) & there, best, -1)


def right(links: Ints, one: EncodedPair) -> Ints:
    """[…, COUNTED] numbers of links: all, possible, sure."""
    words = links.shape[-1]
    counts = [links >= 0]
    for wanted in (one.pair.possible, one.pair.sure):
        gold = np.zeros((len(one.pair.source) + 1, words), bool)  # the last row is that of no link
        for source, target in wanted:
            if target < words:
                gold[source, target] = True
        counts.append(gold[links, np.arange(words)])
    return np.stack([c.sum(-1) for c in counts], -1)  # […, COUNTED]


def tensors(
    translator: Translator, batch: Sequence[EncodedPair]
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Source ids, their mask and the decoder's input, all [example, token], padded on the right."""
    pad = translator.network.config.pad_token_id or 0

    def padded(side: Sequence[Ints], fill: int) -> torch.Tensor:
        rows = [torch.from_numpy(row) for row in side]
        return pad_sequence(rows, batch_first=True, padding_value=fill).to(translator.device)

    source = [one.source.ids for one in batch]
    seen = padded([np.ones(len(ids), np.int64) for ids in source], 0).bool()
    return padded(source, pad), seen, padded([one.decoder_ids for one in batch], pad)
