"""In which file is a split of a task?"""

from __future__ import annotations

from pathlib import Path

from headscope.errors import CorpusError
from headscope.tasks.tables import KINDS
from headscope.tasks.task import plain

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
