"""Are the mentions of CorefUD read as its brackets mark them, through whole documents?"""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.rows import entities, row, sentence
from headscope.corpus import CorefCorpus
from headscope.corpus.coref.corefud import _marks
from headscope.corpus.coref.mentions import BracketFault
from headscope.errors import CorpusError


def only(path):
    (document,) = CorefCorpus(path)
    (passage,) = document.passages
    return passage


def spans(path):
    """The mentions without their kinds."""
    return [(m.entity, m.first, m.last, m.head) for m in only(path).mentions]


FIELDS = ["# global.Entity = eid-etype-head-other"]


def test_nested_mentions_are_told_apart(write):
    text = entities("(e1-person-2-(e2-person-1-)", "", "(e3-place-1-)e1)", comments=FIELDS)
    assert spans(write(text)) == [("e1", 0, 2, 1), ("e2", 0, 0, 0), ("e3", 2, 2, 2)]


def test_one_entity_may_be_nested_in_itself(write):
    assert spans(write(entities("(e1-x-1-", "(e1-x-1-)e1)"))) == [("e1", 0, 1, 0), ("e1", 1, 1, 1)]


def test_mentions_of_different_entities_may_cross(write):
    text = entities("(e1-x-1-", "(e2-x-1-", "e1)", "e2)")
    assert spans(write(text)) == [("e1", 0, 2, 0), ("e2", 1, 3, 1)]


def test_words_count_through_the_document(write):
    text = entities("(e1-x-1-", "e1)", "", comments=["# newdoc id = d"]) + entities("", "(e1-x-1-)")
    assert spans(write(text)) == [("e1", 0, 1, 0), ("e1", 4, 4, 4)]
    assert only(write(text)).id == "d"


def test_newdoc_starts_documents_and_entities_are_their_own(write):
    text = "".join(entities("(e1-x-1-)", comments=[f"# newdoc id = {name}"]) for name in "ab")
    assert [(d.id, len(d.passages[0].mentions)) for d in CorefCorpus(write(text))] == [
        ("a", 1),
        ("b", 1),
    ]


def test_without_newdoc_the_file_is_one_document(write):
    path = write(entities("(e1-x-1-)") + entities("(e1-x-1-)"), "f.conllu")
    assert only(path).id == "f.conllu"
    assert len(only(path).mentions) == 2


def test_the_order_of_the_fields_is_the_files_own_and_lasts(write):
    text = entities("(e1-1-x", "e1)", comments=["# global.Entity = eid-head-etype"])
    assert [m[3] for m in spans(write(text + entities("(e1-2-x", "e1)")))] == [0, 3]


def test_without_a_stated_head_it_is_the_word_governed_from_outside(write):
    assert spans(write(entities("", "(e1", "", "e1)", heads=[0, 3, 1, 3]))) == [("e1", 1, 3, 2)]


@pytest.mark.parametrize("stated", ["0", "9", "x", "", "9" * 5000])
def test_a_stated_head_that_is_no_word_of_the_mention_is_not_believed(write, stated):
    text = entities("", f"(e1-x-{stated}-", "e1)", heads=[0, 3, 1])
    assert spans(write(text)) == [("e1", 1, 2, 2)]


def test_of_a_discontinuous_mention_the_first_part_is_kept(write):
    text = entities("(e1[1/2]-x-1-)", "", "(e1[2/2]-x-1-)")
    assert spans(write(text)) == [("e1", 0, 0, 0)]


def test_a_mention_of_empty_nodes_alone_is_left_out(write):
    rows = [
        row(1, "eats", 0),
        row("1.1", "E", "_", misc="Entity=(e1-x-2-"),
        row(2, "bread", 1, misc="Entity=e1)"),
        row("2.1", "F", "_", misc="Entity=(e2-x-1-)"),
    ]
    assert spans(write(sentence(*rows))) == [("e1", 1, 1, 1)]  # the empty node counts for the head


def test_a_single_mention_of_an_entity_is_kept(write):
    assert len(only(write(entities("(e1-x-1-)", "(e2-x-1-)", "(e2-x-1-)"))).mentions) == 3


