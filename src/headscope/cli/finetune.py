"""`headscope finetune`: teach a model a task and record how its layers change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.cli import options
from headscope.cli.options import ModelOptions, Natural, Positive
from headscope.cli.task_options import TaskDataOptions, task_request
from headscope.cli.terminal_output import ProgressBar, tell
from headscope.cli.typed_command import group, typed_command
from headscope.core.head_names import first
from headscope.core.options import Options, argument, flag, option

if TYPE_CHECKING:
    from headscope.tasks.task_data import TaskData


class _FinetuneOptions(Options):
    model: options.ModelName = argument()
    output: Path = options.output_option(
        "Folder of the checkpoint; a killed training goes on.",
        "{model}-{task}",
        metavar="CKPT",
        heading="The result",
    )
    quiet: bool = flag("No progress bar.")
    as_json: bool = options.json_flag("The record on stdout.")
    task: TaskDataOptions = group("The task")
    train_file: Path | None = option("A file to learn from, instead of --data.", names="--train")
    dev_file: Path | None = option("A file to be scored on, instead of --data.", names="--dev")
    dev_limit: Positive | None = option("Examples to be scored on at most.")
    epochs: Positive = option("Passes over the examples.", 3, heading="The training")
    batch: Positive = option("Examples of a batch.", 32)
    rate: float = option("Learning rate.", 2e-5)
    layer_decay: float = option(
        "Each layer learns by this factor more slowly than the one above.", 1.0
    )
    warm_up: float = option("Share of the steps in which the rate rises.", 0.1)
    seed: Natural = option("Seed of all random draws.", 0)
    from_scratch: bool = flag("Random weights: only the shape and the tokenizer are MODEL's.")
    loading: ModelOptions = group("The model")


@typed_command("finetune", _FinetuneOptions)
def finetune_command(given: _FinetuneOptions) -> None:
    """Teach MODEL a task with transformers' Trainer; the defaults are those of Kovaleva et al.

    MODEL learns from the train split and is scored on dev (--split), before and after.
    finetuned.json beside the weights holds scores, settings, gradients and changes of every layer.

    \b
    headscope finetune bert-base-uncased --task rte --data glue -o bert-rte
    headscope finetune bert-base-uncased --task rte --data glue -o scratch --from-scratch
    headscope finetune my-model --task mood --train a.csv --dev b.csv -o mood
    """
    train, dev = _both(given)
    from headscope.experiments.finetune.finetune import teach
    from headscope.tasks.task_model import load_for_task

    start = load_for_task(
        given.model,
        train.task,
        new_head=True,
        random_init=given.from_scratch,
        seed=given.seed,
        **asdict(given.loading),
    )
    with ProgressBar(quiet=given.quiet, unit="steps", title="train") as bar:
        record = teach(
            start,
            train,
            dev,
            given.output,
            epochs=given.epochs,
            batch=given.batch,
            rate=given.rate,
            layer_decay=given.layer_decay,
            warm_up=given.warm_up,
            seed=given.seed,
            max_length=given.task.max_length,
            progress=bar,
        )
    was_there = " (was there: nothing was trained)" * (bar.done_before is None)
    last = f"checkpoint: {given.output}{was_there}"
    tell(chain(_lines(record), [last]), record if given.as_json else None)


def _both(given: _FinetuneOptions) -> tuple[TaskData, TaskData]:
    from headscope.tasks.task_request import train_and_dev

    return train_and_dev(
        str(given.task.task),
        task_request(given.task, given.task.limit),
        train=given.train_file,
        dev=given.dev_file,
        dev_limit=given.dev_limit,
        seed=given.seed,
    )


def _lines(record: Mapping[str, Any]) -> Iterator[str]:
    task = record["task"]
    sizes = {name: split["examples"] for name, split in record["data"].items()}
    yield f"{task['name']}: {sizes['train']} examples to learn from, {sizes['dev']} to be scored on"
    yield from (f"  {note}" for note in record["notes"])
    before, after = (record["metrics"][when] for when in ("before", "after"))
    for metric in task["metrics"]:
        line = f"{metric}: {_number(before[metric])} before, {_number(after[metric])} after"
        if metric == task["metrics"][0]:
            line += f" [{_number(after['ci_low'])}, {_number(after['ci_high'])}]"
        yield line
    moved = [row for row in record["layers"] if row["layer"] is not None]
    most = max(moved, key=lambda row: row["relative_change"], default=None)
    steepest = max(moved, key=lambda row: row["gradient_norm"], default=None)
    if most and steepest:
        yield (
            f"layer {most['layer'] + first()} changed most (by {100 * most['relative_change']:.2f} "
            f"% of its weights' norm); layer {steepest['layer'] + first()} had the largest "
            "gradients"
        )


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"
