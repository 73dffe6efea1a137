"""Are treebanks read as the words, trees and mentions that they mark?"""

import pytest

from headscope.corpus import Mention, TreebankCorpus
from headscope.errors import CorpusError


def row(number, form, head, relation="dep", *, misc="_", upos="X", xpos="_"):
    return f"{number}\t{form}\t_\t{upos}\t{xpos}\t_\t{head}\t{relation}\t_\t{misc}"


def sentence(*rows, comments=()):
    return "\n".join([*comments, *rows]) + "\n\n"


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
    "no tabs": ("2 cat X", "found 1 tab-separated columns"),
    "word as head": (row(2, "cat", "three"), "head.*'three'"),
    "head too large": (row(2, "cat", 4), r"head 4 is outside 0\.\.3"),
    "negative head": (row(2, "cat", -1), "head -1 is outside"),
    "no head": (row(2, "cat", "_"), "column 7"),
    "id twice": (row(1, "cat", 3), "found word id 1; wanted 2"),
    "id no number": (row("two", "cat", 3), "'two'"),
    "own head": (row(2, "cat", 2), "cycle"),
}


@pytest.mark.parametrize(("line", "reason"), BAD.values(), ids=BAD)
def test_a_malformed_row_is_named_with_file_line_and_sentence(write, line, reason):
    comments = ["# sent_id = s7"]
    good, bad = sentence(*CAT), sentence(CAT[0], line, CAT[2], comments=comments)
    where = r"t\.conllu:7: sentence s7: "
    with pytest.raises(CorpusError, match=where + ".*" + reason):
        list(TreebankCorpus(write(good + bad, "t.conllu")))


def test_a_sentence_without_a_root_is_refused(write):
    with pytest.raises(CorpusError, match=r"t\.conllu:1: .*no root"):
        list(TreebankCorpus(write(sentence(row(1, "a", 2), row(2, "b", 1)), "t.conllu")))


def test_a_cycle_beside_a_root_is_refused(write):
    rows = [row(1, "a", 0), row(2, "b", 3), row(3, "c", 2)]
    with pytest.raises(CorpusError, match=r"t\.conllu:2: the heads of word 2 run in a cycle"):
        list(TreebankCorpus(write(sentence(*rows), "t.conllu")))


def test_a_file_of_comments_is_refused(write):
    with pytest.raises(CorpusError, match="no sentence"):
        list(TreebankCorpus(write("# nothing\n\n")))


def test_a_long_chain_of_heads_is_checked_in_reasonable_time(write):
    rows = [row(n, "w", n - 1) for n in range(1, 10_001)]
    assert len(only(write(sentence(*rows))).words) == 10_000


def entities(*marks, heads=None, comments=()):
    heads = heads or [0] + [1] * (len(marks) - 1)
    rows = [
        row(number, f"w{number}", head, misc=f"Entity={mark}" if mark else "_")
        for number, (mark, head) in enumerate(zip(marks, heads, strict=True), start=1)
    ]
    return sentence(*rows, comments=comments)


def test_nested_mentions_are_told_apart(write):
    text = entities("(e1-person-2-(e2-person-1-)", "", "(e3-place-1-)e1)")
    assert only(write(text)).mentions == (
        Mention("e1", 0, 2, 1),
        Mention("e2", 0, 0, 0),
        Mention("e3", 2, 2, 2),
    )


def test_the_order_of_the_fields_is_the_files_own(write):
    text = entities("(e1-1-x", "e1)", comments=["# global.Entity = eid-head-etype"])
    later = entities("(e1-2-x", "e1)")
    heads = [p.mentions[0].head for d in TreebankCorpus(write(text + later)) for p in d.passages]
    assert heads == [0, 1]


def test_without_a_head_field_the_head_is_the_word_governed_from_outside(write):
    text = entities("", "(e1", "", "e1)", heads=[0, 3, 1, 3])
    assert only(write(text)).mentions == (Mention("e1", 1, 3, 2),)


def test_one_entity_may_be_nested_in_itself(write):
    text = entities("(e1-x-1-", "(e1-x-1-)e1)")
    assert only(write(text)).mentions == (Mention("e1", 0, 1, 0), Mention("e1", 1, 1, 1))


def test_of_a_discontinuous_mention_the_first_part_is_kept(write):
    text = entities("(e1[1/2]-x-1-)", "", "(e1[2/2]-x-1-)")
    assert only(write(text)).mentions == (Mention("e1", 0, 0, 0),)


def test_empty_nodes_count_for_the_head_field_but_are_no_words(write):
    rows = [
        row(1, "eats", 0),
        row("1.1", "E", "_", misc="Entity=(e1-x-2-"),
        row(2, "bread", 1, misc="Entity=e1)"),
        row("2.1", "F", "_", misc="Entity=(e2-x-1-)"),
    ]
    assert only(write(sentence(*rows))).mentions == (Mention("e1", 1, 1, 1),)


@pytest.mark.parametrize(
    ("marks", "line", "reason"),
    [
        (("(e1-x-1-", ""), 1, "not closed"),
        (("", "e1)"), 2, "closed but not open"),
        (("e1", ""), 1, "not a row of brackets"),
    ],
)
def test_brackets_that_do_not_match_are_named_with_their_line(write, marks, line, reason):
    with pytest.raises(CorpusError, match=rf"t\.conllu:{line}: .*{reason}"):
        list(TreebankCorpus(write(entities(*marks), "t.conllu")))


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