def test_kinds_go_by_the_tags_of_the_heads(write):
    tags = [("PRON", "PRP"), ("PROPN", "NNP"), ("NOUN", "NNS"), ("_", "PRP$"), ("_", "NNPS")]
    text = entities(*["(e1-x-1-)"] * 5, tags=tags)
    kinds = [m.kind for m in only(write(text)).mentions]
    assert kinds == ["pronoun", "proper", "nominal", "pronoun", "proper"]


def test_words_are_bare(write):
    rows = [row(1, "a", 0, "root", upos="NOUN", misc="Entity=(e1)|SpaceAfter=No"), row(2, ".", 1)]
    first, second = only(write(sentence(*rows))).words
    assert (first.form, first.space_after, second.space_after) == ("a", False, True)
    assert (first.upos, first.xpos, first.relation, first.head) == (None, None, None, -1)


FAULTS = {
    "not closed": (("(e1-x-1-", ""), 1, "Entity bracket 'e1' is not closed in its sentence"),
    "not opened": (("", "e1)"), 2, "Entity bracket 'e1' is closed but not open"),
    "no bracket": (("e1", ""), 1, "Entity e1 is not a row of brackets"),
}


@pytest.mark.parametrize(("marks", "line", "reason"), FAULTS.values(), ids=FAULTS)
def test_brackets_that_do_not_match_are_named_with_their_line(write, marks, line, reason):
    bad = entities(*marks, comments=["# newdoc id = bad", "# sent_id = s"])
    path = write(bad + entities("(e1-x-1-)", comments=["# newdoc id = good"]), "t.conllu")
    with pytest.raises(CorpusError, match=rf"t\.conllu:{line + 2}: sentence s: {reason}"):
        list(CorefCorpus(path))
    first, second = (d.passages[0] for d in CorefCorpus(path, on_error="skip"))
    assert reason in first.fault
    assert (second.id, second.fault, len(second.mentions)) == ("good", None, 1)


def test_brackets_do_not_reach_into_the_next_sentence(write):
    path = write(entities("", "(e1") + entities("e1)"), "t.conllu")
    with pytest.raises(CorpusError, match=r"t\.conllu:2: Entity bracket 'e1' is not closed"):
        list(CorefCorpus(path))


def test_a_malformed_tree_leaves_its_document_out(write):
    text = entities("(e1-x-1-)", "", comments=["# newdoc id = bad"]) + sentence(row(1, "a", 7))
    path = write(text + entities("(e1-x-1-)", comments=["# newdoc id = good"]), "t.conllu")
    with pytest.raises(CorpusError, match=r"t\.conllu:5: head 7 is outside 0\.\.1"):
        list(CorefCorpus(path))
    bad, good = (d.passages[0] for d in CorefCorpus(path, on_error="skip"))
    assert (bad.id, good.id, good.fault) == ("bad", "good", None)
    assert "t.conllu:5: head 7" in bad.fault


# What the brackets are, as one expression; it takes time that grows with the square of the length.
ROW = re.compile(r"(?:\((?P<opened>[^()]+)(?P<shut>\))?|(?P<closed>[^()]+)\))*")
ONE = re.compile(r"\(([^()]+)(\))?|([^()]+)\)")


@given(st.text("()ae-", max_size=14))
def test_brackets_are_read_as_the_expression_says(entity):
    if not ROW.fullmatch(entity):
        with pytest.raises(BracketFault):
            list(_marks(entity, 0))
        return
    want = [
        ((opened or closed).split("-")[0], bool(opened), bool(shut or closed), opened)
        for opened, shut, closed in ONE.findall(entity)
    ]
    found = [(m.name, m.opens, m.shuts, m.content) for m in _marks(entity, 0)]
    assert found == want


def test_a_row_of_a_million_characters_is_read_at_once():
    """Its time once grew with the square: 20 s for a tenth of it."""
    with pytest.raises(BracketFault) as told:
        list(_marks("e" * 1_000_000, 0))
    assert len(str(told.value)) < 200
    assert len(list(_marks("(e1-x-1-)" * 100_000, 0))) == 100_000
