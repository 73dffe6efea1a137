"""Write a file, or a folder, so that readers and crashes see all of it or nothing; hash a file."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from headscope.errors import HeadscopeError, InputError, RunFolderError

DRAFT = ".part-"
_NOTED: ContextVar[set[Path] | None] = ContextVar("noted", default=None)


class CannotWrite(HeadscopeError, OSError):
    """The system refuses to write a file; an OSError as well, with its number and the file."""

    def __init__(self, error: OSError, path: Path) -> None:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        HeadscopeError.__init__(
            self,
            f"no space left to write {path}; free some and give the same command again"
            if full
            else f"cannot write {path}: {error.strerror or error}; choose another place with -o",
        )
        self.errno, self.strerror, self.filename = error.errno, error.strerror, str(path)
        self.exit_code = HeadscopeError.exit_code if full else InputError.exit_code

    def __str__(self) -> str:
        return str(self.args[0])


def write_whole(path: Path, write: Callable[[str], object] | bytes) -> Path:
    """Let `write` fill a draft beside `path`, then sync it and rename it into place.

    write    gets the draft's path, which has no suffix: nobody takes it for a finished file; or
             the content
    returns  `path`
    raises   what `write` raises, CannotWrite for an OSError; then no draft is left and `path` is
             as before
    """
    try:
        _write_whole(path, write)
    except OSError as error:
        raise CannotWrite(error, path) from error
    if (noted := _NOTED.get()) is not None:
        noted.add(path)
    return path


def _write_whole(path: Path, write: Callable[[str], object] | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = str(path.parent / f"{DRAFT}{secrets.token_hex(8)}")
    # Whoever may read the folder's new files may read this one: mkstemp's would be 0600.
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    try:
        if isinstance(write, bytes):
            Path(draft).write_bytes(write)
        else:
            write(draft)
        _sync(Path(draft))
        os.replace(draft, path)
        _sync_folder(path.parent)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


@contextmanager
def noting_written() -> Iterator[set[Path]]:
    """Inside the context every file that `write_whole` writes is noted in the set."""
    noted: set[Path] = set()
    token = _NOTED.set(noted)
    try:
        yield noted
    finally:
        _NOTED.reset(token)


def file_sha256(path: Path) -> str:
    """Hex sha256 of a file's content, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of(parts: Iterable[str | bytes]) -> str:
    """Hex sha256 of texts and bytes, one after the other."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part)
    return digest.hexdigest()


def _sync(file: Path) -> None:
    with file.open("rb") as opened:
        os.fsync(opened.fileno())


def _sync_folder(folder: Path) -> None:
    """After a rename: without it a power loss can undo what was seen to be there."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    except OSError:
        pass  # a file system that does not sync folders
    finally:
        os.close(handle)


def put_folder(folder: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a folder beside it, sync that, and put it in the place of the old one.

    raises  HeadscopeError if it cannot be written; then the old one is as it was
    """
    draft, aside = folder.with_name(f".{folder.name}.part"), _set_aside(folder)
    with told(folder):
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        try:
            write(draft)
            readable = draft.stat().st_mode & 0o666  # by the umask; safetensors' files are 0600
            for file in filter(Path.is_file, draft.rglob("*")):
                file.chmod(readable)
                _sync(file)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        shutil.rmtree(aside, ignore_errors=True)
        if folder.exists():
            os.replace(folder, aside)
        os.replace(draft, folder)
        _sync_folder(folder.parent)
        shutil.rmtree(aside, ignore_errors=True)


def replaceable(folder: Path, *, marks: tuple[str, ...]) -> None:
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


def _set_aside(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.old")


@contextmanager
def told(folder: Path) -> Iterator[None]:
    """A write that fails (disk full, no permission) ends in HeadscopeError that says what is safe.

    Each library has its own name for it: Python OSError, safetensors SafetensorError, torch
    RuntimeError of its PytorchStreamWriter.
    """
    from safetensors import SafetensorError

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
