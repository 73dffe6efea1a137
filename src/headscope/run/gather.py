"""Compute the missing shards of a run, in one process or several, and merge all shards.

Each shard is computed alone and kept whole, so it does not matter who computes it: one process or
three give the same bits.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from functools import partial
from multiprocessing.queues import Queue
from typing import Any

import numpy as np

from headscope.core.progress import Advance, phase, unheard
from headscope.errors import HeadscopeError, InputError
from headscope.model.model import Model, load
from headscope.run.analysis import Analysis
from headscope.run.compute import Computer, ShardJob, state_of
from headscope.run.life_cycle import Meter, RunInProgress
from headscope.run.manifest import loaded_identity
from headscope.run.memory import keep_few_products, keep_freed_memory
from headscope.run.merge_tree import Span, children, covering, looks
from headscope.run.plan import Plan, Shard
from headscope.run.settings import Settings, differences
from headscope.run.shard_files import State
from headscope.run.worker_processes import (
    GUARD,
    follow_parent,
    shielded,
    stop_at_once,
    worker_context,
)

Keep = Callable[[int, State], None]
Enough = Callable[[int, Mapping[str, Analysis]], bool]
Engine = Callable[[Callable[[], Model], ShardJob, Sequence[Shard], Keep], Iterator[Shard]]


def gather(
    run: RunInProgress,
    model: Model,
    job: ShardJob,
    plan: Plan,
    meter: Meter,
    *,
    workers: int,
    engine: Engine | None = None,
    enough: Enough | None = None,
) -> Mapping[str, Analysis]:
    """Compute the missing shards, and merge all shards in the order of the merge tree.

    run      keeps every finished shard; one in memory lets it go once it is merged
    meter    advances with every shard
    workers  processes
    engine   computes the shards instead of such processes, as `run_workers` does
    enough   (shards, their merged sums) -> whether to stop there; it is asked after some numbers of
             shards that depend on nothing but how many there are (`merge_tree.looks`)
    """
    waiting, done = HeldStates(), run.done
    todo = [shard for shard in plan.shards if shard.number not in done]

    def keep(number: int, state: State) -> None:
        run.keep(number, state)
        done.add(number)
        if run.folder is None:
            waiting.put_span((number, number), state)

    count = sum(shard.examples for shard in todo)
    with phase("compute", count, "inputs") if todo else nullcontext(unheard) as advance:
        if engine is None and workers > 1 and len(todo) > 1:
            engine = partial(run_workers, workers=workers)
        computed = _computed(model, job, todo, keep, advance, engine)

        def computed_to(number: int) -> None:
            while number not in done:
                next(computed)
                meter.advance(1)

        root = (0, len(plan.shards) - 1)
        if enough is not None:
            merging = Merging(job, run, waiting)
            merged = _until_enough(merging, enough, len(plan.shards), computed_to)
            computed.close()
        elif run.folder is None:
            merged = _in_memory(job, root, computed_to, waiting)
        else:
            merged = Merging(job, run).merged(root, computed_to)
    return merged


def _until_enough(
    merging: Merging, enough: Enough, shards: int, computed_to: Callable[[int], object]
) -> Mapping[str, Analysis]:
    """The merged sums of the first shards that are enough; of all where none are."""
    for count in looks(shards):
        if count < shards and merging.passed(count):
            continue  # before this process was started, and it was not enough
        merged = merging.of(covering(count), computed_to)
        if enough(count, merged):
            break
    return merged


def _in_memory(
    job: ShardJob, node: Span, computed_to: Callable[[int], object], waiting: HeldStates
) -> dict[str, Analysis]:
    """The merged sums of a node; sums of shards are freed after merging."""
    merged, part = job.new_parts(), job.new_parts()
    for child in children(node):
        if child[0] < child[1]:
            inner = _in_memory(job, child, computed_to, waiting)
            for name, analysis in merged.items():
                analysis.merge(inner[name])
        else:
            computed_to(child[0])
            merge_shard(merged, part, next(waiting.states([child])))
            waiting.drop([child])
    return merged


class HeldStates:
    """The states of a run in memory: what `ShardFiles` is of one in a folder."""

    def __init__(self) -> None:
        self._held = dict[Span, State]()

    def put_span(self, span: Span, state: State) -> None:
        """Keep a copy: what computes or merges overwrites its arrays."""
        self._held[span] = {name: array.copy() for name, array in state.items()}

    def drop(self, spans: Iterable[Span]) -> None:
        """Let go of merged states."""
        for span in spans:
            del self._held[span]

    def states(self, spans: Iterable[Span]) -> Iterator[State]:
        """Several states, one after another."""
        return (self._held[span] for span in spans)


class Merging:
    """Merges nodes of the tree from their children's states, with two more in memory.

    held  keeps the states of a run in memory
    """

    def __init__(self, job: ShardJob, run: RunInProgress, held: HeldStates | None = None) -> None:
        folder = run.folder or held
        assert folder is not None
        self.folder, self.run = folder, run
        self._merged, self._part = job.new_parts(), job.new_parts()

    def merged(
        self, node: Span, computed_to: Callable[[int], object] | None = None
    ) -> dict[str, Analysis]:
        """The merged sums of a node, by analysis; the next call overwrites them.

        computed_to  sees to it that a shard is finished; None: all below the node are
        """
        return self.of(children(node), computed_to)

    def of(
        self, nodes: Sequence[Span], computed_to: Callable[[int], object] | None = None
    ) -> dict[str, Analysis]:
        """The merged sums of several nodes, likewise."""
        for node in nodes:
            self._finish(node, computed_to)
        for analysis in self._merged.values():
            analysis.reset()
        for state in self.folder.states(nodes):
            merge_shard(self._merged, self._part, state)
        return self._merged

    def passed(self, shards: int) -> bool:
        """Whether more than the first `shards` were merged already, so that these stand no more."""
        nodes = set(covering(shards))
        above = self.run.spans - nodes
        return any(first <= a and b <= last for first, last in above for a, b in nodes)

    def _finish(self, node: Span, computed_to: Callable[[int], object] | None) -> None:
        if node in self.run.spans:
            return
        if node[0] == node[1]:
            assert computed_to is not None
            computed_to(node[0])
            return
        self.keep(node, computed_to)

    def keep(self, node: Span, computed_to: Callable[[int], object] | None = None) -> None:
        """Merge a node and keep it in place of its children."""
        self.folder.put_span(node, state_of(self.merged(node, computed_to)))
        self.folder.drop(children(node))
        self.run.spans.add(node)


def merge_shard(merged: Mapping[str, Analysis], part: Mapping[str, Analysis], state: State) -> None:
    """Add the sums of one shard, loaded into `part`, to `merged`; both by name in the state."""
    for name, shard in part.items():
        prefix = f"{name}/"
        shard.load({k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)})
        merged[name].merge(shard)


def _computed(  # noqa: PLR0917
    model: Model,
    job: ShardJob,
    todo: Sequence[Shard],
    keep: Keep,
    advance: Advance,
    engine: Engine | None,
) -> Generator[Shard, None, None]:
    if engine is not None:
        if model.load_options is None:
            raise InputError(
                "several workers load the model themselves; give a name or a folder to load(), "
                "or use one worker"
            )
        wanted = loaded_identity(model, job.settings)
        again = partial(load_same, model.name, model.load_options, job.settings, wanted)
        for shard in engine(again, job, todo, keep):
            advance(shard.examples)
            yield shard
        return
    computer = Computer(model, job)
    for shard in todo:
        keep(shard.number, shard_sums(computer, shard, advance))
        yield shard


def load_same(
    name: str, options: Mapping[str, Any], settings: Settings, wanted: Mapping[str, Any]
) -> Model:
    """The model of that name, in a process that computes.

    wanted  of the model that the run began with, as `loaded_identity`: a shard's seal is the
            fingerprint of a spec that holds it
    raises  InputError for any other: what lies there may be another, or was replaced meanwhile
    """
    model = load(name, **options)
    if where := differences(wanted, loaded_identity(model, settings)):
        raise InputError(
            f"a process loaded another model as {name!r}, or other files, than the run began with "
            f"({'; '.join(where[:3])}); wanted the same files, which stay as they are"
        )
    return model


def shard_sums(computer: Computer, shard: Shard, advance: Advance = unheard) -> State:
    """The sums of one shard.

    raises  HeadscopeError where sums are no numbers; what is kept stays
    """
    state, dtype = computer.compute(shard, advance), computer.model.network.dtype
    for name, array in state.items():
        if array.dtype.kind == "f" and np.isnan(array.sum()) and np.isnan(array).any():
            raise HeadscopeError(
                f"{name} of shard {shard.number + 1} holds NaN: the network computed in {dtype} "
                "gave NaN for some input; finished shards are kept; wanted a wider --dtype "
                "(bfloat16 in place of float16), or finite weights"
            )
    return state


def run_workers(
    again: Callable[[], Model], job: ShardJob, shards: Sequence[Shard], keep: Keep, *, workers: int
) -> Iterator[Shard]:
    """Compute shards in several processes, each with its own copy of the model.

    again   loads the model in a process
    raises  HeadscopeError if a process dies; the shards kept so far stay
    """
    context = worker_context(__name__, "transformers.modeling_utils")  # which opens models
    count = min(workers, len(shards))
    handed = context.Queue()  # as arguments of a process they would keep the next one waiting
    handed.cancel_join_thread()
    packed = pickle.dumps((again, job))
    for _ in range(count):
        handed.put(packed)
    pool = ProcessPoolExecutor(count, mp_context=context, initializer=_begin, initargs=(handed,))
    try:
        with shielded():
            futures: dict[Future[State], Shard] = {pool.submit(_compute, s): s for s in shards}
        for future in as_completed(futures):
            shard = futures.pop(future)
            keep(shard.number, future.result())
            yield shard
    except BrokenProcessPool as error:
        raise HeadscopeError(
            "a worker process died (out of memory? killed?); finished shards are kept:\n"
            f"run the same command again, with fewer --workers. {GUARD}"
        ) from error
    finally:
        stop_at_once(pool)


# --- inside a worker process ----------------------------------------------------------------

_WORKER: list[Queue[bytes] | Computer] = []


def _begin(handed: Queue[bytes]) -> None:
    keep_freed_memory()
    keep_few_products()
    follow_parent()
    _WORKER[:] = [handed]


def _compute(shard: Shard) -> State:
    worker = _WORKER[0]
    if not isinstance(worker, Computer):  # loaded here, where what goes wrong reaches the parent
        again, job = pickle.loads(worker.get())
        worker = Computer(again(), job)
        _WORKER[:] = [worker]
    return shard_sums(worker, shard)
