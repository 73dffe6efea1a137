"""Are the columns of CoNLL-2012 read as documents of words and mentions, and faults named?"""

import pytest

from headscope.corpus import CorefCorpus
from headscope.errors import CorpusError

# What OntoNotes looks like: columns padded by spaces, a parse in bits, predicate columns that
# differ in number from sentence to sentence.
ONTONOTES = """#begin document (bc/x/00/x_0000); part 000
bc/x/00/x_0000   0   0     John   NNP  (TOP(S(NP(NP*   -   -   -   Ann   *   (ARG0*   (0|(1
bc/x/00/x_0000   0   1       's   POS           *)     -   -   -   Ann   *        *       1)
bc/x/00/x_0000   0   2      car    NN            *)    -   -   -   Ann   *        *)      0)
bc/x/00/x_0000   0   3    broke   VBD         (VP*  break 01   1   Ann   *      (V*)       -
bc/x/00/x_0000   0   4    -LRB- -LRB-        (PRN*     -   -   -   Ann   *        *        -
bc/x/00/x_0000   0   5     down    RP            *)    -   -   -   Ann   *        *        -
bc/x/00/x_0000   0   6       /.     .          *)))    -   -   -   Ann   *        *        -

bc/x/00/x_0000   0   0       He   PRP   (TOP(S(NP*)    -   -   -   Ann   *   (1)
bc/x/00/x_0000   0   1     left   VBD        (VP*)     -   -   -   Ann   *     -
bc/x/00/x_0000   0   2        .     .           *))    -   -   -   Ann   *     -

#end document
#begin document (bc/x/00/x_0000); part 001
bc/x/00/x_0000   1   0       He   PRP   (TOP(NP*))     -   -   -   Ann   *   (1)

#end document
"""


def litbank(*cells, words=None):
    """Rows of one sentence as LitBank has them."""
    words = words or [f"w{n}" for n in range(len(cells))]
    rows = [
        "\t".join(["doc", "0", str(n), word, *["_"] * 8, cell])
        for n, (word, cell) in enumerate(zip(words, cells, strict=True))
    ]
    return "\n".join(rows) + "\n\n"


def document(*sentences, name="doc"):
    return f"#begin document ({name}); part 0\n{''.join(sentences)}#end document\n"


def only(path):
    (document,) = CorefCorpus(path)
    (passage,) = document.passages
    return passage


def spans(path):
    return [(m.entity, m.first, m.last) for m in only(path).mentions]


def test_ontonotes_parts_are_documents_of_words_and_mentions(write):
    first, second = (d.passages[0] for d in CorefCorpus(write(ONTONOTES)))
    assert (first.id, second.id) == ("bc/x/00/x_0000 part 0", "bc/x/00/x_0000 part 1")
    assert " ".join(w.form for w in first.words) == "John 's car broke ( down . He left ."
    assert [(m.entity, m.first, m.last, m.head, m.kind) for m in first.mentions] == [
        ("0", 0, 2, 2, "nominal"),  # John's *car*
        ("1", 0, 1, 0, "proper"),  # *John* 's
        ("1", 7, 7, 7, "pronoun"),
    ]
    assert [m.first for m in second.mentions] == [0]


def test_words_are_bare(write):
    words = only(write(document(litbank("(1)", "")))).words
    assert all(w.upos is w.xpos is w.relation is None and w.head == -1 for w in words)
    assert all(w.space_after for w in words)


def test_litbank_has_tabs_and_nothing_for_no_mention(write):
    text = litbank("(3", "", "3)|(4)", "_", "-", words=["the", "Duke", "Ann", "saw", "it"])
    assert spans(write(document(text))) == [("3", 0, 2), ("4", 2, 2)]


def test_without_a_parse_heads_and_kinds_go_by_the_words(write):
    words = ["the", "Duke", "of", "Kent", "saw", "her"]
    mentions = only(write(document(litbank("(1", "", "", "1)", "", "(2)", words=words)))).mentions
    assert [(m.head, m.kind) for m in mentions] == [(1, "proper"), (5, "pronoun")]


def test_nested_mentions_of_one_entity_close_the_last_one_opened(write):
    text = litbank("(1|(1", "", "1)", "1)")
    assert spans(write(document(text))) == [("1", 0, 3), ("1", 0, 2)]


def test_mentions_may_cross_and_single_ones_are_kept(write):
    text = litbank("(1", "(2", "1)", "2)", "(3)")
    assert spans(write(document(text))) == [("1", 0, 2), ("2", 1, 3), ("3", 4, 4)]


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("(a/b (c)); part 012", "a/b (c) part 12"),
        ("(a); part 000", "a part 0"),
        ("(a)", "a"),
        ("a", "a"),
        ("", "f.conll:1"),
        ("(part 3)", "part 3"),
    ],
)
def test_a_document_has_the_name_and_part_of_its_first_line(write, header, name):
    text = f"#begin document {header}\n{litbank('(1)')}#end document"
    assert only(write(text, "f.conll")).id == name


def test_documents_of_one_name_are_told_apart(write):
    text = document(litbank("(1)"))
    names = [d.id for d in CorefCorpus(write(text * 2, "f.conll"))]
    assert names == ["doc part 0", "doc part 0 (f.conll:5)"]


def test_windows_line_ends_and_missing_blank_lines_are_no_matter(write):
    text = document(litbank("(1", "1)"), litbank("(1)"))
    expected = only(write(text))
    assert only(write(text.replace("\n", "\r\n"), "windows")) == expected
    assert only(write(text.replace("\n\n#end document\n", "\n#end document"), "end")) == expected


