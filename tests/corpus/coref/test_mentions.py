"""Brackets are paired; each mention gets its head word and its kind."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.tree import Tree

from headscope.corpus import Mention, Word
from headscope.corpus.coref.mentions import (
    AFTER_HEAD,
    BracketFault,
    BracketSpan,
    Mark,
    Tag,
    paired,
    surface_head,
    tree_head,
    with_kinds,
)


@st.composite
def nests(draw, first=0, last=9, depth=4):
    """(name, first, last) of spans that lie side by side or within one another."""
    spans, start = [], first
    while depth and start <= last and draw(st.booleans()):
        a = draw(st.integers(start, last))
        b = draw(st.integers(a, last))
        spans.append((draw(st.sampled_from("xyz")), a, b))
        spans += draw(nests(a, b, depth - 1))
        start = b + 1
    return spans


@st.composite
def crossing(draw):
    """Spans of different names, anywhere."""
    ends = st.tuples(st.integers(0, 9), st.integers(0, 9)).map(sorted)
    return [(name, *draw(ends)) for name in draw(st.sets(st.sampled_from("abcdefg")))]


def written(spans):
    """The marks of spans in the order of a file, where what opens last closes first."""
    marks = []
    for place in range(10):
        opened = [s for s in spans if s[1] == place < s[2]]
        single = [s for s in spans if s[1] == place == s[2]]
        closed = [s for s in spans if s[1] < place == s[2]]
        marks += [Mark(place, s[0], True, False) for s in sorted(opened, key=lambda s: -s[2])]
        marks += [Mark(place, s[0], True, True) for s in single]
        marks += [Mark(place, s[0], False, True) for s in sorted(closed, key=lambda s: -s[1])]
    return marks


@given(nests() | crossing())
def test_brackets_give_back_their_spans(spans):
    found = [(span.name, span.first, span.last) for span in paired(written(spans))]
    assert Counter(found) == Counter(spans)


@given(nests() | crossing())
def test_spans_come_by_their_first_word_and_enclosing_ones_first(spans):
    keys = [(span.first, -span.last) for span in paired(written(spans))]
    assert keys == sorted(keys)


def test_what_an_opening_bracket_says_stays_with_its_span():
    marks = [Mark(0, "a", True, False, "outer"), Mark(1, "a", True, True, "inner")]
    assert paired([*marks, Mark(2, "a", False, True)]) == [
        BracketSpan(0, 2, "a", "outer"),
        BracketSpan(1, 1, "a", "inner"),
    ]


@given(nests(), st.data())
def test_a_missing_bracket_is_found(spans, data):
    """Whichever of the brackets that stand alone is taken away, something does not match."""
    marks = written(spans)
    alone = [i for i, mark in enumerate(marks) if mark.opens != mark.shuts]
    if not alone:
        return
    del marks[data.draw(st.sampled_from(alone))]
    with pytest.raises(BracketFault, match=r"closed but not open|is not closed"):
        paired(marks)


def test_of_several_brackets_left_open_the_first_is_named():
    with pytest.raises(BracketFault, match="'b' is not closed") as caught:
        paired([Mark(1, "b", True, False), Mark(2, "a", True, False)])
    assert caught.value.at == 1


# Phrases with the head starred; all their words are the mention.
PHRASES = {
    "the last noun": "(NP (DT the) (JJ red) (NN *car))",
    "the last of two nouns": "(NP (NN coffee) (NN *filter))",
    "the last of a name": "(NP (NNP Jane) (NNP *Eyre))",
    "before a prepositional phrase": "(NP (NP (DT the) (NN *man)) (PP (IN in) (NP (NN town))))",
    "before a relative clause": "(NP (NP (NNS *men)) (SBAR (WHNP (WP who)) (S (VP (VBP know)))))",
    "the first coordinated phrase": "(NP (NP (NNP *Ann)) (CC and) (NP (NNP Bob)))",
    "the first in apposition": "(NP (NP (NNP *Ann)) (, ,) (NP (DT the) (NN cook)))",
    "the last coordinated noun": "(NP (NN salt) (CC and) (NN *pepper))",
    "a pronoun": "(NP (PRP *she))",
    "behind an inner phrase": "(NP (NML (NN stock) (NN market)) (NN *crash))",
    "an inner phrase": "(NP (DT the) (NML (NN stock) (NN *crash)) (JJ late))",
    "a comparative": "(NP (RB much) (JJR *more))",
    "money": "(NP ($ *$) (CD 3))",
    "in a quantity": "(NP (QP (RB about) (CD *three)))",
    "a number": "(NP (DT the) (CD *three) (JJ last))",
    "an adjective": "(NP (DT the) (JJ *poor) (DT all))",
    "nothing of the table": "(NP (DT *this))",
    "not punctuation": "(NP (DT *those) (. .))",
    "the possessor, not its 's": "(NP (NNP John) (NNP *Smith) (POS 's))",
    "what is possessed": "(NP (NP (NNP John) (POS 's)) (NN *car))",
    "in spite of function tags": "(NP-SBJ=2 (NP-TMP (NNP *May)) (ADVP (RB back)))",
}
# The same, where the mention is only some of the words.
PARTS = {
    "a name in a name": ("(NP (NNP *Bush) (NNP House))", "Bush"),
    "a part of a flat phrase": ("(NP (DT the) (NNP New) (NNP *York) (NN mayor))", "the New York"),
    "a possessor without 's": ("(NP (NP (NNP *John) (POS 's)) (NN car))", "John"),
    "a possessive pronoun": ("(NP (PRP$ *her) (NN car))", "her"),
    "a verb": ("(VP (VBD *grew) (ADVP (RB fast)))", "grew"),
    "no constituent": (
        "(VP (VBD saw) (NP (DT the) (NN *man)) (PP (IN in) (NP (NN town))))",
        "the man in town",
    ),
}


def check(brackets, mention=None):
    starred = Tree.fromstring(f"(TOP {brackets})")
    words = [word.lstrip("*") for word in starred.leaves()]
    tags = [tag for _, tag in starred.pos()]
    # As CoNLL-2012 has it: the words stand right below their phrases, tags are not in the tree.
    tree = Tree("TOP", [_numbered(child, iter(range(len(words)))) for child in starred])
    wanted = mention.split() if mention else words
    first = next(i for i in range(len(words)) if words[i : i + len(wanted)] == wanted)
    head = tree_head(tree, tags, first, first + len(wanted) - 1)
    assert starred.leaves()[head].startswith("*"), words[head]


def _numbered(node, numbers):
    if isinstance(node[0], str):
        return next(numbers)
    return Tree(node.label(), [_numbered(child, numbers) for child in node])


@pytest.mark.parametrize("brackets", PHRASES.values(), ids=PHRASES)
def test_the_head_of_a_phrase_is(brackets):
    check(brackets)


@pytest.mark.parametrize(("brackets", "mention"), PARTS.values(), ids=PARTS)
def test_the_head_of_a_part_of_a_phrase_is(brackets, mention):
    check(brackets, mention)


@pytest.mark.parametrize(
    "mention",
    [
        "*she",
        "of",
        "the *house of Elliot",
        "two young *girls , the twins",
        "the *man who wrote it",
        "that *man",
        "*all that he had",
        "Mr. *Darcy 's",
        "Mr. *Darcy ’s",
        "the *servants '",
        "her father 's *bungalow",
        "the servants ' *quarters",
        "Mrs. *Bennet herself",
        "*anyone else",
        "about forty *people",
        "* * the _ *Times _ ”",
        "his *son -- and heir",
        "the *Duke OF Kent",
    ],
)
def test_the_head_of_words_without_a_parse_is(mention):
    words = mention.split()
    starred = [i for i, word in enumerate(words) if word.startswith("*") and len(word) > 1] or [0]
    assert surface_head([word.lstrip("*") or "*" for word in words]) == starred[0]


TOKENS = st.sampled_from([*sorted(AFTER_HEAD), "'s", "'", "”", "_", ".", "man", "Ann", "red"])


@given(st.lists(TOKENS, min_size=1, max_size=8))
def test_the_head_lies_within_the_mention_and_is_a_word_if_there_is_one_before_the_end(words):
    head = surface_head(words)
    assert 0 <= head < len(words)
    if words[0] in ("man", "Ann", "red"):
        assert words[head] in ("man", "Ann", "red")


@given(
    st.recursive(
        st.sampled_from(["NN", "DT", "VBD", ",", "POS"]),
        lambda node: st.tuples(
            st.sampled_from(["NP", "VP", "QP", "S"]), st.lists(node, min_size=1, max_size=4)
        ),
        max_leaves=12,
    ),
    st.data(),
)
def test_in_any_tree_the_head_lies_within_the_mention(drawn, data):
    tags = []

    def build(node):
        if isinstance(node, str):
            tags.append(node)
            return len(tags) - 1
        return Tree(node[0], [build(child) for child in node[1]])

    tree = Tree("TOP", [build(drawn)])
    first = data.draw(st.integers(0, len(tags) - 1))
    last = data.draw(st.integers(first, len(tags) - 1))
    assert first <= tree_head(tree, tags, first, last) <= last


def kinds(sentences, tags=()):
    """The kind of each word of the sentences, were it the head of a mention."""
    words, starts = [], set()
    for sentence in sentences:
        starts.add(len(words))
        words += [Word(form) for form in sentence.split()]
    mentions = [Mention("e", i, i, i) for i in range(len(words))]
    tags = tags or [Tag()] * len(words)
    return [mention.kind for mention in with_kinds(mentions, words, tags, starts=starts)]


@pytest.mark.parametrize(
    ("tag", "kind"),
    [
        (Tag("PRON", "WP"), "pronoun"),
        (Tag(None, "PRP"), "pronoun"),
        (Tag(None, "PRP$"), "pronoun"),
        (Tag("PROPN", "NN"), "proper"),
        (Tag(None, "NNP"), "proper"),
        (Tag(None, "NNPS"), "proper"),
        (Tag("ADJ", "NNP"), "nominal"),
        (Tag("NOUN"), "nominal"),
        (Tag(None, "WP"), "nominal"),
        (Tag(None, "VBD"), "nominal"),
    ],
)
def test_with_tags_the_tag_decides_and_the_universal_one_first(tag, kind):
    assert kinds(["x He"], [tag, tag]) == [kind, kind]


@pytest.mark.parametrize("word", "I my Him herself theirs ours thyself 'em it Yourselves".split())  # noqa: SIM905
def test_without_tags_listed_words_are_pronouns(word):
    assert kinds([f"saw {word}"])[1] == "pronoun"


@pytest.mark.parametrize("word", ["who", "this", "US", "mined", "one"])
def test_other_words_are_none(word):
    assert kinds([f"saw {word}"])[1] != "pronoun"


def test_without_tags_a_capital_within_a_sentence_is_a_name():
    assert kinds(["the Duke saw men"]) == ["nominal", "proper", "nominal", "nominal"]


def test_a_capital_at_the_beginning_is_none_unless_the_word_has_it_elsewhere():
    assert kinds(["Dogs bark", "Emma left", "Then Emma slept"])[::2] == [
        "nominal",
        "proper",
        "nominal",
        "nominal",
    ]


def test_quotation_marks_do_not_hide_the_beginning():
    assert kinds(["“ ' Dogs saw Ann"])[2:] == ["nominal", "nominal", "proper"]
