"""Compute the shards of a run on a Dask cluster, remote or on this machine.

Dask decides who computes, and has computed elsewhere what a worker that died had begun. It is asked
for few shards per worker at a time, so that few results wait. A worker gets the job as it joins,
and loads the model with its first shard. A shard's sums are the same whoever computes it.
"""

from __future__ import annotations

import logging
import pickle
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import islice
from typing import Any
from uuid import uuid4

import distributed
from distributed import Client, LocalCluster
from distributed.utils import silence_logging_cmgr

import headscope
from headscope.errors import HeadscopeError, InputError
from headscope.model.model import Model
from headscope.run.compute import Computer, ShardJob
from headscope.run.memory import keep_few_products, keep_freed_memory
from headscope.run.plan import Shard
from headscope.run.shard_files import State
from headscope.run.worker_processes import GUARD, shielded

PATIENCE = "10s"  # for the answer of a scheduler
TRIES = 3  # ours
IN_FLIGHT = 2  # shards per worker that are computed or wait to be fetched


def compute_on_dask(
    again: Callable[[], Model],
    job: ShardJob,
    shards: Sequence[Shard],
    keep: Callable[[int, State], None],
    *,
    scheduler: str | None,
    workers: int,
    gpu: bool = False,
) -> Iterator[Shard]:
    """Compute shards on a cluster, each worker with its own copy of the model.

    again      loads the model in a worker
    scheduler  address of a running cluster; None: processes of this machine
    gpu        on a cluster that is there, a shard needs a worker that announces a GPU
    raises     HeadscopeError where a shard ends worker after worker, or the cluster ends; what is
               kept stays
    """
    name = f"headscope-{uuid4().hex}"  # of this run, beside others on the cluster
    resources = {"GPU": 1} if gpu and scheduler else None
    with _client(scheduler, min(workers, len(shards))) as client:
        if resources:
            _check_gpus(client, scheduler)
        with _handed(client, _Job(name, (headscope.__version__, again, job)), scheduler):
            submit = partial(client.submit, _compute, name, pure=False, resources=resources)
            left, pending = iter(shards), dict[str, Shard]()
            running = distributed.as_completed(loop=client.loop)

            def more() -> None:
                most = IN_FLIGHT * max(1, len(client.nthreads()))
                for shard in islice(left, max(0, most - len(pending))):
                    future = submit(shard, key=f"{name}-{shard.number}")
                    pending[future.key] = shard
                    running.add(future)

            more()
            for future in running:
                shard = pending.pop(future.key)
                with _in_words(shard):
                    more()
                    state = future.result()
                    future.release()
                keep(shard.number, state)
                yield shard


def reach(scheduler: str) -> None:
    """Raise InputError for an address where no scheduler answers."""
    with _client(scheduler, 0):
        pass


@contextmanager
def _client(scheduler: str | None, workers: int) -> Iterator[Client]:
    with ExitStack() as stack:
        # Of a scheduler that is gone the log has a traceback, which is not for users.
        stack.enter_context(silence_logging_cmgr(logging.CRITICAL))
        cluster = None
        if scheduler is None:
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")  # of a port in use, in whose place another is taken
            start = partial(
                LocalCluster,
                n_workers=workers,
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address=None,
                silence_logs=logging.CRITICAL,
                memory_limit=0,
            )
            try:
                with shielded():  # Ctrl-C is for this process alone
                    cluster = _patiently(start)
            except RuntimeError as error:
                raise HeadscopeError(
                    f"worker processes end as they start ({error}): out of memory? fewer --workers "
                    f"need less. {GUARD}"
                ) from error
            stack.callback(_stop, cluster)
        try:
            client = Client(scheduler or cluster, timeout=PATIENCE, set_as_default=False)
        except (OSError, ValueError) as error:  # no answer; no address
            raise InputError(
                f"no Dask scheduler answers at {scheduler}: {error}; wanted an address such as "
                "tcp://10.0.0.1:8786, as `dask scheduler` prints it"
            ) from error
        yield stack.enter_context(client)


