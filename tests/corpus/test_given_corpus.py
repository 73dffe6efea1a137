"""Is what a user gives for a corpus read as what it is, and refused where that is not clear?"""

from collections import UserList
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import headscope as hs
import strangers
from headscope.corpus import (
    Concatenation,
    CorefCorpus,
    MemoryCorpus,
    SegmentsCorpus,
    corpus_of,
    places,
)
from headscope.errors import CorpusError, InputError

ROW = "1\tHi\thi\tINTJ\tUH\t_\t0\troot\t_\t_\n\n"
TEXTS = ["The cat sat.", "A dog barked."]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("wiki.txt", "notes"):
        Path(name).write_text("The cat sat.\n", "utf-8")
    Path("dev.conllu").write_text(ROW, "utf-8")
    Path("trees.conll").write_text(ROW, "utf-8")
    Path("tale.conll").write_text("\n#begin document (tale); part 0\n#end document\n", "utf-8")
    Path("lines.jsonl").write_text('{"text_a": "Hi"}\n', "utf-8")
    return tmp_path


def texts_of(corpus: object) -> list[str]:
    return [p.text for document in corpus for p in document.passages]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "column",
    [
        TEXTS,
        tuple(TEXTS),
        iter(TEXTS),
        (text for text in TEXTS),
        pd.Series(TEXTS),
        pd.DataFrame({"text": TEXTS})["text"],
        pd.Index(TEXTS),
        np.array(TEXTS),
        UserList(TEXTS),  # a sequence of str, as `datasets` gives
    ],
    ids=lambda given: type(given).__name__,
)
def test_any_column_of_texts_is_texts(column: object) -> None:
    assert texts_of(corpus_of(column)) == TEXTS  # type: ignore[arg-type]


def test_a_column_never_names_files(desk: Path) -> None:
    assert texts_of(corpus_of(pd.Series(["wiki.txt", "notes"]))) == ["wiki.txt", "notes"]


def test_one_text_pairs_and_documents_are_read_as_they_are() -> None:
    assert texts_of(corpus_of("The cat sat.")) == ["The cat sat."]
    (document,) = corpus_of([("A cat.", "A dog.")])
    assert document.passages[0].text_pair == "A dog."
    assert list(corpus_of([document])) == [document]


def test_a_corpus_stays_what_it_is_and_several_are_read_in_turn() -> None:
    corpus = MemoryCorpus(TEXTS)
    assert corpus_of(corpus) is corpus
    both = corpus_of([corpus, MemoryCorpus(["More."])])
    assert isinstance(both, Concatenation)
    assert texts_of(both) == [*TEXTS, "More."]
    assert corpus_of("demo") == hs.demo_corpus()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("wiki.txt", hs.corpus.TextCorpus),
        ("notes", hs.corpus.TextCorpus),
        ("dev.conllu", hs.corpus.TreebankCorpus),
        ("trees.conll", hs.corpus.TreebankCorpus),
        ("tale.conll", CorefCorpus),
        ("lines.jsonl", SegmentsCorpus),
    ],
)
def test_a_file_is_read_by_its_suffix_however_it_is_named(
    desk: Path, name: str, kind: type
) -> None:
    for given in (name, Path(name), [name], [Path(name)], str(desk / name)):
        assert type(corpus_of(given)) is kind


