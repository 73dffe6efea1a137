"""Read TSV, CSV, JSON lines and parquet files, and find the columns of texts, label and id.

TSV is read as GLUE's own scripts do: a tab ends a cell and quotes are characters like any other.
CSV has quotes as spreadsheets write them. Recognised are the column names of GLUE's own files, of
the hub's copy of them, and the usual ones of other data; any other column has to be named.
"""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from headscope.corpus.files import read_lines
from headscope.corpus.places import checked_files
from headscope.corpus.read_apart import check_parquet
from headscope.errors import CorpusError, InputError, told_as

KINDS = (".tsv", ".csv", ".jsonl", ".ndjson", ".parquet")
CELL_LIMIT = 1 << 24  # characters; the csv module's own limit is 128 KiB


@dataclass(frozen=True, slots=True)
class Record:
    """One row with its place, say "line 12": its cells by column, or its fault."""

    place: str
    cells: dict[str, Any]
    fault: str | None = None


@dataclass(frozen=True)
class TableFile:
    """Column names, and rows that can be iterated once."""

    columns: tuple[str, ...]
    records: Iterator[Record]


def read_table(path: Path, *, headless: Sequence[str] | None = None) -> TableFile:
    """The table in a file.

    headless  the columns of a TSV or CSV that has no header line
    raises    CorpusError for a missing, empty or unreadable file, or an unknown suffix
    """
    checked_files(path)
    suffix = path.suffix.lower()
    if suffix not in KINDS:
        raise CorpusError(f"{path} ends in {suffix!r}; wanted one of {', '.join(KINDS)}")
    if suffix == ".parquet":
        return _parquet(path)
    if suffix in (".jsonl", ".ndjson"):
        return _jsonl(path)
    lines = _tsv_lines(path) if suffix == ".tsv" else _csv_lines(path)
    header = headless or next((cells for _, cells in lines), None)
    if header is None:
        raise CorpusError(f"{path} has no line with content; wanted a header and rows")
    return _cut(path, lines, header)


def text_rows(
    path: Path, columns: Sequence[str], optional: Sequence[str] = (), *, wanted: str
) -> Iterator[dict[str, str]]:
    """The texts of each row by column, "" for an optional one that is absent or empty.

    wanted  what a row holds, for a message
    raises  CorpusError as `read_table`, for an absent column, and for a broken row or an empty cell
    """
    table = read_table(path)
    if missing := [name for name in columns if name not in table.columns]:
        more = f"; it may have {', '.join(optional)}" * bool(optional)
        raise CorpusError(f"{path} has no column {missing[0]!r}; wanted {', '.join(columns)}{more}")
    for record in table.records:
        row = dict.fromkeys(optional, "")
        row |= {name: str(record.cells.get(name) or "").strip() for name in table.columns}
        if record.fault or not all(row[name] for name in columns):
            fault = record.fault or "an empty cell"
            raise CorpusError(f"{path}, {record.place}: {fault}; wanted {wanted}")
        yield row


def first_line(path: Path) -> list[str]:
    """The cells of a TSV's first line."""
    checked_files(path)
    return next((cells for _, cells in _tsv_lines(path)), [])


def _tsv_lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    for line in read_lines(path):
        if line.fault is not None:
            raise CorpusError(f"{path}, line {line.number}: {line.fault}")
        if line.text:
            yield line.number, line.text.split("\t")


def _csv_lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    csv.field_size_limit(CELL_LIMIT)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            yield from ((reader.line_num, cells) for cells in reader if cells)
    except (csv.Error, UnicodeDecodeError) as error:
        raise CorpusError(f"{path} cannot be read as CSV in UTF-8: {error}") from error


def _cut(path: Path, lines: Iterable[tuple[int, list[str]]], header: Sequence[str]) -> TableFile:
    columns = _checked_columns(path, header)

    def records() -> Iterator[Record]:
        for number, cells in lines:
            whole = len(cells) == len(columns)
            fault = None if whole else f"{len(cells)} cells under {len(columns)} columns"
            yield Record(f"line {number}", dict(zip(columns, cells, strict=False)), fault)

    return TableFile(columns, records())


def _jsonl(path: Path) -> TableFile:
    def records() -> Iterator[Record]:
        for line in read_lines(path):
            if line.fault is not None or line.text.strip():
                cells, fault = ({}, line.fault) if line.fault else _json_object(line.text)
                yield Record(f"line {line.number}", cells, fault)

    rows = records()
    first = next(rows, None)
    if first is None:
        raise CorpusError(f"{path} has no line with content; wanted JSON objects, one a line")
    if first.fault is not None:
        raise CorpusError(f"{path}, {first.place}: {first.fault}; wanted a JSON object")
    return TableFile(_checked_columns(path, list(first.cells)), chain([first], rows))


