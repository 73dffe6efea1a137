"""Is a corpus parsed once, and found again as long as nothing has changed?"""

from __future__ import annotations

import os
import pickle
import re
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.chain import LOADED, SEEN, Chain, chained, forms
from headscope.corpus import (
    AnnotatedCorpus,
    Document,
    MemoryCorpus,
    SegmentsCorpus,
    TextCorpus,
    TreebankCorpus,
    Word,
)
from headscope.corpus.annotate import annotated
from headscope.corpus.annotate.annotated import read_cache, write_cache
from headscope.errors import InputError


def cached(folder: Path) -> list[Path]:
    return sorted(folder.glob("cache-home/headscope/annotations/*.chain-en-*.conllu"))


def test_a_corpus_is_parsed_once_however_often_and_wherever_it_is_read(write):
    path = write("One. Two.\n\nThree.", "a.txt")
    corpus = AnnotatedCorpus(TextCorpus(path), Chain())
    first = list(corpus)
    seen = list(SEEN)
    assert seen == ["One. Two.", "Three."]
    elsewhere = pickle.loads(pickle.dumps(corpus))
    again = AnnotatedCorpus(TextCorpus(path), Chain())
    assert list(corpus) == list(elsewhere) == list(again) == first
    assert seen == SEEN
    assert LOADED == ["chain:en"]


def test_what_is_read_back_is_what_the_parser_said(write):
    """A corpus in memory never went through a file."""
    lines = ["One _ two. # three", "a\u200bb \u05d0\u05d1 🏳", "1 \x00 \x7f ''."]
    corpus = TextCorpus(write("\n".join(lines)), passages="line")
    in_memory = MemoryCorpus(list(corpus))
    assert list(AnnotatedCorpus(corpus, Chain())) == list(AnnotatedCorpus(in_memory, Chain()))


# White space never gets into a form; what else may is any character of valid Unicode.
FORM = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).map(
    lambda text: " ".join(text.split()) or "x"
)
TAG = st.none() | st.text("ABC-$.:'", min_size=1)


@given(st.data())
def test_any_words_are_the_same_after_a_round_through_the_file(tmp_path_factory, data):
    size = data.draw(st.integers(1, 6))
    root = data.draw(st.integers(0, size - 1))
    tree = tuple(
        Word(
            data.draw(FORM),
            data.draw(TAG),
            data.draw(TAG),
            -1 if n == root else root,
            "root" if n == root else data.draw(TAG),
            data.draw(st.booleans()),
        )
        for n in range(size)
    )
    path = tmp_path_factory.mktemp("round") / "x.conllu"
    name = data.draw(st.text())
    write_cache(path, "key", [("first", [[]]), (name, [[tree], [], [tree, tree]])])
    assert list(read_cache(path)) == [(1, {0: [tree], 2: [tree, tree]})]


def test_the_file_is_a_treebank_with_the_documents_of_the_corpus(write, tmp_path):
    path = write("= A =\nOne. Two.\n= B =\nThree.", "a.txt")
    corpus = AnnotatedCorpus(TextCorpus(path, documents="heading"), Chain())
    kept = corpus.prepare()
    assert cached(tmp_path) == [kept]
    assert kept.name.startswith("a.txt.chain-en-1.0.")
    treebank = TreebankCorpus(kept)
    assert [d.id for d in treebank] == ["A", "B"]
    assert forms(treebank) == forms(corpus)


def test_a_changed_source_is_parsed_again(write):
    path = write("One.")
    assert forms(AnnotatedCorpus(TextCorpus(path), Chain())) == [["One."]]
    path.write_text("Two.")
    assert forms(AnnotatedCorpus(TextCorpus(path), Chain())) == [["Two."]]
    path.write_text("One.")
    assert forms(AnnotatedCorpus(TextCorpus(path), Chain())) == [["One."]]
    assert SEEN == ["One.", "Two."]  # the first annotation was still there


