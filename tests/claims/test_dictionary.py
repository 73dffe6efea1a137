"""Is every word of the results explained once, with its source?"""

import pytest

from headscope.analyses.coreference import measure as coreference
from headscope.analyses.dependency import measure as dependency
from headscope.analyses.features.claims import PAIRS
from headscope.analyses.features.measure import FEATURES
from headscope.analyses.flow import METHODS as FLOWS
from headscope.analyses.mixing.measure import METHODS
from headscope.analyses.surface.measure import TARGETS
from headscope.claims.bibliography import SOURCES
from headscope.claims.dictionary import UNITS, name, terms
from headscope.claims.terms import OURS
from headscope.model.batch import CATEGORIES


@pytest.mark.parametrize("word", terms())
def test_a_term_has_a_name_one_sentence_and_a_source(word):
    term = terms()[word]
    assert term.name
    assert term.meaning[0].isupper()
    assert term.meaning.endswith(".")
    assert term.source in {"", OURS} | SOURCES.keys() or any(
        term.source.startswith(known) for known in SOURCES
    )


def test_every_source_has_a_reference_and_a_link():
    for source in SOURCES.values():
        assert source.reference.endswith(".")
        assert source.link.startswith("https://")


def test_every_unit_has_a_label():
    assert {"probability", "nats", "tokens", "1"} <= UNITS.keys()


def test_an_unknown_word_stands_for_itself():
    assert name("never heard of") == "never heard of"


LANGUAGE = {
    *dependency.DIRECTIONS,
    dependency.CLEAN,
    *dependency.LEFT_OUT,
    *FEATURES,
    *PAIRS,
    *coreference.MENTION_TYPES[1:],
    *coreference.SYSTEMS,
    *coreference.LEFT_OUT,
    "accuracy",
    "accuracy_strict",
    "offset_accuracy",
    "baseline",
    "held_out",
    "advantage",
    "score",
    "chance",
    "p_value",
}


@pytest.mark.parametrize("word", [*TARGETS, *CATEGORIES, *METHODS, *FLOWS, *sorted(LANGUAGE)])
def test_every_word_of_the_results_is_in_the_dictionary(word):
    assert word in terms()
