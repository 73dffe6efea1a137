"""`headscope atlas`: from a model and a corpus to a report on every head."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from headscope.cli import options as shared
from headscope.cli.terminal_output import ProgressBar, annotate, reading_lines, size_of
from headscope.cli.typed_command import group, run_command
from headscope.core.wording import how_many
from headscope.run.atlas import AtlasRequest, atlas
from headscope.run.execution import Threads, Workers
from headscope.run.processes import noting_failure

if TYPE_CHECKING:
    from headscope.run.store import Run


class _AtlasOptions(Workers, shared.SharedRunOptions, Threads, AtlasRequest):
    corpus: shared.CorpusOptions = group("What to read", before="limit")  # type: ignore[assignment]


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
    headscope atlas ./my-model --text wiki.txt --until labels -o run
    """
    if options.shard is not None:
        from headscope.run.store import check_run_folder

        check_run_folder(options.output)
    notes: list[str] = []
    with (
        noting_failure(options.output, options.shard),
        ProgressBar(quiet=options.quiet) as progress,
    ):
        request = AtlasRequest.of(
            options,
            corpus=shared.read_corpus(options.corpus, limit=options.limit),
            execution=shared.execution_of(progress, options),
            before_loading=lambda corpus: notes.extend(annotate(corpus, quiet=options.quiet)),
        )
        run = atlas(**vars(request))
    shared.conclude(
        run,
        options,
        lines=_measured(run, progress, notes),
        summary=lambda run: {
            key: run.manifest[key] for key in ("analyses", "shards", "until") if key in run.manifest
        },
    )


def _measured(run: Run, progress: ProgressBar, notes: Sequence[str]) -> Iterator[str]:
    from headscope.report.run_facts import beside, stopped_early

    counts, size = run.manifest["counts"], size_of(run.manifest["model"])
    read = f"{how_many(counts['documents'], 'document')}, {how_many(counts['examples'], 'input')}"
    yield f"{size} on {read}, {how_many(counts['tokens'], 'token')}"
    if where := stopped_early(run.manifest):
        yield where
    if more := beside(run.tree, counts):
        yield f"beside them {more}"
    yield from reading_lines(counts, progress, notes)
    if "long" in run.manifest:
        yield run.manifest["long"]
