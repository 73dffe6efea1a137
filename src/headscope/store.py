"""What lies in a run folder, and how is it kept whole?

    RUN/manifest.json   what was asked and what was found; written before the first shard
    RUN/shards/         one file per finished shard, named by its content's hash
    RUN/atlas.nc        the labelled results, written last

Every file is written beside its place, synced and renamed: a reader, or a crash, sees all of it or
none. A shard that does not match the hash in its name is thrown away and computed again.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from headscope.errors import HeadscopeError, RunFolderError

MANIFEST, RESULTS, SHARDS = "manifest.json", "atlas.nc", "shards"
_DRAFT = ".part-"
State = dict[str, np.ndarray[Any, Any]]


def put(path: Path, content: bytes) -> None:
    """Write content so that a reader, or a crash, sees all of it or none.

    raises  HeadscopeError when the disk is full or the place cannot be written
    """
    draft = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=path.parent, prefix=_DRAFT)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(draft, 0o644)
        os.replace(draft, path)
    except OSError as error:
        if draft:
            Path(draft).unlink(missing_ok=True)
        raise _why(error, path) from error


def _why(error: OSError, path: Path) -> HeadscopeError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return HeadscopeError(
            f"no space left to write {path}\n"
            "free some, then run the same command again: finished shards are kept"
        )
    return RunFolderError(f"cannot write {path}: {error.strerror}; choose another folder with -o")


class RunFolder:
    """A run folder on disk; makes no decision about what is computed."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    # --- the manifest -----------------------------------------------------------------------

    def manifest(self) -> dict[str, Any] | None:
        """What the manifest says; None where there is no run; raises RunFolderError if damaged."""
        file = self.path / MANIFEST
        if not file.exists():
            return None
        try:
            manifest = json.loads(file.read_bytes())
            _ = manifest["fingerprint"], manifest["spec"]
        except (ValueError, TypeError, KeyError, OSError) as error:
            raise RunFolderError(
                f"{file} is no manifest of a run ({error}); use another folder or --overwrite"
            ) from error
        found: dict[str, Any] = manifest
        return found

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Replace the manifest."""
        text = json.dumps(manifest, indent=2, ensure_ascii=False, sort_keys=True)
        put(self.path / MANIFEST, text.encode("utf-8", "backslashreplace") + b"\n")

    def prepare(self, *, overwrite: bool) -> None:
        """Make the folder; raises RunFolderError if it holds anything but a run."""
        if self.path.exists() and not self.path.is_dir():
            raise RunFolderError(f"{self.path} is a file; wanted a folder for the run")
        if overwrite and (self.path / MANIFEST).exists():
            for name in (SHARDS, "tables", "figures"):
                shutil.rmtree(self.path / name, ignore_errors=True)
            for name in (MANIFEST, RESULTS, "report.html"):
                (self.path / name).unlink(missing_ok=True)
        elif self.path.is_dir() and not (self.path / MANIFEST).exists():
            strange = [p.name for p in self.path.iterdir() if not p.name.startswith(".")]
            if strange and strange != [SHARDS]:
                raise RunFolderError(
                    f"{self.path} holds {sorted(strange)[0]!r} but no run; "
                    "choose an empty or a new folder with -o"
                )
        try:
            (self.path / SHARDS).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _why(error, self.path) from error
        for draft in [*self.path.glob(_DRAFT + "*"), *self.path.glob(f"*/{_DRAFT}*")]:
            draft.unlink(missing_ok=True)  # left by a process that was killed

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the folder for one process; the system lets go when that process ends."""
        try:
            import fcntl
        except ImportError:  # not on this system: two runs in one folder would waste work, no more
            yield
            return
        with (self.path / ".lock").open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise RunFolderError(
                    f"another headscope is writing to {self.path}; wait for it or use another folder"
                ) from error
            yield

    # --- shards -----------------------------------------------------------------------------

    def finished(self) -> set[int]:
        """Numbers of the shards that are there and whole; damaged ones are removed."""
        found = set()
        for file in sorted((self.path / SHARDS).glob("*.shard")):
            number, _, digest = file.stem.partition("-")
            if number.isdecimal() and _digest(file.read_bytes()) == digest:
                found.add(int(number))
            else:
                file.unlink(missing_ok=True)
        return found

    def put_shard(self, number: int, state: State) -> None:
        """Write the state of one finished shard."""
        content = pack(state)
        put(self.path / SHARDS / f"{number:05d}-{_digest(content)}.shard", content)

    def shard(self, number: int) -> State:
        """The state of a finished shard."""
        for file in (self.path / SHARDS).glob(f"{number:05d}-*.shard"):
            return unpack(file.read_bytes())
        raise HeadscopeError(f"shard {number} of {self.path} has vanished; run the command again")


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def pack(state: State) -> bytes:
    """Named arrays as bytes: safetensors, compressed (histograms are mostly zeros)."""
    from safetensors.numpy import save

    arrays = {name: np.ascontiguousarray(array) for name, array in sorted(state.items())}
    return zlib.compress(save(arrays), level=1)


def unpack(content: bytes) -> State:
    """The arrays that `pack` packed."""
    from safetensors.numpy import load

    return load(zlib.decompress(content))
