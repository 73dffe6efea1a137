"""How do dependency treebanks in CoNLL-U or CoNLL-X become documents?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, cast

from conllu import TokenList, parse_incr
from conllu.exceptions import ParseException
from conllu.parser import DEFAULT_FIELD_PARSERS, DEFAULT_FIELDS, parse_line

from headscope.corpus.document import Document, Passage
from headscope.corpus.files import (
    Files,
    UniqueNames,
    checked_files,
    described,
    labels,
    numbered_lines,
)
from headscope.corpus.tree import SentenceFault, read_sentence
from headscope.errors import CorpusError

COLUMNS = len(DEFAULT_FIELDS)  # CoNLL-U and CoNLL-X both have ten
ENTITY_FIELDS = "eid-etype-head-other"  # CorefUD 1.0, where a file does not say otherwise


def _plain(columns: list[str], index: int) -> str | None:
    return None if columns[index] in ("", "_") else columns[index]


# What is not needed is not parsed; MISC is kept whole because CorefUD writes more than pairs.
FIELD_PARSERS = {**DEFAULT_FIELD_PARSERS, **dict.fromkeys(("feats", "deps", "misc"), _plain)}


@dataclass(frozen=True, init=False)
class TreebankCorpus:
    """CoNLL-U or CoNLL-X files; every sentence is a passage of syntactic words.

    A document starts at each `# newdoc`. In a file without any, each sentence is a document of
    its own. Words are the numbered rows: multiword ranges and empty nodes are left out. CorefUD
    `Entity=` marks become mentions (of a discontinuous mention, its first part only).
    """

    files: tuple[Path, ...]

    def __init__(self, files: Files) -> None:
        object.__setattr__(self, "files", checked_files(files))

    def __iter__(self) -> Iterator[Document]:
        """Yields the documents of all files, in order.

        raises  CorpusError with file, line and sentence for a row, head or tree that is malformed
        """
        names = UniqueNames()
        for path, label in zip(self.files, labels(self.files), strict=True):
            found = False
            for name, passages in _documents(path, label):
                found = True
                yield Document(names.of(name, place=passages[0].id), tuple(passages))
            if not found:
                raise CorpusError(f"{path} holds no sentence; wanted CoNLL-U rows")

    def describe(self) -> dict[str, Any]:
        """What was read: `kind` and `files` (name and sha256 of each)."""
        return {"kind": "treebank", "files": described(self.files)}


class _Lines:
    """One file as conllu wants it, remembering the numbered lines of the sentence being read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.block: list[tuple[int, str]] = []

    def read(self) -> str:
        """Only there because conllu asks whether it is; it reads line by line."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[str]:
        for number, line in numbered_lines(self.path):
            if not line.strip():
                yield "\n"
                self.block = []  # reached once conllu has handed the sentence over
                continue
            self.block.append((number, line))
            found = line.count("\t") + 1
            if not line.startswith("#") and found != COLUMNS:
                raise self.error(f"found {found} tab-separated columns; wanted {COLUMNS}")
            yield re.sub(" {2,}", " ", line) + "\n"  # conllu takes two spaces for a tab

    @property
    def rows(self) -> list[tuple[int, str]]:
        """The numbered lines of the sentence that are not comments."""
        return [(number, line) for number, line in self.block if not line.startswith("#")]

    def sentence_id(self) -> str | None:
        """What the comments of the sentence give as its id."""
        comments = [line[1:].split("=", 1) for _, line in self.block if line.startswith("#")]
        ids = [pair[1].strip() for pair in comments if pair[0].strip() == "sent_id" and pair[1:]]
        return ids[0] if ids else None

    def error(self, reason: str, *, row: int = -1) -> CorpusError:
        """The error that says where in the file the reason was found."""
        number = (self.rows or self.block)[row][0]
        name = self.sentence_id()
        sentence = f"sentence {name}: " if name else ""
        return CorpusError(f"{self.path}:{number}: {sentence}{reason}")


def _documents(path: Path, label: str) -> Iterator[tuple[str, list[Passage]]]:
    """Name and sentences of each document of one file."""
    alone = not any(_starts_document(line) for _, line in numbered_lines(path))
    name, passages = label, list[Passage]()
    for start, metadata, passage in _sentences(path, label):
        key = next((k for k in ("newdoc id", "newdoc") if k in metadata), None)
        if (key or alone) and passages:
            yield name, passages
            passages = []
        if key:
            name = metadata[key] or f"{label}:{start}"
        if passage is not None:
            name = passage.id if alone else name
            passages.append(passage)
    if passages:
        yield name, passages


def _starts_document(line: str) -> bool:
    return re.match(r"#\s*newdoc\b", line) is not None


def _sentences(path: Path, label: str) -> Iterator[tuple[int, dict[str, Any], Passage | None]]:
    """First line, comments and passage of each sentence; None where there are only comments."""
    lines = _Lines(path)
    fields = ENTITY_FIELDS
    for parsed in _parsed(lines):
        metadata = cast(dict[str, Any], parsed.metadata)
        fields = metadata.get("global.Entity", fields)
        start = lines.block[0][0]
        if not parsed:
            yield start, metadata, None
            continue
        name = lines.sentence_id() or f"{label}:{lines.rows[0][0]}"
        try:
            words, mentions = read_sentence(parsed, entity_fields=fields.split("-"))
        except SentenceFault as fault:
            raise lines.error(fault.reason, row=fault.row) from fault
        yield start, metadata, Passage(name, words=words, mentions=mentions)


def _parsed(lines: _Lines) -> Iterator[TokenList]:
    """The sentences as conllu parses them; what it refuses gets its line."""
    try:
        yield from parse_incr(cast(TextIO, lines), field_parsers=FIELD_PARSERS)
    except ParseException as error:
        raise lines.error(str(error), row=_refused(lines.rows)) from error


def _refused(rows: list[tuple[int, str]]) -> int:
    """Which row of a sentence conllu cannot parse: it does not say so itself."""
    for index, (_, line) in enumerate(rows):
        try:
            parse_line(line.strip(), DEFAULT_FIELDS, FIELD_PARSERS)
        except ParseException:
            return index
    return 0
