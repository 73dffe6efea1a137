"""Which passages of a corpus get a parser's words and trees, and what is it given to parse?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.chain import SEEN, Chain, forms
from headscope.corpus import (
    AnnotatedCorpus,
    Concatenation,
    Document,
    MemoryCorpus,
    Mention,
    Passage,
    TextCorpus,
    Word,
)
from headscope.corpus.annotate import annotated
from headscope.corpus.annotate.annotated import pieces
from headscope.corpus.encoder import Encoder
from headscope.errors import InputError


def test_each_sentence_becomes_an_input_of_its_own_with_tags_and_a_tree(write):
    (document,) = AnnotatedCorpus(TextCorpus(write("It slept. Then it ate.")), Chain())
    first, second = document.passages
    assert first.words == (
        Word("It", "X", "XX", -1, "root"),
        Word("slept.", "X", "XX", 0, "next"),
    )
    assert (first.text, first.packable, second.packable) == (None, False, False)
    assert document.id == "corpus.txt:1"


def test_ids_say_where_the_text_began_and_which_sentence_it_is(write):
    (document,) = AnnotatedCorpus(TextCorpus(write("One. Two.\n= Three =\nFour.")), Chain())
    assert [p.id for p in document.passages] == [
        "corpus.txt:1.1/1",
        "corpus.txt:1.1/2",
        "corpus.txt:1.1/3",
        "corpus.txt:3.1/1",
    ]


def test_the_parser_decides_where_sentences_of_running_text_end(write):
    """TextCorpus cuts behind "Dr."."""
    corpus = TextCorpus(write("He met Dr. Smith."))
    assert len(next(iter(corpus)).passages) == 2
    list(AnnotatedCorpus(corpus, Chain()))
    assert SEEN == ["He met Dr. Smith."]


@pytest.mark.parametrize(
    ("lines", "parsed"),
    [
        (
            ["= A title =", "It slept. It ate.", "And left."],
            ["= A title =", "It slept. It ate. And left."],
        ),
        (
            ["The old cat sat", "on the mat beside", "Mary and then it", "slept."],
            ["The old cat sat on the mat beside Mary and then it slept."],
        ),
        (["Milk", "Two eggs", "Bread"], ["Milk", "Two eggs", "Bread"]),
        (['He said "no."', "She left."], ['He said "no." She left.']),
    ],
    ids=["a heading stands alone", "wrapped text goes on", "items", "a quote ends a sentence"],
)
def test_lines_are_parsed_together_or_alone(write, lines, parsed):
    list(AnnotatedCorpus(TextCorpus(write("\n".join(lines))), Chain()))
    assert parsed == SEEN


def test_lines_that_are_inputs_are_parsed_one_by_one(write):
    corpus = TextCorpus(write("It slept.\nIt ate."), passages="line")
    assert forms(AnnotatedCorpus(corpus, Chain())) == [["It slept.", "It ate."]]
    assert SEEN == ["It slept.", "It ate."]


def test_both_texts_of_a_pair_are_parsed_each_by_itself():
    (document,) = AnnotatedCorpus(MemoryCorpus([("A cat. It sat.", "No dog.")]), Chain())
    assert [(p.id, p.text_pair) for p in document.passages] == [
        (f"text 0/{n}", None) for n in (1, 2, 3)
    ]
    assert SEEN == ["A cat. It sat.", "No dog."]


@given(st.lists(st.sampled_from(["a", "end.", "word", "Ten", "x" * 25])), st.booleans())
def test_long_text_is_parsed_in_parts_and_loses_no_word(words, packable):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(annotated, "MOST", 20)
        found = pieces([Passage("a", text=" ".join(words), packable=packable)])
    texts = [text for piece in found for text in piece.texts]
    assert " ".join(texts).split() == words
    assert all(len(text) <= 20 or " " not in text for text in texts)


@given(st.lists(st.sampled_from(["A cat.", "It sat", "on it.", "= Head =", "Yes?"]), min_size=1))
def test_running_text_is_parsed_in_parts_and_loses_no_word(sentences):
    passages = [Passage(str(n), text=text, packable=True) for n, text in enumerate(sentences)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(annotated, "MOST", 20)
        found = pieces(passages)
    assert [p for piece in found for p in piece.passages] == passages
    assert all(len(text) <= 20 for piece in found for text in piece.texts)
    for piece in found:
        assert list(piece.texts) == [" ".join(p.text for p in piece.passages)]


def test_a_word_of_a_megabyte_is_not_cut():
    (piece,) = pieces([Passage("a", text="short " + "x" * 1_000_000)])
    assert [len(text) for text in piece.texts] == [5, 1_000_000]


BARE = (Word("It"), Word("sat"))
LEFT = [
    Passage("tree", words=(Word("It", "PRON", head=1, relation="nsubj"), Word("sat", "VERB"))),
    Passage("coref", words=BARE, mentions=(Mention("e", 0, 0, 0, "pronoun"),)),
    Passage("ready", tokens=("[CLS]", "it", "[SEP]")),
    Passage("fault", fault="bad:3: not a row"),
    Passage("white", text=" \t"),
    Passage("empty", text=""),
    Passage("half", text="half a pair: \ud83d", packable=True),
]


@pytest.mark.parametrize("passage", LEFT, ids=lambda p: p.id)
def test_what_is_no_text_with_words_stays_as_it_is(passage):
    around = [Passage("a", text="One.", packable=True), Passage("z", text="Two.", packable=True)]
    document = Document("d", (around[0], passage, around[1]))
    (annotated,) = AnnotatedCorpus(MemoryCorpus([document]), Chain())
    assert annotated.passages[1] is passage
    assert [p.id for p in annotated.passages] == ["a/1", passage.id, "z/1"]


def test_what_stays_is_counted_by_the_encoder(bert):
    corpus = AnnotatedCorpus(MemoryCorpus([Document("d", tuple(LEFT))]), Chain())
    encoder = Encoder(bert, model_limit=512, has_segments=True)
    examples = [e.id for document in corpus for e in encoder.encode(document)]
    assert examples == ["tree", "coref", "ready"]
    assert {name: r.total for name, r in encoder.counts.reasons.items()} == {
        "malformed": 1,
        "empty": 2,
        "not valid Unicode": 1,
    }


def test_the_description_names_the_parser_and_its_version(write):
    corpus = TextCorpus(write("One."))
    assert AnnotatedCorpus(corpus, Chain()).describe() == {
        **corpus.describe(),
        "annotator": {"name": "chain:en", "version": "1.0"},
    }
    assert not SEEN


def test_annotated_corpora_can_be_put_together(write):
    text = AnnotatedCorpus(TextCorpus(write("One.")), Chain())
    both = Concatenation([text, MemoryCorpus(["Two."])])
    assert [d.id for d in both] == ["0/corpus.txt:1", "1/text 0"]
    assert both.describe()["parts"][0]["annotator"]["name"] == "chain:en"


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_of_nothing_is_refused(limit):
    with pytest.raises(InputError, match="at least 1"):
        AnnotatedCorpus(MemoryCorpus(["x"]), Chain(), limit=limit)


@pytest.mark.parametrize("name", ["", "spacy", "spacy:", "udpipe:en", ":en"])
def test_an_unknown_annotator_is_refused_with_what_there_is(name):
    with pytest.raises(InputError, match=r"wanted spacy:MODEL or stanza:LANG"):
        AnnotatedCorpus(MemoryCorpus(["x"]), name)


def test_an_example_of_annotated_text_has_words_and_a_tree(bert):
    corpus = AnnotatedCorpus(MemoryCorpus(["It slept."]), Chain())
    (example,) = Encoder(bert, model_limit=512, has_segments=True).encode(next(iter(corpus)))
    assert [w.form for w in example.words] == ["It", "slept."]
    assert list(example.word_index) == [-1, 0, 1, 1, -1]
