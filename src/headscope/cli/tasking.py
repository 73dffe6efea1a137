"""Which options say what a model is asked: the task, its data, columns and labels?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headscope.cli.options import FILE
from headscope.errors import InputError

if TYPE_CHECKING:
    from headscope.tasks.task import Task
    from headscope.tasks.task_data import TaskData

QUESTION = ("task", "data", "split", "columns", "labels", "regression")
ASKING = (*QUESTION, "max_length", "limit")


def question_options(function: Callable[..., Any], *, required: bool) -> Callable[..., Any]:
    """Which task, and where its data are."""
    for option in reversed(
        [
            click.option("--task", required=required, metavar="NAME",
                         help="Of GLUE (rte, sst-2, sts-b, mrpc, qqp, qnli, mnli, cola, wnli), or "
                         "a name of yours."),
            click.option("--data", type=FILE, metavar="FOLDER",
                         help="With train.tsv and dev.tsv (or .csv, .jsonl, .parquet), or one "
                         "file; GLUE from the hub by default."),
            click.option("--split", default="dev", show_default=True,
                         help="Which file of the folder is scored."),
            click.option("--columns", metavar="ROLE=NAME,…",
                         help="text_a, text_b, label, id: where columns are not recognised."),
            click.option("--labels", metavar="A,B,…",
                         help="Of a task of yours: its classes in the order of their ids."),
            click.option("--regression", is_flag=True,
                         help="Of a task of yours: its labels are numbers."),
        ]
    ):  # fmt: skip
        function = option(function)
    return function


def task_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The task and its data: what `task_data` reads."""
    for option in reversed(
        [
            click.option("--max-length", type=click.IntRange(4), default=128, show_default=True,
                         help="Tokens of an example; longer ones are cut, and counted."),
            click.option("--limit", type=click.IntRange(1),
                         help="Examples at most, drawn by --seed."),
        ]
    ):  # fmt: skip
        function = option(function)
    return question_options(function, required=True)


def asked_task(given: Mapping[str, Any], checkpoint: str | None = None) -> Task | str:
    """The task that the options name; a name alone where its labels will tell.

    checkpoint  its configuration knows the classes of a task of the user's
    raises      InputError for --labels or --regression with a task of GLUE, or both
    """
    from headscope.tasks.task import find_task, is_known, own_task

    name, labels, regression = given["task"], given["labels"], given["regression"]
    if is_known(name):
        if labels or regression:
            raise InputError(
                f"{name} is a task of GLUE, whose labels are known; leave out --labels and "
                "--regression, or give the task a name of your own"
            )
        return find_task(name)
    if labels and regression:
        raise InputError("found --labels and --regression; a task has classes or numbers")
    if labels or regression:
        return own_task(name, None if regression else [x.strip() for x in labels.split(",")])
    if checkpoint is not None:
        from headscope.tasks.task_model import task_of

        return task_of(checkpoint, name, revision=given.get("revision"))
    return str(name)


def task_data(
    given: Mapping[str, Any],
    task: Task | str,
    *,
    split: str | None = None,
    data: Path | None = None,
    limit: int | None = None,
) -> TaskData:
    """The examples that the options name; `split`, `data` and `limit` instead of theirs."""
    from headscope.tasks.task_data import read_task

    return read_task(
        task, data or given["data"], split=split or given["split"],
        columns=parse_columns(given["columns"]),
        limit=given["limit"] if limit is None else limit, seed=given["seed"],
    )  # fmt: skip


def parse_columns(text: str | None) -> dict[str, str] | None:
    """`text_a=premise,label=y` as {"text_a": "premise", "label": "y"}."""
    if not text:
        return None
    pairs = [part.partition("=") for part in text.split(",")]
    if any(not (role.strip() and equals) for role, equals, _ in pairs):
        raise InputError(f"--columns {text!r}; wanted ROLE=NAME,ROLE=NAME, say text_a=premise")
    return {role.strip(): name.strip() for role, _, name in pairs}
