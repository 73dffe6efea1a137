"""Write a checkpoint without the heads that a task can do without, by names and files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack

from headscope.core.display import Displayed
from headscope.core.settings_table import documented, keywords, settings_of
from headscope.core.whole_file import held
from headscope.errors import InputError
from headscope.experiments.ablation import prune as pruning
from headscope.experiments.ablation import pruned_checkpoint as checkpoint
from headscope.experiments.ablation.choosing import checked_layers, chosen_by, importance_of
from headscope.experiments.ablation.prune import PruningSettings
from headscope.experiments.ablation.variants import Head
from headscope.run.atlas import Execution
from headscope.run.store import Run
from headscope.tasks.task import Task
from headscope.tasks.task_data import TaskData
from headscope.tasks.task_request import (
    Loading,
    TaskFields,
    TaskRequest,
    examples_of,
    model_and_examples,
)


class PruneFields(TaskFields, total=False):
    """The fields of `PruningSettings`, `TaskRequest` and `Loading`, as keywords."""

    orders: tuple[str, ...]
    allowance: float
    step: int | None
    remove: int | None
    draws: int
    max_length: int
    batch_tokens: int
    replicates: int
    seed: int


@dataclass(frozen=True, repr=False)
class Pruned(Displayed):
    """What a pruning came to.

    run    the curves: run["pruning"]
    order  by which heads went
    heads  (layer, head) that are gone, from 0; layers by their places
    path   the checkpoint without them
    notes  what the reader should know of model and examples
    """

    run: Run
    order: str
    heads: tuple[Head, ...]
    path: Path
    notes: tuple[str, ...] = ()

    def facts(self) -> dict[str, object]:
        """The checkpoint, and what is gone."""
        gone = f"{len(self.heads)} of {self.run['pruning'].attrs['heads']} heads are gone"
        return {"path": self.path, "heads": gone, "order": f"in the order {self.order}"}


@documented(PruningSettings, TaskRequest, Loading)
def prune(
    model: str | Path,
    task: TaskData | Task | str,
    output: str | Path,
    *,
    run: str | Path | None = None,
    importance: Run | str | Path | None = None,
    variant: str | None = None,
    by: str | None = None,
    choose: int | None = None,
    choose_split: str | None = None,
    choose_file: str | Path | None = None,
    settings: PruningSettings | None = None,
    execution: Execution | None = None,
    told: Callable[[str], object] = lambda _: None,
    **more: Unpack[PruneFields],
) -> Pruned:
    """Removes heads one after another, sees what a task loses, and writes what is left.

    model         a checkpoint with a head for the task: a folder, a hub id
    task          a task of GLUE by its name, or a name of your own; or examples that are read
    output        folder of the checkpoint without the heads
    run           folder of the curves; None: in memory
    importance    a run of `importance`, or its folder, for one more order
    variant       which importance of that run; None: the first
    by            the order by which heads go; None: the one by which most can
    choose        number of examples by which heads are chosen; None: CHOOSE, at most `limit`
    choose_split  the split that these are from; None: train, or those scored where there is none
    choose_file   a file with these examples, instead of `data`
    settings      whole; or its fields as keywords
    execution     how to run
    told          called with a few words before each part of the work
    raises        InputError and its kinds before anything is computed
    """
    own, asked, loading = keywords(more, PruningSettings, TaskRequest, Loading)
    settings, request = settings_of(PruningSettings, settings, own), TaskRequest(**asked)
    if importance is not None and "given" not in settings.orders:
        settings = replace(settings, orders=(*settings.orders, "given"))
    folder, load = Path(output), Loading(**loading)
    found_importance, name = importance_of(importance, variant)
    scoring = examples_of(task, request, seed=settings.seed, checkpoint=model,
                          revision=load.revision)  # fmt: skip
    choosing, notes = chosen_by(
        scoring, request, choose=choose, split=choose_split, file=choose_file, seed=settings.seed,
        here=scoring is task,
    )  # fmt: skip
    with held(folder):
        checkpoint.refuse_strangers(folder, checkpoint=model, run=run)
        loaded, _ = model_and_examples(model, scoring, TaskRequest(), load, seed=settings.seed)
        values = checked_layers(found_importance, loaded.model.shape)
        plan = pruning.Pruning(loaded, choosing, scoring, settings, values, name)
        if by is not None and by not in plan.names:
            raise InputError(f"--by {by!r}; the orders are {', '.join(plan.names)}")
        found = pruning.prune(plan, output=run, execution=execution, told=told)
        order, heads = checkpoint.chosen_heads(found["pruning"], order=by, remove=settings.remove)
        checkpoint.write_pruned(loaded.model, found, order, heads, folder)
    return Pruned(found, order, tuple(heads), folder, (*loaded.notes, *scoring.notes, *notes))
