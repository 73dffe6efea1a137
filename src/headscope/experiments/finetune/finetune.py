"""Teaches a model a task: `headscope finetune` and `hs.finetune`.

Nothing heavy is imported before the examples are read; `teaching` trains.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.core.options import argument, flag, keyword, option, required, takes
from headscope.experiments.finetune.settings import Progress, TrainingSchedule
from headscope.model.request import model_place
from headscope.tasks.task_request import (
    TASK,
    ExampleLength,
    Loading,
    TaskRequest,
    checkpoint_of,
    train_and_dev,
)

if TYPE_CHECKING:
    from headscope.model.model import Model
    from headscope.tasks.task import Task


class FinetuneRequest(
    Loading, TrainingSchedule, ExampleLength, TaskRequest, kw_only=False, heading="The task"
):
    """Which model is taught what, and how."""

    model: Model | str | Path = argument("A hub id or a folder.", reads=model_place)
    task: Task | str = required(TASK, reads=str, metavar="NAME", before="data")
    output: str | Path = required(
        "Folder of the checkpoint; a killed training goes on.",
        names="-o --output",
        usual="{model}-{task}",
        metavar="CKPT",
        before="task",
        python="One that is done is not made again.",
    )
    _: KW_ONLY
    train: str | Path | None = option("A file to learn from, instead of --data.", before="epochs")
    dev: str | Path | None = option("A file to be scored on, instead of --data.", before="epochs")
    dev_limit: int | None = option(
        "Examples to score on at most; --limit counts those to learn from.",
        least=1,
        before="epochs",
    )
    from_scratch: bool = flag(
        "Random weights: only the shape and the tokenizer are MODEL's.",
        heading="The training",
        before="device",
    )
    progress: Progress | None = keyword("Called with the steps done and all steps.")


@takes(FinetuneRequest)
def finetune(request: FinetuneRequest) -> dict[str, Any]:
    """Teaches a model a task with transformers' Trainer, and writes the checkpoint.

    Returns the record that stands in finetuned.json: scores before and after, settings, gradients
    and changes of every layer. Raises InputError and its kinds before anything is computed;
    RunStopped on Ctrl-C.
    """
    schedule = TrainingSchedule.of(request)
    place, loading = checkpoint_of(request.model, Loading.of(request))
    learned, scored = train_and_dev(
        request.task,
        TaskRequest.of(request),
        train=request.train,
        dev=request.dev,
        dev_limit=request.dev_limit,
        seed=schedule.seed,
    )
    from headscope.experiments.finetune.teaching import teach
    from headscope.tasks.task_model import load_for_task

    start = load_for_task(
        place,
        learned.task,
        new_head=True,
        random_init=request.from_scratch,
        seed=schedule.seed,
        **asdict(loading),
    )
    return teach(
        start,
        learned,
        scored,
        request.output,
        max_length=request.max_length,
        progress=request.progress,
        **asdict(schedule),
    )
