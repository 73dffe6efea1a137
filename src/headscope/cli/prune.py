"""`headscope prune`: write a checkpoint without the heads that a task can do without."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from headscope.cli import options
from headscope.cli.options import IntervalOptions, LinearsOption, ModelOptions, Natural, Positive
from headscope.cli.task_options import TaskDataOptions, task_examples, task_request
from headscope.cli.terminal_output import ProgressBar, complain, size_of, tell
from headscope.cli.typed_command import Options, argument, flag, group, option, typed_command

if TYPE_CHECKING:
    from headscope.run.store import Run


class _PruneOptions(Options):
    checkpoint: options.ModelName = argument()
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
    allowance: float = option("Points of the score that may be lost.", 0.5)
    by: str | None = option("The order by which heads go; by default the one by which most can.")
    remove: Natural | None = option("Remove N heads, whatever it costs.", metavar="N")
    step: Positive | None = option("Heads from one point of a curve to the next.")
    choose: Annotated[int, click.IntRange(2)] | None = option(
        "Number of examples by which heads are chosen; by default 256, at most --limit.",
        metavar="N",
    )
    choose_split: str | None = option("The split that these examples are from; by default train.")
    choose_file: Path | None = option("A file with these examples, instead of --data.")
    draws: Positive = option("Number of random orders.", 3, heading="How sure")
    chance: IntervalOptions = group()
    loading: ModelOptions = group("The model")
    output: Path = options.output_option(
        "Folder of the checkpoint without the heads.", "{checkpoint}-pruned", metavar="CKPT2"
    )
    run: Path | None = option(
        "Keep the curves as a run folder, with report; re-running resumes.", metavar="RUN"
    )
    batch_tokens: Positive = option("Tokens of a forward pass at most.", 2048)
    computing: LinearsOption = group()
    overwrite: bool = flag("Replace a run with other settings in --run.")
    quiet: bool = flag("Say nothing until it is done.")
    as_json: bool = options.json_flag()


@typed_command("prune", _PruneOptions, stopped="with --run the same command goes on")
def prune_command(given: _PruneOptions) -> None:
    """Remove heads of CHECKPOINT one after another, see what a task loses, and write what is left.

    Heads are chosen by examples of the train split and scored on dev. The new checkpoint works
    in stock transformers: what the heads add is 0, all else is as it was.

    \b
    headscope prune bert-rte --task rte --data glue -o bert-rte-pruned
    headscope prune bert-rte --task rte --data glue --remove 40 --by greedy -o bert-rte-40
    """
    orders = options.comma_separated(given.orders)
    if given.importance is not None and "given" not in orders:
        orders += ("given",)
    from headscope.experiments.ablation.choosing import checked_layers, chosen_by, importance_of

    importance, name = importance_of(given.importance, given.method)
    if given.run is not None:
        options.check_run_folder(given.run)
    seed, limit = given.chance.seed, given.task.limit
    scoring = task_examples(given.task, given.checkpoint, given.loading, seed, limit)
    choosing, notes = chosen_by(
        scoring,
        task_request(given.task, limit),
        choose=given.choose,
        split=given.choose_split,
        file=given.choose_file,
        seed=seed,
        here=False,
    )
    from headscope.experiments.ablation import prune as pruning
    from headscope.experiments.ablation import pruned_checkpoint as checkpoint
    from headscope.tasks.task_model import load_for_task

    options.hold(given.output)
    checkpoint.refuse_strangers(given.output, checkpoint=given.checkpoint, run=given.run)
    settings = options.settings_from(
        pruning.PruningSettings, given, given.task, given.chance, orders=orders
    )
    model = load_for_task(given.checkpoint, scoring.task, **asdict(given.loading))
    values = checked_layers(importance, model.model.shape)
    asked = pruning.Pruning(model, choosing, scoring, settings, values, name)
    asked.check_order(given.by)
    if not given.quiet:
        parts = ", ".join(f"{count:,} to {part}" for part, count in asked.passes.items())
        complain(f"{sum(asked.passes.values()):,} forward passes of one example: {parts}")
    with ProgressBar(quiet=given.quiet, unit="passes") as progress:
        how = options.execution_of(progress, given, given.computing)
        run = pruning.prune_curves(asked, output=given.run, told=progress.begin, execution=how)
    order, heads = checkpoint.chosen_heads(run["pruning"], order=given.by, remove=given.remove)
    checkpoint.write_pruned(model.model, run, order, heads, given.output)
    if run.path is not None:
        options.make_report(run)
    summary = {**checkpoint.note_of(run, order, heads), "output": str(given.output)}
    last = f"checkpoint: {given.output} (heads and scores: pruned.json, figure: pruned.svg)"
    lines = chain(model.notes, scoring.notes, notes, _lines(run, order, len(heads)), [last])
    tell(lines, summary if given.as_json else None)


def _lines(run: Run, order: str, gone: int) -> Iterator[str]:
    from headscope.experiments.ablation.terms import points_text

    pruning, size = run["pruning"], size_of(run.manifest["model"])
    allowance = points_text(pruning, float(pruning.attrs["allowance"]))
    yield f"{size} on {pruning.attrs['examples']} examples of {pruning.attrs['task']}"
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
