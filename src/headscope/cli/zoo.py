"""`headscope zoo`: test claims made of one model on several."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headscope.cli import options as shared
from headscope.cli.run_request import SharedRunOptions, asked_corpus, is_free, run_settings
from headscope.cli.terminal_output import ProgressBar, annotate, complain, tell
from headscope.cli.typed_command import group, run_command
from headscope.core.options import argument, option
from headscope.run.execution import control_option
from headscope.run.processes import noting_failure
from headscope.tasks.task_request import Loading

if TYPE_CHECKING:
    from headscope.papers.zoo.run_zoo import Zoo


class _ClaimAnalysisOptions(shared.AnalysisOptions):
    analyses: str | None = option("Comma-separated names; by default those that the claims need.")


class _ZooOptions(shared.CorpusRunOptions):
    models: tuple[shared.ModelName, ...] = argument()
    asked: _ClaimAnalysisOptions = group("What to compute", before="whole_maps")
    control: str = control_option("the claims", before="seed")
    loading: Loading = group("The models")
    output: Path = shared.output_option("Folder; re-running resumes.", "zoo")
    how: SharedRunOptions = group()


@run_command("zoo", _ZooOptions)
def zoo_command(options: _ZooOptions) -> None:
    """Ask of several models what was claimed of BERT: one table, and pictures side by side.

    MODELS are hub ids, local folders, or `demo`. Each gets a run folder below OUT/models.

    \b
    headscope zoo bert-base-uncased roberta-base gpt2 --treebank dev.conllu -o zoo
    headscope zoo demo ./my-model --text wiki.txt -o zoo
    """
    with noting_failure(options.output, options.how.shard):
        # Everything that can be wrong with the request is found before a model is loaded.
        from headscope.papers.zoo.listed_models import listed_models

        listed_models(options.models)
        settings = run_settings(options)
        corpus = asked_corpus(options)
        shared.check_run_folder(options.output)
        from headscope.papers.zoo.outcome import as_json
        from headscope.papers.zoo.run_zoo import zoo

        for note in annotate(corpus, quiet=options.how.quiet):
            complain(note)

    with ProgressBar(quiet=options.how.quiet) as bar:

        def begin(label: str) -> None:
            bar.__exit__()  # each model has a bar of its own
            if not options.how.quiet:
                complain(label)

        done = zoo(
            options.models,
            corpus,
            output=options.output,
            settings=settings,
            execution=shared.execution_of(bar, options, options.how),
            begin=begin,
            reports=not options.how.no_report,
            loading=asdict(options.loading),
            control=options.control,
        )
    if options.how.shard is None or (
        not done.elsewhere and is_free(done.path, "give the command again, without --shard")
    ):
        done.report()
    page = str(done.path / "report.html")
    runs = {label: str(run.path) for label, run in done.runs.items()}
    summary = {"zoo": str(done.path), "report": page, "runs": runs}
    tell(_lines(done), summary | as_json(done) if options.how.as_json else None)
    for label, why in done.failed.items():
        complain(f"{label}: {why}")
    if done.failed:
        click.get_current_context().exit(1)


def _lines(zoo: Zoo) -> Iterator[str]:
    for label, run in zoo.runs.items():
        counts, model = run.manifest["counts"], run.manifest["model"]
        yield (
            f"{label}: {model['layers']} layers × {model['heads']} heads on "
            f"{counts['documents']} documents, {counts['tokens']} tokens"
        )
        yield from (
            f"{label}: {key}: {counts[key]}" for key in ("windowed", "skipped") if counts[key]
        )
        if "long" in run.manifest:
            yield f"{label}: {run.manifest['long']}"
    yield from (f"- {sentence}" for sentence in zoo.headlines)
    yield f"claims: {zoo.path}/claims.csv"
    yield f"report: {zoo.path}/report.html"
