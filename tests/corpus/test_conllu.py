"""Are treebanks read as the words and trees that they mark, and are malformed ones named?"""

import pytest

from corpus.rows import entities, row, sentence
from headscope.corpus import Encoder, Mention, TreebankCorpus
from headscope.errors import CorpusError, InputError

CAT = (row(1, "The", 2, "det"), row(2, "cat", 3, "nsubj"), row(3, "sleeps", 0, "root"))


def only(path):
    (document,) = TreebankCorpus(path)
    (passage,) = document.passages
    return passage


def test_rows_become_words_with_heads_from_zero(write):
    rows = (row(1, "Cats", 2, "nsubj", upos="NOUN", xpos="NNS"), row(2, "nap", 0, "root"))
    first, second = only(write(sentence(*rows))).words
    assert (first.form, first.upos, first.xpos) == ("Cats", "NOUN", "NNS")
    assert (first.head, first.relation) == (1, "nsubj")
    assert (second.head, second.relation, second.xpos) == (-1, "root", None)


def test_newdoc_starts_documents_and_names_them(write):
    text = (
        sentence(*CAT, comments=["# newdoc id = a", "# sent_id = a-1"])
        + sentence(*CAT, comments=["# sent_id = a-2"])
        + sentence(*CAT, comments=["# newdoc"])
    )
    documents = list(TreebankCorpus(write(text, "t.conllu")))
    assert [(d.id, [p.id for p in d.passages]) for d in documents] == [
        ("a", ["a-1", "a-2"]),
        ("t.conllu:12", ["t.conllu:13"]),
    ]


def test_without_newdoc_each_sentence_is_a_document(write):
    text = sentence(*CAT, comments=["# sent_id = s1"]) + sentence(*CAT)
    documents = list(TreebankCorpus(write(text, "t.conllu")))
    assert [d.id for d in documents] == ["s1", "t.conllu:6"]


def test_comments_on_their_own_start_a_document_but_are_no_sentence(write):
    text = sentence(*CAT, comments=["# newdoc id = a"]) + "# newdoc id = b\n\n" + sentence(*CAT)
    assert [(d.id, len(d.passages)) for d in TreebankCorpus(write(text))] == [("a", 1), ("b", 1)]


def test_the_last_sentence_needs_no_blank_line(write):
    assert len(only(write("\n".join(CAT))).words) == 3


def test_ranges_and_empty_nodes_are_no_words(write):
    rows = [row("1-2", "du", "_"), row(1, "de", 3), row(2, "le", 3), row("2.1", "E", "_")]
    words = only(write(sentence(*rows, row(3, "x", 0)))).words
    assert [w.form for w in words] == ["de", "le", "x"]


def test_words_that_spell_their_range_have_no_space_between(write):
    rows = [
        row("1-2", "don't", "_", misc="SpaceAfter=No"),
        row(1, "do", 0),
        row(2, "n't", 1),
        row("3-4", "du", "_"),
        row(3, "de", 1),
        row(4, "le", 1, misc="X=1|SpaceAfter=No"),
        row(5, ".", 1),
    ]
    words = only(write(sentence(*rows))).words
    assert [w.space_after for w in words] == [False, False, True, False, True]


def test_conll_x_is_read_by_the_same_reader(write):
    text = "1\tA\ta\tDT\tDT\t_\t2\tdet\t_\t_\n2\tb\tb\tNN\tNN\tx|y\t0\tROOT\t2\tx\n"
    words = only(write(text, "t.conllx")).words
    assert [(w.form, w.head, w.xpos) for w in words] == [("A", 1, "DT"), ("b", -1, "NN")]


def test_a_form_with_spaces_and_one_with_a_number_sign_are_kept(write):
    words = only(write(sentence(row(1, "10  000", 0), row(2, "#", 1)))).words
    assert [w.form for w in words] == ["10 000", "#"]


