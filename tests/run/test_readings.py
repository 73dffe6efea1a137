"""Does every question read inputs of one kind, and are lengths kept apart?"""

import numpy as np
import pytest

import headscope as hs
from headscope.claims.length_bands import BANDS, band_of, bands
from headscope.corpus import Document, MemoryCorpus, Mention, Passage, Word, demo_corpus
from headscope.model.model import load
from headscope.report.run_facts import facts
from headscope.run.plan import make_plan
from headscope.run.settings import Settings

TREE = (Word("It", "PRON", "PRP", 1, "nsubj"), Word("ran", "VERB", "VBD", -1, "root"))
BARE = tuple(Word(form) for form in ["Ann", "saw", "Bob", "and", "she", "waved"])
MENTIONS = (Mention("a", 0, 0, 0, "proper"), Mention("a", 4, 4, 4, "pronoun"))


def passages(count, text="Nothing but text is here , and more of it ."):
    """A document of each kind: a sentence, a whole document, running text, a text."""
    return [
        Document(
            f"tree {count}", (Passage("s", words=(*TREE, Word(str(count), "NUM", "CD", 1, "obj"))),)
        ),
        Document(
            f"whole {count}", (Passage("d", words=(*BARE, Word(str(count))), mentions=MENTIONS),)
        ),
        Document(f"running {count}", (Passage("r", text=f"{text} {count}", packable=True),)),
        Document(f"text {count}", (Passage("t", text=f"Short {count} .", text_pair="Too ."),)),
    ]


@pytest.fixture(scope="module")
def mixed():
    return MemoryCorpus([document for n in range(6) for document in passages(n)])


def test_inputs_are_of_a_kind_by_their_passage(demo, mixed):
    plan = make_plan(demo, mixed, Settings())
    kinds = {kind: reading.counts["documents"] for kind, reading in plan.readings.items()}
    assert kinds == {"sentences": 6, "documents": 6, "windows": 6, "texts": 6}
    assert sum(one.counts["tokens"] for one in plan.readings.values()) == plan.counts.tokens


def test_the_general_reading_has_most_tokens_and_is_not_of_whole_documents(demo, mixed):
    assert make_plan(demo, mixed, Settings()).reading == "windows"
    whole = MemoryCorpus([Document("w", (Passage("d", words=BARE * 9),)), *passages(0)[:1]])
    assert make_plan(demo, whole, Settings()).reading == "sentences"
    assert make_plan(demo, MemoryCorpus(whole.documents[:1]), Settings()).reading == "documents"


def test_a_question_reads_the_kind_that_has_its_annotation(demo, mixed):
    names = ["surface", "dependency", "coreference"]
    run = hs.atlas(demo, mixed, analyses=names, control="none")
    read = {name: (run[name].attrs["reading"], int(run[name].attrs["documents"])) for name in run}
    assert read == {
        "surface": ("windows", 6),
        "dependency": ("sentences", 6),
        "coreference": ("documents", 6),
    }
    assert run.tree.attrs["tokens"] == run["surface"].attrs["tokens"]
    assert run.manifest["counts"]["reading"] == "windows"


def test_documents_that_are_read_whole_change_no_number_of_sentences(demo):
    """What sentences alone give, to the bit; and what whole documents alone give."""
    both = demo_corpus()
    apart = [
        MemoryCorpus(
            [
                Document(
                    one.id, tuple(p for p in one.passages if p.id.endswith("/document") is whole)
                )
                for one in both
            ]
        )
        for whole in (False, True)
    ]
    names = ["surface", "dependency", "coreference"]
    run = hs.atlas(demo, both, analyses=names, control="none")
    for alone, some in zip(apart, (names[:2], names[2:]), strict=True):
        other = hs.atlas(demo, alone, analyses=some, control="none")
        for name in some:
            assert run[name].equals(other[name])


# --- lengths ---------------------------------------------------------------------------------


def test_bands_end_where_they_say():
    ends = (1, 16, 17, 32, 33, 512, 2048, 2049)
    assert [band_of(n) for n in ends] == [
        "up to 16",
        "up to 16",
        "17 to 32",
        "17 to 32",
        "33 to 64",
        "129 to 512",
        "513 to 2048",
        "more than 2048",
    ]


@pytest.fixture(scope="module")
def lengths():
    """Documents of a short and of a longer text each, and one that is longer still."""
    texts = ["The cat sat . " * n for n in (2, 6)]
    documents = [
        Document(f"d{n}", tuple(Passage(f"{n}.{k}", text=f"{n} {t}") for k, t in enumerate(texts)))
        for n in range(6)
    ]
    return MemoryCorpus([*documents, Document("long", (Passage("l", text=texts[1] * 3),))])


def test_a_band_holds_what_its_inputs_alone_give(demo, lengths):
    """A band without five documents is none, and its inputs count among all."""
    run = hs.atlas(demo, lengths, analyses=["surface", "entropy"], control="none")
    assert list(bands(run.tree)) == ["up to 16", "17 to 32"]
    for place, (name, band) in enumerate(bands(run.tree).items()):
        some = [Document(d.id, d.passages[place : place + 1]) for d in lengths.documents[:6]]
        alone = hs.atlas(demo, MemoryCorpus(some), analyses=["surface"], control="none")
        there = band.children["surface"].to_dataset()
        assert BANDS not in alone.tree.children, name
        np.testing.assert_allclose(there.attention, alone["surface"].attention, rtol=1e-6)
        np.testing.assert_allclose(
            there.attention_ci_low, alone["surface"].attention_ci_low, rtol=1e-4, atol=1e-7
        )


def test_bands_add_up_to_the_whole(demo, lengths):
    names = {"analyses": ["surface"], "control": "none"}
    whole = hs.atlas(demo, lengths, **names)["surface"]
    one = hs.atlas(load("demo"), lengths, shard_tokens=60, batch_tokens=64, **names)["surface"]
    np.testing.assert_allclose(whole.attention, one.attention, rtol=1e-5)


def test_a_page_says_of_what_lengths_its_inputs_were(demo, lengths):
    """Of several where labels are tried apart; of one; and of two models, which tell none apart."""

    def said(run):
        return {fact.label: fact.value for fact in facts(run.tree, run.manifest)}.get("Lengths")

    names = {"analyses": ["surface"], "control": "none"}
    assert said(hs.atlas(demo, lengths, **names)) == (
        "labels are tried in inputs of up to 16, 17 to 32 tokens apart"
    )
    assert said(hs.atlas(demo, ["A short one."] * 2, **names)) == "inputs of up to 16 tokens"
    assert said(hs.compare(demo, demo, lengths, **names)) == (
        "inputs of up to 16, 17 to 32, 65 to 128 tokens; nothing is said of each length apart"
    )
