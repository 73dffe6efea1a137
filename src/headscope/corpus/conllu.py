"""Parse CoNLL-U and CoNLL-X files into sentences and documents; report what is malformed.

A file is cut into sentences at blank lines before anything is parsed, so a malformed sentence
spoils no other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from conllu.exceptions import ParseException
from conllu.parser import DEFAULT_FIELD_PARSERS, DEFAULT_FIELDS, parse_line

from headscope.corpus.document import Word
from headscope.corpus.files import Fault, FileLine, read_lines
from headscope.corpus.partitions import PARTITION, FilePart
from headscope.corpus.places import File

COLUMNS = len(DEFAULT_FIELDS)  # CoNLL-U and CoNLL-X both have ten
ENTITY_FIELDS = "eid-etype-head-other"  # CorefUD 1.0, where a file does not say otherwise

NEWDOC = ("newdoc id", "newdoc")


def _plain(columns: list[str], index: int) -> str | None:
    return None if columns[index] in ("", "_") else columns[index]


# What is not needed is not parsed; MISC is kept whole because CorefUD writes more than pairs.
FIELD_PARSERS = {**DEFAULT_FIELD_PARSERS, **dict.fromkeys(("feats", "deps", "misc"), _plain)}


@dataclass(frozen=True, slots=True)
class ConlluSentence:
    """One block of lines that contains rows.

    name           its sent_id, or `file:line`
    fault          what is wrong with it and where; then there are no words
    rows           as the conllu package parses them, with `misc` left as text
    lines          where each row stands: `file:line: sentence id`
    entity_fields  names of the dash-separated parts of an opening `Entity=` mark
    """

    name: str
    fault: str | None = None
    words: tuple[Word, ...] = ()
    rows: tuple[ConlluRow, ...] = ()
    lines: tuple[str, ...] = ()
    entity_fields: tuple[str, ...] = ()


def documents(
    path: FilePart, label: str, *, undivided: bool = False
) -> Iterator[tuple[str, list[ConlluSentence]]]:
    """Name and sentences of each document of a file; documents without sentences are left out.

    A document starts at each `# newdoc`. In a file without any, each sentence is a document of its
    own, or, if undivided, the file is one. Of a part, the beginning of its file decides.
    """
    whole = not path.start and path.stop is None
    alone = not undivided and not has_newdoc(path if whole else path.path)
    fields = ENTITY_FIELDS
    name, sentences = label, list[ConlluSentence]()
    for block in blocks(path):
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


def has_newdoc(file: File | FilePart) -> bool:
    """Whether documents begin in a part of a file, or in the first 8 MiB of a file."""
    part = file if isinstance(file, FilePart) else FilePart(file, stop=PARTITION)
    return any(is_newdoc(line.text) for line in read_lines(part))


def is_newdoc(line: str) -> bool:
    """Whether a line begins a document."""
    return line.startswith("#") and line[1:].partition("=")[0].strip() in NEWDOC


def blocks(path: File | FilePart) -> Iterator[list[FileLine]]:
    """The lines between blank lines, as lists."""
    for blank, lines in groupby(read_lines(path), key=lambda line: not line.text.strip()):
        if not blank:
            yield list(lines)


def _comments(block: Sequence[FileLine]) -> dict[str, str]:
    pairs = [line.text[1:].partition("=") for line in block if line.text.startswith("#")]
    return {key.strip(): value.strip() for key, _, value in pairs}


def _newdoc(comments: dict[str, str]) -> str | None:
    return next((key for key in NEWDOC if key in comments), None)


def _sentence(
    path: FilePart, label: str, block: Sequence[FileLine], entity_fields: tuple[str, ...]
) -> ConlluSentence | None:
    for line in block:
        if line.fault:
            fault = f"{path}:{line.number}: {line.fault}"
            return ConlluSentence(f"{label}:{block[0].number}", fault)
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
    except Fault as error:
        return ConlluSentence(name, lines[error.at] + error.reason)
    return ConlluSentence(name, None, words, parsed, lines, entity_fields)


def _row(text: str, index: int) -> dict[str, Any]:
    columns = text.count("\t") + 1
    if columns != COLUMNS:
        lost = "\t" not in text and len(text.split()) > 1
        hint = "; the tabs were lost: separate columns by tabs, not spaces" if lost else ""
        raise Fault(f"found {columns} tab-separated columns; wanted {COLUMNS}{hint}", at=index)
    try:
        # Without this, conllu would take two spaces within a column for a tab.
        row = dict(parse_line(re.sub(" {2,}", " ", text), DEFAULT_FIELDS, FIELD_PARSERS))
    except (ParseException, ValueError) as error:  # int() refuses thousands of digits
        reason = str(error).rstrip(".")
        raise Fault(f"{reason}; wanted whole numbers as id and head", at=index) from error
    if row["id"] is None:
        raise Fault("the id (column 1) is empty; wanted the word's number", at=index)
    return row


ConlluRow = dict[str, Any]


def read_words(rows: Sequence[ConlluRow]) -> tuple[Word, ...]:
    """The words of one sentence, without multiword ranges and empty nodes.

    rows  as the conllu package parses them, with `misc` left as text

    raises  Fault for ids out of order, a head that is missing or out of range, or a graph
            that is no tree (several roots are allowed, as older treebanks have them)
    """
    numbered = [index for index, row in enumerate(rows) if isinstance(row["id"], int)]
    heads = _heads(rows, numbered)
    glued = _glued(rows)
    return tuple(
        Word(
            form=rows[index]["form"],
            upos=_given(rows[index], "upos"),
            xpos=_given(rows[index], "xpos"),
            head=head,
            relation=_given(rows[index], "deprel"),
            space_after=place not in glued,
        )
        for place, (index, head) in enumerate(zip(numbered, heads, strict=True))
    )


def misc(row: ConlluRow, key: str) -> str | None:
    """The value of one `key=value` part of the last column."""
    for part in (row.get("misc") or "").split("|"):
        name, _, value = part.partition("=")
        if name == key:
            return value
    return None


def _given(row: ConlluRow, column: str) -> str | None:
    value = row.get(column)
    return None if value in ("", "_") else value


def _heads(rows: Sequence[ConlluRow], numbered: Sequence[int]) -> list[int]:
    """0-based head of each word, -1 for a root, after checking that they make a tree."""
    if not numbered:
        raise Fault("found no numbered word", at=0)
    heads = []
    for place, index in enumerate(numbered):
        number, head = rows[index]["id"], rows[index]["head"]
        if number != place + 1:
            raise Fault(f"found word id {number}; wanted {place + 1}", at=index)
        if head is None:
            raise Fault(
                "the head (column 7) is '_'; wanted a number: a treebank needs heads", at=index
            )
        if not 0 <= head <= len(numbered):
            raise Fault(
                f"head {head} is outside 0..{len(numbered)}; wanted 0 or a word's number", at=index
            )
        heads.append(head - 1)
    _check_tree(heads, numbered)
    return heads


def _check_tree(heads: Sequence[int], numbered: Sequence[int]) -> None:
    """Check that every word reaches a root; visited paths are not walked again."""
    if -1 not in heads:
        raise Fault(
            "no word has head 0: the sentence has no root; wanted at least one", at=numbered[0]
        )
    reaches = [False] * len(heads)
    for start in range(len(heads)):
        path: dict[int, None] = {}
        word = start
        while word >= 0 and not reaches[word]:
            if word in path:
                raise Fault(
                    f"the heads of word {word + 1} run in a cycle; wanted a path to a root",
                    at=numbered[word],
                )
            path[word] = None
            word = heads[word]
        for seen in path:
            reaches[seen] = True


def _glued(rows: Sequence[ConlluRow]) -> set[int]:
    """0-based words that no space follows.

    Words of a multiword range have no space between them where their forms spell the range
    ("do" + "n't"); where they do not ("du" = "de" + "le") they are read as separate words.
    """
    glued = set()
    forms = {row["id"]: row["form"] for row in rows if isinstance(row["id"], int)}
    for row in rows:
        number, no_space = row["id"], misc(row, "SpaceAfter") == "No"
        if isinstance(number, int) and no_space:
            glued.add(number - 1)
        elif isinstance(number, tuple) and number[1] == "-":
            first, last = number[0], number[2]
            if "".join(forms.get(n, "") for n in range(first, last + 1)) == row["form"]:
                glued.update(range(first - 1, last - 1))
            if no_space:
                glued.add(last - 1)
    return glued
