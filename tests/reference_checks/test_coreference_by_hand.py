"""Does the coreference reference hold on an example that can be worked out by hand?"""

from __future__ import annotations

import numpy as np
import pytest

from reference import coreference

FORMS = ("Mary", "told", "her", "mother", "that", "she", "saw", "it")
MARY, HER, MOTHER, SHE, IT = (
    ("mary", 0, 0, 0, "proper"), ("mary", 2, 2, 2, "pronoun"), ("mother", 2, 3, 3, "nominal"),
    ("mary", 5, 5, 5, "pronoun"), ("it", 7, 7, 7, "pronoun"),
)  # fmt: skip
MENTIONS = [MARY, HER, MOTHER, SHE, IT]
WORDS = range(len(FORMS))


def pointing(answers: dict[int, int]) -> np.ndarray:
    """[layer, head, word, word] one head; words that are not named look at nothing."""
    maps = np.zeros((1, 1, len(FORMS), len(FORMS)))
    for word, answer in answers.items():
        maps[0, 0, word, answer] = 1
    return maps


def test_two_mentions_have_an_antecedent_and_only_those_are_asked_about() -> None:
    found = coreference.asked(pointing({2: 0, 5: 3}), WORDS, MENTIONS, FORMS)
    assert [a["kind"] for a in found] == ["pronoun", "pronoun"]
    assert [bool(a["primary"]) for a in found] == [True, False]


def test_strictly_a_verb_may_be_the_answer() -> None:
    maps = pointing({2: 0, 5: 0})
    maps[0, 0, 5, 1] = 2
    found = coreference.asked(maps, WORDS, MENTIONS, FORMS)
    assert [bool(a["primary"]) for a in found] == [True, True]
    assert [bool(a["strict"]) for a in found] == [True, False]


@pytest.mark.parametrize(
    ("asked", "wanted"), [(HER, (0, None, 0)), (SHE, (3, None, 3)), (IT, (5, None, 3))]
)
def test_the_rules_answer_as_read(asked: coreference.Mention, wanted: tuple[int | None]) -> None:
    before = [m for m in MENTIONS if m[3] < asked[3]]
    answers = tuple(rule(asked, before, FORMS) for rule in coreference.RULES.values())
    assert answers == wanted


def test_what_reaches_out_of_the_input_is_not_there() -> None:
    assert coreference.usable(MENTIONS, range(3, 8)) == [SHE, IT]
    assert coreference.usable(MENTIONS, range(2, 8)) == [HER, MOTHER, SHE, IT]


def test_of_two_mentions_with_one_head_word_the_longer_is_there() -> None:
    longer = ("mother", 3, 4, 3, "nominal")
    longest = ("mother", 2, 4, 3, "nominal")
    assert coreference.usable([longer, longest, MOTHER], WORDS) == [longest]
    assert coreference.usable([longer, MOTHER], WORDS) == [longer]
