"""How is a file written so that a reader, or a crash, sees all of it or none?"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

DRAFT = ".part-"


def write_whole(path: Path, write: Callable[[str], object]) -> Path:
    """Lets `write` fill a draft beside `path`, then syncs it and renames it into place.

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
