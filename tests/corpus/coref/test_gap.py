"""Is GAP read as a pronoun and two names in their places, and is a row that does not fit named?"""

import pytest

from headscope.corpus import CorefCorpus, Mention
from headscope.errors import CorpusError

HEADER = "ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\tURL"
TEXT = "Zoë O'Hara's aunt, Jean-Luc and I don't know; she left the U.N."


def row(*, text=TEXT, pronoun="she", a="Zoë O'Hara", b="Jean-Luc", name="x-1", **changed):
    """One row whose offsets fit, unless they are given."""
    fields = {
        "ID": name,
        "Text": text,
        "Pronoun": pronoun,
        "Pronoun-offset": text.find(pronoun),
        "A": a,
        "A-offset": text.find(a),
        "A-coref": "TRUE",
        "B": b,
        "B-offset": text.find(b),
        "B-coref": "FALSE",
        "URL": "http://x",
    } | {key.replace("_", "-"): value for key, value in changed.items()}
    return "\t".join(map(str, fields.values())) + "\n"


def table(*rows, header=HEADER):
    return f"{header}\n{''.join(rows)}"


def only(path):
    (document,) = CorefCorpus(path)
    (passage,) = document.passages
    return passage


def test_a_row_is_a_document_with_three_mentions(write):
    passage = only(write(table(row())))
    assert passage.id == "x-1"
    assert passage.mentions == (
        Mention("pronoun", 0, 1, 1, "proper"),
        Mention("B", 5, 5, 5, "proper"),
        Mention("pronoun", 11, 11, 11, "pronoun"),
    )


def test_words_are_cut_at_clitics_and_marks_but_not_at_hyphens_and_apostrophes(write):
    words = only(write(table(row()))).words
    assert [w.form for w in words] == [
        "Zoë",
        "O'Hara",
        "'s",
        "aunt",
        ",",
        "Jean-Luc",
        "and",
        "I",
        "don't",
        "know",
        ";",
        "she",
        "left",
        "the",
        "U",
        ".",
        "N",
        ".",
    ]
    text = "".join(w.form + " " * w.space_after for w in words)
    assert text.rstrip() == TEXT
    assert all(w.upos is w.xpos is w.relation is None for w in words)


@pytest.mark.parametrize(
    ("a", "b", "entities"),
    [
        ("TRUE", "FALSE", ["pronoun", "B"]),
        ("FALSE", "TRUE", ["A", "pronoun"]),
        ("FALSE", "FALSE", ["A", "B"]),
        ("True", "true", ["pronoun", "pronoun"]),
    ],
)
def test_names_share_the_entity_of_the_pronoun_where_they_corefer(write, a, b, entities):
    mentions = only(write(table(row(A_coref=a, B_coref=b)))).mentions
    assert [m.entity for m in mentions if m.kind == "proper"] == entities


def test_the_url_may_be_missing(write):
    short = table(row().replace("\thttp://x", ""), header=HEADER.replace("\tURL", ""))
    assert only(write(short, "short")) == only(write(table(row())))


def test_a_mention_that_ends_within_a_word_is_widened(write):
    passage = only(write(table(row(a="Zoë O'Ha", b="Luc"))))
    assert [(m.first, m.last) for m in passage.mentions] == [(0, 1), (5, 5), (11, 11)]


def test_quotes_are_text(write):
    text = 'Ann said "she" to Bob'
    passage = only(write(table(row(text=text, a="Ann", b="Bob"))))
    assert [w.form for w in passage.words] == ["Ann", "said", '"', "she", '"', "to", "Bob"]


BAD = {
    "offset too small": ({"A_offset": 1}, r"is not at A-offset '1' .*found"),
    "offset in bytes": ({"Pronoun_offset": TEXT.find("she") + 1}, "found 'he ' there; wanted"),
    "offset beyond the text": ({"B_offset": 9999}, "found '' there; wanted"),
    "offset of 5000 digits": ({"B_offset": "9" * 5000}, "found '' there; wanted"),
    "offset no number": ({"B_offset": "x"}, "B-offset 'x' of the text"),
    "negative offset": ({"B_offset": -3}, "B-offset '-3' of the text"),
    "empty name": ({"B": "", "B_offset": 3}, "B '' is not at"),
    "no truth value": ({"A_coref": "yes"}, "found A-coref 'yes'; wanted TRUE or FALSE"),
    "column too many": ({"URL": "a\tb"}, "found 12 tab-separated columns; wanted 11"),
}  # fmt: skip


@pytest.mark.parametrize(("changed", "reason"), BAD.values(), ids=BAD)
def test_a_row_that_does_not_fit_is_named_and_with_skip_left_out(write, changed, reason):
    path = write(table(row(), row(name="x-2", **changed), row(name="x-3")), "g.tsv")
    with pytest.raises(CorpusError, match=rf"g\.tsv:3: .*{reason}"):
        list(CorefCorpus(path))
    before, bad, after = (d.passages[0] for d in CorefCorpus(path, on_error="skip"))
    assert (before.id, after.id) == ("x-1", "x-3")
    assert (before.fault, after.fault, bad.words) == (None, None, None)
    with pytest.raises(CorpusError, match=rf"g\.tsv:3: .*{reason}"):
        raise CorpusError(bad.fault)


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (HEADER.replace("\tA-coref", ""), "found no column A-coref; wanted ID, Text, .*tabs"),
        (HEADER.replace("\t", " "), "found no column ID; wanted .*separated by tabs"),
        (HEADER + "\tA", "found a column twice"),
    ],
)
def test_a_header_that_lacks_columns_is_named_once(write, header, reason):
    path = write(table(row(), row(), header=header), "g.tsv")
    with pytest.raises(CorpusError, match=rf"g\.tsv:1: .*{reason}"):
        list(CorefCorpus(path))
    (document,) = CorefCorpus(path, on_error="skip")
    assert document.passages[0].fault is not None


def test_windows_line_ends_and_blank_lines_are_no_matter(write):
    text = table(row()).replace("\n", "\r\n")
    assert only(write(text + "\r\n", "windows")) == only(write(table(row()).rstrip()))


def test_every_row_of_gap_is_read(shared):
    path = shared / "data" / "gap" / "gap-development.tsv"
    rows = [line.split("\t") for line in path.read_text("utf-8").splitlines()[1:]]
    passages = [p for d in CorefCorpus(path) for p in d.passages]
    assert [p.id for p in passages] == [r[0] for r in rows]
    widened = 0
    for passage, fields in zip(passages, rows, strict=True):
        text = "".join(w.form + " " * w.space_after for w in passage.words)
        assert text.split() == fields[1].split()
        for mention, name in zip(
            passage.mentions,
            sorted([(int(fields[i + 1]), fields[i]) for i in (2, 4, 7)]),
            strict=True,
        ):
            words = passage.words[mention.first : mention.last + 1]
            found = "".join(w.form for w in words)
            assert "".join(name[1].split()) in found
            widened += "".join(name[1].split()) != found
        assert [m.kind for m in passage.mentions].count("pronoun") == 1
    assert len(passages) == 2000
    assert widened < 10