BAD = {
    "nine columns": ("2\tcat\t_\tX\t_\t_\t3\tdep\t_", "found 9 tab-separated columns; wanted 10"),
    "eleven columns": (row(2, "cat", 3) + "\t_", "found 11 tab-separated columns; wanted 10"),
    "tabs lost": ("2 cat _ X _ _ 3 dep _ _", "found 1 .*; wanted 10; the tabs were lost"),
    "word as head": (row(2, "cat", "three"), "head.*'three'.*; wanted whole numbers"),
    "head too large": (row(2, "cat", 4), r"head 4 is outside 0\.\.3; wanted"),
    "head of 5000 digits": (row(2, "cat", "9" * 5000), "digits.*; wanted whole numbers"),
    "negative head": (row(2, "cat", -1), "head -1 is outside"),
    "no head": (row(2, "cat", "_"), "column 7.*; wanted a number"),
    "id twice": (row(1, "cat", 3), "found word id 1; wanted 2"),
    "id no number": (row("two", "cat", 3), "'two'.*; wanted whole numbers"),
    "no id": (row("_", "cat", 3), "column 1.*; wanted the word's number"),
    "own head": (row(2, "cat", 2), "cycle; wanted a path to a root"),
}
WHERE = r"t\.conllu:7: sentence s7: "


def between(line):
    """A good sentence, one with the malformed row, and a good one."""
    bad = sentence(CAT[0], line, CAT[2], comments=["# sent_id = s7"])
    return sentence(*CAT) + bad + sentence(*CAT, comments=["# sent_id = s8"])


@pytest.mark.parametrize(("line", "reason"), BAD.values(), ids=BAD)
def test_a_malformed_row_is_named_with_file_line_and_sentence(write, line, reason):
    with pytest.raises(CorpusError, match=WHERE + ".*" + reason):
        list(TreebankCorpus(write(between(line), "t.conllu")))


@pytest.mark.parametrize(("line", "reason"), BAD.values(), ids=BAD)
def test_with_skip_only_the_malformed_sentence_is_left_out(write, line, reason):
    corpus = TreebankCorpus(write(between(line), "t.conllu"), on_error="skip")
    before, bad, after = (passage for document in corpus for passage in document.passages)
    assert (bad.id, bad.words) == ("s7", None)
    with pytest.raises(CorpusError, match=WHERE + ".*" + reason):  # in the same words
        raise CorpusError(bad.fault)
    assert (before.fault, after.fault) == (None, None)
    assert (after.id, [w.form for w in after.words]) == ("s8", ["The", "cat", "sleeps"])


TREES = {
    "no root": ([row(1, "a", 2), row(2, "b", 1)], 1, "no root; wanted at least one"),
    "a cycle beside a root": (
        [row(1, "a", 0), row(2, "b", 3), row(3, "c", 2)],
        2,
        "the heads of word 2 run in a cycle",
    ),
}


@pytest.mark.parametrize(("rows", "line", "reason"), TREES.values(), ids=TREES)
def test_heads_that_make_no_tree_are_named(write, rows, line, reason):
    path = write(sentence(*rows) + sentence(*CAT), "t.conllu")
    with pytest.raises(CorpusError, match=rf"t\.conllu:{line}: .*{reason}"):
        list(TreebankCorpus(path))
    bad, good = (d.passages[0] for d in TreebankCorpus(path, on_error="skip"))
    assert reason in bad.fault
    assert len(good.words) == 3


def test_several_roots_are_allowed(write):
    rows = [row(1, "a", 0, "root"), row(2, "b", 0, "root"), row(3, "c", 2)]
    assert [w.head for w in only(write(sentence(*rows))).words] == [-1, -1, 1]


def test_windows_line_ends_are_no_matter(write):
    text = sentence(*CAT, comments=["# newdoc id = a", "# sent_id = a-1"]) + sentence(*CAT)
    unix = [d.passages for d in TreebankCorpus(write(text, "t.conllu"))]
    windows = write(text.replace("\n", "\r\n"), "windows/t.conllu")
    assert [d.passages for d in TreebankCorpus(windows)] == unix


def test_labels_may_hold_spaces_and_anything_else(write):
    rows = [row(1, "a", 2, "noun  subject"), row(2, "b", 0, "ROOT:x|y"), row(3, "c", 2, "Ωmod é")]
    labels = [w.relation for w in only(write(sentence(*rows))).words]
    assert labels == ["noun subject", "ROOT:x|y", "Ωmod é"]


def test_a_malformed_first_sentence_still_names_its_document(write):
    bad = sentence("1 a", comments=["# newdoc id = d", "# sent_id = d-1"])
    path = write(bad + sentence(*CAT, comments=["# sent_id = d-2"]))
    (document,) = TreebankCorpus(path, on_error="skip")
    assert (document.id, [p.id for p in document.passages]) == ("d", ["d-1", "d-2"])


