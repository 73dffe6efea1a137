"""How do tests start a command as a process without waiting for its imports, five seconds of each?

A process is forked from the tests' own before the first of them, when all is imported and nothing
was computed. Each command is forked from it in turn: it may be killed, and starts workers as ever;
only the process that these are forked from is no new interpreter either.
"""

from __future__ import annotations

import faulthandler
import logging
import multiprocessing.util
import os
import pickle
import signal
import socket
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path

from commands import environment, until

QUIET = (ResourceWarning, ImportWarning, PendingDeprecationWarning, DeprecationWarning)
LARGEST = 1 << 16  # bytes of a request
_origin: list[socket.socket] = []
_spawn = multiprocessing.util.spawnv_passfds


class Forked:
    """A process, as `subprocess.Popen` tells of one."""

    def __init__(self, args: list[str], cwd: Path, code: str | None) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.told = [Path(self.folder.name, name) for name in ("stdout", "stderr")]
        for path in self.told:
            path.touch()
        self.returncode: int | None = None
        _origin[0].send(pickle.dumps((args, str(cwd), code, [str(path) for path in self.told])))
        self.pid = pickle.loads(_origin[0].recv(LARGEST))

    def poll(self) -> int | None:
        if self.returncode is None:
            _origin[0].send(pickle.dumps(self.pid))
            self.returncode = pickle.loads(_origin[0].recv(LARGEST))
        return self.returncode

    def wait(self) -> int | None:
        until(lambda: self.poll() is not None, what="the process's end")
        return self.returncode

    def send_signal(self, sign: int) -> None:
        os.kill(self.pid, sign)

    def communicate(self) -> tuple[str, str]:
        self.wait()
        out, err = (path.read_text("utf-8") for path in self.told)
        return out, err


@contextmanager
def forked(*args: object, cwd: Path, code: str | None = None) -> Iterator[Forked]:
    """The command line, or Python code instead, in a process group of its own; see `started`."""
    process = Forked([*map(str, args)], cwd, code)
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.folder.cleanup()


def killed_at(rename: int) -> str:
    """Code of a command that SIGKILL ends when it is about to rename so many files."""
    return f"""
import os, signal
from headscope.__main__ import main
rename, renames = os.replace, []
def killing(*names, **more):
    renames.append(names)
    if len(renames) == {rename}:
        os.kill(os.getpid(), signal.SIGKILL)
    return rename(*names, **more)
os.replace = killing
main()
"""


def called_apart(function: Callable[..., None], *args: object, cwd: Path) -> str:
    """Call a test module's own function in a process, as one whose workers need no imports.

    Fails if it raises.

    args     what `repr` tells whole
    returns  what was written to stderr
    """
    given = ", ".join(map(repr, args))
    code = f"import {function.__module__} as tests\ntests.{function.__name__}({given})"
    with forked(cwd=cwd, code=code) as process:
        _, complaint = process.communicate()
        assert process.returncode == 0, complaint
    return complaint


def begin() -> None:
    """Fork the process that all others come from; it ends with this one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other threads only wait for tests
        pid = os.fork()
    if pid:
        theirs.close()
        _origin.append(ours)
        return
    try:
        warnings.simplefilter("ignore")
        faulthandler.disable()
        os.dup2(theirs.detach(), 3)
        os.closerange(4, os.sysconf("SC_OPEN_MAX"))
        _serve(socket.socket(fileno=3))
    finally:
        os._exit(0)


def _serve(asked: socket.socket) -> None:
    while True:
        request = asked.recv(LARGEST)
        if not request:  # the tests are over
            return
        what = pickle.loads(request)
        if isinstance(what, int):
            pid, status = os.waitpid(what, os.WNOHANG)
            asked.send(pickle.dumps(os.waitstatus_to_exitcode(status) if pid else None))
        elif pid := os.fork():
            asked.send(pickle.dumps(pid))
        else:
            _become(*what)


def _become(args: list[str], cwd: str, code: str | None, told: list[str]) -> None:
    """Run a command as if this process had just been started with it."""
    ended = 1
    try:
        os.setsid()
        os.close(3)
        for number, path in enumerate([os.devnull, *told]):
            os.dup2(os.open(path, os.O_RDWR), number)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        for name in (None, *logging.root.manager.loggerDict):  # whose files are closed by now
            logging.getLogger(name).handlers.clear()
        os.chdir(cwd)
        os.environ.update(environment())  # for workers
        sys.argv = ["headscope", *args]
        warnings.resetwarnings()
        for kind in QUIET:
            warnings.simplefilter("ignore", kind)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        multiprocessing.util.spawnv_passfds = _fork_server
        sys.modules["__main__"] = import_module("headscope.__main__")  # which workers import too
        run: Callable[[], object] = sys.modules["__main__"].main
        exec(code, {}) if code is not None else run()
        ended = 0
    except SystemExit as error:
        ended = error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        multiprocessing.util._exit_function()  # lets go of queues, as an interpreter
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ended)


def _fork_server(path: str, args: list[str], passfds: list[int]) -> int:
    """Start a Python process; the one that workers are forked from begins with our imports."""
    if "forkserver" not in args[-1]:
        return _spawn(path, args, passfds)
    if pid := os.fork():
        return pid
    try:
        for number in set(range(3, os.sysconf("SC_OPEN_MAX"))).difference(passfds):
            with suppress(OSError):
                os.close(number)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        exec(args[-1], {})
    finally:
        os._exit(0)
