"""Are JSON lines of segments read as they say, and refused where they do not?"""

import json

import pytest

from headscope.corpus import Passage, SegmentsCorpus
from headscope.errors import CorpusError


def lines(*rows):
    return "\n".join(json.dumps(row) for row in rows)


def test_tokens_win_over_text_and_other_keys_are_ignored(write):
    row = {"id": "s", "tokens": ["[CLS]", "a", "[SEP]"], "text_a": "b", "article": "x", "n": 3}
    (document,) = SegmentsCorpus(write(lines(row)))
    assert document.passages == (Passage("s", tokens=("[CLS]", "a", "[SEP]")),)


def test_text_a_may_stand_alone(write):
    rows = lines({"id": 1, "text_a": "x", "text_b": "y"}, {"text_a": "z", "tokens": None})
    documents = list(SegmentsCorpus(write(rows, "s.jsonl")))
    assert [d.passages[0] for d in documents] == [
        Passage("1", text="x", text_pair="y"),
        Passage("s.jsonl:2", text="z"),
    ]
    assert [d.id for d in documents] == ["1", "s.jsonl:2"]


def test_neighbouring_lines_of_one_document_come_together(write):
    rows = [{"id": i, "text_a": "x", "document": d} for i, d in enumerate(["a", "a", "b", "a"])]
    documents = list(SegmentsCorpus(write(lines(*rows))))
    assert [(d.id, [p.id for p in d.passages]) for d in documents] == [
        ("a", ["0", "1"]),
        ("b", ["2"]),
        ("a", ["3"]),
    ]


def test_blank_lines_are_skipped_but_counted_in_line_numbers(write):
    (document,) = SegmentsCorpus(write('\n\n{"text_a": "x"}\n\n', "s.jsonl"))
    assert document.id == "s.jsonl:3"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not valid JSON .* column 2"),
        ('{"text_a": "x"} trailing', "not valid JSON"),
        ('["a"]', "JSON list; wanted an object"),
        ("{}", 'neither "tokens" nor "text_a"'),
        ('{"text_b": "x"}', 'neither "tokens" nor "text_a"'),
        ('{"tokens": "a b"}', '"tokens" is not a list of strings'),
        ('{"tokens": ["a", 1]}', '"tokens" is not a list of strings'),
        ('{"text_a": 1}', '"text_a" is 1; wanted text'),
        ('{"text_a": "x", "text_b": []}', '"text_b" is'),
        ('{"text_a": "x", "id": 1.5}', '"id" is 1.5; wanted text or an integer'),
        ('{"text_a": "x", "document": true}', '"document" is True'),
        ("[" * 100_000, "recursion"),
        ("1" * 5_000, "integer string"),
    ],
)
def test_a_malformed_line_is_named_with_file_line_and_reason(write, line, reason):
    path = write('{"text_a": "good"}\n' + line, "s.jsonl")
    with pytest.raises(CorpusError, match=rf"s\.jsonl:2: .*{reason}"):
        list(SegmentsCorpus(path))


@pytest.mark.parametrize("line", [b"{", b"{}", b"[" * 100_000, b'{"text_a": "\xff"}'])
def test_with_skip_only_the_malformed_line_is_left_out(write, line):
    good = [json.dumps({"id": str(n), "text_a": "x"}).encode() for n in range(2)]
    path = write(b"\n".join([good[0], line, good[1]]), "s.jsonl")
    with pytest.raises(CorpusError, match=r"s\.jsonl:2: ") as caught:
        list(SegmentsCorpus(path))
    before, bad, after = (d.passages[0] for d in SegmentsCorpus(path, on_error="skip"))
    assert (before.id, bad.id, after.id) == ("0", "s.jsonl:2", "1")
    assert bad.fault == str(caught.value)
    assert SegmentsCorpus(path, on_error="skip").describe()["on_error"] == "skip"


def test_a_file_of_blank_lines_is_refused(write):
    with pytest.raises(CorpusError, match="only blank lines"):
        list(SegmentsCorpus(write("\n\n")))


def test_a_surrogate_escape_is_read_and_left_to_the_encoder(write):
    (document,) = SegmentsCorpus(write(r'{"text_a": "\ud800"}'))
    assert document.passages[0].text == "\ud800"


def test_segments_are_described_by_their_file(write):
    described = SegmentsCorpus(write(lines({"text_a": "x"}), "s.jsonl")).describe()
    assert described["kind"] == "segments"
    assert described["files"][0]["name"] == "s.jsonl"


def test_the_shared_segments_are_sixty_documents(shared):
    corpus = SegmentsCorpus(shared / "data" / "segments" / "wikitext2_valid.jsonl")
    documents = list(corpus)
    assert len(documents) == 60
    assert all(d.passages[0].tokens[0] == "[CLS]" for d in documents)
    assert documents == list(corpus)
