"""What are the columns and rows of a TSV, CSV, JSON lines or parquet file?

TSV is read as GLUE's own scripts do: a tab ends a cell and quotes are characters like any other.
CSV has quotes as spreadsheets write them.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from headscope.corpus.files import checked_files, read_lines
from headscope.errors import CorpusError

CELL_LIMIT = 1 << 24  # characters; the csv module's own limit is 128 KiB


@dataclass(frozen=True, slots=True)
class Record:
    """One row: its cells by column, or what is wrong with it.

    place  where it stands, say "line 12"
    """

    place: str
    cells: dict[str, Any]
    fault: str | None = None


@dataclass(frozen=True)
class Table:
    """Column names, and rows that can be gone through once."""

    columns: tuple[str, ...]
    records: Iterator[Record]


def read_table(path: Path, *, headless: Sequence[str] | None = None) -> Table:
    """The table in a file.

    headless  the columns of a TSV that has no header line
    raises    CorpusError for a missing, empty or unreadable file, or an unknown suffix
    """
    checked_files(path)
    suffix = path.suffix.lower()
    if suffix not in KINDS:
        raise CorpusError(f"{path} ends in {suffix!r}; wanted one of {', '.join(KINDS)}")
    if headless is not None:
        return _cut(path, _tsv_lines(path), headless)
    return KINDS[suffix](path)


def first_line(path: Path) -> list[str]:
    """The cells of a TSV's first line."""
    checked_files(path)
    return next((cells for _, cells in _tsv_lines(path)), [])


def _tsv(path: Path) -> Table:
    lines = _tsv_lines(path)
    _, header = next(lines)
    return _cut(path, lines, header)


def _tsv_lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    for line in read_lines(path):
        if line.fault is not None:
            raise CorpusError(f"{path}, line {line.number}: {line.fault}")
        if line.text:
            yield line.number, line.text.split("\t")


def _csv(path: Path) -> Table:
    lines = _csv_lines(path)
    header = next(lines, None)
    if header is None:
        raise CorpusError(f"{path} has no line with content; wanted a header and rows")
    return _cut(path, lines, header[1])


def _csv_lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    csv.field_size_limit(CELL_LIMIT)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            for cells in reader:
                if cells:
                    yield reader.line_num, cells
    except (csv.Error, UnicodeDecodeError) as error:
        raise CorpusError(f"{path} cannot be read as CSV in UTF-8: {error}") from error


def _cut(path: Path, lines: Iterable[tuple[int, list[str]]], header: Sequence[str]) -> Table:
    """Lines of cells under a header."""
    columns = _checked_columns(path, header)

    def records() -> Iterator[Record]:
        for number, cells in lines:
            place = f"line {number}"
            if len(cells) == len(columns):
                yield Record(place, dict(zip(columns, cells, strict=True)))
            else:
                fault = f"{len(cells)} cells under {len(columns)} columns"
                yield Record(place, {}, fault)

    return Table(columns, records())


def _jsonl(path: Path) -> Table:
    def records() -> Iterator[Record]:
        for line in read_lines(path):
            place = f"line {line.number}"
            if line.fault is None and not line.text.strip():
                continue
            cells, fault = _json_object(line.text) if line.fault is None else ({}, line.fault)
            yield Record(place, cells, fault)

    rows = records()
    first = next(rows, None)
    if first is None:
        raise CorpusError(f"{path} has no line with content; wanted JSON objects, one a line")
    if first.fault is not None:
        raise CorpusError(f"{path}, {first.place}: {first.fault}; wanted a JSON object")
    return Table(_checked_columns(path, list(first.cells)), chain([first], rows))


def _json_object(text: str) -> tuple[dict[str, Any], str | None]:
    try:
        cells = json.loads(text)
    except ValueError as error:
        return {}, f"no JSON ({error})"
    return (cells, None) if isinstance(cells, dict) else ({}, "no JSON object")


def _parquet(path: Path) -> Table:
    import pyarrow.parquet as pq
    from pyarrow import ArrowException

    try:
        table = pq.read_table(path)
    except (ArrowException, OSError) as error:
        raise CorpusError(f"{path} cannot be read as parquet: {error}") from error
    rows = (Record(f"row {at}", cells) for at, cells in enumerate(table.to_pylist()))
    return Table(_checked_columns(path, table.column_names), rows)


def _checked_columns(path: Path, header: Sequence[str]) -> tuple[str, ...]:
    columns = tuple(name.strip() for name in header)
    if len(set(columns)) < len(columns):
        twice = next(name for name in columns if columns.count(name) > 1)
        raise CorpusError(f"{path} has two columns named {twice!r}; wanted different names")
    return columns


KINDS: dict[str, Callable[[Path], Table]] = {
    ".tsv": _tsv,
    ".csv": _csv,
    ".jsonl": _jsonl,
    ".ndjson": _jsonl,
    ".parquet": _parquet,
}
