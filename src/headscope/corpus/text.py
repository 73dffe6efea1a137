"""How does plain text become documents and passages?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from headscope.corpus.document import Document, Passage
from headscope.corpus.files import (
    Files,
    UniqueNames,
    checked_files,
    described,
    labels,
    numbered_lines,
)
from headscope.errors import CorpusError, InputError

DOCUMENTS = ("blank_line", "file", "heading")
PASSAGES = ("packed", "line")

# A mark that ends sentences, quotes or brackets that close after it, white space, and more text.
SENTENCE_END = re.compile(r"[.!?]['\"”’»)\]]*\s+(?=\S)")
# WikiText writes ` = Title = ` for an article and ` = = Section = = ` below it.
TOP_HEADING = re.compile(r"=\s+(?!=)(\S.*?)(?<!=)\s+=")

Line = tuple[int, str]


@dataclass(frozen=True, init=False)
class TextCorpus:
    """Plain UTF-8 text files, read line by line.

    documents  what one document is: a run of lines between `blank_line`s, a whole `file`, or all
               from one WikiText ` = Title = ` line to the next (`heading`; the title names the
               document, and every heading stays in the text as a sentence)
    passages   `packed`: the sentences of a document share windows, as in Clark et al. (2019);
               `line`: every line is a model input of its own

    Documents are held one at a time, so `file` needs memory for its longest file.
    """

    files: tuple[Path, ...]
    documents: Literal["blank_line", "file", "heading"]
    passages: Literal["packed", "line"]

    def __init__(
        self,
        files: Files,
        *,
        documents: Literal["blank_line", "file", "heading"] = "blank_line",
        passages: Literal["packed", "line"] = "packed",
    ) -> None:
        if documents not in DOCUMENTS:
            raise InputError(f"documents={documents!r}; wanted one of {', '.join(DOCUMENTS)}")
        if passages not in PASSAGES:
            raise InputError(f"passages={passages!r}; wanted one of {', '.join(PASSAGES)}")
        object.__setattr__(self, "files", checked_files(files))
        object.__setattr__(self, "documents", documents)
        object.__setattr__(self, "passages", passages)

    def __iter__(self) -> Iterator[Document]:
        """Yields the documents of all files, in order.

        raises  CorpusError for invalid UTF-8 (file and byte offset), or a file without any text
        """
        names = UniqueNames()
        for path, label in zip(self.files, labels(self.files), strict=True):
            found = False
            for name, lines in self._groups(path, label):
                found = True
                place = f"{label}:{lines[0][0]}"
                yield Document(names.of(name, place=place), self._passages(label, lines))
            if not found:
                raise CorpusError(f"{path} holds only white space; wanted lines of text")

    def describe(self) -> dict[str, Any]:
        """What was read: `kind`, `files` (name and sha256 of each), `documents`, `passages`."""
        return {
            "kind": "text",
            "files": described(self.files),
            "documents": self.documents,
            "passages": self.passages,
        }

    def _groups(self, path: Path, label: str) -> Iterator[tuple[str, list[Line]]]:
        """The name and the non-blank lines of each document of one file."""
        name, lines = label, list[Line]()
        for number, raw in numbered_lines(path):
            line = raw.strip()
            title = TOP_HEADING.fullmatch(line) if self.documents == "heading" else None
            ends = title or (not line and self.documents == "blank_line")
            if ends and lines:
                yield name, lines
                lines = []
            if title:
                name = title[1]
            elif not lines and self.documents == "blank_line":
                name = f"{label}:{number}"
            if line:
                lines.append((number, line))
        if lines:
            yield name, lines

    def _passages(self, label: str, lines: list[Line]) -> tuple[Passage, ...]:
        if self.passages == "line":
            return tuple(Passage(f"{label}:{number}", text=line) for number, line in lines)
        return tuple(
            Passage(f"{label}:{number}.{count}", text=sentence, packable=True)
            for number, line in lines
            for count, sentence in enumerate(sentences(line), start=1)
        )


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
