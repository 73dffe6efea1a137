"""Read plain text files as documents of sentences or lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from headscope.corpus.document import Document, Passage
from headscope.corpus.files import FileCorpus, FileLine, Files, OnError, UniqueNames, read_lines
from headscope.errors import InputError

DOCUMENTS = ("blank_line", "file", "heading")
PASSAGES = ("packed", "line")

# A mark that ends sentences, quotes or brackets that close after it, white space, and more text.
SENTENCE_END = re.compile(r"[.!?]['\"”’»)\]]*\s+(?=\S)")
# WikiText writes ` = Title = ` for an article and ` = = Section = = ` below it.
TOP_HEADING = re.compile(r"=\s+(?!=)(\S.*?)(?<!=)\s+=")


@dataclass(frozen=True, init=False)
class TextCorpus(FileCorpus):
    """Plain UTF-8 text files, read line by line.

    documents  what one document is: a run of lines between `blank_line`s, a whole `file`, or all
               from one WikiText ` = Title = ` line to the next (`heading`; the title names the
               document, and every heading stays in the text as a sentence)
    passages   `packed`: the sentences of a document share windows, as in Clark et al. (2019);
               `line`: every line is a model input of its own
    on_error   what to do with a line that is not valid UTF-8, see `FileCorpus`

    Documents are held one at a time, so `file` needs memory for its longest file.
    """

    kind: ClassVar[str] = "text"
    empty: ClassVar[str] = "holds only white space; wanted lines of text"
    documents: Literal["blank_line", "file", "heading"]
    passages: Literal["packed", "line"]

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
        super().__init__(files, on_error=on_error)
        object.__setattr__(self, "documents", documents)
        object.__setattr__(self, "passages", passages)

    def _options(self) -> dict[str, Any]:
        return {"documents": self.documents, "passages": self.passages}

    def _documents(self, path: Path, label: str, names: UniqueNames) -> Iterator[Document]:
        for name, lines in self._groups(path, label):
            place = f"{label}:{lines[0].number}"
            passages = tuple(passage for line in lines for passage in self._line(path, label, line))
            yield Document(names.of(name, place=place), passages)

    def _groups(self, path: Path, label: str) -> Iterator[tuple[str, list[FileLine]]]:
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
