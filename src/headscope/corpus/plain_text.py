"""Read plain text files as documents of sentences or lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from headscope.corpus.document import Document, Passage
from headscope.corpus.files import (
    FileLine,
    Files,
    OnError,
    UniqueNames,
    checked_files,
    checked_policy,
    described,
    described_policy,
    labels,
    left_out,
    obeyed,
    read_lines,
)
from headscope.errors import InputError

DOCUMENTS = ("blank_line", "file", "heading")
PASSAGES = ("packed", "line")

# A mark that ends sentences, quotes or brackets that close after it, white space, and more text.
SENTENCE_END = re.compile(r"[.!?]['\"”’»)\]]*\s+(?=\S)")
# WikiText writes ` = Title = ` for an article and ` = = Section = = ` below it.
TOP_HEADING = re.compile(r"=\s+(?!=)(\S.*?)(?<!=)\s+=")


@dataclass(frozen=True, init=False)
class TextCorpus:
    """Plain UTF-8 text files, read line by line.

    documents  what one document is: a run of lines between `blank_line`s, a whole `file`, or all
               from one WikiText ` = Title = ` line to the next (`heading`; the title names the
               document, and every heading stays in the text as a sentence)
    passages   `packed`: the sentences of a document share windows, as in Clark et al. (2019);
               `line`: every line is a model input of its own
    on_error   what to do with a line that is not valid UTF-8: `stop`, or `skip` it and go on (the
               encoder counts it as malformed, with its place)

    Documents are held one at a time, so `file` needs memory for its longest file.
    """

    files: tuple[Path, ...]
    documents: Literal["blank_line", "file", "heading"]
    passages: Literal["packed", "line"]
    on_error: OnError

    def __init__(
        self,
        files: Files,
        *,
        documents: Literal["blank_line", "file", "heading"] = "blank_line",
        passages: Literal["packed", "line"] = "packed",
        on_error: OnError = "stop",
    ) -> None:
        if documents not in DOCUMENTS:
            raise InputError(f"documents={documents!r}; wanted one of {', '.join(DOCUMENTS)}")
        if passages not in PASSAGES:
            raise InputError(f"passages={passages!r}; wanted one of {', '.join(PASSAGES)}")
        object.__setattr__(self, "files", checked_files(files))
        object.__setattr__(self, "documents", documents)
        object.__setattr__(self, "passages", passages)
        object.__setattr__(self, "on_error", checked_policy(on_error))

    def __iter__(self) -> Iterator[Document]:
        """Yields the documents of all files, in order.

        raises  CorpusError for invalid UTF-8 (file and byte offset), or a file without any text,
                unless on_error is `skip`
        """
        return obeyed(self._documents(), self.on_error)

    def describe(self) -> dict[str, Any]:
        """What was read: `kind`, `files` (name and sha256 of each), `documents`, `passages`, and
        `on_error` if it is not the default."""
        return {
            "kind": "text",
            "files": described(self.files),
            "documents": self.documents,
            "passages": self.passages,
            **described_policy(self.on_error),
        }

    def _documents(self) -> Iterator[Document]:
        names = UniqueNames()
        for path, label in zip(self.files, labels(self.files), strict=True):
            found = False
            for name, lines in self._groups(path, label):
                found = True
                place = f"{label}:{lines[0].number}"
                yield Document(names.of(name, place=place), self._passages(path, label, lines))
            if not found:
                yield left_out(label, f"{path} holds only white space; wanted lines of text")

    def _groups(self, path: Path, label: str) -> Iterator[tuple[str, list[FileLine]]]:
        """The name and the non-blank lines of each document of one file."""
        name, lines = label, list[FileLine]()
        for line in read_lines(path):
            text = line.text.strip()
            headings = self.documents == "heading" and not line.fault
            title = TOP_HEADING.fullmatch(text) if headings else None
            ends = title or (not text and self.documents == "blank_line")
            if ends and lines:
                yield name, lines
                lines = []
            if title:
                name = title[1]
            elif not lines and self.documents == "blank_line":
                name = f"{label}:{line.number}"
            if text:
                lines.append(FileLine(line.number, text, line.fault))
        if lines:
            yield name, lines

    def _passages(self, path: Path, label: str, lines: list[FileLine]) -> tuple[Passage, ...]:
        return tuple(passage for line in lines for passage in self._line(path, label, line))

    def _line(self, path: Path, label: str, line: FileLine) -> Iterator[Passage]:
        place = f"{label}:{line.number}"
        if line.fault:
            yield Passage(place, fault=f"{path}:{line.number}: {line.fault}")
        elif self.passages == "line":
            yield Passage(place, text=line.text)
        else:
            for count, sentence in enumerate(sentences(line.text), start=1):
                yield Passage(f"{place}.{count}", text=sentence, packable=True)


def sentences(line: str) -> list[str]:
    """The line cut into sentences; only white space between them is lost.

    A sentence ends at . ! or ? (and quotes or brackets that close after it) before white space,
    unless a lower-case letter follows. Abbreviations are cut wrongly ("Dr. | Smith"): the cuts
    only offer places where a window may end and its second segment begin, never what is read.
    """
    pieces, start = [], 0
    for end in SENTENCE_END.finditer(line):
        if not line[end.end()].islower():
            pieces.append(line[start : end.end()].strip())
            start = end.end()
    pieces.append(line[start:].strip())
    return [piece for piece in pieces if piece]
