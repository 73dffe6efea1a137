"""How do tests start the command line as a process, watch it, and stop it at a chosen moment?"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

PATIENCE = 600.0  # seconds; a deadline, never waited for in full unless something hangs
# Seven documents, each a shard, small sums: enough to be interrupted in the middle of.
QUICK = ("--demo", "--analyses", "surface,entropy", "--replicates", "20", "--shard-tokens", "400")
QUICK += ("--limit", "7")
QUICK += ("--linears", "stock", "--control", "none")
SHARDS = 7
WHOLE = {
    "limit": 5,
    "shard_tokens": 400,
    "replicates": 20,
}  # settings of `whole`, `short`
WHOLE_SHARDS = 5


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1"}


def headscope(
    *args: object, cwd: Path, code: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs the command line, or Python code instead, to its end."""
    start = ["-c", code] if code is not None else ["-m", "headscope", *map(str, args)]
    return subprocess.run(
        [sys.executable, *start],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@contextmanager
def started(*args: object, cwd: Path) -> Iterator[subprocess.Popen[str]]:
    """The command line while it runs, in a process group of its own; nothing is left behind."""
    process = subprocess.Popen(
        [sys.executable, "-m", "headscope", *map(str, args)],
        cwd=cwd,
        env=environment(),
        text=True,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def until(condition: Callable[[], object], *, what: str, patience: float = PATIENCE) -> None:
    """Returns once the condition holds; fails after the deadline."""
    pause, deadline = threading.Event(), time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {patience:.0f} s in vain: {what}")
        pause.wait(0.02)  # to look at all processes costs a core, done without pause


def shard_files(run: Path) -> dict[str, tuple[int, int]]:
    """Name of each finished shard, with what changes if it is written again."""
    stats = {file.name: file.stat() for file in run.glob("shards/*/*.shard")}
    return {name: (stat.st_ino, stat.st_mtime_ns) for name, stat in stats.items()}


def until_shards(run: Path, count: int, process: subprocess.Popen[str]) -> None:
    """Returns once a run has so many shards, or its process has ended."""
    until(
        lambda: len(shard_files(run)) >= count or process.poll() is not None,
        what=f"{count} shards in {run}",
    )
    assert len(shard_files(run)) >= count, process.communicate()


def workers_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """The worker processes of a command: those that were forked from the one that imports."""
    return [worker for server in servers_of(process) for worker in _children(server)]


def servers_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """The process that a command's workers are forked from, if there is one."""
    with suppress(psutil.Error):
        return [
            child
            for child in _children(psutil.Process(process.pid))
            if "resource_tracker" not in " ".join(child.cmdline())
        ]
    return []


def _children(process: psutil.Process) -> list[psutil.Process]:
    with suppress(psutil.Error):
        return process.children()
    return []


def alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
