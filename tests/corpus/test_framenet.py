"""Which exemplars of a FrameNet release are read, with which words, and what is refused?"""

from __future__ import annotations

import pickle
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from corpus.framenet_release import FEELING, Sentence, Unit, write_release
from headscope.corpus import FrameElement, FrameFilters, FramesCorpus, Passage
from headscope.corpus.document import Frame
from headscope.corpus.encoder import Encoder
from headscope.corpus.framenet_exemplars import word_spans, words_at
from headscope.errors import CorpusError, InputError

TEXT = "The girl had always really pitied him . "
FEELER = ("Feeler", "The girl")
GOOD = Sentence(71, TEXT, "pitied", [FEELER])


def read(folder: Path, *sentences: Sentence, name: str = "pity.v", **options: Any) -> list[Passage]:
    """The passages of a release with one lexical unit."""
    release = write_release(folder / "fn", [Unit(5, name, sentences=list(sentences))])
    return [p for document in FramesCorpus(release, **options) for p in document.passages]


def forms(passage: Passage) -> list[str]:
    assert passage.words is not None
    return [word.form for word in passage.words]


# --- what is read ---------------------------------------------------------------------------


def test_an_exemplar_has_bare_words_its_target_and_its_frame_elements(tmp_path):
    text = "We 've (really) always pitied the second-rate man . "
    sentence = Sentence(
        9, text, "pitied", [("Object", "second-rate man"), ("Feeler", "We 've")], unsaid=["Time"]
    )
    (passage,) = read(tmp_path, sentence, filters=FrameFilters(distance=0, element_words=9))
    assert passage.id == "9 pity.v"
    assert forms(passage) == [
        "We",
        "'",
        "ve",
        "(",
        "really",
        ")",
        "always",
        "pitied",
        "the",
        "second",
        "-",
        "rate",
        "man",
        ".",
    ]
    glued = [word.form for word in passage.words if not word.space_after]
    assert glued == ["'", "(", "really", "second", "-"]
    assert all(w.upos is w.xpos is w.relation is None for w in passage.words)
    elements = (FrameElement("Feeler", 0, 2), FrameElement("Object", 9, 12))
    assert passage.frames == (Frame("Feeling", 7, 7, elements),)


def test_every_text_is_a_document(tmp_path):
    release = write_release(
        tmp_path,
        [Unit(5, "pity.v", sentences=[GOOD, Sentence(72, "x " + TEXT, "pitied", [FEELER])])],
    )
    assert [d.id for d in FramesCorpus(release)] == ["71", "72"]


def test_of_the_same_text_and_target_the_first_is_read(tmp_path):
    again = Sentence(72, TEXT.replace(" had", "  had"), "pitied", [("Object", "The girl")])
    assert [p.id for p in read(tmp_path, GOOD, again)] == ["71 pity.v"]


def test_the_same_text_with_another_target_is_resampled_with_it(tmp_path):
    other = Sentence(88, TEXT, "really", [FEELER])
    units = [Unit(5, "pity.v", sentences=[GOOD]), Unit(6, "really.adv", sentences=[other])]
    corpus = FramesCorpus(write_release(tmp_path, units), filters=FrameFilters(distance=1))
    found = [(d.id, [p.id for p in d.passages]) for d in corpus]
    assert found == [("71", ["71 pity.v"]), ("71", ["88 really.adv"])]


def test_core_elements_are_those_declared_or_those_of_core_sets(tmp_path):
    both = [FEELER, ("Object", "him")]
    for core, marks in (("declared", [True, True]), ("sets", [False, True])):
        folder = tmp_path / core
        (passage,) = read(
            folder, Sentence(1, TEXT, "pitied", both), core=core, filters=FrameFilters(distance=0)
        )
        assert [element.core for element in passage.frames[0].elements] == marks


def test_a_word_that_shares_a_character_belongs_to_the_span(tmp_path):
    """Offsets that cut a word take it whole; the target must be whole in the first place."""
    (passage,) = read(tmp_path, Sentence(1, TEXT, "pitied", [("Feeler", "e gi")]))
    assert passage.frames[0].elements == (FrameElement("Feeler", 0, 1),)


# --- the filters of Kovaleva et al. ---------------------------------------------------------

