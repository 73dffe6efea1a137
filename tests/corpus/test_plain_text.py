"""Does plain text become the documents and passages that its lines say?"""

import hashlib
import re
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headscope.corpus import Concatenation, Document, MemoryCorpus, Passage, TextCorpus
from headscope.corpus.plain_text import sentences, title_of_heading
from headscope.errors import CorpusError, InputError


def texts(document):
    return [passage.text for passage in document.passages]


def test_blank_lines_part_documents_and_the_last_needs_none_behind_it(write):
    path = write("\n one\ntwo\n \t \n\nthree")
    assert [texts(d) for d in TextCorpus(path)] == [["one", "two"], ["three"]]


def test_a_document_is_named_after_its_first_line(write):
    path = write("\n one\ntwo\n\nthree\n", "a.txt")
    assert [d.id for d in TextCorpus(path)] == ["a.txt:2", "a.txt:5"]


def test_a_file_can_be_one_document(write):
    corpus = TextCorpus([write("one\n\ntwo", "a.txt"), write("three", "b.txt")], documents="file")
    assert [(d.id, texts(d)) for d in corpus] == [("a.txt", ["one", "two"]), ("b.txt", ["three"])]


def test_top_headings_start_documents_and_no_heading_is_lost(write):
    path = write("before\n = First = \n\n body .\n = = Part = = \n more\n = Second = \n end\n")
    assert [(d.id, texts(d)) for d in TextCorpus(path, documents="heading")] == [
        ("corpus.txt", ["before"]),
        ("First", ["= First =", "body .", "= = Part = =", "more"]),
        ("Second", ["= Second =", "end"]),
    ]


HEADING = re.compile(r"=\s+(?!=)(\S.*?)(?<!=)\s+=")


@given(st.text("= \ta", max_size=9))
def test_a_title_is_what_stands_between_two_marks(text):
    match = HEADING.fullmatch(text)
    wanted = match[1].strip() if match else ""
    assert title_of_heading(text) == ("" if wanted.endswith("=") else wanted)


def test_a_line_of_a_million_spaces_is_read_at_once(write):
    """Its time once grew with the square."""
    line = "= " + " " * 1_000_000 + "a"
    (document,) = TextCorpus(write(line + "\n"), documents="heading")
    assert [passage.text for passage in document.passages] == [line]


def test_a_title_used_twice_names_two_documents(write):
    path = write("= A =\nx\n= A =\ny\n")
    assert [d.id for d in TextCorpus(path, documents="heading")] == ["A", "A (corpus.txt:3)"]


def test_a_file_given_twice_gives_no_name_twice(write):
    path = write("one\n\ntwo\n", "a.txt")
    assert len({d.id for d in TextCorpus([path, path])}) == 4


def test_memory_does_not_grow_with_the_documents(write):
    path = write("".join(f"document {n}\n\n" for n in range(10_000)))
    tracemalloc.start()
    try:
        held = [
            tracemalloc.get_traced_memory()[0]
            for number, _ in enumerate(TextCorpus(path))
            if number in {4000, 9999}  # once rubbish has been collected
        ]
    finally:
        tracemalloc.stop()
    assert held[1] - held[0] < 20_000  # bytes; 6,000 names alone would be 400,000


def test_files_of_one_name_are_told_apart_by_their_paths(write):
    corpus = TextCorpus([write("x", "a/t.txt"), write("y", "b/t.txt")])
    first, second = (d.id for d in corpus)
    assert first != second


def test_a_line_can_be_an_input_of_its_own(write):
    (document,) = TextCorpus(write("One. Two.\nThree."), passages="line")
    assert [(p.id, p.text, p.packable) for p in document.passages] == [
        ("corpus.txt:1", "One. Two.", False),
        ("corpus.txt:2", "Three.", False),
    ]


def test_packed_lines_are_cut_into_sentences_that_may_share_a_window(write):
    (document,) = TextCorpus(write("One. Two!\nThree?"))
    assert [(p.id, p.text, p.packable) for p in document.passages] == [
        ("corpus.txt:1.1", "One.", True),
        ("corpus.txt:1.2", "Two!", True),
        ("corpus.txt:2.1", "Three?", True),
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("He left. She stayed.", ["He left.", "She stayed."]),
        ('"Go!" he said. "Why?" ', ['"Go!" he said.', '"Why?"']),
        ("It cost 3.5 pounds . Not more .", ["It cost 3.5 pounds .", "Not more ."]),
        ("Born c. 1900. (Or so.) Who knows?", ["Born c.", "1900.", "(Or so.)", "Who knows?"]),
        ("e.g. this one", ["e.g. this one"]),
        ("no end", ["no end"]),
    ],
)
def test_sentences_end_at_a_mark_before_space_and_no_lower_case(line, expected):
    assert sentences(line) == expected


@given(st.text(alphabet="ab A.!?\"') \t\u00a0é", max_size=60))
def test_only_white_space_is_lost_between_sentences(line):
    assert "".join("".join(sentences(line)).split()) == "".join(line.split())


def test_a_byte_order_mark_and_windows_line_ends_are_not_text(write):
    path = write(b"\xef\xbb\xbfone\r\n\r\ntwo\r\n")
    assert [texts(d) for d in TextCorpus(path)] == [["one"], ["two"]]


