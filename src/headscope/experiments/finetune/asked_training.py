"""Teach a model a task by names and files, as `headscope finetune` does."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Unpack

from headscope.core.settings_table import documented, keywords
from headscope.experiments.finetune import finetune as training
from headscope.experiments.finetune.training import Progress, TrainingSchedule
from headscope.tasks.predict import MAX_LENGTH
from headscope.tasks.task import Task
from headscope.tasks.task_model import load_for_task
from headscope.tasks.task_request import Loading, TaskFields, TaskRequest, train_and_dev


class FinetuneFields(TaskFields, total=False):
    """The fields of `TrainingSchedule`, `TaskRequest` and `Loading`, as keywords."""

    epochs: int
    batch: int
    rate: float
    layer_decay: float
    warm_up: float
    seed: int


@documented(TrainingSchedule, TaskRequest, Loading)
def finetune(
    model: str | Path,
    task: Task | str,
    output: str | Path,
    *,
    train: str | Path | None = None,
    dev: str | Path | None = None,
    dev_limit: int | None = None,
    max_length: int = MAX_LENGTH,
    from_scratch: bool = False,
    progress: Progress | None = None,
    **more: Unpack[FinetuneFields],
) -> training.Record:
    """Teaches a model a task with transformers' Trainer, and writes the checkpoint.

    model         a hub id or a folder
    task          a task of GLUE by its name, or a name of your own
    output        folder of the checkpoint; a training that was killed goes on, one that is done is
                  not made again
    train, dev    files to learn from and to be scored on, instead of those in `data`
    dev_limit     examples to be scored on at most; `limit` is that of those to learn from
    max_length    tokens of an example; longer ones are cut, and counted
    from_scratch  random weights: only the shape and the tokenizer are the model's
    progress      called with the steps done and all steps
    returns       the record that stands in finetuned.json: scores before and after, settings,
                  gradients and changes of every layer
    raises        InputError and its kinds before anything is computed; RunStopped on Ctrl-C
    """
    own, asked, loading = keywords(more, TrainingSchedule, TaskRequest, Loading)
    schedule, load = TrainingSchedule(**own), Loading(**loading)
    learned, scored = train_and_dev(
        task, TaskRequest(**asked), train=train, dev=dev, dev_limit=dev_limit, seed=schedule.seed
    )
    start = load_for_task(
        model, learned.task, new_head=True, random_init=from_scratch, seed=schedule.seed,
        **asdict(load),
    )  # fmt: skip
    return training.finetune(
        start, learned, scored, output, max_length=max_length, progress=progress,
        **asdict(schedule),
    )  # fmt: skip
