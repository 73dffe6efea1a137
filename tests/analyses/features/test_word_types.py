"""Are nouns, verbs, pronouns, subjects, objects and negation what they should be?"""

from __future__ import annotations

import numpy as np
import pytest

from analyses.sentences import KINDS, sentences
from headscope.analyses.features.word_types import (
    TYPES,
    WORDS,
    negation_words,
    plain,
    subjects_of_verbs,
    word_types,
)
from headscope.corpus.document import Word

ENGLISH = negation_words("en")


def of_type(kind: str, *words: Word) -> list[int]:
    """The numbers of the words that are of the kind."""
    return np.flatnonzero(word_types(words, ENGLISH)[:, TYPES.index(kind)]).tolist()


@pytest.mark.parametrize("at", range(3))
@pytest.mark.parametrize("kind", TYPES)
def test_the_words_of_a_sentence_are_what_was_told_by_hand(at: int, kind: str) -> None:
    example = sentences()[at]
    assert example.words is not None
    assert of_type(kind, *example.words) == KINDS[example.id].get(kind, [])


def test_with_penn_tags_the_universal_ones_do_not_matter() -> None:
    """Be is a verb, a modal is none; "someone" is a noun, "which" no pronoun."""
    words = [
        Word("is", "AUX", "VBZ"),
        Word("can", "AUX", "MD"),
        Word("someone", "PRON", "NN"),
        Word("which", "PRON", "WDT"),
        Word("it", "PRON", "PRP"),
    ]
    assert of_type("verb", *words) == [0]
    assert of_type("noun", *words) == [2]
    assert of_type("pronoun", *words) == [4]


def test_without_language_specific_tags_the_universal_ones_decide() -> None:
    kinds = ("NOUN", "PROPN", "VERB", "AUX", "PRON", "DET", "ADJ", "X")
    words = [Word("x", kind) for kind in kinds]
    assert of_type("noun", *words) == [0, 1]
    assert of_type("verb", *words) == [2, 3]
    assert of_type("pronoun", *words) == [4]


def test_tags_of_another_tagset_are_not_mistaken_for_penns() -> None:
    """PRP is a preposition in the tagset of the Portuguese treebanks."""
    words = [
        Word("de", "ADP", "PRP"),
        Word("casas", "NOUN", "N"),
        Word("ver", "VERB", "V"),
        Word("ela", "PRON", "PERS"),
    ]
    assert of_type("pronoun", *words) == [3]
    assert of_type("noun", *words) == [1]
    assert of_type("verb", *words) == [2]


def test_a_word_without_a_tag_among_penns_falls_back_to_the_universal_tag() -> None:
    words = [Word("Nora", "PROPN", "NNP"), Word("key", "NOUN"), Word("it")]
    assert of_type("noun", *words) == [0, 1]


@pytest.mark.parametrize(
    ("kind", "labels"),
    {
        "subject": (
            "nsubj nsubjpass nsubj:pass nsubj:outer csubj csubjpass csubj:pass expl expl:impers "
            "agent obl:agent"
        ),
        "object": "obj iobj dobj obj:lvc dative attr oprd",
        "": "obl pobj xcomp nmod:subj root aux SBJ obl:arg",
    }.items(),
)
def test_subjects_and_objects_are_told_by_the_relation(kind: str, labels: str) -> None:
    for label in labels.split():
        words = [Word("x", "X", head=1, relation=label), Word("y", "X")]
        for name in ("subject", "object"):
            assert of_type(name, *words) == ([0] if name == kind else []), label


def test_a_root_is_no_subject_whatever_its_label() -> None:
    words = [Word("x", "X", head=-1, relation="nsubj"), Word("sees", "VERB", head=0)]
    assert of_type("subject", *words) == []
    assert subjects_of_verbs(words, word_types(words, ENGLISH)) == []


def test_only_a_nominal_subject_of_a_verb_belongs_to_a_verb() -> None:
    labels = ("nsubj", "nsubj:pass", "nsubjpass", "csubj", "expl", "obl:agent", "obj")
    verb = Word("sees", "VERB", head=-1, relation="root")
    words = [verb, *(Word("x", "NOUN", head=0, relation=label) for label in labels)]
    assert subjects_of_verbs(words, word_types(words, ENGLISH)) == [(1, 0), (2, 0), (3, 0)]
    words[0] = Word("doctor", "NOUN", head=-1, relation="root")
    assert subjects_of_verbs(words, word_types(words, ENGLISH)) == []


@pytest.mark.parametrize("form", ["not", "NOT", "n't", "n’t", "Don’t", "nor", "Nothing", "cannot"])
def test_negation_is_told_by_the_whole_word_in_any_case(form: str) -> None:
    assert of_type("negation", Word(form)) == [0]


@pytest.mark.parametrize("form", ["normal", "another", "nothingness", "knot", "t", "no", "nobody"])
def test_a_word_that_only_holds_a_negation_is_none(form: str) -> None:
    """As in the paper, "no" and "nobody" are not on the list."""
    assert of_type("negation", Word(form)) == []


def test_every_language_has_its_words_and_own_words_can_be_added() -> None:
    assert "nicht" in negation_words("de")
    assert "not" not in negation_words("de")
    assert negation_words("en", "No, NOBODY") == ENGLISH | {"no", "nobody"}
    assert negation_words("none", "ez") == {"ez"}
    assert negation_words("none") == frozenset()


def test_every_word_of_every_list_can_be_matched() -> None:
    for words in WORDS.values():
        assert len(set(words)) == len(words)
        assert all(word == plain(word) for word in words)


def test_accents_match_however_they_are_encoded() -> None:
    assert plain("na\u0303o") in negation_words("pt")


def test_an_unknown_language_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(ValueError, match=r"language is 'eng'; wanted one of de, en, .*, none"):
        negation_words("eng")
    with pytest.raises(ValueError, match="wanted words separated by commas"):
        negation_words("en", ("no", "nobody"))  # type: ignore[arg-type]
