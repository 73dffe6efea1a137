"""Has every word of the data a colour and a mark, whoever asks the question?"""

import pytest

from headscope.claims import question as module
from headscope.claims.question import Question
from headscope.claims.terms import Term
from headscope.draw.style import COLORS, LIGHT, color, marker, marks

WORDS = ("dull", "matt", "faded")


@pytest.fixture(autouse=True)
def made(monkeypatch):
    terms = {word: Term(word, "What shines.", "ours") for word in WORDS}
    question = Question(
        name="made", terms=terms, marks={"shiny": ("green", "P"), "cls": ("sky", "x")}
    )
    monkeypatch.setitem(module._REGISTERED, "made", question)


def test_a_word_has_the_mark_that_its_question_declares():
    assert (color("shiny"), marker("shiny")) == (LIGHT["green"], "P")


def test_no_question_changes_the_marks_of_others():
    assert marks()["cls"] == ("blue", "s")


def test_words_without_a_mark_get_spare_ones_that_differ_and_stay():
    looks = [(color(word), marker(word)) for word in WORDS]
    assert len({look for look, _ in looks}) == len({mark for _, mark in looks}) == len(WORDS)
    assert looks == [(color(word), marker(word)) for word in WORDS]
    assert color("a word that nobody explains") in LIGHT.values()


def test_a_mark_of_a_colour_that_is_none_is_left_aside(monkeypatch):
    question = Question(name="made", marks={"loud": ("neon", "P")})
    monkeypatch.setitem(module._REGISTERED, "made", question)
    assert "loud" not in marks()
    assert color("loud") in {pair[0] for pair in COLORS.values()}
