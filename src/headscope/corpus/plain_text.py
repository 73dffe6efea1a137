"""Read plain text as documents of sentences or lines, and JSON lines of ready inputs."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, ClassVar, Literal

from headscope.corpus.document import Document, Passage
from headscope.corpus.file_content import other_than_text
from headscope.corpus.files import (
    FileCorpus,
    FileLine,
    OnError,
    UniqueNames,
    check_choice,
    read_lines,
)
from headscope.corpus.partitions import Begins, FilePart
from headscope.corpus.places import File, Files

# A mark that ends sentences, quotes or brackets that close after it, white space, and more text.
SENTENCE_END = re.compile(r"[.!?]['\"”’»)\]]*\s+(?=\S)")


@dataclass(frozen=True, init=False, repr=False)
class TextCorpus(FileCorpus):
    """Plain UTF-8 text files, read line by line.

    documents  what one document is: a run of lines between `blank_line`s, a whole `file`, or all
               from one WikiText ` = Title = ` line to the next (`heading`; the title names the
               document, and every heading stays in the text as a sentence)
    passages   `packed`: the sentences of a document share windows, as in Clark et al. (2019);
               `line`: every line is a model input of its own
    on_error   what to do with a line that is not valid UTF-8, see `FileCorpus`
    format     `auto`: a file that is no plain text is malformed (`file_content`); `text`: all are

    Documents are held one at a time, so `file` needs memory for its longest file.
    """

    kind: ClassVar[str] = "text"
    empty: ClassVar[str] = "holds only white space; wanted lines of text"
    documents: Literal["blank_line", "file", "heading"]
    passages: Literal["packed", "line"]
    format: Literal["auto", "text"]

    def __init__(
        self,
        files: Files,
        *,
        documents: Literal["blank_line", "file", "heading"] = "blank_line",
        passages: Literal["packed", "line"] = "packed",
        on_error: OnError = "stop",
        format: Literal["auto", "text"] = "auto",
    ) -> None:
        check_choice("documents", documents, "blank_line", "file", "heading")
        check_choice("passages", passages, "packed", "line")
        check_choice("format", format, "auto", "text")
        super().__init__(files, on_error=on_error)
        object.__setattr__(self, "format", format)
        object.__setattr__(self, "documents", documents)
        object.__setattr__(self, "passages", passages)

    def _options(self) -> dict[str, Any]:
        overruled = {} if self.format == "auto" else {"format": self.format}
        return {"documents": self.documents, "passages": self.passages, **overruled}

    @property
    def _named_by_place(self) -> bool:
        return self.documents == "blank_line"

    @property
    def _divisible(self) -> bool:
        return self.documents != "file"

    def _begins(self, file: File) -> Begins:
        if self.documents == "heading":
            return lambda line: bool(title_of_heading(line.strip()))
        return is_blank

    def _documents(self, part: FilePart, label: str, names: UniqueNames) -> Iterator[Document]:
        wrong = other_than_text(part.path) if self.format == "auto" else ""
        if wrong and not part.start:
            yield Document(label, (Passage(label, fault=f"{part.path} {wrong}"),))
        for name, lines in self._groups(part, label) if not wrong else ():
            place = f"{label}:{lines[0].number}"
            passages = tuple(passage for line in lines for passage in self._line(part, label, line))
            yield Document(names.of(name, place=place), passages)

    def _groups(self, part: FilePart, label: str) -> Iterator[tuple[str, list[FileLine]]]:
        name, lines = label, list[FileLine]()
        for line in read_lines(part):
            text = line.text.strip()
            headings = self.documents == "heading" and not line.fault
            title = title_of_heading(text) if headings else ""
            ends = title or (not text and self.documents == "blank_line")
            if ends and lines:
                yield name, lines
                lines = []
            if title:
                name = title
            elif not lines and self.documents == "blank_line":
                name = f"{label}:{line.number}"
            if text:
                lines.append(FileLine(line.number, text, line.fault))
        if lines:
            yield name, lines

    def _line(self, part: FilePart, label: str, line: FileLine) -> Iterator[Passage]:
        place = f"{label}:{line.number}"
        if line.fault:
            yield Passage(place, fault=f"{part}:{line.number}: {line.fault}")
        else:
            yield from line_passages(line.text, place, self.passages)


def line_passages(line: str, place: str, passages: str) -> Iterator[Passage]:
    """The passages of a non-blank line: itself, or the sentences of `packed` text."""
    if passages == "line":
        yield Passage(place, text=line)
    else:
        for count, sentence in enumerate(sentences(line), start=1):
            yield Passage(f"{place}.{count}", text=sentence, packable=True)


def is_blank(line: str) -> bool:
    """Whether a line is empty or white space."""
    return not line.strip()


def sentences(line: str) -> list[str]:
    """The line split into sentences; only white space between them is lost.

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


