"""`headscope atlas`: from a model and a corpus to a report on every head."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from headscope.cli import options as shared
from headscope.cli.run_request import SharedRunOptions, asked_corpus, run_settings
from headscope.cli.terminal_output import ProgressBar, annotate, reading_lines, size_of
from headscope.cli.typed_command import group, run_command
from headscope.core.options import argument, option
from headscope.run.execution import Workers, control_option
from headscope.run.processes import check_shard, noting_failure
from headscope.run.worker_processes import check_engine

if TYPE_CHECKING:
    from headscope.run.store import Run


class _AtlasOptions(Workers, shared.CorpusRunOptions):
    model: shared.ModelName = argument()
    frequency: Path | None = option(
        "File of frequency ranks, lines 'rank count token-id'.",
        heading="What to compute",
        before="seed",
    )
    control: str = control_option("the heads", before="seed")
    how: SharedRunOptions = group()


@run_command("atlas", _AtlasOptions)
def atlas_command(options: _AtlasOptions) -> None:
    """Run all analyses over a corpus in one pass and write a run folder with a report.

    MODEL is a hub id, a local folder, or `demo`.

    \b
    headscope atlas demo --demo -o atlas-demo
    headscope atlas bert-base-uncased --text wiki.txt --documents heading -o run
    headscope atlas ./my-model --treebank dev.conllu --workers 4 -o run
    headscope atlas ./my-model --treebank dev.conllu --coref *.conll --frames fndata-1.7 -o run
    headscope atlas ./my-model --text wiki.txt --annotate spacy:en_core_web_sm -o run
    """
    check_engine(
        options.engine, options.scheduler, workers=options.workers, shard=options.how.shard
    )
    check_shard(options.how.shard, workers=options.workers, overwrite=options.how.overwrite)
    if options.how.shard is not None:
        shared.check_run_folder(options.output)
    with noting_failure(options.output, options.how.shard):
        # Everything that can be wrong with the request is found before the model is loaded.
        settings = run_settings(options, options.model)
        corpus = asked_corpus(options)
        shared.check_run_folder(options.output)
        if options.frequency is not None:
            from headscope.run.frequency_ranks import read_ranks

            read_ranks(options.frequency, 1)
        notes = annotate(corpus, quiet=options.how.quiet)
        from headscope.model.model import load
        from headscope.run.atlas import atlas

        loaded = load(options.model, **asdict(options.loading))
    with ProgressBar(quiet=options.how.quiet) as progress:
        execution = shared.execution_of(progress, options, options.how)
        run = atlas(
            loaded,
            corpus,
            output=options.output,
            settings=settings,
            execution=execution,
            frequency=options.frequency,
            control=options.control,
        )
    shared.conclude(
        run,
        options.how,
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
