"""Read the texts and labels of a task from a file, a folder, or the hub."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from headscope.core.accumulators import Array, generator
from headscope.core.whole_file import file_sha256, sha256_of
from headscope.errors import CorpusError, InputError
from headscope.tasks import table_files
from headscope.tasks.table_files import COLA, Columns, Record, TableFile
from headscope.tasks.task import (
    GLUE,
    LabelFault,
    Task,
    all_alike,
    guessed_task,
    known_task,
    plain,
    reader_of,
)

SPLITS = {
    "train": ("train", "training"),
    "dev": ("dev", "dev_matched", "validation", "valid", "val", "validation_matched"),
}
REPOSITORY = "nyu-mll/glue"


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
    columns role and name of each column that was read; () where that is not known
    """

    task: Task
    rows: tuple[TaskExample, ...]
    source: str
    sha256: str
    notes: tuple[str, ...] = ()
    columns: tuple[tuple[str, str], ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def labels(self) -> Array:
        """[example] int64 ids of classes, or float64 numbers."""
        kind = np.float64 if self.task.is_regression else np.int64
        return np.array([row.label for row in self.rows], kind)

    @property
    def rows_sha256(self) -> str:
        """Hex sha256 of the examples that are used, after any sampling."""
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
    known = task if isinstance(task, Task) else known_task(task)
    name = known.name if known else str(task)
    if data is None:
        table, source, digest = _hub_table(name, split)
        chosen = _columns(table, name, source, columns)
    else:
        path, table, chosen = _table_of(name, Path(data), split, columns)
        source, digest = str(path), file_sha256(path)
    records, notes = _whole(table, source, spare_faulty=name in GLUE)
    if known is None:
        known = guessed_task(name, [r.cells.get(chosen.label) for r in records], source=source)
        kind = f"classes {', '.join(known.labels)}, in this order"
        if known.is_regression:
            kind = "a regression, as its labels are numbers"
        notes.append(f"{name!r} is a task of yours: {kind}")
    rows = _rows(records, chosen, known, source)
    if len({row.label for row in rows}) == 1:
        label = rows[0].label
        raise CorpusError(all_alike(source, known.labels[int(label)] if known.labels else label))
    if limit is not None and limit < len(rows):
        if limit < 1:
            raise InputError(f"a limit of {limit} examples; wanted 1 or more")
        notes.append(f"{limit} of {len(rows)} examples, drawn with seed {seed}")
        drawn = generator(seed, "examples of a task").choice(len(rows), limit, replace=False)
        rows = [rows[at] for at in sorted(drawn)]
    read = tuple((role, name) for role, name in asdict(chosen).items() if name)
    digest = digest or _sha256_of_rows(rows)
    return TaskData(known, tuple(rows), source, digest, tuple(notes), read)


def check_source(
    name: str, data: str | Path, *, split: str, columns: Mapping[str, str] | None
) -> None:
    """Raise what `read_task` does of a file that is not there, or whose columns do not fit."""
    known = known_task(name)
    _table_of(known.name if known else name, Path(data), split, columns)


def _table_of(
    name: str, data: Path, split: str, columns: Mapping[str, str] | None
) -> tuple[Path, TableFile, Columns]:
    path = file_of_split(data, name, split)
    table = table_files.read_table(path, headless=_headless(path, name))
    return path, table, _columns(table, name, str(path), columns)


def _columns(
    table: TableFile, name: str, source: str, columns: Mapping[str, str] | None
) -> Columns:
    pair = name not in table_files.SINGLE_TASKS if name in GLUE else None
    return table_files.choose(table.columns, source=source, columns=columns, pair=pair)


def _headless(path: Path, name: str) -> tuple[str, ...] | None:
    """The columns of CoLA's own files, which have no header."""
    if name != "cola" or path.suffix.lower() != ".tsv":
        return None
    cells = table_files.first_line(path)
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
    if not faulty:
        return whole, []
    first = f"(first: {faulty[0].place}, {faulty[0].fault})"
    return whole, [f"{len(faulty)} broken rows left out {first}"]


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


def _sha256_of_rows(rows: Sequence[TaskExample]) -> str:
    return sha256_of(
        "\x1f".join((row.id, row.text_a, row.text_b or "", repr(row.label))) + "\x1e"
        for row in rows
    )


# --- which split, and where it is -------------------------------------------------------------


def file_of_split(data: Path, name: str, split: str) -> Path:
    """The file itself, or the split's in a folder or the task's in it; else raises CorpusError."""
    others = ", ".join(table_files.KINDS[1:])
    if not data.exists():
        raise CorpusError(
            f"{data} does not exist; wanted a folder with train.tsv and dev.tsv (or {others}), or "
            "one file"
        )
    if not data.is_dir():
        return data
    inner = sorted(p for p in data.iterdir() if p.is_dir() and plain(p.name) == plain(name))
    for folder, stem, suffix in product(
        (data, *inner), SPLITS.get(split, (split,)), table_files.KINDS
    ):
        if (folder / f"{stem}{suffix}").is_file():
            return folder / f"{stem}{suffix}"
    there = ", ".join(sorted(p.name for p in data.iterdir())[:12]) or "nothing"
    raise CorpusError(
        f"{data} has no {split} split: found {there}; wanted {split}.tsv (or {others}), there or "
        f"in a folder {name!r}"
    )


def _hub_table(name: str, split: str) -> tuple[TableFile, str, str]:
    """A split of a task of GLUE, where it is from, and "" for its hash.

    raises  InputError for a task that GLUE does not have, or without `datasets`; CorpusError if
            the hub cannot be reached or has no such split
    """
    if name not in GLUE:
        raise InputError(
            f"task {name!r} is not one of GLUE ({', '.join(GLUE)}); give its data: --data FOLDER"
        )
    try:
        import datasets
    except ImportError as error:
        raise InputError(
            "without --data the task is read from the hub, which needs the package datasets\n"
            "pip install 'headscope[train]', or give --data FOLDER with train.tsv and dev.tsv"
        ) from error
    wanted = "validation" if split == "dev" else split
    if name == "mnli" and wanted == "validation":
        wanted = "validation_matched"
    commit = _commit()
    try:
        with _quiet(datasets, offline=commit is None):
            split_data: Any = datasets.load_dataset(
                REPOSITORY, plain(name), split=wanted, revision=commit
            )
    except Exception as error:  # the library raises whatever its parts do
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise CorpusError(
            f"cannot read {REPOSITORY} {plain(name)}, split {wanted}: {reason[:200]}\n"
            "give --data FOLDER with train.tsv and dev.tsv instead"
        ) from error
    records = (Record(f"row {at}", dict(cells)) for at, cells in enumerate(split_data))
    place = f"{REPOSITORY} {plain(name)}, {wanted}" + (f" at {commit}" if commit else "")
    return TableFile(tuple(split_data.column_names), records), place, ""


def _commit() -> str | None:
    """Commit of the data on the hub, read once; None if the hub is out of reach."""
    from huggingface_hub import HfApi

    try:
        return str(HfApi().dataset_info(REPOSITORY, timeout=10).sha)
    except Exception:  # whatever keeps the hub away
        return None


@contextmanager
def _quiet(datasets: Any, *, offline: bool) -> Iterator[None]:
    """No progress bars; offline, only the local cache is searched.

    By itself the library retries an unreachable hub for half a minute, and logs each attempt.
    """
    bars, before = not datasets.are_progress_bars_disabled(), datasets.config.HF_HUB_OFFLINE
    try:
        datasets.disable_progress_bars()
        datasets.config.HF_HUB_OFFLINE = before or offline
        yield
    finally:
        datasets.config.HF_HUB_OFFLINE = before
        if bars:
            datasets.enable_progress_bars()
