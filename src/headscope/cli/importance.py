"""`headscope importance`: how much a loss depends on each head, by its gradients."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headscope.cli.annotating import annotate
from headscope.cli.long_command import long_command
from headscope.cli.options import FILE, READING, corpus_options, model_options, read_corpus
from headscope.cli.running import LENGTHS, Progress, length_options
from headscope.cli.tasking import QUESTION, asked_task, question_options, task_data
from headscope.cli.terminal import say
from headscope.errors import InputError, RunStopped

if TYPE_CHECKING:
    import xarray as xr

    from headscope.corpus import Corpus
    from headscope.experiments.importance.importance import ImportanceSettings, RunOptions
    from headscope.run.finished_run import Run
    from headscope.tasks.task_data import TaskData

SECTIONS = {
    "The examples of a task": QUESTION,
    "Or any text": READING,
    "What to compute": ("methods", "steps", "ablation", "ablate", "limit"),
    "Lengths": LENGTHS,
    "How sure": ("replicates", "seed"),
    "The model": ("device", "dtype", "revision", "trust_remote_code"),
    "How to run": ("output", "batch_tokens", "linears", "overwrite", "no_report", "quiet",
                   "as_json"),
}  # fmt: skip
NAMED = 5  # heads that the summary names of each method
LOADING = ("device", "dtype", "revision", "trust_remote_code")


@click.command("importance", cls=long_command(SECTIONS))
@click.argument("model")
@partial(question_options, required=False)
@corpus_options
@click.option("-o", "--output", type=FILE, required=True, metavar="RUN",
              help="Run folder; re-running resumes.")  # fmt: skip
@click.option("--methods", metavar="A,B,…",
              help="Of gradient, michel, michel_normalised, slope_zero, slope_uniform, attattr; "
              "all for a task, all but the last for text.")  # fmt: skip
@click.option("--steps", type=click.IntRange(1), default=5, show_default=True,
              help="Of attattr's integral.")  # fmt: skip
@click.option("--ablation", type=FILE, metavar="RUN2",
              help="A run of `headscope ablate` to hold the importances against.")  # fmt: skip
@click.option("--ablate", type=click.Choice(["uniform", "zero", "mean"]), metavar="HOW",
              help="Make that run first, beside RUN: uniform, zero or mean.")  # fmt: skip
@click.option("--limit", type=click.IntRange(1),
              help="Examples of a task, drawn by --seed, or the first documents.")  # fmt: skip
@length_options
@click.option("--replicates", type=click.IntRange(0), default=1000, show_default=True,
              help="Of the bootstrap.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True,
              help="Of masks, draws and the bootstrap.")  # fmt: skip
@model_options
@click.option("--batch-tokens", type=click.IntRange(1), default=2048, show_default=True,
              help="Of a forward pass, copies of an input included.")  # fmt: skip
@click.option("--linears", type=click.Choice(["auto", "onednn", "stock"]), default="auto",
              show_default=True, help="Matrix products on a CPU; auto times both.")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace a run of another spec in the folder.")
@click.option("--no-report", is_flag=True, help="Results only; `headscope report` makes the rest.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
@click.option("--json", "as_json", is_flag=True, help="A machine-readable summary on stdout.")
def command(model: str, **given: Any) -> None:
    """Tell how much a loss depends on each head of MODEL, by the gradients of its attention.

    The loss is that of a task that MODEL was fine-tuned for; or on plain text its own, of masked
    tokens or of the next one.

    \b
    headscope importance bert-rte --task rte --data glue -o important
    headscope importance bert-rte --task rte --data glue --ablation ablated -o important
    headscope importance bert-base-uncased --text wiki.txt -o gradients
    """  # fmt: skip
    try:
        _run(model, given)
    except KeyboardInterrupt as error:
        raise RunStopped("stopped; the same command goes on from what is finished") from error


def _run(name: str, given: dict[str, Any]) -> None:
    # Everything that can be wrong with the request is found before a model is loaded.
    data = _asked(given, name)
    settings = _settings(given)
    from headscope.run.store import RunFolder

    RunFolder(given["output"]).check()
    texts = read_corpus(given, limit=given["limit"]) if data is None else None
    notes = [] if texts is None else annotate(texts, quiet=given["quiet"])
    from headscope.run.engine.memory import keep_few_products, keep_freed_memory

    keep_freed_memory()
    keep_few_products()
    if data is None:
        assert texts is not None
        run = _of_text(name, texts, settings, given)
    else:
        run, more = _of_task(name, data, settings, given)
        notes += more
    if not (given["no_report"] or run.has_report):
        run.report()
    if given["as_json"]:
        click.echo(json.dumps(_summary(run), ensure_ascii=True))
        return
    for line in (*notes, *_lines(run)):
        say(line)


def _of_text(
    name: str, texts: Corpus, settings: ImportanceSettings, given: Mapping[str, Any]
) -> Run:
    from headscope.experiments.importance.importance import importance_to_text
    from headscope.experiments.importance.language_model import load_language_model

    model = load_language_model(name, **{k: given[k] for k in LOADING})
    with Progress(quiet=given["quiet"], unit="input") as progress:
        return importance_to_text(
            model, texts, output=given["output"], settings=settings,
            running=_running(given, progress),
        )  # fmt: skip


def _of_task(
    name: str, data: TaskData, settings: ImportanceSettings, given: Mapping[str, Any]
) -> tuple[Run, list[str]]:
    from headscope.experiments.importance.importance import importance
    from headscope.run.finished_run import open_run
    from headscope.tasks.task_model import load_for_task

    against = None if given["ablation"] is None else open_run(given["ablation"])
    model = load_for_task(name, data.task, **{k: given[k] for k in LOADING})
    notes = [*model.notes, *data.notes]
    if given["ablate"] is not None:
        from headscope.experiments.ablation import ablate as ablation

        output = given["output"].with_name(f"{given['output'].name}-ablation")
        how = ablation.AblationSettings(
            replacement=given["ablate"], max_length=given["max_length"] or 128,
            batch_tokens=given["batch_tokens"], replicates=given["replicates"], seed=given["seed"],
        )  # fmt: skip
        with Progress(quiet=given["quiet"], unit="example") as progress:
            against = ablation.ablate(
                model, data, output=output, settings=how, asked_linears=given["linears"],
                overwrite=given["overwrite"], command=["headscope", *sys.argv[1:]],
                progress=progress,
            )  # fmt: skip
        notes.append(f"ablation: {output}")
    with Progress(quiet=given["quiet"], unit="example") as progress:
        run = importance(
            model, data, output=given["output"], settings=settings, ablation=against,
            running=_running(given, progress),
        )  # fmt: skip
    return run, notes


# --- what is asked --------------------------------------------------------------------------


def _asked(given: Mapping[str, Any], name: str) -> TaskData | None:
    """The examples of a task; None for a corpus. InputError for what contradicts itself."""
    from headscope.cli.options import CORPORA

    texts = [f"--{name}" for name in CORPORA if given[name]]
    if given["ablation"] is not None and given["ablate"] is not None:
        raise InputError("found --ablation and --ablate; give the run, or how to make it")
    if given["task"] is not None:
        if texts or given["annotate"]:
            raise InputError(
                f"found --task {given['task']} and {', '.join(texts) or '--annotate'}; wanted one "
                "of both: a loss is that of a task, or that of a language model on text"
            )
        return task_data(given, asked_task(given, name))
    if given["data"] is not None or given["ablation"] is not None or given["ablate"] is not None:
        raise InputError("found --data, --ablation or --ablate, and no task; give --task NAME too")
    if not texts:
        raise InputError(
            "no loss to take the gradient of; give the examples of a task (--task rte --data "
            "FOLDER), or text for a language model (--text FILE, --demo, …)"
        )
    return None


def _settings(given: Mapping[str, Any]) -> ImportanceSettings:
    from headscope.experiments.importance.importance import ImportanceSettings

    asked = given["methods"]
    methods = None if asked is None else tuple(filter(None, map(str.strip, asked.split(","))))
    kept = ("steps", "max_length", "long", "segment_ids", "batch_tokens", "replicates", "seed")
    limit = None if given["task"] is not None else given["limit"]
    return ImportanceSettings(methods=methods, limit=limit, **{k: given[k] for k in kept})


def _running(given: Mapping[str, Any], progress: Progress) -> RunOptions:
    from headscope.experiments.importance.importance import RunOptions

    line = ["headscope", *sys.argv[1:]]
    return RunOptions(given["linears"], given["overwrite"], line, progress)


# --- what is said ---------------------------------------------------------------------------


def _lines(run: Run) -> list[str]:
    from headscope.experiments.importance.findings import gradient_finding, integral_note, rho_lines

    model, counts = run.manifest["model"], run.manifest["counts"]
    found, gradients = run["importance"], run["gradients"]
    lines = [
        f"{model['name']}: {model['layers']} layers × {model['heads']} heads, "
        f"{gradients.attrs['loss_name']} {float(gradients['loss']):.3f} on "
        f"{counts['examples']:,} inputs, {counts['tokens']:,} tokens"
    ]
    if counts["cut"]:
        lines.append(f"{counts['cut']} of {counts['examples']} examples were cut")
    for name, words in (
        ("windowed", "were longer than an input, and read in windows"),
        ("skipped", "were skipped"),
        ("left_out", "have nothing to ask of"),
    ):
        if gradients.attrs.get(name):
            lines.append(f"{gradients.attrs[name]} passages {words}")
    lines += [text for text in (gradient_finding(run.tree), integral_note(found)) if text]
    lines += [f"  {name}: {_most(found, name)}" for name in map(str, found["method"].values)]
    lines += rho_lines(found)
    report = _report(run)
    lines.append(f"results: {run.path}/atlas.nc" if report is None else f"report: {report}")
    return lines


def _most(found: xr.Dataset, method: str) -> str:
    """The most important heads by a method."""
    import numpy as np

    from headscope.core.results import head_name

    values = found["head_importance"].sel({"method": method}).transpose("layer", "head").values
    order = np.argsort(-values.ravel(), kind="stable")[:NAMED]
    return ", ".join(head_name(int(unit), values.shape[1]) for unit in order)


def _summary(run: Run) -> dict[str, Any]:
    found, report = run["importance"], _report(run)
    rho = {}
    if "rho" in found:
        for name in map(str, found["method"].values):
            one = found.sel({"method": name, "effect": "loss"})
            rho[name] = [float(one[f"rho{end}"]) for end in ("", "_ci_low", "_ci_high")]
    return {
        "run": str(run.path), "report": None if report is None else str(report),
        **{k: run.manifest[k] for k in ("model", "counts", "fingerprint", "linears")},
        "loss_name": run["gradients"].attrs["loss_name"], "loss": float(run["gradients"]["loss"]),
        "methods": [str(name) for name in found["method"].values], "rho": rho,
    }  # fmt: skip


def _report(run: Run) -> Path | None:
    assert run.path is not None
    return run.path / "report.html" if run.has_report else None