def test_files_of_several_kinds_are_read_kind_by_kind(desk: Path) -> None:
    both = corpus_of(["wiki.txt", "dev.conllu", "notes"])
    assert [type(one) for one in both.corpora] == [hs.corpus.TextCorpus, hs.corpus.TreebankCorpus]  # type: ignore[attr-defined]
    assert [file["name"] for file in both.describe()["files"]] == [
        "wiki.txt",
        "notes",
        "dev.conllu",
    ]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("wikki.txt", "wikki.txt does not exist; it looks like a file's name"),
        ("texts/wiki", "does not exist"),
        ("and/or", r"put it in a list: headscope.corpus.MemoryCorpus\(\[text\]\)"),
        (Path("gone"), "gone does not exist"),
        (["wiki.txt", "gone.txt"], "gone.txt does not exist"),
        (["wiki.txt", "The cat sat."], "'wiki.txt', a file, and 'The cat sat.', which is no file"),
        ("  ", "an empty text"),
        ([], "an empty list"),
        (".", r"has files of several formats: trees \(dev.conllu\), JSON lines"),
        ("table.csv", "does not exist"),
    ],
)
def test_what_may_be_meant_otherwise_is_refused(desk: Path, given: object, words: str) -> None:
    with pytest.raises(CorpusError, match=words):
        corpus_of(given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (pd.DataFrame({"text": TEXTS}), r"columns text; wanted one column of it, say table\['text"),
        ({"text": TEXTS}, "found a dict for a corpus"),
        (b"text", "found a bytes for a corpus"),
        (3, "found a int for a corpus"),
        (pd.Series(["a", None]), r"item 1 of the corpus is missing \(say column.dropna\(\)\)"),
        (pd.Series([1.0, 2.0]), "item 0 of the corpus is a float"),
        (np.array(["a", np.nan], object), "item 1 of the corpus is missing"),
    ],
    ids=str,
)
def test_what_holds_no_texts_is_refused_by_its_kind(given: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        corpus_of(given)  # type: ignore[arg-type]


def test_a_table_on_disk_is_refused_with_the_way_to_a_column(desk: Path) -> None:
    Path("table.csv").write_text("text\nhi\n", "utf-8")
    with pytest.raises(CorpusError, match="give one column"):
        corpus_of("table.csv")


def test_a_text_with_a_slash_or_a_suffix_among_words_is_a_text(desk: Path) -> None:
    for text in ("Give me and/or take.", "I read wiki.txt yesterday."):
        assert texts_of(corpus_of(text)) == [text]
    assert texts_of(corpus_of(["and/or", "A cat."])) == ["and/or", "A cat."]


def test_a_corpus_shows_itself_in_a_line_and_as_a_table(desk: Path) -> None:
    assert repr(corpus_of(TEXTS)) == "<headscope.MemoryCorpus 2 documents: The cat sat.>"
    assert repr(corpus_of(["x" * 9000])).endswith("x…>")
    text = corpus_of("wiki.txt")
    assert repr(text) == ("<headscope.TextCorpus wiki.txt: documents=blank_line, passages=packed>")
    assert "<td style='text-align:left'>wiki.txt</td>" in text._repr_html_()  # type: ignore[attr-defined]
    assert "&lt;b&gt;" in corpus_of(["<b>"])._repr_html_()  # type: ignore[attr-defined]
    assert "wiki.txt" in repr(corpus_of(["wiki.txt", "dev.conllu"]))


FORMAT = """
from pathlib import Path
from headscope.corpus.places import FileFormat

def read(files):
    import headscope as hs
    texts = [text for file in files for text in Path(file).read_text().split("|")]
    return hs.corpus.MemoryCorpus(texts)

BARS = FileFormat("bars", (".bars",), read)
TAKEN = FileFormat("mine", (".txt",), read)
"""
ENTRIES = """
[headscope.formats]
bars = mine:BARS
taken = mine:TAKEN
"""


def test_a_format_of_another_package_is_read_by_its_suffix(tmp_path, monkeypatch):
    strangers.install(tmp_path, monkeypatch, FORMAT, ENTRIES)
    places.formats.cache_clear()
    try:
        file = tmp_path / "corpus" / "a.bars"
        file.parent.mkdir()
        file.write_text("One text.|Another one.")
        with pytest.warns(UserWarning, match=r"'taken' of mine is left out: its suffix .txt"):
            documents = list(corpus_of(file))
        assert [one.passages[0].text for one in documents] == ["One text.", "Another one."]
        (file.parent / "b.txt").write_text("Plain.")
        with pytest.raises(CorpusError, match=r"several formats: bars \(a.bars\), text"):
            corpus_of(file.parent)
    finally:
        places.formats.cache_clear()
