"""Start worker processes that ignore the terminal's signals, and stop them at once.

On Linux, workers are forked from a process that has imported what all of them need and computed
nothing: these imports take longer than many a shard. Where a GPU is, whose libraries need not bear
a fork, and on other systems, every worker imports for itself. The numbers are the same.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess

GUARD = 'In a script of your own, call atlas below `if __name__ == "__main__":`'


@contextmanager
def shielded() -> Iterator[None]:
    """Processes started inside never see Ctrl-C or SIGTERM, not even while they import.

    A terminal or a scheduler sends them to all processes; the parent alone decides what they mean,
    after the context.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def worker_context(*needed: str) -> BaseContext:
    """How worker processes begin; returns once what they need is imported, unless Ctrl-C ends it.

    needed  modules that all workers import
    """
    from torch import accelerator

    alone = get_context("spawn")
    if sys.platform != "linux" or accelerator.is_available():
        return alone
    server = get_context("forkserver")
    server.set_forkserver_preload([*needed])
    first = server.Process(target=int)
    # In a thread, as nothing is heard while a process starts; a signal would reach the server.
    starting = threading.Thread(target=_start, args=(first,), daemon=True)
    starting.start()
    starting.join()
    return alone if first.pid is None else server


def _start(process: BaseProcess) -> None:
    resource_tracker.ensure_running()  # whose start would unblock the signals
    # An end of the server, or a folder for temporary files whose name is too long for its socket.
    with suppress(EOFError, OSError), shielded():
        process.start()
        process.join()


def stop_at_once(pool: ProcessPoolExecutor) -> None:
    """Stop the workers at once; what they have not delivered is computed again later.

    A worker may have died in the middle of sending a result. The pool would wait forever for the
    rest of it while this process holds the writing end of the pipe, so that end is closed too.
    """
    processes, results = list((pool._processes or {}).values()), pool._result_queue
    for process in processes:
        process.kill()  # one that was stopped would not hear anything less
    for process in processes:
        process.join()
    if processes:
        results._writer.close()  # type: ignore[attr-defined]  # of a SimpleQueue
    pool.shutdown(wait=True, cancel_futures=True)


def follow_parent() -> None:
    """In a worker: leave Ctrl-C to the parent, and end when it has ended, for whatever reason."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process when its parent has ended, for whatever reason."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
