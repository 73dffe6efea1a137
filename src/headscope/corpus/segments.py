"""How are JSON lines of ready segments read, tokenised already or as text?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from headscope.corpus.document import Document, Passage
from headscope.corpus.files import (
    Files,
    OnError,
    checked_files,
    checked_policy,
    described,
    described_policy,
    labels,
    left_out,
    obeyed,
    read_lines,
)


@dataclass(frozen=True, init=False)
class SegmentsCorpus:
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

    on_error  what to do with a malformed line: `stop`, or `skip` it and go on (the encoder counts
              it as malformed, with its place)
    """

    files: tuple[Path, ...]
    on_error: OnError

    def __init__(self, files: Files, *, on_error: OnError = "stop") -> None:
        object.__setattr__(self, "files", checked_files(files))
        object.__setattr__(self, "on_error", checked_policy(on_error))

    def __iter__(self) -> Iterator[Document]:
        """Yields the documents of all files, in order.

        raises  CorpusError with file and line for a line that is not such an object, unless
                on_error is `skip`
        """
        return obeyed(self._documents(), self.on_error)

    def describe(self) -> dict[str, Any]:
        """What was read: `kind`, `files` (name and sha256 of each), options beside the default."""
        policy = described_policy(self.on_error)
        return {"kind": "segments", "files": described(self.files), **policy}

    def _documents(self) -> Iterator[Document]:
        for path, label in zip(self.files, labels(self.files), strict=True):
            found = False
            for name, rows in groupby(_rows(path, label), key=lambda row: row[0]):
                found = True
                yield Document(name, tuple(passage for _, passage in rows))
            if not found:
                fault = f"{path} holds only blank lines; wanted one JSON object a line"
                yield left_out(label, fault)


def _rows(path: Path, label: str) -> Iterator[tuple[str, Passage]]:
    """Document name and passage of each line of one file."""
    for line in read_lines(path):
        if not line.text.strip():
            continue
        place = f"{label}:{line.number}"
        try:
            if line.fault:
                raise ValueError(line.fault)
            found = _row(json.loads(line.text), place)
        except (ValueError, RecursionError) as error:  # thousands of digits are a ValueError too
            fault = f"{path}:{line.number}: {_reason(error)}"
            found = place, Passage(place, fault=fault)
        yield found


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"not valid JSON ({error.msg} at column {error.colno}); wanted one object a line"
    return str(error)


def _row(row: object, place: str) -> tuple[str, Passage]:
    """Document name and passage of one parsed line; ValueError says what is wrong with it."""
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
