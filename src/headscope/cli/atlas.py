"""`headscope atlas`: from a model and a corpus to a report."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headscope.cli.annotating import annotate
from headscope.cli.long_command import long_command
from headscope.cli.options import (
    FILE,
    READING,
    corpus_options,
    linguistic_options,
    model_options,
    read_corpus,
)
from headscope.cli.running import (
    EXECUTING,
    LENGTHS,
    RANDOM,
    Progress,
    length_options,
    run_options,
    run_settings,
    tell_reading,
)
from headscope.cli.terminal import say
from headscope.errors import RunStopped

if TYPE_CHECKING:
    from headscope.run.finished_run import Run


SECTIONS = {
    "What to read": (*READING, "limit"),
    "What to compute": ("analyses", "options", "relations", "subtypes", "measure", "frequency",
                        *RANDOM),
    "Lengths": LENGTHS,
    "The model": ("device", "dtype", "revision", "trust_remote_code"),
    "How to run": ("output", "workers", *EXECUTING),
}  # fmt: skip


@click.command("atlas", cls=long_command(SECTIONS))
@click.argument("model")
@corpus_options
@click.option("-o", "--output", type=FILE, required=True, help="Run folder; re-running resumes.")
@click.option("--analyses", help="Comma-separated names; all by default (`headscope analyses`).")
@click.option("--set", "options", multiple=True, help="ANALYSIS.OPTION=VALUE, repeatable.")
@linguistic_options
@click.option("--frequency", type=FILE, help="Frequency ranks, lines 'rank count token-id'.")
@model_options
@length_options
@run_options
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Processes; each holds a copy of the model.",
)
def command(model: str, **given: Any) -> None:
    """Run all analyses over a corpus in one pass and write a run folder with a report.

    MODEL is a hub id, a local folder, or `demo`.

    \b
    headscope atlas demo --demo -o atlas-demo
    headscope atlas bert-base-uncased --text wiki.txt --documents heading -o run
    headscope atlas ./my-model --treebank dev.conllu --workers 4 -o run
    headscope atlas ./my-model --treebank dev.conllu --coref *.conll --frames fndata-1.7 -o run
    headscope atlas ./my-model --text wiki.txt --annotate spacy:en_core_web_sm -o run
    """  # fmt: skip
    try:
        _run(model, given)
    except KeyboardInterrupt as error:  # before, between or after the shards
        raise RunStopped("stopped; the same command goes on from what is finished") from error


def _run(model: str, given: dict[str, Any]) -> None:
    # Everything that can be wrong with the request is found before the model is loaded.
    corpus = read_corpus(given, limit=given["limit"])
    from headscope.run.plan import read_ranks
    from headscope.run.store import RunFolder

    settings = run_settings(given)
    if given["frequency"] is not None:
        read_ranks(given["frequency"], 1)
    RunFolder(given["output"]).check()
    notes = annotate(corpus, quiet=given["quiet"])
    from headscope.model.model import load
    from headscope.run.atlas import Execution, atlas
    from headscope.run.engine.memory import keep_few_products, keep_freed_memory

    keep_freed_memory()
    keep_few_products()
    loaded = load(
        model, **{k: given[k] for k in ("device", "dtype", "revision", "trust_remote_code")}
    )
    with Progress(quiet=given["quiet"]) as progress:
        execution = Execution(
            workers=given["workers"], threads=given["threads"], linears=given["linears"],
            overwrite=given["overwrite"], progress=progress, command=["headscope", *sys.argv[1:]],
        )  # fmt: skip
        run = atlas(
            loaded, corpus, output=given["output"], settings=settings, execution=execution,
            frequency=given["frequency"],
        )  # fmt: skip
    if not (given["no_report"] or run.has_report):
        run.report()
    if given["as_json"]:
        click.echo(json.dumps(_summary(run), ensure_ascii=True))
    else:
        _tell(run, progress, notes)


def _summary(run: Run) -> dict[str, Any]:
    m, report = run.manifest, _report(run)
    return {
        "run": str(run.path), "report": None if report is None else str(report),
        **{k: m[k] for k in ("model", "counts", "analyses", "fingerprint", "linears", "shards")},
    }  # fmt: skip


def _tell(run: Run, progress: Progress, notes: Sequence[str]) -> None:
    """What was run on what, what was left out of it and why, and where it is."""
    counts, model = run.manifest["counts"], run.manifest["model"]
    say(
        f"{model['name']}: {model['layers']} layers × {model['heads']} heads on "
        f"{counts['documents']} documents, {counts['examples']} inputs, {counts['tokens']} tokens"
    )
    tell_reading(counts, progress, notes)
    report = _report(run)
    say(f"results: {run.path}/atlas.nc" if report is None else f"report: {report}")


def _report(run: Run) -> Path | None:
    assert run.path is not None
    return run.path / "report.html" if run.has_report else None
