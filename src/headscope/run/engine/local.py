"""How do shards run on this machine: here, or in several processes?

Each shard is computed alone and written whole, so it does not matter who computes it: one process
or three give the same bits.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from typing import Any

from headscope.errors import HeadscopeError
from headscope.model.model import Model, load
from headscope.run.engine.compute import Computer, Task
from headscope.run.engine.memory import keep_few_products, keep_freed_memory
from headscope.run.plan import Shard
from headscope.run.store import State

Keep = Callable[[int, State], None]


@dataclass(frozen=True)
class ModelPlace:
    """How a worker process loads the model again."""

    name: str
    options: dict[str, Any]


def run_here(model: Model, task: Task, shards: Sequence[Shard], keep: Keep) -> Iterator[Shard]:
    """Compute shards one after the other in this process; yields each once it is kept."""
    computer = Computer(model, task)
    for shard in shards:
        keep(shard.number, computer.compute(shard))
        yield shard


def run_workers(
    place: ModelPlace, task: Task, shards: Sequence[Shard], keep: Keep, *, workers: int
) -> Iterator[Shard]:
    """Compute shards in several processes, each with its own copy of the model.

    raises  HeadscopeError if a process dies; the shards kept so far stay
    """
    pool = ProcessPoolExecutor(
        max_workers=min(workers, len(shards)),
        mp_context=get_context("spawn"),
        initializer=_begin,
        initargs=(place, task),
    )
    try:
        with _shielded():
            futures: dict[Future[State], Shard] = {pool.submit(_compute, s): s for s in shards}
        for future in as_completed(futures):
            shard = futures.pop(future)
            keep(shard.number, future.result())
            yield shard
    except BrokenProcessPool as error:
        raise HeadscopeError(
            "a worker process died (out of memory? killed?); finished shards are kept:\n"
            "run the same command again, with fewer --workers. In a script of your own, call "
            'atlas below `if __name__ == "__main__":`'
        ) from error
    finally:
        _end(pool)


@contextmanager
def _shielded() -> Iterator[None]:
    """Processes started inside never see Ctrl-C, not even while they import; this one does later.

    A terminal sends it to all of them. The parent alone decides what it means.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end(pool: ProcessPoolExecutor) -> None:
    """Stops the workers at once: whatever they have not delivered will be computed again.

    One may have died in the middle of a result. The pool would wait for the rest of it for ever, as
    long as this process could still write it: so its own end of the pipe is closed too.
    """
    processes, results = list((pool._processes or {}).values()), pool._result_queue
    for process in processes:
        process.terminate()
    for process in processes:
        process.join()
    if processes:
        results._writer.close()  # type: ignore[attr-defined]  # of a SimpleQueue
    pool.shutdown(wait=True, cancel_futures=True)


# --- inside a worker process ----------------------------------------------------------------

_WORKER: list[tuple[ModelPlace, Task] | Computer] = []


def _begin(place: ModelPlace, task: Task) -> None:
    keep_freed_memory()
    keep_few_products()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow_parent, daemon=True).start()
    _WORKER[:] = [(place, task)]


def _follow_parent() -> None:
    """Ends this process when its parent is gone, however it went."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _compute(shard: Shard) -> State:
    worker = _WORKER[0]
    if not isinstance(worker, Computer):  # loaded here, where what goes wrong reaches the parent
        place, task = worker
        worker = Computer(load(place.name, **place.options), task)
        _WORKER[:] = [worker]
    return worker.compute(shard)