LONG = "The girl had always really pitied him , as she said ."  # 12 word tokens
REFUSED = {
    "thirteen words": Sentence(1, LONG + " !", "pitied", [FEELER]),
    "thirteen tokens in eleven words": Sentence(1, LONG[:-2] + "!?", "pitied", [FEELER]),
    "no target": Sentence(1, TEXT, [], [FEELER]),
    "two target spans": Sentence(1, TEXT, ["pitied", "had"], [FEELER]),
    "a target of two words": Sentence(1, TEXT, "really pitied", [FEELER]),
    "a target within a word": Sentence(1, TEXT, "pit", [FEELER]),
    "a long element": Sentence(1, TEXT, "him", [("Feeler", "The girl had always")]),
    "a long element that is not core": Sentence(
        1, LONG, "girl", [("Time", "pitied him , as"), ("Object", "really")]
    ),
    "an element two words before": Sentence(1, TEXT, "pitied", [("Feeler", "always")]),
    "an element two words behind": Sentence(1, LONG, "pitied", [("Object", ",")]),
    "a near element that is not core": Sentence(1, TEXT, "pitied", [FEELER, ("Time", "always")]),
    "no core element": Sentence(1, TEXT, "pitied", [("Time", "The girl")]),
    "an element of an unknown name": Sentence(1, TEXT, "pitied", [("Who", "The girl")]),
    "a core element of rank 2": Sentence(1, TEXT, "pitied", rank2=[FEELER]),
    "a core element that is only understood": Sentence(1, TEXT, "pitied", unsaid=["Feeler"]),
    "an element of white space": Sentence(1, TEXT, "pitied", [("Feeler", (3, 3))]),
}


@pytest.mark.parametrize("why", REFUSED)
def test_an_exemplar_is_left_out_for(tmp_path, why):
    assert read(tmp_path, REFUSED[why], GOOD)[0].id == "71 pity.v"


PASSING = {
    "twelve words": Sentence(1, LONG, "pitied", [FEELER]),
    "three words": Sentence(1, LONG, "him", [("Feeler", "The girl had")]),
    "three words between": Sentence(1, TEXT, "pitied", [("Feeler", "had")]),
    "a near one of rank 2": Sentence(1, TEXT, "pitied", [FEELER], rank2=[("Time", "always")]),
}


@pytest.mark.parametrize("why", PASSING)
def test_an_exemplar_passes_with(tmp_path, why):
    assert [p.id for p in read(tmp_path, PASSING[why])] == ["1 pity.v"]


@pytest.mark.parametrize(
    ("filters", "kept"),
    [
        ({}, 0),
        ({"sentence_words": 13}, 1),
        ({"sentence_words": 13, "distance": 3}, 1),
        ({"sentence_words": 13, "distance": 4}, 0),
        ({"sentence_words": 13, "element_words": 1}, 0),
    ],
)
def test_the_numbers_of_the_filters_can_be_changed(tmp_path, filters, kept):
    sentences = [Sentence(1, LONG + " !", "pitied", [FEELER])]
    assert len(read(tmp_path, *sentences, filters=FrameFilters(**filters))) == kept


# --- words ----------------------------------------------------------------------------------


# What is punctuation, the tokenizer knows from an older Unicode than Python.
SETTLED = [
    character
    for character in map(chr, range(sys.maxunicode + 1))
    if unicodedata.category(character) not in ("Cc", "Cn", "Cs")
    and unicodedata.category(character) == unicodedata.ucd_3_2_0.category(character)
]


@given(
    st.text(
        st.characters(codec="ascii", exclude_categories=["Cc"]) | st.sampled_from(SETTLED),
        max_size=30,
    )
)
def test_the_words_have_the_pieces_that_berts_tokenizer_gives_the_text(bert, text):
    assume(not any(token in text for token in bert.all_special_tokens))  # a text may spell them
    reader = Encoder(bert, model_limit=512, has_segments=True).reader
    ids, _ = reader.words([word.form for word in words_at(text, word_spans(text))])
    assert ids.tolist() == reader.text(text).tolist()


@given(st.text(max_size=30))
def test_words_cover_all_but_white_space_and_know_where_they_stand(text):
    spans = word_spans(text)
    words = words_at(text, spans)
    assert "".join(w.form for w in words) == "".join(text.split())
    assert [text[start:end] for start, end in spans] == [w.form for w in words]
    spaced = "".join(w.form + " " * w.space_after for w in words)
    assert spaced.split() == text.split()


# --- a folder that is not whole -------------------------------------------------------------


def test_units_whose_files_are_not_there_are_counted(tmp_path):
    units = [Unit(5, "pity.v", sentences=[GOOD]), Unit(6, "rue.v"), Unit(7, "envy.v")]
    corpus = FramesCorpus(write_release(tmp_path, units))
    assert corpus.absent == corpus.describe()["absent"] == 2
    assert corpus.describe()["lexical_units"] == 1
    assert [d.id for d in corpus] == ["71"]


def test_a_release_without_any_listed_unit_is_refused(tmp_path):
    release = write_release(tmp_path, [Unit(5, "pity.v"), Unit(6, "rue.v")])
    with pytest.raises(CorpusError, match=r"lu holds none of the 2 annotated lexical units"):
        FramesCorpus(release)


