"""`headscope ablate`: which heads and layers a fine-tuned model needs for its task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from headscope.cli import options
from headscope.cli.options import IntervalOptions, ModelOptions, Natural, Positive
from headscope.cli.run_request import SharedRunOptions
from headscope.cli.task_options import TaskDataOptions, task_examples
from headscope.cli.terminal_output import ProgressBar, heads_given, size_of
from headscope.cli.typed_command import group, run_command
from headscope.core.options import Options, argument, option, several
from headscope.run.processes import noting_failure

if TYPE_CHECKING:
    from headscope.run.store import Run


class _AblateOptions(Options):
    checkpoint: options.ModelName = argument()
    task: TaskDataOptions = group("The task")
    replacement: Literal["uniform", "zero", "mean"] = option(
        "What a head gives instead: even attention, nothing, or its mean output.",
        default="uniform",
        heading="What is switched off",
    )
    together: tuple[str, ...] = several(
        "A group of heads to be off together, say 4-1+2-12 or, from 0, 3.0+1.11; repeatable.",
        metavar="HEADS",
    )
    pairs: Natural = option(
        "Also every two of the N heads that matter most alone.",
        default=0,
        metavar="N",
        shown=False,
    )
    chance: IntervalOptions = group("How sure")
    loading: ModelOptions = group("The model")
    output: Path = options.output_option(
        "Run folder; re-running resumes.", "ablate-{checkpoint}", metavar="RUN"
    )
    batch_tokens: Positive = option(
        "Tokens of a forward pass at most, all variants included.", 2048
    )
    how: SharedRunOptions = group()


@run_command("ablate", _AblateOptions)
def ablate_command(given: _AblateOptions) -> None:
    """Switch off every head and every layer of CHECKPOINT in turn, and see what becomes of a task.

    CHECKPOINT has a head for the task, as `headscope finetune` makes it. Heads count from 1,
    and with a dot from 0: 4-1 and 3.0 are head 1 of layer 4.

    \b
    headscope ablate bert-rte --task rte --data glue -o ablated
    headscope ablate bert-rte --task rte --data glue --replacement zero -o zeroed
    headscope ablate bert-rte --task rte --data glue --together 4-1+2-12 --pairs 6 -o pairs
    """
    groups = tuple(group_named(text) for text in given.together)
    options.check_run_folder(given.output)
    with noting_failure(given.output, given.how.shard):
        seed, limit = given.chance.seed, given.task.limit
        data = task_examples(given.task, given.checkpoint, given.loading, seed, limit)
        from headscope.experiments.ablation.ablate import AblationSettings, ablate
        from headscope.tasks.task_model import load_for_task

        settings = options.settings_from(
            AblationSettings, given, given.task, given.chance, groups=groups
        )
        model = load_for_task(given.checkpoint, data.task, **asdict(given.loading))
    with ProgressBar(quiet=given.how.quiet, unit="examples") as progress:
        run = ablate(
            model,
            data,
            output=given.output,
            settings=settings,
            execution=options.execution_of(progress, given.how),
        )
    lines = chain(model.notes, data.notes, _lines(run))
    options.conclude(run, given.how, lines=lines, summary=_summary)


def group_named(text: str) -> tuple[tuple[int, int], ...]:
    """`4-1+2-12` as ((3, 0), (1, 11)); see `heads_given`."""
    return heads_given("--together", *text.split("+"))


def _lines(run: Run) -> Iterator[str]:
    from headscope.experiments.ablation.ablate import note_of
    from headscope.experiments.ablation.findings import ablation_findings

    ablation, n = run["ablation"], run["ablation"].sizes["example"]
    yield f"{size_of(run.manifest['model'])} on {n} examples of {ablation.attrs['task']}"
    if cut := run.manifest["counts"]["cut"]:
        yield f"{cut} of {n} examples were cut"
    if note := note_of(run):
        yield note
    yield from ablation_findings(run.tree)


def _summary(run: Run) -> dict[str, Any]:
    from headscope.experiments.ablation.terms import verdict_counts

    ablation = run["ablation"]
    kept = ("task", "metric", "replacement", "way", "way_reason")
    verdicts = ("verdict", "loss_verdict", "layer_verdict", "layer_loss_verdict")
    return {
        **{key: ablation.attrs[key] for key in kept},
        "baseline": float(ablation["baseline"]),
        **{name: verdict_counts(ablation, name) for name in verdicts},
    }
