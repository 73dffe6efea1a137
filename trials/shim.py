"""Lets one chosen file operation of a process fail: by a preloaded library, else in Python alone.

The library (faults.c) is built when it is first asked for, and meets what native code writes too.
Without a compiler `InPython` stands in for it: it meets what Python writes, without a log.
"""

from __future__ import annotations

import builtins
import ctypes
import errno
import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).with_name("faults.c")
KINDS = {"full": 1, "broken": 2, "short": 3, "kill": 4, "torn": 5}  # as in faults.c
OF_WRITES = ("short", "torn")  # what can only happen to a write
KILLS = ("kill", "torn")
MARK = "HEADSCOPE_TRIAL"  # set in a process that runs with the library
# Without threads a process can be forked at any moment.
ALONE = {"OMP_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}


@cache
def library() -> Path | None:
    """The built library; None without a compiler that can."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None or not sys.platform.startswith("linux"):
        return None
    made = Path(tempfile.mkdtemp(prefix="trial-shim-")) / "faults.so"
    build = [compiler, "-O2", "-fPIC", "-shared", "-o", str(made), str(SOURCE), "-ldl"]
    done = subprocess.run(build, capture_output=True, check=False)
    return None if done.returncode else made


def environment() -> dict[str, str]:
    """Of a process whose operations may be made to fail."""
    made = library()
    preload = {"LD_PRELOAD": str(made)} if made else {}
    return {**os.environ, **ALONE, **preload, MARK: str(os.getpid())}


def begin_again(module: str) -> None:
    """Starts this very command anew with the library, unless that has been done."""
    if MARK not in os.environ:
        code = subprocess.run(
            [sys.executable, "-m", module, *sys.argv[1:]], env=environment(), check=False
        ).returncode
        raise SystemExit(code)
    os.environ.pop("LD_PRELOAD", None)  # of nothing that is started from here


class Native:
    """The preloaded library."""

    def __init__(self) -> None:
        self._c = ctypes.CDLL(None)
        self._c.faults_count.restype = self._c.faults_hits.restype = ctypes.c_long

    def arm(self, root: Path, kind: str | None, at: int, log: int = -1) -> None:
        """From here on count operations below `root`; number `at`, from 0, fails so."""
        number = KINDS[kind] if kind else 0
        self._c.faults_arm(os.fsencode(root), number, ctypes.c_long(at), log)

    def count(self) -> int:
        """Operations since then."""
        return int(self._c.faults_count())

    def hits(self) -> int:
        """Operations that failed since then."""
        return int(self._c.faults_hits())


class InPython:
    """The same for what Python itself writes, without a log."""

    def arm(self, root: Path, kind: str | None, at: int, log: int = -1) -> None:
        """From here on count operations below `root`; number `at`, from 0, fails so."""
        self.root, self.kind, self.at, self.now, self.failed = str(root), kind, at, -1, 0
        calls = dict.fromkeys(("fsync", "replace", "unlink", "rmdir"), False)
        calls |= dict.fromkeys(("mkdir", "link"), True)
        for name, room in calls.items():
            setattr(os, name, self._failing(getattr(os, name), room=room))
        real = io.open
        builtins.open = io.open = lambda *args, **more: self._opened(real, *args, **more)  # type: ignore[assignment]

    def count(self) -> int:
        """Operations since then."""
        return self.now + 1

    def hits(self) -> int:
        """Operations that failed since then."""
        return self.failed

    def _failing(self, real: Callable[..., Any], *, room: bool) -> Callable[..., Any]:
        def call(target: Any, *args: Any, **more: Any) -> Any:
            inside = isinstance(target, int) or os.path.abspath(target).startswith(self.root)
            if inside:
                self.step(room=room)
            return real(target, *args, **more)

        return call

    def step(self, *, room: bool) -> None:
        """Counts one operation, which may end here."""
        self.now += 1
        if self.now == self.at and self.kind in KILLS:
            os.kill(os.getpid(), signal.SIGKILL)
        full = self.kind in ("full", "short") and room and self.now > self.at
        if self.now == self.at or full:
            self.failed += 1
            number = errno.EIO if self.kind == "broken" else errno.ENOSPC
            raise OSError(number, os.strerror(number))

    def _opened(self, real: Callable[..., Any], file: Any, *args: Any, **more: Any) -> Any:
        mode = args[0] if args else more.get("mode", "r")
        inside = not isinstance(file, int) and os.path.abspath(file).startswith(self.root)
        if not inside or not set(mode) & set("wax+"):
            return real(file, *args, **more)
        self.step(room=True)
        raw = _Raw(file, mode.replace("b", "").replace("t", ""))
        raw.faults = self
        if more.get("buffering") == 0:
            return raw
        buffer = (io.BufferedRandom if "+" in mode else io.BufferedWriter)(raw)
        texts = {name: more[name] for name in ("encoding", "errors", "newline") if name in more}
        return buffer if "b" in mode else io.TextIOWrapper(buffer, **texts)


class _Raw(io.FileIO):
    """A file whose writes and close may fail."""

    faults: InPython

    def write(self, content: Any) -> int:
        half = self.faults.now + 1 == self.faults.at and self.faults.kind in OF_WRITES
        if half:
            super().write(memoryview(content)[: len(content) // 2])
        self.faults.step(room=True)
        return super().write(content)

    def close(self) -> None:
        if not self.closed:
            super().close()
            self.faults.step(room=False)


def faults() -> Native | InPython:
    """What can make operations of this process fail."""
    return Native() if hasattr(ctypes.CDLL(None), "faults_arm") else InPython()


def operations(log: bytes) -> list[Mapping[str, Any]]:
    """What the library has logged: name, path, to, place, and the bytes written, of each."""
    found, at = [], 0
    while at < len(log):
        end = log.index(b"\n", at)
        name, path, to, place, size = log[at:end].decode().split("\t")
        at = end + 1
        found.append({"name": name, "path": path, "to": to, "place": int(place), "bytes": b""})
        if name == "write":
            found[-1]["bytes"] = log[at : at + int(size)]
            at += int(size)
    return found
