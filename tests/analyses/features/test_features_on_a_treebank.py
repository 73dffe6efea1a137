"""Do `features`, `cls_attention` and `pairs` hold on a treebank and a model as they are used?

The bundled sentences are read line by line here, tagged and tokenised without headscope, and the
attention is the model's own.
"""

from __future__ import annotations

import bz2
import re
from importlib.resources import files

import numpy as np
import pytest

import headscope as hs
from headscope.model.model import Model
from reference import features as reference
from reference.extraction import attention_maps, float64_copy

NEGATION = {"not", "n't", "never", "nor", "neither", "none", "nothing", "nowhere", "cannot"}
Rows = list[list[str]]


def sentences(text: str) -> list[Rows]:
    """The numbered rows of every sentence, cut into columns."""
    blocks = [[line.split("\t") for line in b.splitlines()] for b in text.split("\n\n")]
    found = [[row for row in rows if row[0].isdecimal()] for rows in blocks]
    return [rows for rows in found if rows]


def kinds_of(rows: Rows) -> dict[str, list[int]]:
    """The words of every kind."""
    holds = {
        "noun": lambda r: r[4] in ("NN", "NNS", "NNP", "NNPS"),
        "verb": lambda r: r[4].startswith("VB"),
        "pronoun": lambda r: r[4] in ("PRP", "PRP$"),
        "subject": lambda r: r[7].split(":")[0] in ("nsubj", "csubj", "expl") or "agent" in r[7],
        "object": lambda r: r[7].split(":")[0] in ("obj", "iobj"),
        "negation": lambda r: r[1].lower() in NEGATION,
    }
    return {kind: [i for i, row in enumerate(rows) if of(row)] for kind, of in holds.items()}


@pytest.fixture(scope="module")
def two() -> str:
    """Two documents of the bundled text: of a lost key, and of the last train."""
    packed = files("headscope.corpus").joinpath("demo.conllu.bz2").read_bytes()
    whole = bz2.decompress(packed).decode()
    documents = re.split(r"(?m)^(?=# newdoc)", whole)
    return documents[1] + documents[5]


@pytest.fixture(scope="module")
def told(demo: Model, two: str) -> tuple[list[np.ndarray], list[dict], dict[str, list]]:
    """Maps, tokens of every kind and linked tokens of every sentence."""
    network = float64_copy(demo.network)
    maps, kinds, links = [], [], {"subject_verb": [], "noun_pronoun": []}
    for rows in sentences(two):
        encoded = demo.tokenizer([row[1] for row in rows], is_split_into_words=True)
        words = np.array([-1 if w is None else w for w in encoded.word_ids(0)])
        tokens = [np.flatnonzero(words == i).tolist() for i in range(len(rows))]
        types = kinds_of(rows)
        verbs = [
            (i, int(row[6]) - 1)
            for i, row in enumerate(rows)
            if row[7].split(":")[0] == "nsubj" and int(row[6]) - 1 in types["verb"]
        ]
        nouns = [(i, j) for i in types["noun"] for j in types["pronoun"]]
        links["subject_verb"].append([(tokens[i], tokens[j]) for i, j in verbs])
        links["noun_pronoun"].append([(tokens[i], tokens[j]) for i, j in nouns])
        found = {kind: [t for i in at for t in tokens[i]] for kind, at in types.items()}
        text = demo.tokenizer.convert_ids_to_tokens(encoded.input_ids)
        found["punctuation"] = [i for i, token in enumerate(text) if token in (".", ",")]
        kinds.append(found | {"cls": [0], "sep": [len(text) - 1]})
        maps.append(attention_maps(network, encoded.input_ids))
    return maps, kinds, links


def test_a_treebank_gives_what_its_own_lines_give(demo: Model, two, told, tmp_path) -> None:
    maps, kinds, links = told
    (tmp_path / "two.conllu").write_text(two, "utf-8")
    corpus = hs.corpus.TreebankCorpus(tmp_path / "two.conllu")
    found = hs.atlas(
        demo,
        corpus,
        analyses=("features", "cls_attention", "pairs"),
        replicates=0,
        execution=hs.Execution(linears="stock", threads=1),
    )
    for kind in found["features"].feature.values:
        one = found["features"].sel(feature=kind)
        assert one["count"] == sum(bool(tokens[kind]) for tokens in kinds) > 0
        expected = reference.received(maps, kinds, kind, zero=False)
        np.testing.assert_allclose(one.attention, expected, rtol=0, atol=2e-6, err_msg=kind)
    for kind in found["cls_attention"].feature.values:
        expected = reference.from_cls(maps, kinds, kind)
        got = found["cls_attention"].attention.sel(feature=kind)
        np.testing.assert_allclose(got, expected, rtol=0, atol=2e-6, err_msg=kind)
    for kind, given in links.items():
        one, other = kind.split("_")
        back = [[(b, a) for a, b in pairs] for pairs in given]
        for pair, pairs in ((f"{one}_to_{other}", given), (f"{other}_to_{one}", back)):
            got = found["pairs"].sel(pair=pair)
            assert got["count"] == sum(map(bool, pairs)) > 0
            expected = reference.between(maps, pairs, zipped=False)
            np.testing.assert_allclose(got.attention, expected, rtol=0, atol=2e-6, err_msg=pair)