@pytest.mark.parametrize("other", [Chain(version="1.1"), Chain(name="chain:de")])
def test_another_parser_or_version_parses_again(write, other):
    corpus = TextCorpus(write("One."))
    list(AnnotatedCorpus(corpus, Chain()))
    list(AnnotatedCorpus(corpus, other))
    assert SEEN == ["One.", "One."]
    list(AnnotatedCorpus(corpus, Chain()))
    assert len(SEEN) == 2


def test_another_version_of_headscope_parses_again(write, monkeypatch):
    """It may cut texts into other pieces, whose numbers the file speaks of."""
    corpus = TextCorpus(write("One."))
    list(AnnotatedCorpus(corpus, Chain()))
    monkeypatch.setattr(annotated, "__version__", "99")
    list(AnnotatedCorpus(corpus, Chain()))
    assert SEEN == ["One.", "One."]


def test_another_way_of_reading_has_a_file_of_its_own(write, tmp_path):
    path = write("One. Two.\nThree.")
    packed = AnnotatedCorpus(TextCorpus(path), Chain())
    lines = AnnotatedCorpus(TextCorpus(path, passages="line"), Chain())
    for _ in range(2):
        list(packed), list(lines)
    assert SEEN == ["One. Two. Three.", "One. Two.", "Three."]
    assert len(cached(tmp_path)) == 2


def spoil(path: Path, how: str) -> None:
    content = path.read_bytes()
    if how == "truncated":
        path.write_bytes(content[: len(content) // 2])
    elif how == "changed":
        path.write_bytes(content.replace(b"\tOne.\t", b"\tOdd.\t"))
    elif how == "of another key":
        path.write_bytes(re.sub(rb"annotation \w+", b"annotation " + b"0" * 64, content))
    elif how == "not text":
        path.write_bytes(b"\xff\xfe" + content)
    elif how == "empty":
        path.write_bytes(b"")
    else:
        path.unlink()


@pytest.mark.parametrize(
    "how", ["truncated", "changed", "of another key", "not text", "empty", "gone"]
)
def test_a_damaged_file_is_made_again(write, how):
    path = write("One. Two.")
    kept = AnnotatedCorpus(TextCorpus(path), Chain()).prepare()
    whole = kept.read_bytes()
    spoil(kept, how)
    assert forms(AnnotatedCorpus(TextCorpus(path), Chain())) == [["One.", "Two."]]
    assert len(SEEN) == 2
    assert kept.read_bytes() == whole


def test_a_file_that_vanishes_between_two_readings_is_made_again(write):
    corpus = AnnotatedCorpus(TextCorpus(write("One.")), Chain())
    first = list(corpus)
    corpus.prepare().unlink()
    assert list(corpus) == first
    assert len(SEEN) == 2


def test_two_that_write_at_once_leave_one_whole_file(write, tmp_path):
    path, together = write("One. Two.\n\nThree."), threading.Barrier(2)

    @dataclass(frozen=True)
    class Meeting(Chain):
        def load(self):
            together.wait(60)  # neither has begun to write
            return super().load()

    found: list[list[Document]] = []

    def read() -> None:
        found.append(list(AnnotatedCorpus(TextCorpus(path), Meeting())))

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found[0] == found[1] == list(AnnotatedCorpus(TextCorpus(path), Chain()))
    assert len(SEEN) == 4  # both parsed both, the third reader none
    assert len(cached(tmp_path)) == 1


def refusing(monkeypatch, *folders: Path) -> None:
    """No file can be written into these folders (root may write anywhere, so chmod will not do)."""

    def refuse(path, *given):
        if Path(path).parent in folders:
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *given)

    opened = os.open
    monkeypatch.setattr(os, "open", refuse)


def test_a_folder_of_texts_is_left_as_it_was_and_read_again(write, tmp_path):
    place = write("One.", "texts/a.txt").parent
    for _ in range(2):
        assert forms(AnnotatedCorpus(TextCorpus(place), Chain())) == [["One."]]
    assert len(SEEN) == 1
    assert [file.name for file in place.iterdir()] == ["a.txt"]


def test_where_nothing_can_be_written_the_annotation_is_held_in_memory(
    write, tmp_path, monkeypatch
):
    refusing(monkeypatch, tmp_path / "cache-home" / "headscope" / "annotations")
    corpus = AnnotatedCorpus(TextCorpus(write("One.\n\nTwo.")), Chain())
    assert corpus.prepare() is None
    elsewhere = pickle.loads(pickle.dumps(corpus))
    assert forms(corpus) == forms(corpus) == forms(elsewhere) == [["One."], ["Two."]]
    assert SEEN == ["One.", "Two."]


def test_a_place_that_is_taken_by_a_folder_is_not_the_end(write, tmp_path):
    path = write("One.")
    kept = AnnotatedCorpus(TextCorpus(path), Chain()).prepare()
    kept.unlink()
    kept.mkdir()
    assert forms(AnnotatedCorpus(TextCorpus(path), Chain())) == [["One."]]
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".part-")]