def _patiently(do: Callable[[], Any]) -> Any:
    """The result of `do`, retried while workers die."""
    for _ in range(TRIES - 1):
        with suppress(OSError, RuntimeError):
            return do()
    return do()


def _stop(cluster: LocalCluster) -> None:
    """Stop the processes at once; unfinished shards are computed again later."""
    for nanny in cluster.workers.values():
        nanny.auto_restart = False
        if nanny.process is not None and nanny.process.process is not None:
            cluster.sync(nanny.process.process.kill)
    cluster.close()


@contextmanager
def _handed(client: Client, job: _Job, scheduler: str | None) -> Iterator[None]:
    """Inside the context every worker has the job, including those that join later."""
    try:
        _patiently(partial(client.register_plugin, job))
    except Exception as error:  # whatever a worker says that does not know this class
        raise HeadscopeError(
            f"the workers cannot take the job: {error}; wanted headscope "
            f"{headscope.__version__} and distributed {distributed.__version__} on all of them"
        ) from error
    try:
        yield
    finally:
        if scheduler is not None:

            async def let_go() -> None:
                await client.unregister_worker_plugin(job.name)

            with suppress(Exception):  # of a cluster that is gone, which may never answer
                client.sync(let_go, callback_timeout=PATIENCE)


def _check_gpus(client: Client, scheduler: str | None) -> None:
    workers = client.run_on_scheduler(_resources)
    if workers and not any(each.get("GPU") for each in workers):
        raise InputError(
            f"none of the {len(workers)} workers at {scheduler} announces a GPU; start one for "
            f"each: CUDA_VISIBLE_DEVICES=0 dask worker {scheduler} --nthreads 1 --resources GPU=1"
        )


def _resources(dask_scheduler: distributed.Scheduler) -> list[dict[str, float]]:
    return [worker.resources for worker in dask_scheduler.workers.values()]


@contextmanager
def _in_words(shard: Shard) -> Iterator[None]:
    """Dask's reason for giving up, in words."""
    try:
        yield
    except distributed.KilledWorker as error:
        raise HeadscopeError(
            f"shard {shard.number + 1} ended {error.allowed_failures + 1} workers (out of memory? "
            "killed?); finished shards are kept; wanted smaller --batch-tokens, fewer --workers, "
            "or workers with more memory"
        ) from error
    except (OSError, distributed.client.FutureCancelledError) as error:
        raise HeadscopeError(
            "the Dask cluster is gone (its scheduler ended?); finished shards are kept: run the "
            "same command again to continue"
        ) from error


# --- inside a worker process ----------------------------------------------------------------

_JOBS: dict[str, bytes | Computer] = {}
_ONE = threading.Lock()  # a worker may have several threads, and a model computes one thing


class _Job(distributed.WorkerPlugin):  # type: ignore[misc]  # without types
    """Sends the job to workers pickled, so that an error in unpickling belongs to a shard."""

    def __init__(self, name: str, work: tuple[str, Callable[[], Model], ShardJob]) -> None:
        self.name, self.packed = name, pickle.dumps(work)

    def setup(self, worker: object) -> None:
        """Called when a worker joins."""
        keep_freed_memory()
        keep_few_products()
        _JOBS[self.name] = self.packed

    def teardown(self, worker: object) -> None:
        """Called when the run or the worker ends: frees the model."""
        _JOBS.pop(self.name, None)


def _compute(name: str, shard: Shard) -> State:
    """The sums of a shard, copied, since the next shard overwrites a computer's arrays."""
    from headscope.run.gather import shard_sums

    with _ONE:
        try:
            computer = _JOBS[name]
            if not isinstance(computer, Computer):
                version, again, job = pickle.loads(computer)
                if version != headscope.__version__:
                    raise InputError(f"found headscope {headscope.__version__}; wanted {version}")
                computer = _JOBS[name] = Computer(again(), job)
            return {key: array.copy() for key, array in shard_sums(computer, shard).items()}
        except (InputError, OSError) as error:
            kind = type(error) if isinstance(error, InputError) else InputError
            raise kind(
                f"{error}\non the worker {distributed.get_worker().address}; wanted there what is "
                "here: model and corpus under the same paths, best whole ones"
            ) from error
