"""Options that say what a model is asked: a task, its data, columns and labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from headscope.cli.options import CorpusOptions, ModelOptions, Positive
from headscope.core.options import Options, flag, option, required
from headscope.errors import InputError

if TYPE_CHECKING:
    from headscope.tasks.task_data import TaskData
    from headscope.tasks.task_request import TaskRequest

TASK = "A task of GLUE (rte, sst-2, sts-b, mrpc, qqp, qnli, mnli, cola, wnli), or your own."


class TaskOptions(Options):
    """Which task, and where its data are; no task is needed."""

    task: str | None = option(TASK, metavar="NAME")
    data: Path | None = option(
        "Folder with train.tsv and dev.tsv (or .csv, .jsonl, .parquet), or one file; by default "
        "GLUE from the hub.",
        metavar="FOLDER",
    )
    split: str = option("Which file of the folder is scored.", "dev")
    columns: str | None = option(
        "Columns of text_a, text_b, label and id, where they are not recognised.",
        metavar="ROLE=NAME,…",
    )
    labels: str | None = option(
        "Classes of your own task, in the order of their ids.", metavar="A,B,…"
    )
    regression: bool = flag("The labels of your own task are numbers.")


class TaskDataOptions(TaskOptions):
    """A task, which is required, and how much of its data is read."""

    task: str = required(TASK, metavar="NAME")
    max_length: Positive = option(
        "Tokens of an example; longer ones are cut, and counted.",
        default=128,
        type=click.IntRange(4),
    )
    limit: Positive | None = option("Examples at most, drawn by --seed.")


def task_request(given: TaskOptions, limit: int | None = None) -> TaskRequest:
    """Where the options say that the examples of a task are."""
    from headscope.tasks.task_request import TaskRequest

    return TaskRequest(
        data=given.data,
        split=given.split,
        columns=parse_columns(given.columns),
        labels=given.labels.split(",") if given.labels else None,
        regression=given.regression,
        limit=limit,
    )


def task_examples(
    given: TaskOptions, checkpoint: str, loading: ModelOptions, seed: int, limit: int | None
) -> TaskData:
    """At most `limit` examples of the task that a checkpoint is asked."""
    from headscope.tasks.task_request import examples_of

    return examples_of(
        str(given.task),
        task_request(given, limit),
        seed=seed,
        checkpoint=checkpoint,
        revision=loading.revision,
    )


def refuse_text(task: object, corpus: CorpusOptions, why: str) -> None:
    """Raise InputError where a corpus is named beside the task; `why` only one will do."""
    if corpus.named or corpus.annotate:
        raise InputError(
            f"found --task {task} and {', '.join(corpus.named) or '--annotate'}; wanted only "
            f"one of them: {why}"
        )


def parse_columns(text: str | None) -> dict[str, str] | None:
    """`text_a=premise,label=y` as {"text_a": "premise", "label": "y"}."""
    if not text:
        return None
    pairs = [part.partition("=") for part in text.split(",")]
    if any(not (role.strip() and equals) for role, equals, _ in pairs):
        raise InputError(f"--columns {text!r}; wanted ROLE=NAME,ROLE=NAME, say text_a=premise")
    return {role.strip(): name.strip() for role, _, name in pairs}
