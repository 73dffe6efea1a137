"""Read the columns of CoNLL-2012, or of LitBank's variant, as documents with mentions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from headscope.corpus.coref.mentions import (
    BracketFault,
    Mark,
    Tag,
    paired,
    surface_head,
    tree_head,
    with_kinds,
)
from headscope.corpus.document import Mention, Passage, Word
from headscope.corpus.files import Fault, FileLine, read_lines
from headscope.corpus.partitions import FilePart

if TYPE_CHECKING:
    from nltk.tree import Tree

BEGIN, END = "#begin document", "#end document"
LEAST_COLUMNS = 11
WANTED = "document, part, number, word, tag, parse, …, coreference"
FORM, TAG, PARSE, COREFERENCE = 3, 4, 5, -1
EMPTY = ("", "-", "_")
BRACKET = re.compile(r"(?P<opens>\()?(?P<name>[^()|]+)(?P<shuts>\))?")
# How the Penn Treebank writes brackets, and OntoNotes some marks.
FORMS = {
    "-LRB-": "(",
    "-RRB-": ")",
    "-LSB-": "[",
    "-RSB-": "]",
    "-LCB-": "{",
    "-RCB-": "}",
    "/.": ".",
    "/?": "?",
    "/-": "-",
}


def documents(path: FilePart, label: str) -> Iterator[tuple[str, Passage]]:
    """Place and passage of each document of a file, or its fault.

    A part is a document of its own (`name part 0`): coreference is only marked within parts. A
    document with a hole is no document to ask for antecedents in, so one malformed row leaves it
    out as a whole; reading goes on with the next `#begin document`.

    Columns are separated by tabs where a row has any, else by white space; all rows of a sentence
    have the same number. Word, tag and parse stand in the 4th, 5th and 6th column (`-`, `_` or
    nothing: none), brackets in the last, closed within their sentence. The head of a mention comes
    from the gold parse of its sentence where there is one, else from its words. Nested mentions are
    each a mention, and so are those of entities with only one.
    """
    for block in _blocks(path):
        name = block.name(label)
        try:
            passage = _passage(block, name)
        except Fault as fault:
            passage = Passage(name, fault=f"{path}:{fault.at}: {fault}")
        yield f"{label}:{block.line}", passage


@dataclass(frozen=True, slots=True)
class _Block:
    """The lines between two marks of a file, and the marks if present."""

    begin: FileLine | None
    lines: list[FileLine]
    end: FileLine | None

    @property
    def line(self) -> int:
        """The number of its first line."""
        return next(line.number for line in (self.begin, *self.lines, self.end) if line)

    def name(self, label: str) -> str:
        """`name part 0`, from the first line."""
        begin = self.begin
        stated = "" if begin is None or begin.fault else begin.text.removeprefix(BEGIN).strip()
        name, mark, part = stated.rpartition("part ")
        if not (mark and part.isdecimal()):
            name, part = stated, ""
        name = name.strip(" \t;").removeprefix("(").removesuffix(")") or f"{label}:{self.line}"
        return f"{name} part {part.lstrip('0') or 0}" if part else name


def _blocks(path: FilePart) -> Iterator[_Block]:
    begin, lines = None, list[FileLine]()
    for line in read_lines(path):
        if line.text.startswith(BEGIN):
            if begin or lines:
                yield _Block(begin, lines, None)
            begin, lines = line, []
        elif line.text.startswith(END):
            yield _Block(begin, lines, line)
            begin, lines = None, []
        elif line.text.strip() or begin:
            lines.append(line)
    if begin or lines:
        yield _Block(begin, lines, None)


class _ConllRow(NamedTuple):
    line: int
    columns: list[str]


def _passage(block: _Block, name: str) -> Passage:
    if block.begin is None:
        raise Fault(f"found no {BEGIN!r} before this line; wanted one", at=block.line)
    for line in (block.begin, *block.lines):
        line.check()
    words: list[Word] = []
    tags: list[Tag] = []
    mentions: list[Mention] = []
    starts = set[int]()
    for rows in _sentences(block.lines):
        starts.add(len(words))
        mentions += _mentions(rows, start=len(words))
        forms = (row.columns[FORM] for row in rows)
        words += [Word(FORMS.get(form, form)) for form in forms]
        cells = (row.columns[TAG] for row in rows)
        tags += [Tag(xpos=None if tag in EMPTY else tag) for tag in cells]
    if block.end is None:
        raise Fault(f"found no {END!r} for this document; wanted one", at=block.line)
    if not words:
        raise Fault(f"found no row in this document; wanted {WANTED}", at=block.line)
    return Passage(
        name, words=tuple(words), mentions=with_kinds(mentions, words, tags, starts=starts)
    )


def _sentences(lines: Sequence[FileLine]) -> Iterator[list[_ConllRow]]:
    for blank, group in groupby(lines, key=lambda line: not line.text.strip()):
        rows = [_row(line) for line in group if not blank and not line.text.startswith("#")]
        for row in rows:
            columns, wanted = len(row.columns), len(rows[0].columns)
            if columns != wanted:
                raise Fault(
                    f"found {columns} columns; wanted {wanted} as in the sentence's first row",
                    at=row.line,
                )
        if rows:
            yield rows


def _row(line: FileLine) -> _ConllRow:
    columns = line.text.split("\t") if "\t" in line.text else line.text.split()
    if len(columns) < LEAST_COLUMNS:
        raise Fault(
            f"found {len(columns)} columns; wanted at least {LEAST_COLUMNS} ({WANTED})",
            at=line.number,
        )
    return _ConllRow(line.number, [column.strip() for column in columns])


def _mentions(rows: Sequence[_ConllRow], *, start: int) -> list[Mention]:
    try:
        spans = paired(mark for place, row in enumerate(rows) for mark in _marks(row, place))
    except BracketFault as fault:
        raise Fault(f"coreference {fault.reason}", at=rows[fault.at].line) from fault
    tree = _tree(rows) if spans else None
    tags = [row.columns[TAG] for row in rows]
    forms = [row.columns[FORM] for row in rows]
    mentions = []
    for span in spans:
        if tree is None:
            head = span.first + surface_head(forms[span.first : span.last + 1])
        else:
            head = tree_head(tree, tags, span.first, span.last)
        mentions.append(Mention(span.name, start + span.first, start + span.last, start + head))
    return mentions


def _marks(row: _ConllRow, place: int) -> Iterator[Mark]:
    cell = row.columns[COREFERENCE]
    for piece in cell.split("|") if cell not in EMPTY else ():
        bracket = BRACKET.fullmatch(piece)
        if not bracket or not (bracket["opens"] or bracket["shuts"]):
            raise Fault(
                f"found {cell!r} as coreference; wanted brackets like (12|(3), 12) or -",
                at=row.line,
            )
        yield Mark(place, bracket["name"], bool(bracket["opens"]), bool(bracket["shuts"]))


def _tree(rows: Sequence[_ConllRow]) -> Tree | None:
    """The parse tree of a sentence, with word numbers as leaves; None without one."""
    bits = [row.columns[PARSE] for row in rows]
    if not any("(" in bit for bit in bits):
        return None
    from nltk.tree import Tree  # takes a second, and most variants of the format have no parse

    text = "".join(bit.replace("*", f" {place} ") for place, bit in enumerate(bits))
    try:
        tree = Tree.fromstring(text, read_leaf=int)
        whole = tree.leaves() == list(range(len(rows)))
    except (ValueError, RecursionError):
        whole = False
    if not whole:
        raise Fault(
            "the parse brackets of this sentence do not make a tree; wanted (TOP(S(NP* and so on, "
            "one * a row",
            at=rows[0].line,
        )
    return tree
