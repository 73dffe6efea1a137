"""Open, list and delete below a folder that may come from a stranger: no link in it is followed.

The folder itself may be a link, as its user has named it. A name below it is data: none that leads
out of it, through `..` or a link at any place, is opened or deleted, and nothing but a plain file
is read (a pipe would hang, a device never end).
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path, PurePosixPath

from headscope.errors import RunFolderError

_LINK = (errno.ELOOP, errno.ENOTDIR, errno.EMLINK)  # how systems say that a name is a link
_AT_ONCE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def opened_inside(folder: Path | str, name: str) -> BufferedReader:
    """A plain file below a folder, open for reading.

    name    with slashes, relative to the folder
    raises  FileNotFoundError where there is none; RunFolderError for a link, one behind a link, a
            name that leads out of the folder, and what is no plain file
    """
    with _parent(folder, name) as (last, parent):
        handle = os.open(last, os.O_RDONLY | _AT_ONCE, dir_fd=parent)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise RunFolderError(f"{Path(folder, name)} is no plain file; wanted one that can be read")
    return open(handle, "rb")


def read_inside(folder: Path | str, name: str) -> bytes:
    """The content of such a file."""
    with opened_inside(folder, name) as file:
        return file.read()


def digest_inside(folder: Path | str, name: str) -> str:
    """Hex sha256 of such a file, read in pieces; "" where there is none, or none that is read."""
    with suppress(OSError, RunFolderError), opened_inside(folder, name) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
    return ""


def is_inside(folder: Path | str, name: str) -> bool:
    """Whether there is such a file."""
    with suppress(OSError, RunFolderError):
        opened_inside(folder, name).close()
        return True
    return False


def drop_inside(folder: Path | str, name: str) -> None:
    """Delete a file or an empty folder below a folder; a link itself, never what it leads to.

    Nothing is done where there is none, or where the name leads out of the folder.

    raises  OSError where the system refuses
    """
    with suppress(FileNotFoundError, RunFolderError), _parent(folder, name) as (last, parent):
        plain = not stat.S_ISDIR(os.lstat(last, dir_fd=parent).st_mode)
        (os.unlink if plain else os.rmdir)(last, dir_fd=parent)


def names_inside(folder: Path | str, name: str = "") -> list[str]:
    """Names of all files below a folder, or below one in it, in order; no link is followed."""
    if os.path.islink(os.path.join(folder, name)) and name:
        return []
    names = (
        Path(place, file).relative_to(folder).as_posix()
        for place, _, files in os.walk(Path(folder, name))
        for file in files
    )
    return sorted(names)


@contextmanager
def _parent(folder: Path | str, name: str) -> Iterator[tuple[str, int | None]]:
    """The last part of a name, and the open folder it lies in; no part is a link."""
    *parts, last = PurePosixPath(name).parts or ("",)
    if not last or name[0] == "/" or ".." in (*parts, last) or "\0" in name:
        raise RunFolderError(f"{name!r} leads out of {folder}; only what lies in it is read")
    try:
        if os.open not in os.supports_dir_fd:  # as on Windows
            place = os.path.join(folder, *parts)
            if os.path.realpath(place) != os.path.join(os.path.realpath(folder), *parts):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            yield os.path.join(place, last), None
            return
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for part in parts:
                inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=handle)
                os.close(handle)
                handle = inner
            yield last, handle
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno not in _LINK:
            raise
        raise RunFolderError(
            f"{Path(folder, name)} is a link, or lies behind one; nothing outside a run folder is "
            "read or removed: put the file itself there"
        ) from error
