"""Trains a model on tasks from several seeds, and asks what holds in all: `headscope study`.

    import headscope as hs

    run = hs.study("bert-base-uncased", ["rte", "sst2"], "study", data="glue", seeds=3)
    run["study"]["mean_effect"].sel(task="rte")  # [layer, head]

Nothing heavy is imported before the examples are read; `studying` computes.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from headscope.core.options import takes
from headscope.errors import InputError
from headscope.experiments.finetune.settings import TrainingSchedule
from headscope.experiments.study.study_request import StudyRequest
from headscope.experiments.study.trainings import check_variants, trainings_of
from headscope.tasks.task_request import Loading, TaskRequest, checkpoint_of, train_and_dev

if TYPE_CHECKING:
    from headscope.run.store import Run


@takes(StudyRequest)
def study(request: StudyRequest) -> Run:
    """Trains a model on every task from every seed, and compares, without each head, what it does.

    Checkpoints stand in the run's folder. Raises InputError and its kinds before anything is
    computed; RunStopped on Ctrl-C: what is finished is kept.
    """
    tasks, variants = tuple(request.tasks), tuple(request.variants)
    if not tasks:
        raise InputError("found no task; wanted --tasks rte,sst2,…, one or more")
    check_variants(variants)
    schedule = TrainingSchedule.of(request)
    from headscope.run.store import check_run_folder

    check_run_folder(request.output)
    place, loading = checkpoint_of(request.model, Loading.of(request))
    examples = TaskRequest.of(request)
    pairs = [
        train_and_dev(
            name, examples, train=None, dev=None, dev_limit=request.dev_limit, seed=request.seed
        )
        for name in tasks
    ]
    _refuse_twice([train.task.name for train, _ in pairs])
    for train, dev in pairs:
        sizes = f"{len(train)} examples to learn from, {len(dev)} to be scored on"
        request.tell(f"{train.task.name}: {sizes}")
        for note in (*train.notes, *dev.notes):
            request.tell(f"{train.task.name}: {note}")
    from headscope.experiments.study.studying import StudyPlan, study_run

    data = {train.task.name: (train, dev) for train, dev in pairs}
    seeds = range(request.seed, request.seed + request.seeds)
    plan = StudyPlan(
        place,
        loading,
        data,
        trainings_of(variants, list(data), seeds),
        schedule,
        request,
        Path(request.output),
    )
    return study_run(plan, execution=request.execution)


def _refuse_twice(names: list[str]) -> None:
    """Raise InputError for a task that is named twice."""
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise InputError(f"found the task {twice[0]} twice; wanted each once")
