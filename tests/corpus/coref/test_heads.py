"""Is the head of a mention the word that a grammarian would name?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.tree import Tree

from headscope.corpus.coref.mentions import AFTER_HEAD, surface_head, tree_head

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
        "(VP (VBD saw) (NP (DT the) (NN *man)) (PP (IN in) (NP (NN town))))", "the man in town",
    ),
}  # fmt: skip


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


@given(st.recursive(st.sampled_from(["NN", "DT", "VBD", ",", "POS"]), lambda node: st.tuples(
    st.sampled_from(["NP", "VP", "QP", "S"]), st.lists(node, min_size=1, max_size=4)
), max_leaves=12), st.data())  # fmt: skip
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
