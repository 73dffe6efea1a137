"""`headscope zoo`: hold claims made of one model against others."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headscope.cli.options import (
    AnalysisOptions,
    BatchOptions,
    ChanceOptions,
    CorpusOptions,
    LengthOptions,
    ModelOptions,
    RunOptions,
    check_run_folder,
    execution_of,
    output_option,
    read_corpus,
    run_settings,
)
from headscope.cli.terminal_output import ProgressBar, annotate, complain, say
from headscope.cli.typed_command import RESUMES, argument, group, option, typed_command

if TYPE_CHECKING:
    from headscope.papers.zoo.run_zoo import Zoo


@dataclass(frozen=True, kw_only=True)
class ClaimAnalysisOptions(AnalysisOptions):
    """Which analyses are run on every model."""

    analyses: str | None = option("Comma-separated names; by default those that the claims need.")


@dataclass(frozen=True, kw_only=True)
class ZooOptions:
    """What `headscope zoo` is asked."""

    models: tuple[str, ...] = argument()
    corpus: CorpusOptions = group("What to read")
    limit: int | None = option("Read only the first N documents.")
    asked: ClaimAnalysisOptions = group("What to compute")
    chance: ChanceOptions = group()
    lengths: LengthOptions = group("Lengths")
    loading: ModelOptions = group("The models")
    output: Path = output_option("Folder; re-running resumes.", heading="How to run")
    batches: BatchOptions = group()
    how: RunOptions = group()


@typed_command("zoo", ZooOptions, stopped=RESUMES)
def command(given: ZooOptions) -> None:
    """Ask of several models what was claimed of BERT: one table, and pictures side by side.

    MODELS are hub ids, local folders, or `demo`. Each gets a run folder below OUT/models.

    \b
    headscope zoo bert-base-uncased roberta-base gpt2 --treebank dev.conllu -o zoo
    headscope zoo demo ./my-model --text wiki.txt -o zoo
    """
    zoo = _run(given)
    if given.how.as_json:
        click.echo(json.dumps(_summary(zoo), ensure_ascii=True))
    else:
        _tell(zoo)
    for label, why in zoo.failed.items():
        complain(f"{label}: {why}")
    if zoo.failed:
        click.get_current_context().exit(1)


def _run(given: ZooOptions) -> Zoo:
    # Everything that can be wrong with the request is found before a model is loaded.
    corpus = read_corpus(given.corpus, limit=given.limit)
    settings = run_settings(
        given.asked, given.chance, given.lengths, given.batches, limit=given.limit
    )
    from headscope.papers.zoo.model_list import listed_models

    listed_models(given.models)
    check_run_folder(given.output)
    quiet = given.how.quiet
    for note in annotate(corpus, quiet=quiet):
        complain(note)
    from headscope.papers.zoo.run_zoo import zoo

    with ProgressBar(quiet=quiet) as bar:

        def begin(label: str) -> None:
            """A bar of its own for each model."""
            bar.__exit__()
            if not quiet:
                complain(label)

        done = zoo(
            given.models,
            corpus,
            output=given.output,
            settings=settings,
            execution=execution_of(given.how, given.batches, bar),
            reports=not given.how.no_report,
            begin=begin,
            loading=asdict(given.loading),
        )
    done.report()
    return done


def _summary(zoo: Zoo) -> dict[str, Any]:
    from headscope.papers.zoo.outcome import as_json

    page = str(zoo.path / "report.html")
    runs = {label: str(run.path) for label, run in zoo.runs.items()}
    return {"zoo": str(zoo.path), "report": page, "runs": runs, **as_json(zoo)}


def _tell(zoo: Zoo) -> None:
    """What was asked of whom, what holds, and where it is."""
    for label, run in zoo.runs.items():
        counts, model = run.manifest["counts"], run.manifest["model"]
        say(
            f"{label}: {model['layers']} layers × {model['heads']} heads on "
            f"{counts['documents']} documents, {counts['tokens']} tokens"
        )
        for key in ("windowed", "skipped"):
            if counts[key]:
                say(f"{label}: {key}: {counts[key]}")
    for sentence in zoo.headlines:
        say(f"- {sentence}")
    say(f"claims: {zoo.path}/claims.csv")
    say(f"report: {zoo.path}/report.html")
