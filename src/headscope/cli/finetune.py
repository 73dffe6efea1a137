"""`headscope finetune`: teach a model a task, and keep what the comparison needs to know."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headscope.cli.long_command import long_command
from headscope.cli.options import FILE, model_options
from headscope.cli.tasking import ASKING, asked_task, task_data, task_options
from headscope.cli.terminal import say
from headscope.errors import InputError

if TYPE_CHECKING:
    from headscope.tasks.task_data import TaskData

SECTIONS = {
    "The result": ("output", "quiet", "as_json"),
    "The task": (*ASKING, "train_file", "dev_file", "dev_limit"),
    "The training": ("epochs", "batch", "rate", "layer_decay", "warm_up", "seed", "from_scratch"),
    "The model": ("device", "dtype", "revision", "trust_remote_code"),
}


@click.command("finetune", cls=long_command(SECTIONS))
@click.argument("model")
@task_options
@click.option("-o", "--output", type=FILE, required=True, metavar="CKPT",
              help="Folder of the checkpoint; a killed training goes on.")  # fmt: skip
@click.option("--train", "train_file", type=FILE, help="A file to learn from, instead of --data.")
@click.option("--dev", "dev_file", type=FILE, help="A file to be scored on, instead of --data.")
@click.option("--dev-limit", type=click.IntRange(1), help="Examples to be scored on at most.")
@click.option("--epochs", type=click.IntRange(1), default=3, show_default=True)
@click.option("--batch", type=click.IntRange(1), default=32, show_default=True, help="Examples.")
@click.option("--rate", type=float, default=2e-5, show_default=True, help="Learning rate.")
@click.option("--layer-decay", type=float, default=1.0, show_default=True,
              help="Each layer learns by this factor more slowly than the one above.")  # fmt: skip
@click.option("--warm-up", type=float, default=0.1, show_default=True,
              help="Share of the steps in which the rate rises.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--from-scratch", is_flag=True,
              help="Random weights: only the shape and the tokenizer are MODEL's.")  # fmt: skip
@click.option("--quiet", is_flag=True, help="No progress bar.")
@model_options
@click.option("--json", "as_json", is_flag=True, help="The record on stdout.")
def command(model: str, output: Path, **given: Any) -> None:
    """Teach MODEL a task with transformers' Trainer; the defaults are those of the paper.

    Trained is on the train split, scored on dev (--split), before and after. finetuned.json beside
    the weights holds scores, settings, gradients and changes of every layer.

    \b
    headscope finetune bert-base-uncased --task rte --data glue -o bert-rte
    headscope finetune bert-base-uncased --task rte --data glue -o scratch --from-scratch
    headscope finetune my-model --task mood --train a.csv --dev b.csv -o mood
    """  # fmt: skip
    from headscope.experiments.finetune.finetune import finetune
    from headscope.tasks.task_model import load_for_task

    train, dev = _both(given)
    start = load_for_task(
        model, train.task, new_head=True, random_init=given["from_scratch"], seed=given["seed"],
        **{name: given[name] for name in ("device", "dtype", "revision", "trust_remote_code")},
    )  # fmt: skip
    options = {name: given[name] for name in ("epochs", "batch", "rate", "layer_decay", "warm_up")}
    with _Bar(given["quiet"]) as bar:
        record = finetune(
            start, train, dev, output, **options, seed=given["seed"],
            max_length=given["max_length"], progress=bar.show,
        )  # fmt: skip
    if given["as_json"]:
        click.echo(json.dumps(record, ensure_ascii=True))
        return
    for line in _lines(record):
        say(line)
    say(f"checkpoint: {output}" + ("" if bar.moved else " (was there: nothing was trained)"))


def _both(given: Mapping[str, Any]) -> tuple[TaskData, TaskData]:
    """Training and dev examples; classes of a task of the user's are read off the first."""
    train = task_data(given, asked_task(given), split="train", data=given["train_file"])
    of_dev = {**given, "limit": given["dev_limit"]}
    dev = task_data(of_dev, train.task, data=given["dev_file"])
    if train.source == dev.source:
        raise InputError(
            f"{train.source} would be learned from and scored on; wanted two: --data FOLDER with "
            "train.tsv and dev.tsv, or --train FILE --dev FILE"
        )
    return train, dev


class _Bar:
    """A progress bar on stderr; none if it is not a terminal."""

    def __init__(self, quiet: bool) -> None:
        self.bar: Any = None
        self.moved = False
        self.hidden = quiet or not sys.stderr.isatty()

    def show(self, done: int, total: int) -> None:
        """After each step."""
        self.moved = True
        if self.hidden:
            return
        if self.bar is None:
            from tqdm import tqdm

            self.bar = tqdm(total=total, unit="step", initial=done, file=sys.stderr)
        self.bar.update(done - self.bar.n)

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()


def _lines(record: Mapping[str, Any]) -> list[str]:
    task = record["task"]
    sizes = {name: split["examples"] for name, split in record["data"].items()}
    lines = [
        f"{task['name']}: {sizes['train']} examples to learn from, {sizes['dev']} to be scored on"
    ]
    lines += [f"  {note}" for note in record["notes"]]
    before, after = (record["metrics"][when] for when in ("before", "after"))
    for metric in task["metrics"]:
        line = f"{metric}: {_number(before[metric])} before, {_number(after[metric])} after"
        if metric == task["metrics"][0]:
            line += f" [{_number(after['ci_low'])}, {_number(after['ci_high'])}]"
        lines.append(line)
    moved = [row for row in record["layers"] if row["layer"] is not None]
    most = max(moved, key=lambda row: row["relative_change"], default=None)
    steepest = max(moved, key=lambda row: row["gradient_norm"], default=None)
    if most and steepest:
        lines.append(
            f"layer {most['layer'] + 1} changed most (by {100 * most['relative_change']:.2f} % of "
            f"its weights' norm); layer {steepest['layer'] + 1} had the largest gradients"
        )
    return lines


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"
