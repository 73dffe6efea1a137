"""Write a file so that readers, and crashes, see all of it or nothing; hash a file."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

DRAFT = ".part-"


def write_whole(path: Path, write: Callable[[str], object]) -> Path:
    """Let `write` fill a draft beside `path`, then sync it and rename it into place.

    write    gets the draft's path, which has no suffix: nobody takes it for a finished file
    returns  `path`
    raises   what `write` raises, and OSError; then no draft is left and `path` is as before
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=DRAFT)
    os.close(handle)
    try:
        write(draft)
        with open(draft, "rb") as file:
            os.fsync(file.fileno())
        os.chmod(draft, 0o644)  # mkstemp's 0600 would keep a shared folder from its readers
        os.replace(draft, path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
    return path


def file_sha256(path: Path) -> str:
    """Hex sha256 of a file's content, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
