"""What does the hub have of GLUE? Read through `datasets`, which is an extra."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headscope.errors import CorpusError, InputError
from headscope.tasks.tables import Record, Table
from headscope.tasks.task import GLUE, plain

REPOSITORY = "nyu-mll/glue"
SPLITS = {"dev": "validation"}


def hub_table(name: str, split: str) -> tuple[Table, str, str]:
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
    wanted = SPLITS.get(split, split)
    if name == "mnli" and wanted == "validation":
        wanted = "validation_matched"
    try:
        found: Any = datasets.load_dataset(REPOSITORY, plain(name), split=wanted)
    except Exception as error:  # the library raises whatever its parts do
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise CorpusError(
            f"cannot read {REPOSITORY} {plain(name)}, split {wanted}: {reason[:200]}\n"
            "give --data FOLDER with train.tsv and dev.tsv instead"
        ) from error

    def records() -> Iterator[Record]:
        for at, cells in enumerate(found):
            yield Record(f"row {at}", dict(cells))

    source = f"{REPOSITORY} {plain(name)}, {wanted}"
    return Table(tuple(found.column_names), records()), source, ""