def test_bytes_that_are_no_utf8_spoil_their_sentence_only(write):
    good = sentence(*CAT).encode()
    content = good + good.replace(b"cat", b"c\xe9t") + good
    path = write(content, "t.conllu")
    reason = rf"t\.conllu:6: byte 0xe9 at offset {content.index(0xE9)} is not valid UTF-8"
    with pytest.raises(CorpusError, match=reason):
        list(TreebankCorpus(path))
    _, bad, good = (d.passages[0] for d in TreebankCorpus(path, on_error="skip"))
    assert "t.conllu:6: byte 0xe9" in bad.fault
    assert good.words[1].form == "cat"


def test_what_was_skipped_is_counted_and_named(write, bert):
    encoder = Encoder(bert, model_limit=64, has_segments=True)
    corpus = TreebankCorpus(write(between(BAD["own head"][0]), "t.conllu"), on_error="skip")
    assert sum(len(encoder.encode(document)) for document in corpus) == 2
    reason = encoder.counts.reasons["malformed"]
    assert reason.total == encoder.counts.skipped == 1
    assert "t.conllu:7: sentence s7: the heads of word 2 run in a cycle" in reason.first[0]


def test_a_file_of_comments_is_refused_or_counted(write):
    path = write("# nothing\n\n", "t.conllu")
    with pytest.raises(CorpusError, match="no sentence"):
        list(TreebankCorpus(path))
    (document,) = TreebankCorpus(path, on_error="skip")
    assert "no sentence" in document.passages[0].fault


def test_the_policy_is_described_where_it_is_not_the_default(write):
    path = write(sentence(*CAT))
    plain = TreebankCorpus(path).describe()
    assert set(plain) == {"kind", "files"}
    assert TreebankCorpus(path, on_error="skip").describe() == {**plain, "on_error": "skip"}
    with pytest.raises(InputError, match="on_error='ignore'; wanted one of stop, skip"):
        TreebankCorpus(path, on_error="ignore")


def test_a_long_chain_of_heads_is_checked_in_reasonable_time(write):
    rows = [row(n, "w", n - 1) for n in range(1, 10_001)]
    assert len(only(write(sentence(*rows))).words) == 10_000


def test_sentences_have_no_mentions_and_their_marks_are_not_read(write):
    assert only(write(entities("(e1", "e1)"))).mentions == ()
    assert only(write(entities("(e1", ""))).mentions == ()


def test_with_coreference_the_whole_document_follows_its_sentences(write):
    comments = ["# newdoc id = d", "# global.Entity = eid-head", "# sent_id = d-1"]
    text = entities("(e1-1)", "", comments=comments)
    path = write(text + entities("", "(e1-1)", comments=["# sent_id = d-2"]))
    (document,) = TreebankCorpus(path, coreference=True)
    assert [p.id for p in document.passages] == ["d-1", "d-2", "d/document"]
    assert [bool(p.mentions) for p in document.passages] == [False, False, True]
    whole = document.passages[-1]
    assert [w.form for w in whole.words] == ["w1", "w2", "w1", "w2"]
    assert all(w.upos is w.xpos is w.relation is None and w.head == -1 for w in whole.words)
    assert whole.mentions == (
        Mention("e1", 0, 0, 0, "nominal"),
        Mention("e1", 3, 3, 3, "nominal"),
    )
    assert TreebankCorpus(path, coreference=True).describe()["coreference"] is True


def test_english_ewt_has_the_counts_that_its_rows_have(shared):
    path = next((shared / "data" / "ud_english_ewt").glob("*dev*.conllu"))
    documents = list(TreebankCorpus(path))
    lines = path.read_text(encoding="utf-8").split("\n")
    words = [line for line in lines if line.split("\t")[0].isdecimal()]
    read = [w for d in documents for p in d.passages for w in p.words]
    assert sum(len(d.passages) for d in documents) == 2001
    assert len(documents) == sum(line.startswith("# newdoc") for line in lines)
    assert [(w.form, w.head + 1) for w in read] == [
        (c[1], int(c[6])) for c in (line.split("\t") for line in words)
    ]


def test_english_ewt_has_no_malformed_sentence(shared):
    files = sorted((shared / "data" / "ud_english_ewt").glob("*.conllu"))
    read = [p for d in TreebankCorpus(files, on_error="skip") for p in d.passages]
    assert len(read) == 2001 + 2077
    assert not any(p.fault for p in read)
