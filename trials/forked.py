"""Run a command of headscope in a fork of this process, where everything is imported already."""

from __future__ import annotations

import faulthandler
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 60.0  # seconds after which a child hangs
STACKS = signal.SIGUSR1  # a child prints where all of its threads are
TO_PRINT = 5.0  # seconds to do that


@dataclass(frozen=True)
class Ended:
    """How a command ended; `code` is negative for a signal, None where it hung."""

    code: int | None
    out: str
    err: str

    @property
    def clear(self) -> bool:
        """Whether it ended with an error that is meant for a user."""
        lines = self.err.splitlines()
        told = [line for line in lines if line.startswith("headscope: ")]
        return (
            self.code in (1, 2, 130)
            and len(told) >= 1
            and len(lines) <= 6
            and len(self.err) < 2100  # a message is cut to 2,000 characters
            and not any(word in self.err for word in ("Traceback", "failed with", "--debug"))
        )


def forked(work: Callable[[], object], streams: Path, *, patience: float = PATIENCE) -> Ended:
    """Do the work in a child; what it prints goes to files below `streams`."""
    return ended(begun(work, streams), streams, patience=patience)


def begun(work: Callable[[], object], streams: Path) -> int:
    """A child that does the work."""
    streams.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    if (child := os.fork()) == 0:
        _become(work, streams / "out", streams / "err")
    return child


def ended(child: int, streams: Path, *, patience: float = PATIENCE) -> Ended:
    """How a child ended; one that hangs is killed, and `err` ends in its stacks."""
    handle = os.pidfd_open(child)
    try:
        ready, _, _ = select.select([handle], [], [], patience)
        if not ready:
            os.kill(child, STACKS)
            select.select([handle], [], [], TO_PRINT)
    finally:
        os.close(handle)
    if not ready:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status) if ready else None
    told = (streams / name for name in ("out", "err"))
    return Ended(code, *(file.read_text("utf-8", "replace") for file in told))


def _become(work: Callable[[], object], out: Path, err: Path) -> None:
    code = 70
    try:
        for number, file in ((1, out), (2, err)):
            handle = os.open(file, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
            os.dup2(handle, number)
            os.close(handle)
        faulthandler.register(STACKS, file=2)
        work()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(bool(ended.code))
    except BaseException:
        traceback.print_exc()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def headscope(arguments: Sequence[str], folder: Path) -> None:
    """The command line, in this process."""
    from headscope.cli.main import main

    os.chdir(folder)
    sys.argv = ["headscope", *arguments]
    main()