@pytest.mark.parametrize("part", ["luIndex.xml", "frameIndex.xml", "frame", "lu"])
def test_a_missing_part_is_named_with_what_a_whole_folder_holds(tmp_path, part):
    release = write_release(tmp_path, [Unit(5, "pity.v", sentences=[GOOD])])
    (release / part).rename(tmp_path / "elsewhere")
    with pytest.raises(CorpusError, match=rf"has no {part}.*frame/\*\.xml and lu/lu\*\.xml"):
        FramesCorpus(release)


def test_what_is_no_folder_is_refused(tmp_path):
    with pytest.raises(CorpusError, match=r"nowhere is not a folder; wanted a release folder"):
        FramesCorpus(tmp_path / "nowhere")


def test_a_missing_frame_is_named(tmp_path):
    frames = {"Feeling": FEELING, "Giving": FEELING, "Taking": FEELING}
    release = write_release(tmp_path, [Unit(5, "pity.v", sentences=[GOOD])], frames=frames)
    for name in ("Giving", "Taking"):
        (release / "frame" / f"{name}.xml").unlink()
    found = r"has no frame/Giving\.xml and misses 1 more of 3 frames"
    with pytest.raises(CorpusError, match=found):
        FramesCorpus(release)


def test_a_release_that_lists_no_frame_is_refused(tmp_path):
    release = write_release(tmp_path, [Unit(5, "pity.v", sentences=[GOOD])], frames={})
    with pytest.raises(CorpusError, match=r"lists no frame in frameIndex\.xml"):
        FramesCorpus(release)


@pytest.mark.parametrize("option", [{"core": "all"}, {"on_error": "ignore"}])
def test_an_unknown_option_is_refused(tmp_path, option):
    release = write_release(tmp_path, [Unit(5, "pity.v", sentences=[GOOD])])
    with pytest.raises(InputError, match=r"wanted one of"):
        FramesCorpus(release, **option)


# --- what is malformed ----------------------------------------------------------------------