GOOD = document(litbank("(1)"), name="good")
BEGUN = len(GOOD.splitlines()) + 1  # where the document behind a good one begins
ROW = litbank("(1)").strip()
PARSED = ONTONOTES.split("\n")[-4] + "\n\n"
# the text of a document, the line of it that is named, and why
BAD = {
    "left open": (litbank("", "(1", ""), 2, r"bracket '1' is not closed in its sentence; wanted"),
    "left open, closed in the next": (litbank("(1") + litbank("1)"), 1, "'1' is not closed"),
    "closed unopened": (litbank("", "1)"), 2, "bracket '1' is closed but not open; wanted"),
    "no bracket": (litbank("", "1"), 2, "found '1' as coreference; wanted brackets like"),
    "two in one": (litbank("(1(2"), 1, r"found '\(1\(2' as coreference; wanted"),
    "nothing beside a bar": (litbank("(1)|"), 1, "as coreference; wanted"),
    "too few columns": ("doc 0 0 a b c d e f -\n\n", 1, r"found 10 columns; wanted at least 11"),
    "one column": ("word\n\n", 1, r"found 1 columns; wanted at least 11 \(document, part, number"),
    "columns differ": (litbank("", "") + ROW + "\n" + ROW + "\t_\n\n", 5, "found 14 .*wanted 13"),
    "tabs lost": (litbank("", "(1)").replace("\t", " "), 2, "found 13 columns; wanted 12"),
    "parse left open": (PARSED.replace("*))", "*)"), 1, "make a tree"),
    "parse with two leaves": (PARSED.replace("*))", "**))"), 1, "tree"),
    "parse too deep": (ROW.replace("_", "(S" * 9999 + "*" + ")" * 9999, 2) + "\n\n", 1, "tree"),
    "no row": ("\n", 0, "found no row in this document; wanted"),
}


@pytest.mark.parametrize(("text", "line", "reason"), BAD.values(), ids=BAD)
def test_a_malformed_document_is_named_with_its_line(write, text, line, reason):
    path = write(GOOD + document(text, name="bad") + GOOD, "t.conll")
    with pytest.raises(CorpusError, match=rf"t\.conll:{BEGUN + line}: .*{reason}"):
        list(CorefCorpus(path))


@pytest.mark.parametrize(("text", "line", "reason"), BAD.values(), ids=BAD)
def test_with_skip_only_that_document_is_left_out(write, text, line, reason):
    path = write(GOOD + document(text, name="bad") + GOOD, "t.conll")
    before, bad, after = (d.passages[0] for d in CorefCorpus(path, on_error="skip"))
    assert (before.fault, after.fault, bad.words) == (None, None, None)
    assert (bad.id, len(after.mentions)) == ("bad part 0", 1)
    with pytest.raises(CorpusError, match=rf"t\.conll:{BEGUN + line}: .*{reason}"):
        raise CorpusError(bad.fault)


UNCLOSED = GOOD.replace("#end document\n", "")
FRAMES = {
    "end missing before the next": (UNCLOSED + GOOD, 1, "no '#end document'", [False, True]),
    "end missing at the end": (GOOD + UNCLOSED, 5, "no '#end document'", [True, False]),
    "begin missing": (
        GOOD + GOOD.partition("\n")[2] + GOOD,
        5,
        "no '#begin document'",
        [True, False, True],
    ),
    "rows behind the end": (GOOD + litbank("(1)"), 5, "no '#begin document'", [True, False]),
}


@pytest.mark.parametrize(("text", "line", "reason", "good"), FRAMES.values(), ids=FRAMES)
def test_a_document_needs_its_first_and_last_line(write, text, line, reason, good):
    path = write(text, "t.conll")
    with pytest.raises(CorpusError, match=rf"t\.conll:{line}: found {reason}.*; wanted one"):
        list(CorefCorpus(path))
    passages = [d.passages[0] for d in CorefCorpus(path, on_error="skip")]
    assert [p.fault is None for p in passages] == good


def test_bytes_that_are_no_utf8_leave_their_document_out(write):
    content = GOOD.encode() + GOOD.encode().replace(b"w0", b"\xff")
    path = write(content, "t.conll")
    with pytest.raises(CorpusError, match=rf"t\.conll:6: byte 0xff at offset {content.index(255)}"):
        list(CorefCorpus(path))
    good, bad = (d.passages[0] for d in CorefCorpus(path, on_error="skip"))
    assert (good.fault, "t.conll:6: byte 0xff" in bad.fault) == (None, True)


def test_every_mention_of_litbank_is_read(shared):
    """The mentions counted by their opening brackets; the words by the rows."""
    files = sorted((shared / "data" / "litbank").glob("*.conll"))
    text = "".join(path.read_text("utf-8") for path in files)
    rows = [line.split("\t") for line in text.split("\n") if line and not line.startswith("#")]
    passages = [p for d in CorefCorpus(files) for p in d.passages]
    assert len(passages) == len(files) == 30
    assert [w.form for p in passages for w in p.words] == [row[3] for row in rows]
    opened = sum(row[12].count("(") for row in rows)
    assert sum(len(p.mentions) for p in passages) == opened == 8623
    assert all(m.first <= m.head <= m.last and m.kind for p in passages for m in p.mentions)
