"""Which sentences and documents does a CoNLL-U or CoNLL-X file hold, and what is wrong with each?

Sentences are cut at blank lines before anything is parsed, so one that is malformed takes no other
with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conllu.exceptions import ParseException
from conllu.parser import DEFAULT_FIELD_PARSERS, DEFAULT_FIELDS, parse_line

from headscope.corpus.document import Word
from headscope.corpus.files import Line, read_lines
from headscope.corpus.tree import Row, SentenceFault, read_words

COLUMNS = len(DEFAULT_FIELDS)  # CoNLL-U and CoNLL-X both have ten
ENTITY_FIELDS = "eid-etype-head-other"  # CorefUD 1.0, where a file does not say otherwise


def _plain(columns: list[str], index: int) -> str | None:
    return None if columns[index] in ("", "_") else columns[index]


# What is not needed is not parsed; MISC is kept whole because CorefUD writes more than pairs.
FIELD_PARSERS = {**DEFAULT_FIELD_PARSERS, **dict.fromkeys(("feats", "deps", "misc"), _plain)}


@dataclass(frozen=True, slots=True)
class Sentence:
    """One block of lines with rows in it.

    name           its sent_id, or `file:line`
    fault          what is wrong with it and where; then there are no words
    rows           as the conllu package parses them, with `misc` left as text
    lines          where each row stands: `file:line: sentence id`
    entity_fields  names of the dash-separated parts of an opening `Entity=` mark
    """

    name: str
    fault: str | None = None
    words: tuple[Word, ...] = ()
    rows: tuple[Row, ...] = ()
    lines: tuple[str, ...] = ()
    entity_fields: tuple[str, ...] = ()


def documents(
    path: Path, label: str, *, undivided: bool = False
) -> Iterator[tuple[str, list[Sentence]]]:
    """Name and sentences of each document of a file; none without a sentence.

    A document starts at each `# newdoc`. In a file without any, each sentence is a document of its
    own, or, if undivided, the file is one.
    """
    alone = not undivided and not any(_newdoc(_comments([line])) for line in read_lines(path))
    fields = ENTITY_FIELDS
    name, sentences = label, list[Sentence]()
    for block in _blocks(path):
        comments = _comments(block)
        fields = comments.get("global.Entity", fields)
        key = _newdoc(comments)
        if (key or alone) and sentences:
            yield name, sentences
            sentences = []
        if key:
            name = comments[key] or f"{label}:{block[0].number}"
        sentence = _sentence(path, label, block, tuple(fields.split("-")))
        if sentence is not None:
            name = sentence.name if alone else name
            sentences.append(sentence)
    if sentences:
        yield name, sentences


def _blocks(path: Path) -> Iterator[list[Line]]:
    """The runs of lines between blank ones."""
    block: list[Line] = []
    for line in read_lines(path):
        if line.text.strip():
            block.append(line)
        elif block:
            yield block
            block = []
    if block:
        yield block


def _comments(block: Sequence[Line]) -> dict[str, str]:
    """What the comments say: `# key = value`; the value is empty where there is none."""
    pairs = [line.text[1:].partition("=") for line in block if line.text.startswith("#")]
    return {key.strip(): value.strip() for key, _, value in pairs}


def _newdoc(comments: dict[str, str]) -> str | None:
    """The key of the comment that starts a document, if one does."""
    return next((key for key in ("newdoc id", "newdoc") if key in comments), None)


def _sentence(
    path: Path, label: str, block: Sequence[Line], entity_fields: tuple[str, ...]
) -> Sentence | None:
    """The sentence of a block; None where there are only comments."""
    for line in block:
        if line.fault:
            fault = f"{path}:{line.number}: {line.fault}"
            return Sentence(f"{label}:{block[0].number}", fault=fault)
    rows = [line for line in block if not line.text.startswith("#")]
    if not rows:
        return None
    stated = _comments(block).get("sent_id")
    within = f"sentence {stated}: " if stated else ""
    lines = tuple(f"{path}:{line.number}: {within}" for line in rows)
    name = stated or f"{label}:{rows[0].number}"
    try:
        parsed = tuple(_row(line.text, index) for index, line in enumerate(rows))
        words = read_words(parsed)
    except SentenceFault as error:
        return Sentence(name, fault=lines[error.row] + error.reason)
    return Sentence(name, None, words, parsed, lines, entity_fields)


def _row(text: str, index: int) -> dict[str, Any]:
    """One row, parsed; SentenceFault says what is wrong with it."""
    found = text.count("\t") + 1
    if found != COLUMNS:
        lost = "\t" not in text and len(text.split()) > 1
        hint = "; the tabs were lost: separate columns by tabs, not spaces" if lost else ""
        raise SentenceFault(
            f"found {found} tab-separated columns; wanted {COLUMNS}{hint}", row=index
        )
    try:
        # Without this, conllu would take two spaces within a column for a tab.
        row = dict(parse_line(re.sub(" {2,}", " ", text), DEFAULT_FIELDS, FIELD_PARSERS))
    except (ParseException, ValueError) as error:  # int() refuses thousands of digits
        reason = str(error).rstrip(".")
        raise SentenceFault(f"{reason}; wanted whole numbers as id and head", row=index) from error
    if row["id"] is None:
        raise SentenceFault("the id (column 1) is empty; wanted the word's number", row=index)
    return row