def test_invalid_utf8_is_named_with_file_line_and_byte_offset(write):
    path = write(b"\xef\xbb\xbfone\nt\xffwo\n")
    with pytest.raises(CorpusError, match=r"corpus\.txt:2: byte 0xff at offset 8 is not valid"):
        list(TextCorpus(path))


@pytest.mark.parametrize("passages", ["packed", "line"])
def test_with_skip_only_the_line_with_invalid_utf8_is_left_out(write, passages):
    path = write(b"One.\nt\xffwo\nThree.\n\n= \xff =\n")
    with pytest.raises(CorpusError, match=r"corpus\.txt:2: byte 0xff at offset 6"):
        list(TextCorpus(path, passages=passages))
    first, second = TextCorpus(path, passages=passages, on_error="skip")
    assert texts(first) == ["One.", None, "Three."]
    assert "corpus.txt:2: byte 0xff at offset 6" in first.passages[1].fault
    assert "corpus.txt:5: " in second.passages[0].fault


def test_with_skip_a_title_of_invalid_utf8_names_no_document(write):
    path = write(b"= A =\nx\n= \xff =\ny\n")
    (document,) = TextCorpus(path, documents="heading", on_error="skip")
    assert (document.id, texts(document)) == ("A", ["= A =", "x", None, "y"])
    assert TextCorpus(path, on_error="skip").describe()["on_error"] == "skip"


def test_an_invalid_first_byte_behind_a_byte_order_mark_has_its_true_offset(write):
    with pytest.raises(CorpusError, match="offset 3"):
        list(TextCorpus(write(b"\xef\xbb\xbf\xff")))


def test_a_surrogate_in_a_file_is_invalid_utf8(write):
    with pytest.raises(CorpusError, match="offset 1"):
        list(TextCorpus(write(b"a\xed\xa0\x80")))


def test_an_empty_file_is_refused_before_anything_is_read(write):
    with pytest.raises(CorpusError, match="is empty"):
        TextCorpus(write(""))


def test_a_file_of_white_space_is_refused(write):
    with pytest.raises(CorpusError, match="only white space"):
        list(TextCorpus(write(" \n\n")))


def test_a_missing_file_and_an_empty_folder_are_refused(tmp_path):
    with pytest.raises(CorpusError, match="does not exist"):
        TextCorpus(tmp_path / "none.txt")
    with pytest.raises(CorpusError, match="is a folder without files"):
        TextCorpus([tmp_path])
    with pytest.raises(CorpusError, match="no corpus file"):
        TextCorpus([])


def test_unknown_options_are_refused(write):
    path = write("x")
    with pytest.raises(InputError, match="blank_line"):
        TextCorpus(path, documents="page")
    with pytest.raises(InputError, match="packed"):
        TextCorpus(path, passages="page")


def test_nul_and_right_to_left_text_are_kept(write):
    (document,) = TextCorpus(write("a\0b\nשלום עולם"), passages="line")
    assert texts(document) == ["a\0b", "שלום עולם"]


def test_a_corpus_can_be_read_again_and_in_parallel(write):
    corpus = TextCorpus(write("one\n\ntwo"))
    first, second = iter(corpus), iter(corpus)
    assert next(first) == next(second)
    assert list(corpus) == list(corpus)


def test_reading_is_lazy(write):
    documents = iter(TextCorpus(write(b"good\n\n" + b"more\n\n" + b"\xff")))
    assert texts(next(documents)) == ["good"]


def test_the_description_holds_the_hash_of_each_file(write):
    path = write("one", "a.txt")
    assert TextCorpus(path).describe() == {
        "kind": "text",
        "files": [{"name": "a.txt", "sha256": hashlib.sha256(b"one").hexdigest()}],
        "documents": "blank_line",
        "passages": "packed",
    }


def test_texts_pairs_and_documents_in_memory_are_a_corpus():
    own = Document("mine", (Passage("mine", text="x"),))
    corpus = MemoryCorpus(["one", ("two", "three"), own])
    assert list(corpus) == [
        Document("text 0", (Passage("text 0", text="one"),)),
        Document("text 1", (Passage("text 1", text="two", text_pair="three"),)),
        own,
    ]


def test_a_corpus_in_memory_is_described_by_its_content():
    same, other = MemoryCorpus(["one \ud800"]), MemoryCorpus(["two"])
    assert same.describe() == MemoryCorpus(["one \ud800"]).describe() != other.describe()


@pytest.mark.parametrize(
    ("given", "match"), [("one", "list of texts"), ([], "empty"), ([3], "int")]
)
def test_what_is_no_corpus_in_memory_is_refused(given, match):
    with pytest.raises(InputError, match=match):
        MemoryCorpus(given)


def test_several_corpora_are_read_as_one(write):
    text = TextCorpus(write("one"))
    both = Concatenation([text, MemoryCorpus(["two"])])
    assert [texts(d) for d in both] == [["one"], ["two"]] == [texts(d) for d in both]
    assert both.describe()["files"] == text.describe()["files"]
    with pytest.raises(CorpusError, match="no corpus"):
        Concatenation([])


def test_wikitext_headings_give_its_sixty_articles(shared):
    corpus = TextCorpus(shared / "data" / "wikitext2" / "valid.txt", documents="heading")
    documents = list(corpus)
    assert len(documents) == 60
    assert documents[0].id == "Homarus gammarus"
    read = "".join("".join(t.split()) for d in documents for t in texts(d))
    assert read == "".join(corpus.files[0].read_text(encoding="utf-8").split())
