"""`headscope ablate`: which heads and layers a fine-tuned model needs for its task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from headscope.cli.options import (
    BootstrapOptions,
    ModelOptions,
    RunOptions,
    check_run_folder,
    command_line,
    conclude,
    output_option,
)
from headscope.cli.show_run import head_named
from headscope.cli.task_options import TaskDataOptions, asked_task, task_data
from headscope.cli.terminal_output import ProgressBar
from headscope.cli.typed_command import RESUMES, argument, group, option, several, typed_command

if TYPE_CHECKING:
    import xarray as xr

    from headscope.run.finished_run import Run

NAMED = 6  # heads that the summary names of each kind


@dataclass(frozen=True, kw_only=True)
class AblateOptions:
    """What `headscope ablate` is asked."""

    checkpoint: str = argument()
    task: TaskDataOptions = group("The task")
    replacement: Literal["uniform", "zero", "mean"] = option(
        "What a head gives instead: even attention, nothing, or its mean output.",
        default="uniform",
        heading="What is switched off",
    )
    together: tuple[str, ...] = several(
        "A group of heads to be off together, say 4-1+2-12; repeatable.", metavar="HEADS"
    )
    pairs: int = option(
        "Also every two of the N heads that matter most alone.",
        default=0,
        minimum=0,
        metavar="N",
        show_default=False,
    )
    chance: BootstrapOptions = group("How sure")
    loading: ModelOptions = group("The model")
    output: Path = output_option(
        "Run folder; re-running resumes.", metavar="RUN", heading="How to run"
    )
    batch_tokens: int = option(
        "Tokens of a forward pass at most, all variants included.", default=2048, minimum=1
    )
    how: RunOptions = group()


@typed_command("ablate", AblateOptions, stopped=RESUMES)
def command(given: AblateOptions) -> None:
    """Switch off every head and every layer of CHECKPOINT in turn, and see what becomes of a task.

    CHECKPOINT has a head for the task, as `headscope finetune` makes it. Heads count from 1:
    4-1 is head 1 of layer 4.

    \b
    headscope ablate bert-rte --task rte --data glue -o ablated
    headscope ablate bert-rte --task rte --data glue --replacement zero -o zeroed
    headscope ablate bert-rte --task rte --data glue --together 4-1+2-12 --pairs 6 -o pairs
    """

    groups = tuple(group_named(text) for text in given.together)
    check_run_folder(given.output)
    asked = asked_task(given.task, given.checkpoint, revision=given.loading.revision)
    data = task_data(given.task, asked, seed=given.chance.seed, limit=given.task.limit)
    from headscope.experiments.ablation.ablate import AblationSettings, ablate
    from headscope.tasks.task_model import load_for_task

    settings = AblationSettings(
        replacement=given.replacement,
        groups=groups,
        pairs=given.pairs,
        max_length=given.task.max_length,
        batch_tokens=given.batch_tokens,
        **asdict(given.chance),
    )
    model = load_for_task(given.checkpoint, data.task, **asdict(given.loading))
    with ProgressBar(quiet=given.how.quiet, unit="example") as progress:
        run = ablate(
            model,
            data,
            output=given.output,
            settings=settings,
            asked_linears=given.how.linears,
            overwrite=given.how.overwrite,
            command=command_line(),
            progress=progress,
        )
    notes = (*model.notes, *data.notes)
    conclude(run, given.how, lines=lambda run: (*notes, *_lines(run)), summary=_summary)


def group_named(text: str) -> tuple[tuple[int, int], ...]:
    """`4-1+2-12` as ((3, 0), (1, 11)); raises InputError for what is no head."""
    return tuple(head_named(part.strip()) for part in text.split("+"))


# --- what is said ---------------------------------------------------------------------------


def _lines(run: Run) -> Iterator[str]:
    from headscope.experiments.ablation.ablate import note_of
    from headscope.experiments.ablation.task_wording import score_text, verdict_counts

    ablation, model = run["ablation"], run.manifest["model"]
    metric, n = ablation.attrs["metric"], ablation.sizes["example"]
    yield (
        f"{model['name']}: {model['layers']} layers × {model['heads']} heads on {n} examples of "
        f"{ablation.attrs['task']}, {metric} {score_text(ablation)}"
    )
    if cut := run.manifest["counts"]["cut"]:
        yield f"{cut} of {n} examples were cut"
    if note := note_of(run):
        yield note
    for name, by in (("verdict", metric), ("loss_verdict", "the loss")):
        counts = verdict_counts(ablation, name)
        told = ", ".join(f"{count} {word}" for word, count in counts.items())
        yield f"heads by {by}: {told} (q < 0.05 after correction for {ablation[name].size})"
        yield from _named(ablation, name)
    yield _extremes(ablation)
    layers = verdict_counts(ablation, "layer_verdict")
    yield f"layers by {metric}: {', '.join(f'{count} {word}' for word, count in layers.items())}"


def _named(ablation: xr.Dataset, verdict: str) -> Sequence[str]:
    """The heads that are not indifferent, those that change most first."""
    import numpy as np

    from headscope.core.results import head_name
    from headscope.core.wording import fixed
    from headscope.experiments.ablation.task_wording import points_text

    prefix = verdict.removesuffix("verdict")
    changes = ablation[f"{prefix}difference"].values.ravel()  # [unit]
    words = ablation[verdict].values.ravel()  # [unit]
    heads = ablation.sizes["head"]

    def told(change: float) -> str:
        if prefix:
            return f"{'+' if change > 0 else ''}{fixed(change, 3)}"
        return points_text(ablation, change, signed=True)

    lines = []
    for word in ("helpful", "harmful"):
        units = [int(at) for at in np.argsort(-np.abs(changes), kind="stable") if words[at] == word]
        named = ", ".join(
            f"{head_name(unit, heads)} {told(changes[unit])}" for unit in units[:NAMED]
        )
        more = f", and {len(units) - NAMED} more" if len(units) > NAMED else ""
        lines += [f"  {word}: {named}{more}"] if units else []
    return lines


def _extremes(ablation: xr.Dataset) -> str:
    """What the best and the worst single head change, and the mean of all."""
    import numpy as np

    from headscope.core.results import head_name
    from headscope.experiments.ablation.task_wording import points_text

    changes = ablation["difference"].values.ravel()  # [unit]
    if np.isnan(changes).all():
        return "no head leaves a score"
    heads = ablation.sizes["head"]
    best, worst = int(np.nanargmax(changes)), int(np.nanargmin(changes))
    named = [f"{head_name(at, heads)} {points_text(ablation, changes[at], signed=True)}"
             for at in (best, worst)]  # fmt: skip
    mean = points_text(ablation, float(np.nanmean(changes)), signed=True)
    return (
        f"of single heads, {ablation.attrs['metric']} changes most without {' and '.join(named)}; "
        f"mean {mean}"
    )


def _summary(run: Run) -> dict[str, Any]:
    from headscope.experiments.ablation.task_wording import verdict_counts

    ablation = run["ablation"]
    kept = ("task", "metric", "replacement", "way", "way_reason")
    verdicts = ("verdict", "loss_verdict", "layer_verdict", "layer_loss_verdict")
    return {
        **{key: ablation.attrs[key] for key in kept},
        "baseline": float(ablation["baseline"]),
        **{name: verdict_counts(ablation, name) for name in verdicts},
    }
