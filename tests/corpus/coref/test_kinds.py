"""Is it told what kind of mention a head word makes?"""

import pytest

from headscope.corpus import Mention, Word
from headscope.corpus.coref.mentions import Tag, with_kinds


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
        "nominal", "proper", "nominal", "nominal",
    ]  # fmt: skip


def test_quotation_marks_do_not_hide_the_beginning():
    assert kinds(["“ ' Dogs saw Ann"])[2:] == ["nominal", "nominal", "proper"]
