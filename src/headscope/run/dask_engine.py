"""Compute the shards of a run on a Dask cluster: one that is there, or processes of this machine.

Dask decides who computes, and computes elsewhere what a worker that died had begun. What is asked
of it is at most a few shards per worker, so that few results wait; a worker gets the job as it
joins, and loads the model with its first shard. A shard's sums are the same whoever computes it.
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
from uuid import uuid4

import distributed
from distributed import (
    Client,
    KilledWorker,
    LocalCluster,
    WorkerPlugin,
    as_completed,
    get_worker,
)
from distributed.client import FutureCancelledError

import headscope
from headscope.errors import HeadscopeError, InputError
from headscope.model.model import Model
from headscope.run.compute import Computer, ShardJob
from headscope.run.memory import keep_few_products, keep_freed_memory
from headscope.run.plan import Shard
from headscope.run.shard_files import State
from headscope.run.worker_processes import shielded

LOOPBACK = "127.0.0.1"
PATIENCE = "10s"  # for the answer of a scheduler
IN_FLIGHT = 2  # shards per worker that are computed or wait to be fetched


def compute_on_dask(
    again: Callable[[], Model], job: ShardJob, shards: Sequence[Shard],
    keep: Callable[[int, State], None], *, scheduler: str | None, workers: int, gpu: bool = False,
) -> Iterator[Shard]:  # fmt: skip
    """Compute shards on a cluster, each worker with its own copy of the model.

    again      loads the model in a worker
    scheduler  address of a cluster that is there; None: so many processes of this machine
    gpu        a shard needs a worker that announces a GPU
    raises     HeadscopeError where a shard ends worker after worker; what is kept stays
    """
    name = f"headscope-{uuid4().hex}"  # of this run, beside others on the cluster
    with _client(scheduler, min(workers, len(shards))) as client:
        resources = {"GPU": 1} if gpu and scheduler else None
        if resources:
            _check_gpus(client, scheduler)
        with _told(client, name, (headscope.__version__, again, job), leave=scheduler is None):
            submit = partial(client.submit, _compute, name, pure=False, resources=resources)
            left, running = iter(shards), as_completed(loop=client.loop)
            shard_of = dict[str, Shard]()

            def more() -> None:
                most = IN_FLIGHT * max(1, len(client.nthreads()))
                for shard in islice(left, max(0, most - len(shard_of))):
                    future = submit(shard, key=f"{name}-{shard.number}")
                    shard_of[future.key] = shard
                    running.add(future)

            more()
            for future in running:
                shard = shard_of.pop(future.key)
                with _there():
                    more()
                    state = _result(future, shard)
                keep(shard.number, state)
                future.release()
                yield shard


def reach(scheduler: str) -> None:
    """Raise InputError for an address where no scheduler answers."""
    with _client(scheduler, 0):
        pass


@contextmanager
def _client(scheduler: str | None, workers: int) -> Iterator[Client]:
    with ExitStack() as stack:
        if scheduler is None:
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")  # of a port in use, in whose place another is taken
            with shielded():  # Ctrl-C is for this process alone
                cluster = LocalCluster(
                    n_workers=workers, threads_per_worker=1, host=LOOPBACK,
                    dashboard_address=None, silence_logs=logging.CRITICAL, memory_limit=0,
                )  # fmt: skip
            stack.callback(_stop, cluster)
        try:
            client = Client(scheduler or cluster, timeout=PATIENCE, set_as_default=False)
        except (OSError, ValueError) as error:  # no answer; no address
            raise InputError(
                f"no Dask scheduler answers at {scheduler}: {error}; wanted an address such as "
                "tcp://10.0.0.1:8786, as `dask scheduler` prints it"
            ) from error
        stack.enter_context(client)
        yield client


def _stop(cluster: LocalCluster) -> None:
    """Stop the processes at once; what they have not delivered is computed again later."""
    for nanny in cluster.workers.values():
        if nanny.process is not None and nanny.process.process is not None:
            nanny.auto_restart = False
            cluster.sync(nanny.process.process.kill)
    cluster.close()


@contextmanager
def _told(client: Client, name: str, work: tuple[object, ...], *, leave: bool) -> Iterator[None]:
    """Inside the context every worker has the job, those that join later too.

    leave  it is not taken back: the workers end
    """
    try:
        client.register_plugin(_Job(name, pickle.dumps(work)))
    except Exception as error:  # what a worker raises that does not know this class
        raise HeadscopeError(
            f"the workers cannot take the job: {error}; wanted headscope "
            f"{headscope.__version__} and distributed {distributed.__version__} on all of them"
        ) from error
    try:
        yield
    finally:
        if not leave:
            with suppress(Exception):  # of a cluster that is gone
                client.unregister_worker_plugin(name)


def _check_gpus(client: Client, scheduler: str | None) -> None:
    workers = client.run_on_scheduler(_resources)
    if workers and not any(each.get("GPU") for each in workers):
        raise InputError(
            f"none of the {len(workers)} workers at {scheduler} announces a GPU; start one for "
            f"each: CUDA_VISIBLE_DEVICES=0 dask worker {scheduler} --nthreads 1 --resources GPU=1"
        )


def _resources(dask_scheduler: distributed.Scheduler) -> list[dict[str, float]]:
    return [worker.resources for worker in dask_scheduler.workers.values()]


def _result(future: distributed.Future, shard: Shard) -> State:
    try:
        state: State = future.result()
    except KilledWorker as error:
        raise HeadscopeError(
            f"shard {shard.number + 1} ended {error.allowed_failures + 1} workers (out of memory? "
            "killed?); finished shards are kept; wanted smaller --batch-tokens, fewer --workers, "
            "or workers with more memory"
        ) from error
    return state


@contextmanager
def _there() -> Iterator[None]:
    """What a cluster that ends does to us, in words."""
    try:
        yield
    except (OSError, FutureCancelledError) as error:
        raise HeadscopeError(
            "the Dask cluster is gone (its scheduler ended?); finished shards are kept: the same "
            "command goes on from here"
        ) from error


# --- inside a worker process ----------------------------------------------------------------

_JOBS: dict[str, bytes | Computer] = {}
_ONE = threading.Lock()  # a worker may have several threads, and a model computes one thing


class _Job(WorkerPlugin):  # type: ignore[misc]  # without types
    """Hands a worker what it is to do, packed: what goes wrong in it is told of a shard."""

    def __init__(self, name: str, packed: bytes) -> None:
        self.name, self.packed = name, packed

    def setup(self, worker: object) -> None:
        """Called as a worker joins."""
        keep_freed_memory()
        keep_few_products()
        _JOBS[self.name] = self.packed

    def teardown(self, worker: object) -> None:
        """Called as the run or the worker ends: the model is let go."""
        _JOBS.pop(self.name, None)


def _compute(name: str, shard: Shard) -> State:
    """The sums of a shard; arrays of their own, since the next shard overwrites a computer's."""
    from headscope.run.gather import _sums

    with _ONE:
        try:
            computer = _JOBS[name]
            if not isinstance(computer, Computer):
                computer = _JOBS[name] = _loaded(computer)
            return {key: array.copy() for key, array in _sums(computer, shard).items()}
        except (InputError, OSError) as error:
            kind = type(error) if isinstance(error, InputError) else InputError
            raise kind(
                f"{error}\non the worker {get_worker().address}; wanted there what is here: model "
                "and corpus under the same paths, best whole ones"
            ) from error


def _loaded(packed: bytes) -> Computer:
    version, again, job = pickle.loads(packed)
    if version != headscope.__version__:
        raise InputError(f"found headscope {headscope.__version__}; wanted {version}")
    return Computer(again(), job)