BOMB = '<!DOCTYPE a [<!ENTITY b "{}"><!ENTITY c "&b;&b;">]>'.format("x" * 99)
SPOILT = {
    "a document type": (
        lambda xml: xml.replace("<lexUnit", f"{BOMB}\n<lexUnit", 1),
        r":2: found a",
    ),
    "an entity": (lambda xml: xml.replace("The girl", "The &b;", 1), r":6: not well-formed XML"),
    "a tag left open": (lambda xml: xml.replace("</text>", "", 1), r":\d+: not well-formed XML"),
    "a cut": (lambda xml: xml[: len(xml) // 2], r":\d+: not well-formed XML"),
    "nothing": (lambda xml: "", r":1: not well-formed XML.*no element found"),
    "Latin-1": (
        lambda xml: xml.replace("girl", "m\xe4dchen").encode("latin-1"),
        ":6: not well-for",
    ),
    "another root": (lambda xml: "<html/>", r"found <html>, wanted <lexUnit>"),
    "an unknown frame": (
        lambda xml: xml.replace("Feeling", "../lu/lu6"),
        r"'../lu/lu6' is not list",
    ),
}
FAR = "'Feeler' is at characters {}, but the text has 0 to 39"
OFFSETS = {
    (38, 40): FAR.format("38 to 40"),
    (5, 4): FAR.format("5 to 4"),
    (-1, 4): FAR.format("-1 to 4"),
    ("", "x"): FAR.format(" to x"),
    ("9" * 5000, "9" * 5000): FAR.format("9{12} to 9{12}"),
}


def spoilt_release(folder: Path, content: str | bytes) -> Path:
    """Of two units the first is spoilt."""
    good = Sentence(80, "x " + TEXT, "pitied", [FEELER])
    units = [Unit(5, "pity.v", sentences=[GOOD]), Unit(6, "rue.v", sentences=[good])]
    release = write_release(folder, units)
    raw = content.encode("utf-8") if isinstance(content, str) else content
    (release / "lu" / "lu5.xml").write_bytes(raw)
    return release


@pytest.mark.parametrize("what", SPOILT)
def test_a_spoilt_file_is_named_with_its_line_or_skipped(tmp_path, what):
    spoil, wanted = SPOILT[what]
    release = spoilt_release(tmp_path, spoil(Unit(5, "pity.v", sentences=[GOOD]).xml()))
    with pytest.raises(CorpusError, match=rf"lu5\.xml.*{wanted}"):
        list(FramesCorpus(release))
    bad, good = (d.passages[0] for d in FramesCorpus(release, on_error="skip"))
    assert bad.fault is not None
    assert "lu5.xml" in bad.fault
    assert (bad.id, good.id) == ("lu5.xml", "80 rue.v")


@pytest.mark.parametrize("offsets", OFFSETS)
def test_offsets_outside_the_text_are_named_with_file_line_and_sentence(tmp_path, offsets):
    bad = Sentence(70, TEXT, "pitied", [("Feeler", offsets)])
    release = write_release(tmp_path, [Unit(5, "pity.v", sentences=[bad, GOOD])])
    line = (release / "lu" / "lu5.xml").read_text("utf-8").split('name="Feeler"/')[0].count(
        "\n"
    ) + 1
    wanted = rf"lu5\.xml:{line}: sentence 70: {OFFSETS[offsets]}"
    with pytest.raises(CorpusError, match=wanted):
        list(FramesCorpus(release))
    fault, good = (d.passages[0] for d in FramesCorpus(release, on_error="skip"))
    assert (fault.id, good.id) == ("70 pity.v", "71 pity.v")


def test_a_sentence_without_text_is_named(tmp_path):
    xml = Unit(5, "pity.v", sentences=[GOOD]).xml()
    release = spoilt_release(tmp_path, xml.replace(f"<text>{TEXT}</text>", ""))
    with pytest.raises(CorpusError, match=r"lu5\.xml:5: sentence 71: the sentence has no <text>"):
        list(FramesCorpus(release))


def test_what_is_skipped_is_counted_as_malformed(tmp_path, bert):
    corpus = FramesCorpus(spoilt_release(tmp_path, "<html/>"), on_error="skip")
    encoder = Encoder(bert, model_limit=512, has_segments=True)
    assert len([e for document in corpus for e in encoder.encode(document)]) == 1
    assert encoder.counts.reasons["malformed"].total == 1
    assert corpus.describe()["on_error"] == "skip"


@pytest.mark.parametrize("index", ["luIndex.xml", "frameIndex.xml"])
def test_a_spoilt_index_always_stops(tmp_path, index):
    release = write_release(tmp_path, [Unit(5, "pity.v", sentences=[GOOD])])
    (release / index).write_text("<html/>", "utf-8")
    with pytest.raises(CorpusError, match=rf"{index}: found <html>"):
        FramesCorpus(release, on_error="skip")


def test_a_unit_whose_number_is_a_path_is_never_opened(tmp_path):
    (tmp_path / "luoutside.xml").write_text("secret", "utf-8")
    release = write_release(tmp_path / "fn", [Unit(5, "pity.v", sentences=[GOOD])])
    index = release / "luIndex.xml"
    hostile = '<lu name="x" ID="5/../../../luoutside"/></luIndex>'
    index.write_text(index.read_text("utf-8").replace("</luIndex>", hostile), "utf-8")
    corpus = FramesCorpus(release)
    assert corpus.absent == 1
    assert [d.id for d in corpus] == ["71"]


# --- the description ------------------------------------------------------------------------


def test_the_description_is_one_digest_of_all_files_and_the_options(tmp_path):
    release = write_release(tmp_path / "fndata-1.5", [Unit(5, "pity.v", sentences=[GOOD])])
    described = FramesCorpus(release, core="sets").describe()
    (file,) = described["files"]
    assert (described["kind"], file["name"]) == ("frames", "fndata-1.5")
    assert (described["core"], described["sentence_words"]) == ("sets", 12)
    assert (described["element_words"], described["distance"]) == (3, 2)
    for part in ("lu/lu5.xml", "frame/Feeling.xml", "luIndex.xml", "frameIndex.xml"):
        before = FramesCorpus(release).describe()["files"][0]["sha256"]
        with (release / part).open("a") as changed:
            changed.write("<!-- changed -->")
        assert FramesCorpus(release).describe()["files"][0]["sha256"] != before


def test_it_can_be_read_again_and_by_another_process(tmp_path):
    release = write_release(tmp_path, [Unit(5, "pity.v", sentences=[GOOD])])
    corpus = FramesCorpus(release)
    assert list(corpus) == list(corpus) == list(pickle.loads(pickle.dumps(corpus)))


# --- the real release -----------------------------------------------------------------------


@pytest.mark.parametrize(("core", "kept"), [("declared", 201), ("sets", 198)])
def test_the_shared_part_of_framenet_gives_so_many_sentences(shared, core, kept):
    """136 of 7,711 annotated units; that these are the right ones is in test_frame_oracle."""
    corpus = FramesCorpus(shared / "data" / "framenet15", core=core)
    assert corpus.absent == 7_711 - 136
    documents = list(corpus)
    assert len(documents) == len({d.id for d in documents}) == kept
