"""What does the hub have of GLUE? Read through `datasets`, which is an extra."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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
    commit = _commit()
    try:
        with _quiet(datasets, offline=commit is None):
            found: Any = datasets.load_dataset(
                REPOSITORY, plain(name), split=wanted, revision=commit
            )
    except Exception as error:  # the library raises whatever its parts do
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise CorpusError(
            f"cannot read {REPOSITORY} {plain(name)}, split {wanted}: {reason[:200]}\n"
            "give --data FOLDER with train.tsv and dev.tsv instead"
        ) from error

    def records() -> Iterator[Record]:
        for at, cells in enumerate(found):
            yield Record(f"row {at}", dict(cells))

    place = f"{REPOSITORY} {plain(name)}, {wanted}" + (f" at {commit}" if commit else "")
    return Table(tuple(found.column_names), records()), place, ""


def _commit() -> str | None:
    """Of the data on the hub, asked once; None if the hub is out of reach."""
    from huggingface_hub import HfApi

    try:
        return str(HfApi().dataset_info(REPOSITORY, timeout=10).sha)
    except Exception:  # whatever keeps the hub away
        return None


@contextmanager
def _quiet(datasets: Any, *, offline: bool) -> Iterator[None]:
    """Without progress bars; offline, only what was fetched before is looked for.

    By itself the library retries an unreachable hub for half a minute, and says so each time.
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