def _json_object(text: str) -> tuple[dict[str, Any], str | None]:
    try:
        cells = json.loads(text)
    except (ValueError, RecursionError) as error:
        return {}, f"no JSON ({error})"
    return (cells, None) if isinstance(cells, dict) else ({}, "no JSON object")


def _parquet(path: Path) -> TableFile:
    import pyarrow.parquet as pq

    with told_as(lambda said: CorpusError(f"{path} cannot be read as parquet: {said}")):
        check_parquet(path)
        table = pq.read_table(path)
        columns, every = table.column_names, table.to_pylist()  # text is decoded only now
    rows = (Record(f"row {at}", cells) for at, cells in enumerate(every))
    return TableFile(_checked_columns(path, columns), rows)


def _checked_columns(path: Path, header: Sequence[str]) -> tuple[str, ...]:
    columns = tuple(name.strip() for name in header)
    if len(set(columns)) < len(columns):
        twice = next(name for name in columns if columns.count(name) > 1)
        raise CorpusError(f"{path} has two columns named {twice!r}; wanted different names")
    return columns


PAIRS = (
    ("sentence1", "sentence2"),
    ("#1 String", "#2 String"),  # MRPC
    ("question1", "question2"),  # QQP
    ("question", "sentence"),  # QNLI
    ("premise", "hypothesis"),  # MNLI on the hub
    ("text_a", "text_b"),
    ("text1", "text2"),
    ("question", "context"),
)
SINGLES = ("sentence", "text", "text_a", "review", "content")
# What annotators agreed on comes before the single votes that stand beside it in MNLI.
LABELS = ("gold_label", "label", "Quality", "is_duplicate", "score", "similarity", "labels")
IDS = ("idx", "index", "id", "guid", "pairID")
SINGLE_TASKS = ("sst-2", "cola")  # of GLUE; all others are pairs
COLA = ("source", "label", "star", "sentence")  # its files have no header
ROLES = ("text_a", "text_b", "label", "id")


@dataclass(frozen=True)
class Columns:
    """Names of the columns by role; None for a role without a column."""

    text_a: str
    text_b: str | None
    label: str
    id: str | None


def choose(
    names: Sequence[str],
    *,
    source: str,
    pair: bool | None,
    columns: Mapping[str, str] | None = None,
) -> Columns:
    """The columns of a table.

    names   its column names
    pair    whether the task is about two texts; None if either will do
    columns {role: column} for those that are not to be guessed; "" for none
    raises  InputError if a role or a column does not exist, or a text or the label is not found
    """
    columns = dict(columns or {})
    for role, name in columns.items():
        if role not in ROLES:
            raise InputError(f"columns: no role {role!r}; there are {', '.join(ROLES)}")
        if name and name not in names:
            raise InputError(f"{source} has no column {name!r}; it has {_listed(names)}")
    first, second = _texts(names, source, pair, columns)
    label = columns.get("label") or _first(LABELS, names)
    if label is None:
        raise InputError(
            f"{source} has no labels: none of its columns {_listed(names)} is one of "
            f"{', '.join(LABELS)}\nwanted a split with labels (dev, not test), or "
            "--columns label=NAME"
        )
    id_column = columns["id"] if "id" in columns else _first(IDS, names)
    return Columns(first, second, label, id_column or None)


def _texts(
    names: Sequence[str], source: str, pair: bool | None, columns: Mapping[str, str]
) -> tuple[str, str | None]:
    if "text_a" in columns:
        second = columns.get("text_b") or None
        if pair and second is None:
            raise InputError(
                f"columns: text_a is {columns['text_a']!r} and text_b is not given; this task "
                "compares two texts: give --columns text_a=NAME,text_b=NAME"
            )
        return columns["text_a"], second
    two = None if pair is False else next((p for p in PAIRS if set(p) <= set(names)), None)
    if two is not None:
        return two[0], columns.get("text_b", two[1]) or None
    single = None if pair else _first(SINGLES, names)
    if single is None:
        wanted = "two texts" if pair else "one text" if pair is False else "one text or two"
        raise InputError(
            f"{source} has the columns {_listed(names)}; wanted {wanted}, say "
            f"{'sentence' if pair is False else 'sentence1 and sentence2'}\n"
            "name them: --columns text_a=NAME,text_b=NAME,label=NAME"
        )
    return single, columns.get("text_b") or None


def _first(wanted: Sequence[str], names: Sequence[str]) -> str | None:
    return next((name for name in wanted if name in names), None)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name[:40]) for name in names[:12])
    return f"{shown}, …" if len(names) > 12 else shown or "(none)"
