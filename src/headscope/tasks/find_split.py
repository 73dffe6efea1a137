"""Find a split of a task: in a file, in a folder, or among the data sets of GLUE on the hub."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headscope.errors import CorpusError, InputError
from headscope.tasks.table_files import KINDS, Record, TableFile
from headscope.tasks.task import GLUE, plain

SPLITS = {
    "train": ("train", "training"),
    "dev": ("dev", "dev_matched", "validation", "valid", "val", "validation_matched"),
}


def file_of_split(data: Path, name: str, split: str) -> Path:
    """The file itself, or the one of that split in a folder, or in the task's folder in it.

    raises  CorpusError that lists what is there
    """
    if not data.exists():
        raise CorpusError(
            f"{data} does not exist; wanted a folder with train.tsv and dev.tsv (or "
            f"{', '.join(list(KINDS)[1:])}), or one file"
        )
    if not data.is_dir():
        return data
    inner = sorted(p for p in data.iterdir() if p.is_dir() and plain(p.name) == plain(name))
    for folder in (data, *inner):
        for stem in SPLITS.get(split, (split,)):
            for suffix in KINDS:
                if (folder / f"{stem}{suffix}").is_file():
                    return folder / f"{stem}{suffix}"
    there = ", ".join(sorted(p.name for p in data.iterdir())[:12]) or "nothing"
    raise CorpusError(
        f"{data} has no {split} split: found {there}; wanted {split}.tsv (or "
        f"{', '.join(list(KINDS)[1:])}), there or in a folder {name!r}"
    )


REPOSITORY = "nyu-mll/glue"
HUB_SPLITS = {"dev": "validation"}


def hub_table(name: str, split: str) -> tuple[TableFile, str, str]:
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
    wanted = HUB_SPLITS.get(split, split)
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

    def records() -> Iterator[Record]:
        for at, cells in enumerate(split_data):
            yield Record(f"row {at}", dict(cells))

    place = f"{REPOSITORY} {plain(name)}, {wanted}" + (f" at {commit}" if commit else "")
    return TableFile(tuple(split_data.column_names), records()), place, ""


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
