"""Read the texts and labels of a task from a file, a folder, or the hub."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from headscope.core.accumulators import generator
from headscope.core.whole_file import file_sha256
from headscope.errors import CorpusError, InputError
from headscope.tasks.find_split import file_of_split, hub_table
from headscope.tasks.table_files import (
    COLA,
    SINGLE_TASKS,
    Columns,
    Record,
    TableFile,
    choose,
    first_line,
    read_table,
)
from headscope.tasks.task import (
    GLUE,
    LabelFault,
    Task,
    all_alike,
    find_task,
    guessed_task,
    is_known,
    reader_of,
)


@dataclass(frozen=True, slots=True)
class TaskExample:
    """One example: one text or two, and its label (a class by its id, or a number).

    id  what the file calls it; else its 0-based number in the file
    """

    id: str
    text_a: str
    text_b: str | None
    label: int | float


@dataclass(frozen=True)
class TaskData:
    """The examples of one split of a task.

    source  file, or dataset and split on the hub
    sha256  of the file; of the rows, for the hub
    notes   what the reader should know: rows left out, guesses, a draw
    """

    task: Task
    rows: tuple[TaskExample, ...]
    source: str
    sha256: str
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def labels(self) -> npt.NDArray[Any]:
        """[example] int64 ids of classes, or float64 numbers."""
        kind = np.float64 if self.task.is_regression else np.int64
        return np.array([row.label for row in self.rows], kind)

    @property
    def rows_sha256(self) -> str:
        """Hex sha256 of the examples as they are, after any draw."""
        return _sha256_of_rows(self.rows)


def read_task(
    task: str | Task,
    data: str | Path | None,
    *,
    split: str = "dev",
    columns: Mapping[str, str] | None = None,
    limit: int | None = None,
    seed: int = 0,
) -> TaskData:
    """The examples of a split.

    task     a name of GLUE in any spelling, a `Task`, or a name of the user's own: then its
             classes are read off the labels
    data     a folder with train.tsv, dev.tsv and so on (also one with a folder RTE in it, as
             GLUE comes), one TSV, CSV, JSON lines or parquet file, or None: GLUE on the hub
    split    "train", "dev" or another name of a file; not used where `data` is a file
    columns  {"text_a": …, "text_b": …, "label": …, "id": …} where they are not recognised
    limit    examples at most; more are drawn at random by `seed`, and keep their order
    raises   InputError or CorpusError: no such file, unknown columns, labels that are missing,
             unknown, not finite or all the same, no rows
    """
    known = task if isinstance(task, Task) else find_task(task) if is_known(task) else None
    name = known.name if known else str(task)
    if data is None:
        table, source, digest = hub_table(name, split)
    else:
        path = file_of_split(Path(data), name, split)
        table = read_table(path, headless=_headless(path, name))
        source, digest = str(path), file_sha256(path)
    chosen = choose(
        table.columns,
        source=source,
        given=columns,
        pair=name not in SINGLE_TASKS if name in GLUE else None,
    )
    records, notes = _whole(table, source, spare_faulty=name in GLUE)
    if known is None:
        known = guessed_task(name, [r.cells.get(chosen.label) for r in records], source=source)
        notes.append(_announced(known))
    rows = _rows(records, chosen, known, source)
    if len({row.label for row in rows}) == 1:
        label = rows[0].label
        raise CorpusError(all_alike(source, known.labels[int(label)] if known.labels else label))
    if limit is not None and limit < len(rows):
        notes.append(f"{limit} of {len(rows)} examples, drawn with seed {seed}")
        rows = _drawn(rows, limit, seed)
    return TaskData(known, tuple(rows), source, digest or _sha256_of_rows(rows), tuple(notes))


def _headless(path: Path, name: str) -> tuple[str, ...] | None:
    """The columns of CoLA's own files, which have no header."""
    if name != "cola" or path.suffix.lower() != ".tsv":
        return None
    cells = first_line(path)
    return COLA if len(cells) == len(COLA) and not {"sentence", "label"} & set(cells) else None


def _whole(table: TableFile, source: str, *, spare_faulty: bool) -> tuple[list[Record], list[str]]:
    """The rows that can be read. QQP as GLUE ships it has broken ones, which GLUE leaves out."""
    records = list(table.records)
    faulty = [record for record in records if record.fault is not None]
    if faulty and not spare_faulty:
        raise CorpusError(
            f"{source}, {faulty[0].place}: {faulty[0].fault}; wanted one cell for each column "
            f"({', '.join(table.columns[:8])})"
        )
    whole = [record for record in records if record.fault is None]
    if not whole:
        raise CorpusError(f"{source} has no row that can be read; wanted one example or more")
    notes = []
    if faulty:
        notes.append(
            f"{len(faulty)} broken rows left out (first: {faulty[0].place}, {faulty[0].fault})"
        )
    return whole, notes


def _rows(records: Sequence[Record], chosen: Columns, task: Task, source: str) -> list[TaskExample]:
    label_of = reader_of(task)
    ids = _ids(records, chosen.id)
    rows = []
    for record, row_id in zip(records, ids, strict=True):
        place = f"{source}, {record.place}"
        try:
            label = label_of(record.cells.get(chosen.label))
        except LabelFault as fault:
            raise CorpusError(f"{place}: label {fault} (column {chosen.label!r})") from fault
        first = _text(record, chosen.text_a, place)
        second = None if chosen.text_b is None else _text(record, chosen.text_b, place)
        rows.append(TaskExample(row_id, first, second, label))
    return rows


def _ids(records: Sequence[Record], column: str | None) -> list[str]:
    """The column of ids if each occurs once, else the numbers of the rows."""
    if column is not None:
        ids = [str(record.cells.get(column)) for record in records]
        if len(set(ids)) == len(ids):
            return ids
    return [str(at) for at in range(len(records))]


def _text(record: Record, column: str, place: str) -> str:
    text = record.cells.get(column)
    if not isinstance(text, str):
        raise CorpusError(f"{place}: column {column!r} holds {text!r}; wanted text")
    return text


def _drawn(rows: list[TaskExample], limit: int, seed: int) -> list[TaskExample]:
    if limit < 1:
        raise InputError(f"a limit of {limit} examples; wanted 1 or more")
    drawn = generator(seed, "examples of a task").choice(len(rows), limit, replace=False)
    return [rows[at] for at in sorted(drawn)]


def _announced(task: Task) -> str:
    if task.is_regression:
        return f"{task.name!r} is a task of yours: a regression, as its labels are numbers"
    return f"{task.name!r} is a task of yours: classes {', '.join(task.labels)}, in this order"


def _sha256_of_rows(rows: Sequence[TaskExample]) -> str:
    digest = hashlib.sha256()
    for row in rows:
        text = "\x1f".join((row.id, row.text_a, row.text_b or "", repr(row.label)))
        digest.update(text.encode("utf-8", "surrogatepass") + b"\x1e")
    return digest.hexdigest()
