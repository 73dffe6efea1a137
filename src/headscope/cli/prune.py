"""`headscope prune`: how many heads a task can do without, and a checkpoint without them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headscope.cli.options import (
    BootstrapOptions,
    LinearsOption,
    ModelOptions,
    check_run_folder,
    comma_separated,
    command_line,
    output_option,
)
from headscope.cli.task_options import TaskDataOptions, asked_task, task_data
from headscope.cli.terminal_output import say
from headscope.cli.typed_command import argument, flag, group, option, typed_command
from headscope.errors import CorpusError, InputError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from headscope.experiments.ablation.prune import PruningSettings
    from headscope.run.finished_run import Run
    from headscope.tasks.task_data import TaskData


@dataclass(frozen=True, kw_only=True)
class PruneOptions:
    """What `headscope prune` is asked."""

    checkpoint: str = argument()
    task: TaskDataOptions = group("The task")
    orders: str = option(
        "Orders of removal, comma-separated.",
        default="greedy,alone,random",
        heading="Which heads go",
    )
    importance: Path | None = option(
        "A run of `headscope importance`, for one more order.", metavar="RUN"
    )
    method: str | None = option("Which importance of that run; the first by default.")
    allowance: float = option("Points of the score that may be lost.", default=0.5)
    by: str | None = option("The order by which heads go; by default the one by which most can.")
    remove: int | None = option("Remove N heads, whatever it costs.", minimum=0, metavar="N")
    step: int | None = option("Heads from one point of a curve to the next.", minimum=1)
    choose: int = option(
        "Number of examples by which heads are chosen.", default=256, minimum=2, metavar="N"
    )
    choose_split: str = option("The split that these examples are from.", default="train")
    choose_file: Path | None = option("A file with these examples, instead of --data.")
    draws: int = option("Number of random orders.", default=3, minimum=1, heading="How sure")
    chance: BootstrapOptions = group()
    loading: ModelOptions = group("The model")
    output: Path = output_option(
        "Folder of the checkpoint without the heads.", metavar="CKPT2", heading="How to run"
    )
    run: Path | None = option(
        "Keep the curves as a run folder, with report; re-running resumes.", metavar="RUN"
    )
    batch_tokens: int = option("Tokens of a forward pass at most.", default=2048, minimum=1)
    computing: LinearsOption = group()
    overwrite: bool = flag("Replace a run with other settings in --run.")
    quiet: bool = flag("Say nothing until it is done.")
    as_json: bool = flag("A machine-readable summary on stdout.", names="--json")


@typed_command("prune", PruneOptions, stopped="with --run the same command goes on")
def command(given: PruneOptions) -> None:
    """Remove heads of CHECKPOINT one after another, see what a task loses, and write what is left.

    Heads are chosen by examples of the train split and scored on dev. The new checkpoint works
    in stock transformers: what the heads add is 0, all else is as it was.

    \b
    headscope prune bert-rte --task rte --data glue -o bert-rte-pruned
    headscope prune bert-rte --task rte --data glue --remove 40 --by greedy -o bert-rte-40
    """

    orders = comma_separated(given.orders)
    if given.importance is not None and "given" not in orders:
        orders += ("given",)
    importance, name = _importance(given)
    if given.run is not None:
        check_run_folder(given.run)
    task = asked_task(given.task, given.checkpoint, revision=given.loading.revision)
    scoring = task_data(given.task, task, seed=given.chance.seed, limit=given.task.limit)
    choosing, notes = _choosing(given, scoring)
    from headscope.experiments.ablation.prune import Pruning, prune
    from headscope.experiments.ablation.pruned_checkpoint import (
        chosen_heads,
        note_of,
        refuse_strangers,
        write_pruned,
    )
    from headscope.tasks.task_model import load_for_task

    refuse_strangers(given.output, checkpoint=given.checkpoint)
    settings = _settings(given, orders)
    model = load_for_task(given.checkpoint, scoring.task, **asdict(given.loading))
    linears = given.computing.linears
    asked = Pruning(model, choosing, scoring, settings, importance, name, linears)
    if given.by is not None and given.by not in asked.names:
        raise InputError(f"--by {given.by!r}; the orders are {', '.join(asked.names)}")
    hidden = given.quiet or not sys.stderr.isatty()
    run = prune(
        asked,
        output=given.run,
        overwrite=given.overwrite,
        command=command_line(),
        told=lambda text: None if hidden else click.echo(text, err=True),
    )
    order, heads = chosen_heads(run["pruning"], order=given.by, remove=given.remove)
    write_pruned(model.model, run, order, heads, given.output)
    if run.path is not None and not run.has_report:
        run.report()
    if given.as_json:
        click.echo(json.dumps({**note_of(run, order, heads), "output": str(given.output)}))
        return
    for line in (*model.notes, *scoring.notes, *notes, *_lines(run, order, len(heads))):
        say(line)
    say(f"checkpoint: {given.output} (heads and scores: pruned.json, figure: pruned.svg)")


def _settings(given: PruneOptions, orders: tuple[str, ...]) -> PruningSettings:
    from headscope.experiments.ablation.prune import PruningSettings

    return PruningSettings(
        orders=orders,
        allowance=given.allowance,
        step=given.step,
        remove=given.remove,
        draws=given.draws,
        max_length=given.task.max_length,
        batch_tokens=given.batch_tokens,
        **asdict(given.chance),
    )


def _choosing(given: PruneOptions, scoring: TaskData) -> tuple[TaskData, list[str]]:
    """Examples by which heads are chosen; those that are scored where there are no others."""
    try:
        choosing = task_data(
            given.task,
            scoring.task,
            seed=given.chance.seed,
            limit=given.choose,
            split=given.choose_split,
            data=given.choose_file,
        )
    except (InputError, CorpusError):
        asked = click.get_current_context().get_parameter_source("choose_split")
        if given.choose_file is not None or asked != click.core.ParameterSource.DEFAULT:
            raise
        return scoring, ["no train split: heads were chosen by the examples that are scored"]
    if choosing.rows_sha256 == scoring.rows_sha256:
        return scoring, ["heads were chosen by the examples that are scored"]
    return choosing, list(choosing.notes)


def _importance(given: PruneOptions) -> tuple[npt.NDArray[np.float64] | None, str]:
    """[layer, head] of a run, and what it is called."""
    if given.importance is None:
        return None, "given"
    from headscope.run.finished_run import open_run

    run = open_run(given.importance)
    if "importance" not in run:
        raise InputError(
            f"{given.importance} holds {', '.join(run)}; wanted a run of `headscope importance`"
        )
    importance = run["importance"]["head_importance"]
    methods = [str(name) for name in importance["method"].values]
    method = given.method or methods[0]
    if method not in methods:
        raise InputError(f"no importance {method!r} in that run; there are {', '.join(methods)}")
    values = importance.transpose("layer", "head", "method").values
    return values[..., methods.index(method)], method


def _lines(run: Run, order: str, gone: int) -> Iterator[str]:
    from headscope.experiments.ablation.task_wording import points_text

    pruning, model = run["pruning"], run.manifest["model"]
    allowance = points_text(pruning, float(pruning.attrs["allowance"]))
    yield (
        f"{model['name']}: {model['layers']} layers × {model['heads']} heads on "
        f"{pruning.attrs['examples']} examples of {pruning.attrs['task']}"
    )
    for at, name in enumerate(map(str, pruning["order"].values)):
        count, half = int(pruning["can_go"].values[at]), int(pruning["can_go_half"].values[at])
        cost = points_text(pruning, float(pruning["held_out"].values[at]), signed=True)
        yield (
            f"  {name}: {count} of {pruning.attrs['heads']} heads can go at ≤ {allowance} "
            f"(by half of the examples {half}, which costs the other half {cost})"
        )
    yield f"removed: {gone} heads, in the order {order}"
    if not gone:
        yield "the checkpoint is as it was; --allowance allows more, --remove N insists"
