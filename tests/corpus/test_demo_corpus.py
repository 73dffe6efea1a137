"""Does the demo corpus give its sentences, and each document whole with the mentions it marks?

What is expected is read with the `conllu` package.
"""

from collections import Counter

import pytest

from corpus.test_demo import NAMES, read, spans
from headscope.corpus import Encoder, Mention, Word, demo_corpus


def test_each_document_gives_its_sentences_and_then_itself_with_its_mentions():
    documents = list(demo_corpus())
    assert [d.id for d in documents] == NAMES
    for document, name in zip(documents, NAMES, strict=True):
        *parts, whole = document.passages
        assert [p.id for p in parts] == [s.metadata["sent_id"] for s in read(name)]
        assert not any(p.mentions for p in parts)
        assert whole.id == f"{document.id}/document"
        assert whole.words == tuple(
            Word(word.form, space_after=word.space_after) for p in parts for word in p.words or ()
        )


KINDS = {"PRON": "pronoun", "PROPN": "proper"}


@pytest.mark.parametrize(("number", "name"), list(enumerate(NAMES)))
def test_the_mentions_of_a_whole_document_are_those_of_its_sentences(number, name):
    expected, start = [], 0
    for sentence in read(name):
        for span in spans(sentence):
            kind = KINDS.get(span.head_word(sentence)["upos"], "nominal")
            first, last = start + span.first - 1, start + span.last - 1
            expected.append(Mention(span.entity, first, last, first + span.head - 1, kind))
        start += len(sentence)
    found = list(demo_corpus())[number].passages[-1].mentions
    assert Counter(found) == Counter(expected)
    assert list(found) == sorted(found, key=lambda mention: (mention.first, -mention.last))


def test_the_corpus_is_209_inputs_none_of_which_is_too_long(bert):
    encoder = Encoder(bert, model_limit=512, has_segments=True, long="error")
    assert sum(len(encoder.encode(document)) for document in demo_corpus()) == 195 + 14
    assert encoder.counts.skipped == encoder.counts.windowed == 0
