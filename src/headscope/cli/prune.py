"""`headscope prune`: how many heads a task can do without, and a checkpoint without them."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from headscope.cli.long_command import long_command
from headscope.cli.options import FILE, model_options
from headscope.cli.tasking import ASKING, asked_task, task_data, task_options
from headscope.cli.terminal import say
from headscope.errors import CorpusError, InputError, RunStopped

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from headscope.run.finished_run import Run
    from headscope.tasks.task_data import TaskData

SECTIONS = {
    "The task": ASKING,
    "Which heads go": ("orders", "importance", "method", "allowance", "by", "remove", "step",
                       "choose", "choose_split", "choose_file"),
    "How sure": ("draws", "replicates", "seed"),
    "The model": ("device", "dtype", "revision", "trust_remote_code"),
    "How to run": ("output", "run", "batch_tokens", "linears", "overwrite", "quiet", "as_json"),
}  # fmt: skip
_SETTINGS = ("allowance", "step", "remove", "draws", "max_length", "batch_tokens", "replicates",
             "seed")  # fmt: skip


@click.command("prune", cls=long_command(SECTIONS))
@click.argument("checkpoint")
@task_options
@click.option("-o", "--output", type=FILE, required=True, metavar="CKPT2",
              help="Folder of the checkpoint without the heads.")  # fmt: skip
@click.option("--orders", default="greedy,alone,random", show_default=True,
              help="Of removal, comma-separated.")  # fmt: skip
@click.option("--importance", type=FILE, metavar="RUN",
              help="A run of `headscope importance`: its order as well.")  # fmt: skip
@click.option("--method", help="Which importance of that run; the first by default.")
@click.option("--allowance", type=float, default=0.5, show_default=True,
              help="Points of the score that may be lost.")  # fmt: skip
@click.option("--by", help="The order whose heads go; by default that in which most can.")
@click.option("--remove", type=click.IntRange(0), metavar="N",
              help="Remove N heads, whatever it costs.")  # fmt: skip
@click.option("--step", type=click.IntRange(1), help="Heads from one point of a curve to the next.")
@click.option("--choose", type=click.IntRange(2), default=256, show_default=True, metavar="N",
              help="Examples by which heads are chosen.")  # fmt: skip
@click.option("--choose-split", default="train", show_default=True, help="The file they are in.")
@click.option("--choose-file", type=FILE, help="A file of them, instead of --data.")
@click.option("--draws", type=click.IntRange(1), default=3, show_default=True,
              help="Random orders.")  # fmt: skip
@click.option("--replicates", type=click.IntRange(0), default=1000, show_default=True,
              help="Of the bootstrap.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@model_options
@click.option("--run", type=FILE, metavar="RUN",
              help="Keep the curves as a run folder, with report; re-running resumes.")  # fmt: skip
@click.option("--batch-tokens", type=click.IntRange(1), default=2048, show_default=True)
@click.option("--linears", type=click.Choice(["auto", "onednn", "stock"]), default="auto",
              show_default=True, help="Matrix products on a CPU; auto times both.")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace a run of another spec in --run.")
@click.option("--quiet", is_flag=True, help="No word on the way.")
@click.option("--json", "as_json", is_flag=True, help="A machine-readable summary on stdout.")
def command(checkpoint: str, **given: Any) -> None:
    """Remove heads of CHECKPOINT one after another, see what a task loses, and write what is left.

    Heads are chosen by examples of the train split and scored on dev. The new checkpoint works
    in stock transformers: what the heads add is 0, all else is as it was.

    \b
    headscope prune bert-rte --task rte --data glue -o bert-rte-pruned
    headscope prune bert-rte --task rte --data glue --remove 40 --by greedy -o bert-rte-40
    """  # fmt: skip
    try:
        _run(checkpoint, given)
    except KeyboardInterrupt as error:
        raise RunStopped("stopped; with --run the same command goes on") from error


def _run(checkpoint: str, given: dict[str, Any]) -> None:
    from headscope.run.store import RunFolder

    orders = tuple(filter(None, (name.strip() for name in given["orders"].split(","))))
    if given["importance"] is not None and "given" not in orders:
        orders += ("given",)
    importance, name = _importance(given)
    if given["run"] is not None:
        RunFolder(given["run"]).check()
    task = asked_task(given, checkpoint)
    scoring = task_data(given, task)
    choosing, notes = _choosing(given, scoring)
    from headscope.experiments.ablation.prune import Pruning, PruningSettings, prune
    from headscope.experiments.ablation.pruned_checkpoint import (
        chosen_heads,
        note_of,
        refuse_strangers,
        write_pruned,
    )
    from headscope.run.engine.memory import keep_few_products, keep_freed_memory
    from headscope.tasks.task_model import load_for_task

    refuse_strangers(given["output"], checkpoint=checkpoint)
    keep_freed_memory()
    keep_few_products()
    settings = PruningSettings(orders=orders, **{k: given[k] for k in _SETTINGS})
    loading = ("device", "dtype", "revision", "trust_remote_code")
    model = load_for_task(checkpoint, scoring.task, **{k: given[k] for k in loading})
    asked = Pruning(model, choosing, scoring, settings, importance, name, given["linears"])
    if given["by"] is not None and given["by"] not in asked.names:
        raise InputError(f"--by {given['by']!r}; the orders are {', '.join(asked.names)}")
    hidden = given["quiet"] or not sys.stderr.isatty()
    run = prune(
        asked, output=given["run"], overwrite=given["overwrite"],
        command=["headscope", *sys.argv[1:]],
        told=lambda text: None if hidden else click.echo(text, err=True),
    )  # fmt: skip
    order, heads = chosen_heads(run["pruning"], order=given["by"], remove=given["remove"])
    write_pruned(model.model, run, order, heads, given["output"])
    if run.path is not None and not run.has_report:
        run.report()
    if given["as_json"]:
        click.echo(json.dumps({**note_of(run, order, heads), "output": str(given["output"])}))
        return
    for line in (*model.notes, *scoring.notes, *notes, *_lines(run, order, len(heads))):
        say(line)
    say(f"checkpoint: {given['output']} (heads and scores: pruned.json, figure: pruned.svg)")


def _choosing(given: Mapping[str, Any], scoring: TaskData) -> tuple[TaskData, list[str]]:
    """Examples by which heads are chosen; those that are scored where there are no others."""
    try:
        found = task_data(
            given, scoring.task, split=given["choose_split"], data=given["choose_file"],
            limit=given["choose"],
        )  # fmt: skip
    except (InputError, CorpusError):
        asked = click.get_current_context().get_parameter_source("choose_split")
        if given["choose_file"] is not None or asked != click.core.ParameterSource.DEFAULT:
            raise
        return scoring, ["no train split: heads were chosen by the examples that are scored"]
    if found.rows_sha256 == scoring.rows_sha256:
        return scoring, ["heads were chosen by the examples that are scored"]
    return found, list(found.notes)


def _importance(
    given: Mapping[str, Any],
) -> tuple[npt.NDArray[np.float64] | None, str]:
    """[layer, head] of a run, and what it is called."""
    if given["importance"] is None:
        return None, "given"
    from headscope.run.finished_run import open_run

    run = open_run(given["importance"])
    if "importance" not in run:
        raise InputError(
            f"{given['importance']} holds {', '.join(run)}; wanted a run of `headscope importance`"
        )
    found = run["importance"]["head_importance"]
    methods = [str(name) for name in found["method"].values]
    method = given["method"] or methods[0]
    if method not in methods:
        raise InputError(f"no importance {method!r} in that run; there are {', '.join(methods)}")
    return found.transpose("layer", "head", "method").values[..., methods.index(method)], method


def _lines(run: Run, order: str, gone: int) -> list[str]:
    from headscope.experiments.ablation.task_wording import points_text

    found, model = run["pruning"], run.manifest["model"]
    allowance = points_text(found, float(found.attrs["allowance"]))
    lines = [
        f"{model['name']}: {model['layers']} layers × {model['heads']} heads on "
        f"{found.attrs['examples']} examples of {found.attrs['task']}"
    ]
    for at, name in enumerate(str(x) for x in found["order"].values):
        count, half = int(found["can_go"].values[at]), int(found["can_go_half"].values[at])
        cost = points_text(found, float(found["held_out"].values[at]), signed=True)
        lines.append(
            f"  {name}: {count} of {found.attrs['heads']} heads can go at ≤ {allowance} "
            f"(by half of the examples {half}, which costs the other half {cost})"
        )
    lines.append(f"removed: {gone} heads, in the order {order}")
    if not gone:
        lines.append("the checkpoint is as it was; --allowance allows more, --remove N insists")
    return lines
