"""Where are the words of a plain text, by character?"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from headscope.corpus.document import Word

Span = tuple[int, int]  # first character, and the one behind the last


def word_spans(text: str) -> list[Span]:
    """The words in order: runs of characters without white space; every punctuation mark is one.

    Punctuation is what BERT's tokenizer takes for it: all of ASCII that is printed and neither
    letter, digit nor space, and every character of a Unicode category P. So that tokenizer makes
    the same pieces of these words as of the text.
    """
    spans: list[Span] = []
    start = None
    for place, character in enumerate(text):
        mark = _is_punctuation(character)
        if start is not None and (mark or character.isspace()):
            spans.append((start, place))
            start = None
        if mark:
            spans.append((place, place + 1))
        elif start is None and not character.isspace():
            start = place
    return spans if start is None else [*spans, (start, len(text))]


def words_at(text: str, spans: Sequence[Span]) -> tuple[Word, ...]:
    """The words at these places, without annotation."""
    after = [*(start for start, _ in spans[1:]), len(text) + 1]  # where the next one begins
    return tuple(
        Word(text[start:end], space_after=after[index] > end)
        for index, (start, end) in enumerate(spans)
    )


def overlapping(spans: Sequence[Span], span: Span) -> list[int]:
    """Which of the spans share a character with this one."""
    return [i for i, (start, end) in enumerate(spans) if start < span[1] and end > span[0]]


def _is_punctuation(character: str) -> bool:
    printed = "!" <= character <= "~" and not character.isalnum()
    return printed or unicodedata.category(character).startswith("P")
