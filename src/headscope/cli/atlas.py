"""`headscope atlas`: from a model and a corpus to a report on every head."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from headscope.cli import options
from headscope.cli.run_request import SharedRunOptions, asked_corpus, run_settings
from headscope.cli.terminal_output import ProgressBar, annotate, reading_lines, size_of
from headscope.cli.typed_command import group, run_command
from headscope.core.options import argument, option
from headscope.run.execution import Workers, control_option
from headscope.run.processes import check_shard, noting_failure
from headscope.run.worker_processes import check_engine

if TYPE_CHECKING:
    from headscope.run.store import Run


class _AtlasOptions(Workers, options.CorpusRunOptions):
    model: options.ModelName = argument()
    frequency: Path | None = option(
        "File of frequency ranks, lines 'rank count token-id'.",
        heading="What to compute",
        before="seed",
    )
    control: str = control_option("the heads", before="seed")
    how: SharedRunOptions = group()


@run_command("atlas", _AtlasOptions)
def atlas_command(given: _AtlasOptions) -> None:
    """Run all analyses over a corpus in one pass and write a run folder with a report.

    MODEL is a hub id, a local folder, or `demo`.

    \b
    headscope atlas demo --demo -o atlas-demo
    headscope atlas bert-base-uncased --text wiki.txt --documents heading -o run
    headscope atlas ./my-model --treebank dev.conllu --workers 4 -o run
    headscope atlas ./my-model --treebank dev.conllu --coref *.conll --frames fndata-1.7 -o run
    headscope atlas ./my-model --text wiki.txt --annotate spacy:en_core_web_sm -o run
    """
    check_engine(given.engine, given.scheduler, workers=given.workers, shard=given.how.shard)
    check_shard(given.how.shard, workers=given.workers, overwrite=given.how.overwrite)
    if given.how.shard is not None:
        options.check_run_folder(given.output)
    with noting_failure(given.output, given.how.shard):
        # Everything that can be wrong with the request is found before the model is loaded.
        settings = run_settings(given, given.model)
        corpus = asked_corpus(given)
        options.check_run_folder(given.output)
        if given.frequency is not None:
            from headscope.run.frequency_ranks import read_ranks

            read_ranks(given.frequency, 1)
        notes = annotate(corpus, quiet=given.how.quiet)
        from headscope.model.model import load
        from headscope.run.atlas import atlas

        loaded = load(given.model, **asdict(given.loading))
    with ProgressBar(quiet=given.how.quiet) as progress:
        execution = options.execution_of(progress, given, given.how)
        run = atlas(
            loaded,
            corpus,
            output=given.output,
            settings=settings,
            execution=execution,
            frequency=given.frequency,
            control=given.control,
        )
    options.conclude(
        run,
        given.how,
        lines=_measured(run, progress, notes),
        summary=lambda run: {key: run.manifest[key] for key in ("analyses", "shards")},
    )


def _measured(run: Run, progress: ProgressBar, notes: Sequence[str]) -> Iterator[str]:
    from headscope.report.run_facts import beside

    counts, size = run.manifest["counts"], size_of(run.manifest["model"])
    read = f"{counts['documents']} documents, {counts['examples']} inputs"
    yield f"{size} on {read}, {counts['tokens']} tokens"
    if more := beside(run.tree, counts):
        yield f"beside them {more}"
    yield from reading_lines(counts, progress, notes)
    if "long" in run.manifest:
        yield run.manifest["long"]
