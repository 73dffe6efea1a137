"""Writes a checkpoint to its folder whole, or not at all.

It is written beside the folder and then renamed: whoever reads, or a crash, sees the old one or the
new one.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError

from headscope.errors import HeadscopeError, RunFolderError
from headscope.run.manifest import TRAINING_RECORD


def draft_of(folder: Path) -> Path:
    """Where the new checkpoint is written."""
    return folder.with_name(f".{folder.name}.part")


def _set_aside(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.old")


def working_folder(folder: Path) -> Path:
    """Where an unfinished training keeps its state."""
    return folder.with_name(f".{folder.name}.training")


def replaceable(folder: Path, *, marks: tuple[str, ...] = (TRAINING_RECORD,)) -> None:
    """Raises RunFolderError if the folder holds anything that is not a checkpoint of ours.

    marks  files of which one must be in a folder that may be replaced
    """
    aside = _set_aside(folder)
    if aside.is_dir() and not folder.exists():
        os.replace(aside, folder)  # a crash between the two renames of `put_folder`
    if not folder.exists():
        return
    if not folder.is_dir():
        raise RunFolderError(f"{folder} is a file; wanted a new folder, or an old checkpoint's")
    if any(folder.iterdir()) and not any((folder / mark).is_file() for mark in marks):
        raise RunFolderError(
            f"{folder} is not empty and has no {' or '.join(marks)}; it is not replaced: "
            "choose another folder with -o"
        )


def put_folder(folder: Path, write: Callable[[Path], object]) -> None:
    """Lets `write` fill a folder beside it, syncs that, and puts it in the place of the old one.

    raises  HeadscopeError if it cannot be written; then the old one is as it was
    """
    draft, aside = draft_of(folder), _set_aside(folder)
    with told(folder):
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        try:
            write(draft)
            for file in draft.rglob("*"):
                if file.is_file():
                    file.chmod(0o644)  # safetensors' 0600 would keep a shared folder's readers out
                    _sync(file)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        shutil.rmtree(aside, ignore_errors=True)
        if folder.exists():
            os.replace(folder, aside)
        os.replace(draft, folder)
        shutil.rmtree(aside, ignore_errors=True)


def _sync(file: Path) -> None:
    with file.open("rb") as opened:
        os.fsync(opened.fileno())


@contextmanager
def told(folder: Path) -> Iterator[None]:
    """A write that fails (disk full, no permission) ends in HeadscopeError that says what is safe.

    Each library has its own name for it: Python OSError, safetensors SafetensorError, torch
    RuntimeError of its PytorchStreamWriter.
    """
    try:
        yield
    except (OSError, SafetensorError, RuntimeError) as error:
        of_writing = isinstance(error, OSError | SafetensorError) or any(
            sign in str(error) for sign in ("PytorchStreamWriter", "inline_container", "No space")
        )
        if not of_writing:
            raise
        reason = getattr(error, "strerror", None) or str(error).strip().splitlines()[0]
        raise HeadscopeError(
            f"cannot write {folder}: {reason[:200]}\n"
            "what was there before is as it was; make room and give the same command again: it "
            "goes on from its last state"
        ) from error
