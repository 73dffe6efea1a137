"""How do the sums of all shards come together, whoever computed them and when?"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from headscope.errors import InputError, RunStopped
from headscope.model.model import Model
from headscope.run.analysis import Analysis
from headscope.run.engine.compute import Task
from headscope.run.engine.local import Keep, ModelPlace, run_here, run_workers
from headscope.run.plan import Plan, Shard
from headscope.run.store import RunFolder, State


def gather(
    model: Model,
    task: Task,
    plan: Plan,
    *,
    folder: RunFolder | None,
    done: Collection[int],
    workers: int,
    progress: Callable[[int, int], None] | None,
) -> list[Analysis]:
    """Compute the missing shards and merge all of them, in the order of their numbers.

    folder    keeps every finished shard; None: in memory, and let go once merged
    done      numbers of the shards that the folder has
    raises    RunStopped on Ctrl-C
    """
    merged, part, waiting = task.new_analyses(), task.new_analyses(), dict[int, State]()
    todo = [shard for shard in plan.shards if shard.number not in done]
    keep = folder.put_shard if folder else waiting.__setitem__
    report = progress or (lambda done, total: None)
    count, total, following = len(done), len(plan.shards), 0
    report(count, total)
    try:
        for _ in _computed(model, task, todo, keep, workers=workers):
            count += 1
            report(count, total)
            while following in waiting:
                _merge(merged, part, waiting.pop(following))
                following += 1
    except KeyboardInterrupt as error:
        kept = " and kept: the same command goes on from here" if folder else ""
        raise RunStopped(f"stopped; {count} of {total} shards are finished{kept}") from error
    if folder is not None:
        for shard in plan.shards:
            _merge(merged, part, folder.shard(shard.number))
    return merged


def _computed(
    model: Model, task: Task, todo: Sequence[Shard], keep: Keep, *, workers: int
) -> Iterator[Shard]:
    if workers == 1 or len(todo) < 2:
        return run_here(model, task, todo, keep)
    if model.load_options is None:
        raise InputError(
            "several workers load the model themselves; give a name or a folder to load(), "
            "or use one worker"
        )
    return run_workers(
        ModelPlace(model.name, model.load_options), task, todo, keep, workers=workers
    )


def _merge(merged: list[Analysis], part: list[Analysis], state: State) -> None:
    """Add one shard's sums, by way of analyses that hold only them."""
    for whole, shard in zip(merged, part, strict=True):
        prefix = f"{shard.name}/"
        shard.load({k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)})
        whole.merge(shard)