def test_a_corpus_in_memory_leaves_no_file_and_is_parsed_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    corpus = AnnotatedCorpus(MemoryCorpus(["One. Two."]), Chain())
    assert forms(corpus) == forms(corpus) == [["One.", "Two."]]
    assert corpus.prepare() is None
    assert corpus.source is None
    assert SEEN == ["One. Two."]
    assert not os.listdir(tmp_path)


def test_a_parser_that_fails_leaves_nothing_behind(write, tmp_path):
    @dataclass(frozen=True)
    class Failing(Chain):
        def load(self):
            def parse(texts):
                if "Two." in texts:
                    raise InputError("cannot")
                return [chained(text) for text in texts]

            return parse

    with pytest.raises(InputError, match="cannot"):
        list(AnnotatedCorpus(TextCorpus(write("One.\n\nTwo.")), Failing()))
    assert not [p for p in tmp_path.rglob("*") if p.is_file() and p.name != "corpus.txt"]


def test_a_limit_spares_the_parser_the_rest(write, tmp_path):
    path = write("One.\n\nTwo.\n\nThree.")
    few = AnnotatedCorpus(TextCorpus(path), Chain(), limit=2)
    assert forms(few) == forms(few) == [["One."], ["Two."]]
    assert SEEN == ["One.", "Two."]
    assert len(list(AnnotatedCorpus(TextCorpus(path), Chain()))) == 3
    assert len(SEEN) == 5
    assert forms(AnnotatedCorpus(TextCorpus(path), Chain(), limit=1)) == [["One."]]
    assert len(SEEN) == 5  # the annotation of all holds that of one
    assert len(cached(tmp_path)) == 2


def test_text_without_any_word_is_a_corpus_too(write):
    rows = '{"text_a": ""}\n{"text_a": " "}\n{"tokens": ["[CLS]", "cat"]}\n'
    corpus = SegmentsCorpus(write(rows, "rows.jsonl"))
    for _ in range(2):
        assert list(AnnotatedCorpus(corpus, Chain())) == list(corpus)
    assert len(LOADED) == 1


def test_documents_with_and_without_text_keep_their_places(write):
    rows = ['{"tokens": ["a"]}', '{"text_a": "One. Two."}', '{"text_a": ""}', '{"text_a": "B."}']
    corpus = SegmentsCorpus(write("\n".join(rows), "rows.jsonl"))
    annotated = AnnotatedCorpus(corpus, Chain())
    for _ in range(2):
        assert forms(annotated) == [[], ["One.", "Two."], [], ["B."]]
        assert [d.id for d in annotated] == [d.id for d in corpus]


def test_a_name_as_long_as_names_may_be_leaves_room_for_the_parsers(write, tmp_path):
    path = write("One.", "é" * 120 + ".txt")
    assert [AnnotatedCorpus(TextCorpus(path), Chain(version="1" * 300)).prepare()] == [
        *tmp_path.glob("cache-home/headscope/annotations/*.conllu")
    ]


def test_progress_counts_documents(write):
    counts: list[int] = []
    corpus = AnnotatedCorpus(TextCorpus(write("One.\n\nTwo.\n\nThree.")), Chain())
    corpus.prepare(counts.append)
    corpus.prepare(counts.append)
    assert counts == [1, 2, 3]
