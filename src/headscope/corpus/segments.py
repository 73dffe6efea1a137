"""Read JSON lines that are model inputs already: ready tokens, or one text or two."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar

from headscope.corpus.document import Document, Passage
from headscope.corpus.files import FileCorpus, UniqueNames, read_lines


@dataclass(frozen=True, init=False)
class SegmentsCorpus(FileCorpus):
    """JSON lines, each one model input.

    tokens            list of strings, special tokens included: used as it is
    text_a, text_b    text for the model's tokenizer, the second one optional; where tokens are
                      given too, the tokens win
    id                name of the segment (text or integer); `file:line` where absent
    document          name of the document it was cut from: the unit of resampling; the segment
                      is its own document where absent. Neighbouring lines of one document are
                      yielded together; lines of it further down come as a second Document of
                      the same name, hence resampled with the first

    Other keys are ignored, blank lines too.

    on_error  what to do with a malformed line, see `FileCorpus`
    """

    kind: ClassVar[str] = "segments"
    empty: ClassVar[str] = "holds only blank lines; wanted one JSON object a line"

    def _documents(self, path: Path, label: str, names: UniqueNames) -> Iterator[Document]:
        for name, rows in groupby(_rows(path, label), key=lambda row: row[0]):
            yield Document(name, tuple(passage for _, passage in rows))


def _rows(path: Path, label: str) -> Iterator[tuple[str, Passage]]:
    for line in read_lines(path):
        if not line.text.strip():
            continue
        place = f"{label}:{line.number}"
        try:
            if line.fault:
                raise ValueError(line.fault)
            entry = _row(json.loads(line.text), place)
        except (ValueError, RecursionError) as error:  # thousands of digits are a ValueError too
            fault = f"{path}:{line.number}: {_reason(error)}"
            entry = place, Passage(place, fault=fault)
        yield entry


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"not valid JSON ({error.msg} at column {error.colno}); wanted one object a line"
    return str(error)


def _row(row: object, place: str) -> tuple[str, Passage]:
    """Document name and passage of one parsed line; ValueError for a malformed one."""
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
        return document, Passage(name, tokens=tuple(tokens))
    text = _text(row, "text_a")
    if text is None:
        raise ValueError('found neither "tokens" nor "text_a"; wanted one of them')
    return document, Passage(name, text=text, text_pair=_text(row, "text_b"))


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
