"""How well does cross-attention align words: by weights, and by norms?

    gold = read_gold(["DeEn"])
    run = align(load_translator("Helsinki-NLP/opus-mt-de-en", languages=gold.languages), gold)
    run["alignment"]["best_aer"].sel(setting="AWI", measure="norm")

Every pair is run once, with the reference target (teacher forcing).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import xarray as xr

from headscope.corpus.document import Example
from headscope.corpus.files import described
from headscope.corpus.packing import batches
from headscope.errors import CorpusError
from headscope.experiments.alignment.gold import Gold
from headscope.experiments.alignment.links import counts_of
from headscope.experiments.alignment.result import alignment_result
from headscope.experiments.alignment.scores import scores_of
from headscope.experiments.alignment.translator import Encoded, Translator, encode
from headscope.model.linears import linears
from headscope.model.model import evaluating
from headscope.run.experiment import ExperimentRequest, run_experiment
from headscope.run.finished_run import Run
from headscope.run.life_cycle import RunInProgress
from headscope.run.store import State

PART = 64  # pairs that are kept together
BATCH_TOKENS = 1024  # of the longer side


def align(
    translator: Translator,
    gold: Gold,
    *,
    output: str | Path | None = None,
    limit: int | None = None,
    replicates: int = 1000,
    seed: int = 0,
    overwrite: bool = False,
    command: Sequence[str] = (),
) -> Run:
    """A run with the group `alignment`, see `result.alignment_result`.

    output  run folder; an interrupted run of the same spec there goes on. None: in memory
    limit   the first so many pairs
    raises  CorpusError where no pair fits the model; ModelError as `translator.encode`
    """
    pairs = gold.pairs[:limit]
    encoded = [encode(translator, pair, gold.languages) for pair in pairs]
    fitting = [one for one in encoded if len(one) <= translator.limit]
    if not fitting:
        raise CorpusError(
            f"found no pair of sentences of at most {translator.limit} tokens, which is what "
            f"{translator.name!r} takes; wanted sentences with their translations"
        )
    request = ExperimentRequest(
        "reproduce", translator, examples=[_example(one) for one in fitting], settings={},
        corpus={
            "kind": "word alignment", "files": described(gold.files), "rows_sha256": gold.sha256,
            "counted": "sentence pairs", "words_from": gold.first,
        },
        counts={"skipped": len(encoded) - len(fitting)},
        seed=seed, replicates=replicates, line=command,
    )  # fmt: skip

    def compute(run: RunInProgress) -> dict[str, xr.Dataset]:
        states = [
            run.part(number, partial(_counts, translator, fitting[at : at + PART], run.linears))
            for number, at in enumerate(range(0, len(fitting), PART))
        ]
        state = {key: np.concatenate([s[key] for s in states]) for key in states[0]}
        ids = [one.pair.id for one in fitting]
        scores = scores_of(state, ids, replicates=replicates, seed=seed)
        return {"alignment": alignment_result(scores, pairs=len(fitting))}

    with evaluating(translator.network):
        return run_experiment(request, compute, output=output, overwrite=overwrite)


def _counts(translator: Translator, encoded: Sequence[Encoded], kind: str) -> State:
    """`links.counts_of` of a part, in batches of like length; in the order of the pairs."""
    found: dict[int, State] = {}
    with linears(translator.network, kind):
        for rows in batches(encoded, budget=BATCH_TOKENS):
            state = counts_of(translator, [encoded[row] for row in rows])
            for at, row in enumerate(rows):
                found[row] = {key: array[at] for key, array in state.items()}
    return {key: np.stack([found[row][key] for row in sorted(found)]) for key in found[0]}


def _example(one: Encoded) -> Example:
    """What both sides read, for the manifest: the source is segment 0, the target 1."""
    ids = np.concatenate([one.source.ids, one.target.ids])
    word = np.concatenate([one.source.word, one.target.word])
    segments = np.repeat([0, 1], [len(one.source), len(one.target)])
    return Example(one.pair.id, one.pair.id, ids, segments, word < 0, word)
