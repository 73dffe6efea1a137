"""Does pairing brackets give back the spans they were written for?"""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headscope.corpus.coref.mentions import BracketFault, BracketSpan, Mark, paired


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
    assert caught.value.place == 1
