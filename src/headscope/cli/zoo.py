"""`headscope zoo`: test claims made of one model on several."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from headscope.cli import options as shared
from headscope.cli.terminal_output import ProgressBar, annotate, complain, tell
from headscope.cli.typed_command import group, run_command
from headscope.core.wording import grid_size, how_many
from headscope.papers.zoo.zoo import ZooRequest, zoo
from headscope.run.execution import Threads
from headscope.run.processes import noting_failure

if TYPE_CHECKING:
    from headscope.corpus import Corpus
    from headscope.papers.zoo.run_zoo import Zoo


class _ZooOptions(shared.SharedRunOptions, Threads, ZooRequest):
    corpus: shared.CorpusOptions = group("What to read", before="limit")  # type: ignore[assignment]


@run_command("zoo", _ZooOptions, headings={"The model": "The models"})
def zoo_command(options: _ZooOptions) -> None:
    """Ask of several models what was claimed of BERT: one table, and pictures side by side.

    MODELS are hub ids, local folders, or `demo`. Each gets a run folder below OUT/models.

    \b
    headscope zoo bert-base-uncased roberta-base gpt2 --treebank dev.conllu -o zoo
    headscope zoo demo ./my-model --text wiki.txt -o zoo
    """
    with (
        noting_failure(options.output, options.shard),
        ProgressBar(quiet=options.quiet) as bar,
    ):

        def begin(label: str) -> None:
            bar.__exit__()  # each model has a bar of its own
            if not options.quiet:
                complain(label)

        def annotated(corpus: Corpus) -> None:
            for note in annotate(corpus, quiet=options.quiet):
                complain(note)

        request = ZooRequest.of(
            options,
            corpus=shared.read_corpus(options.corpus, limit=options.limit),
            execution=shared.execution_of(bar, options),
            before_loading=annotated,
            begin=begin,
            reports=not options.no_report,
        )
        done = zoo(**vars(request))
    if options.shard is None or (
        not done.elsewhere and shared.is_free(done.path, "give the command again, without --shard")
    ):
        done.report()
    page = str(done.path / "report.html")
    runs = {label: str(run.path) for label, run in done.runs.items()}
    notes = {label: list(run.notes) for label, run in done.runs.items() if run.notes}
    summary = {"zoo": str(done.path), "report": page, "runs": runs}
    summary |= {"notes": notes} if notes else {}
    from headscope.papers.zoo.outcome import as_json

    tell(_lines(done), summary | as_json(done) if options.as_json else None)
    for label, why in done.failed.items():
        complain(f"{label}: {why}")
    if done.failed:
        click.get_current_context().exit(1)


def _lines(zoo: Zoo) -> Iterator[str]:
    for label, run in zoo.runs.items():
        counts, model = run.manifest["counts"], run.manifest["model"]
        yield (
            f"{label}: {grid_size(model['layers'], model['heads'])} on "
            f"{how_many(counts['documents'], 'document')}, {how_many(counts['tokens'], 'token')}"
        )
        yield from (
            f"{label}: {key}: {counts[key]}" for key in ("windowed", "skipped") if counts[key]
        )
        if "long" in run.manifest:
            yield f"{label}: {run.manifest['long']}"
        yield from (f"{label}: note: {note}" for note in run.notes)
    yield from (f"- {sentence}" for sentence in zoo.headlines)
    yield f"claims: {zoo.path}/claims.csv"
    yield f"report: {zoo.path}/report.html"
