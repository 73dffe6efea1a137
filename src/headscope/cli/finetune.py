"""`headscope finetune`: teach a model a task and record how its layers change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from headscope.cli import options as shared
from headscope.cli.terminal_output import ProgressBar, tell
from headscope.cli.typed_command import typed_command
from headscope.core.head_names import HeadNames
from headscope.core.options import flag
from headscope.experiments.finetune.finetune import FinetuneRequest, finetune


class _FinetuneOptions(FinetuneRequest, heading="The result"):
    quiet: bool = flag("No progress bar.")
    as_json: bool = shared.json_flag("The record on stdout.")


@typed_command("finetune", _FinetuneOptions)
def finetune_command(options: _FinetuneOptions) -> None:
    """Teach MODEL a task with transformers' Trainer; the defaults are those of Kovaleva et al.

    MODEL learns from the train split and is scored on dev (--split), before and after.
    finetuned.json beside the weights holds scores, settings, gradients and changes of every layer.

    \b
    headscope finetune bert-base-uncased --task rte --data glue -o bert-rte
    headscope finetune bert-base-uncased --task rte --data glue -o scratch --from-scratch
    headscope finetune my-model --task mood --train a.csv --dev b.csv -o mood
    """
    with ProgressBar(quiet=options.quiet, unit="steps", title="train") as bar:
        record = finetune(**vars(FinetuneRequest.of(options, progress=bar)))
    was_there = " (was there: nothing was trained)" * (bar.done_before is None)
    last = f"checkpoint: {options.output}{was_there}"
    tell(chain(_lines(record), [last]), record if options.as_json else None)


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
        first = HeadNames(()).first
        yield (
            f"layer {most['layer'] + first} changed most (by {100 * most['relative_change']:.2f} "
            f"% of its weights' norm); layer {steepest['layer'] + first} had the largest "
            "gradients"
        )


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"
