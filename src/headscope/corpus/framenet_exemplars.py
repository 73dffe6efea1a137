"""Select frames of exemplar sentences whose elements are short and far from the target.

The filters are those of Kovaleva et al. (2019, §4.2). In the sentences that are left, a head that
looks from a frame element to the word that evokes its frame cannot do so by looking at its
neighbours.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element

from headscope.corpus.document import Frame, FrameElement, Word

if TYPE_CHECKING:
    from nltk.tokenize.destructive import NLTKWordTokenizer


@dataclass(frozen=True)
class FrameFilters:
    """Filters for exemplars; lengths in word tokens, as NLTK's tokenizer splits them.

    sentence_words  a sentence has at most this many
    element_words   every frame element, core or not, has at most this many
    distance        no frame element, core or not, has one within this many of the target
    """

    sentence_words: int = 12
    element_words: int = 3
    distance: int = 2


class ExemplarFault(ValueError):
    """What is wrong with an annotation, and where."""

    def __init__(self, reason: str, *, at: Element) -> None:
        super().__init__(reason)
        self.at = at


def sentences_of(unit: Element) -> Iterator[Element]:
    """The exemplar sentences of a lexical unit."""
    return unit.iterfind("{*}subCorpus/{*}sentence")


def text_of(sentence: Element) -> str:
    """The text that a sentence's offsets refer to; ExemplarFault without one."""
    text = sentence.findtext("{*}text")
    if text is None:
        raise ExemplarFault("the sentence has no <text>; wanted one", at=sentence)
    return text


def frames_of(
    sentence: Element, *, name: str, core: Collection[str], filters: FrameFilters
) -> tuple[Frame, ...]:
    """The frames of a sentence that pass the filters, in words of `word_spans`.

    sentence  a <sentence> of a lexical unit's file; each of its annotation sets may be a frame
    name      of the frame
    core      names of the frame elements that count as core; the others are read and marked

    A word belongs to a span if they share a character. Only layers of rank 1 are read, as the
    NLTK reader does. A frame needs exactly one target span, one whole word token, and at least one
    core element.

    raises  ExemplarFault for offsets that do not fit the text
    """
    text = text_of(sentence)
    if len(text.split()) > filters.sentence_words:  # tokens are at least as many
        return ()
    tokens = list(_tokenizer().span_tokenize(text))
    if len(tokens) > filters.sentence_words:
        return ()
    words = word_spans(text)
    frames = []
    for annotation in sentence.iterfind("{*}annotationSet"):
        targets = [span for span, _ in _labels(annotation, "Target", text)]
        if len(targets) != 1:
            continue
        labels = _labels(annotation, "FE", text)
        if not _admitted(tokens, targets[0], [span for span, _ in labels], filters):
            continue
        elements = tuple(
            FrameElement(label, *_ends(words, span), core=label in core) for span, label in labels
        )
        if any(element.core for element in elements):
            frames.append(Frame(name, *_ends(words, targets[0]), elements))
    return tuple(frames)


def _admitted(
    tokens: Sequence[CharacterSpan],
    target: CharacterSpan,
    elements: Sequence[CharacterSpan],
    filters: FrameFilters,
) -> bool:
    if target not in tokens:
        return False
    place = tokens.index(target)
    covered = [overlapping(tokens, element) for element in elements]
    return all(
        len(there) <= filters.element_words
        and all(abs(token - place) > filters.distance for token in there)
        for there in covered
    )


def _labels(annotation: Element, layer: str, text: str) -> list[tuple[CharacterSpan, str]]:
    realised = {
        (_span(label, text), label.get("name", ""))
        for there in annotation.iterfind("{*}layer")
        if there.get("name") == layer and there.get("rank", "1") == "1"
        for label in there.iterfind("{*}label")
        if "start" in label.attrib  # else a null instantiation: understood, not said
    }
    return sorted((span, name) for span, name in realised if text[slice(*span)].strip())


def _span(label: Element, text: str) -> CharacterSpan:
    start, end = label.get("start", ""), label.get("end", "")  # the last character is counted in
    numbers = start.isdecimal() and end.isdecimal() and len(start + end) < 20
    if not numbers or not int(start) <= int(end) < len(text):
        raise ExemplarFault(
            f"{label.get('name', '')[:40]!r} is at characters {start[:12]} to {end[:12]}, but the "
            f"text has 0 to {len(text) - 1}",
            at=label,
        )
    return int(start), int(end) + 1


def _ends(words: Sequence[CharacterSpan], span: CharacterSpan) -> tuple[int, int]:
    there = overlapping(words, span)
    return there[0], there[-1]


@cache
def _tokenizer() -> NLTKWordTokenizer:
    """NLTK's word tokenizer, without the sentence splitter, which would need data."""
    from nltk.tokenize.destructive import NLTKWordTokenizer

    return NLTKWordTokenizer()


CharacterSpan = tuple[int, int]  # first character, and the one behind the last


def word_spans(text: str) -> list[CharacterSpan]:
    """The words in order: runs of characters without white space; every punctuation mark is one.

    Punctuation is what BERT's tokenizer takes for it: all of ASCII that is printed and neither
    letter, digit nor space, and every character of a Unicode category P. So that tokenizer makes
    the same pieces of these words as of the text.
    """
    spans: list[CharacterSpan] = []
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


def words_at(text: str, spans: Sequence[CharacterSpan]) -> tuple[Word, ...]:
    """The words at these places, without annotation."""
    after = [*(start for start, _ in spans[1:]), len(text) + 1]  # where the next one begins
    return tuple(
        Word(text[start:end], space_after=after[index] > end)
        for index, (start, end) in enumerate(spans)
    )


def overlapping(spans: Sequence[CharacterSpan], span: CharacterSpan) -> list[int]:
    """Which of the spans share a character with this one."""
    return [i for i, (start, end) in enumerate(spans) if start < span[1] and end > span[0]]


def _is_punctuation(character: str) -> bool:
    printed = "!" <= character <= "~" and not character.isalnum()
    return printed or unicodedata.category(character).startswith("P")
