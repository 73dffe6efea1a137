"""`headscope ablate`: which heads and layers a fine-tuned model needs for its task."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headscope.cli.head import head_named
from headscope.cli.long_command import long_command
from headscope.cli.options import FILE, model_options
from headscope.cli.running import Progress
from headscope.cli.tasking import ASKING, asked_task, task_data, task_options
from headscope.cli.terminal import say
from headscope.errors import RunStopped

if TYPE_CHECKING:
    import xarray as xr

    from headscope.run.finished_run import Run

SECTIONS = {
    "The task": ASKING,
    "What is switched off": ("replacement", "together", "pairs"),
    "How sure": ("replicates", "seed"),
    "The model": ("device", "dtype", "revision", "trust_remote_code"),
    "How to run": ("output", "batch_tokens", "linears", "overwrite", "no_report", "quiet",
                   "as_json"),
}  # fmt: skip
NAMED = 6  # heads that the summary names of each kind


@click.command("ablate", cls=long_command(SECTIONS))
@click.argument("checkpoint")
@task_options
@click.option("-o", "--output", type=FILE, required=True, metavar="RUN",
              help="Run folder; re-running resumes.")  # fmt: skip
@click.option("--replacement", type=click.Choice(["uniform", "zero", "mean"]), default="uniform",
              show_default=True,
              help="What a head gives instead: even attention, nothing, or its mean.")  # fmt: skip
@click.option("--together", multiple=True, metavar="HEADS",
              help="A group of heads to be off together, say 4-1+2-12; repeatable.")  # fmt: skip
@click.option("--pairs", type=click.IntRange(0), default=0, metavar="N",
              help="Also every two of the N heads that matter most alone.")  # fmt: skip
@click.option("--replicates", type=click.IntRange(0), default=1000, show_default=True,
              help="Of the bootstrap.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@model_options
@click.option("--batch-tokens", type=click.IntRange(1), default=2048, show_default=True,
              help="Of a forward pass, all variants in it included.")  # fmt: skip
@click.option("--linears", type=click.Choice(["auto", "onednn", "stock"]), default="auto",
              show_default=True, help="Matrix products on a CPU; auto times both.")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace a run of another spec in the folder.")
@click.option("--no-report", is_flag=True, help="Results only; `headscope report` makes the rest.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
@click.option("--json", "as_json", is_flag=True, help="A machine-readable summary on stdout.")
def command(checkpoint: str, **given: Any) -> None:
    """Switch off every head and every layer of CHECKPOINT in turn, and see what becomes of a task.

    CHECKPOINT has a head for the task, as `headscope finetune` makes it. Heads count from 1:
    4-1 is head 1 of layer 4.

    \b
    headscope ablate bert-rte --task rte --data glue -o ablated
    headscope ablate bert-rte --task rte --data glue --replacement zero -o zeroed
    headscope ablate bert-rte --task rte --data glue --together 4-1+2-12 --pairs 6 -o pairs
    """  # fmt: skip
    try:
        _run(checkpoint, given)
    except KeyboardInterrupt as error:
        raise RunStopped("stopped; the same command goes on from what is finished") from error


def _run(checkpoint: str, given: dict[str, Any]) -> None:
    from headscope.run.store import RunFolder

    groups = tuple(group_named(text) for text in given["together"])
    RunFolder(given["output"]).check()
    data = task_data(given, asked_task(given, checkpoint))
    from headscope.experiments.ablation.ablate import AblationSettings, ablate
    from headscope.run.engine.memory import keep_few_products, keep_freed_memory
    from headscope.tasks.task_model import load_for_task

    keep_freed_memory()
    keep_few_products()
    settings = AblationSettings(
        groups=groups,
        **{k: given[k] for k in ("replacement", "pairs", "max_length", "batch_tokens",
                                 "replicates", "seed")},
    )  # fmt: skip
    model = load_for_task(
        checkpoint, data.task,
        **{k: given[k] for k in ("device", "dtype", "revision", "trust_remote_code")},
    )  # fmt: skip
    with Progress(quiet=given["quiet"], unit="example") as progress:
        run = ablate(
            model, data, output=given["output"], settings=settings,
            asked_linears=given["linears"], overwrite=given["overwrite"],
            command=["headscope", *sys.argv[1:]], progress=progress,
        )  # fmt: skip
    if not (given["no_report"] or run.has_report):
        run.report()
    if given["as_json"]:
        click.echo(json.dumps(_summary(run), ensure_ascii=True))
        return
    for line in (*model.notes, *data.notes, *_lines(run)):
        say(line)


def group_named(text: str) -> tuple[tuple[int, int], ...]:
    """`4-1+2-12` as ((3, 0), (1, 11)); raises InputError for what is no head."""
    return tuple(head_named(part.strip()) for part in text.split("+"))


# --- what is said ---------------------------------------------------------------------------


def _lines(run: Run) -> list[str]:
    from headscope.experiments.ablation.ablate import note_of
    from headscope.experiments.ablation.task_wording import score_text, verdict_counts

    found, model = run["ablation"], run.manifest["model"]
    metric, n = found.attrs["metric"], found.sizes["example"]
    cut = run.manifest["counts"]["cut"]
    lines = [
        f"{model['name']}: {model['layers']} layers × {model['heads']} heads on {n} examples of "
        f"{found.attrs['task']}, {metric} {score_text(found)}"
    ]
    lines += [f"{cut} of {n} examples were cut"] if cut else []
    lines += [note] if (note := note_of(run)) else []
    for name, by in (("verdict", metric), ("loss_verdict", "the loss")):
        counts = verdict_counts(found, name)
        told = ", ".join(f"{count} {word}" for word, count in counts.items())
        lines.append(f"heads by {by}: {told} (q < 0.05 after correction for {found[name].size})")
        lines += _named(found, name)
    lines.append(_extremes(found))
    layers = verdict_counts(found, "layer_verdict")
    lines.append(
        f"layers by {metric}: {', '.join(f'{count} {word}' for word, count in layers.items())}"
    )
    report = _report(run)
    lines.append(f"results: {run.path}/atlas.nc" if report is None else f"report: {report}")
    return lines


def _named(found: xr.Dataset, verdict: str) -> Sequence[str]:
    """The heads that are not indifferent, those that change most first."""
    import numpy as np

    from headscope.core.results import head_name
    from headscope.core.wording import fixed
    from headscope.experiments.ablation.task_wording import points_text

    prefix = verdict.removesuffix("verdict")
    changes = found[f"{prefix}difference"].values.ravel()  # [unit]
    words = found[verdict].values.ravel()  # [unit]
    heads = found.sizes["head"]

    def told(change: float) -> str:
        if prefix:
            return f"{'+' if change > 0 else ''}{fixed(change, 3)}"
        return points_text(found, change, signed=True)

    lines = []
    for word in ("helpful", "harmful"):
        units = [int(at) for at in np.argsort(-np.abs(changes), kind="stable") if words[at] == word]
        named = ", ".join(
            f"{head_name(unit, heads)} {told(changes[unit])}" for unit in units[:NAMED]
        )
        more = f", and {len(units) - NAMED} more" if len(units) > NAMED else ""
        lines += [f"  {word}: {named}{more}"] if units else []
    return lines


def _extremes(found: xr.Dataset) -> str:
    """What the best and the worst single head change, and the mean of all."""
    import numpy as np

    from headscope.core.results import head_name
    from headscope.experiments.ablation.task_wording import points_text

    changes = found["difference"].values.ravel()  # [unit]
    if np.isnan(changes).all():
        return "no head leaves a score"
    heads = found.sizes["head"]
    best, worst = int(np.nanargmax(changes)), int(np.nanargmin(changes))
    named = [f"{head_name(at, heads)} {points_text(found, changes[at], signed=True)}"
             for at in (best, worst)]  # fmt: skip
    mean = points_text(found, float(np.nanmean(changes)), signed=True)
    return (
        f"of single heads, {found.attrs['metric']} changes most without {' and '.join(named)}; "
        f"mean {mean}"
    )


def _summary(run: Run) -> dict[str, Any]:
    from headscope.experiments.ablation.task_wording import verdict_counts

    found, report = run["ablation"], _report(run)
    verdicts = ("verdict", "loss_verdict", "layer_verdict", "layer_loss_verdict")
    return {
        "run": str(run.path), "report": None if report is None else str(report),
        **{k: run.manifest[k] for k in ("model", "counts", "fingerprint", "linears")},
        **{k: found.attrs[k] for k in ("task", "metric", "replacement", "way", "way_reason")},
        "baseline": float(found["baseline"]),
        **{name: verdict_counts(found, name) for name in verdicts},
    }  # fmt: skip


def _report(run: Run) -> Path | None:
    assert run.path is not None
    return run.path / "report.html" if run.has_report else None