def title_of_heading(text: str) -> str:
    """The title in WikiText's ` = Title = `; "" for ` = = Section = = ` and for other lines."""
    inner = text[1:-1]
    framed = len(text) > 4 and text[0] == text[-1] == "=" and inner[0].isspace()
    title = inner.strip() if framed and inner[-1].isspace() else ""
    return "" if title[:1] == "=" or title[-1:] == "=" else title


@dataclass(frozen=True, init=False, repr=False)
class SegmentsCorpus(FileCorpus):
    """JSON lines, each one model input.

    tokens            list of strings, special tokens included: used as it is
    text_a, text_b    text for the model's tokenizer, the second one optional; where tokens are
                      given too, the tokens win
    id                name of the segment (text or integer); `file:line` where absent
    document          name of the document it was cut from: the unit of intervals; the segment
                      is its own document where absent. Neighbouring lines of one document are
                      yielded together; lines of it further down come as a second Document of
                      the same name, hence left out with the first

    Other keys are ignored, blank lines too.

    on_error  what to do with a malformed line, see `FileCorpus`
    """

    kind: ClassVar[str] = "segments"
    empty: ClassVar[str] = "holds only blank lines; wanted one JSON object a line"

    @property
    def _divisible(self) -> bool:
        return True

    def _documents(self, part: FilePart, label: str, names: UniqueNames) -> Iterator[Document]:
        for name, rows in groupby(json_rows(part, label, _segment), key=lambda row: row[0]):
            yield Document(name, tuple(passage for _, some in rows for passage in some))


Row = tuple[str, tuple[Passage, ...]]  # a document's name, and passages of it


def json_rows(part: FilePart, label: str, take: Callable[[Any, str], Row]) -> Iterator[Row]:
    """`take` applied to the JSON of each line and its place; a fault where it fails.

    take  raises ValueError for JSON that is not what it wants
    """
    for line in read_lines(part):
        if is_blank(line.text):
            continue
        place = f"{label}:{line.number}"
        try:
            line.check()
            row = take(json.loads(line.text), place)
        except (ValueError, RecursionError) as error:  # thousands of digits are a ValueError too
            reason = str(error)
            if isinstance(error, json.JSONDecodeError):
                reason = f"not valid JSON ({error.msg} at column {error.colno}); wanted one object "
                reason += "a line"
            row = place, (Passage(place, fault=f"{part}:{line.number}: {reason}"),)
        yield row


def _segment(row: object, place: str) -> Row:
    if not isinstance(row, dict):
        raise ValueError(
            f"found a JSON {type(row).__name__}; wanted an object with text_a or tokens"
        )
    name = _name(row, "id", place)
    document = _name(row, "document", name)
    if row.get("tokens") is not None:
        tokens = row["tokens"]
        if not isinstance(tokens, list) or not all(isinstance(t, str) for t in tokens):
            raise ValueError('"tokens" is not a list of strings')
        return document, (Passage(name, tokens=tuple(tokens)),)
    text = _text(row, "text_a")
    if text is None:
        raise ValueError('found neither "tokens" nor "text_a"; wanted one of them')
    return document, (Passage(name, text=text, text_pair=_text(row, "text_b")),)


def _name(row: dict[str, Any], key: str, default: str) -> str:
    value = row.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f'"{key}" is {value!r}; wanted text or an integer')
    return str(value)


def _text(row: dict[str, Any], key: str) -> str | None:
    value = row.get(key)
    if value is not None and not isinstance(value, str):
        raise ValueError(f'"{key}" is {value!r}; wanted text')
    return value
