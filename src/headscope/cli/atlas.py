"""`headscope atlas`: from a model and a corpus to a report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headscope.cli.options import (
    AnalysisOptions,
    BatchOptions,
    ChanceOptions,
    CorpusOptions,
    LengthOptions,
    ModelOptions,
    RunOptions,
    check_run_folder,
    conclude,
    execution_of,
    output_option,
    read_corpus,
    run_settings,
)
from headscope.cli.terminal_output import ProgressBar, annotate, reading_lines
from headscope.cli.typed_command import RESUMES, argument, group, option, typed_command

if TYPE_CHECKING:
    from headscope.run.finished_run import Run


@dataclass(frozen=True, kw_only=True)
class AtlasOptions:
    """What `headscope atlas` is asked."""

    model: str = argument()
    corpus: CorpusOptions = group("What to read")
    limit: int | None = option("Read only the first N documents.")
    asked: AnalysisOptions = group("What to compute")
    frequency: Path | None = option("File of frequency ranks, lines 'rank count token-id'.")
    chance: ChanceOptions = group()
    lengths: LengthOptions = group("Lengths")
    loading: ModelOptions = group("The model")
    output: Path = output_option("Run folder; re-running resumes.", heading="How to run")
    batches: BatchOptions = group()
    how: RunOptions = group()
    workers: int = option("Processes; each holds a copy of the model.", default=1, minimum=1)


@typed_command("atlas", AtlasOptions, stopped=RESUMES)
def command(given: AtlasOptions) -> None:
    """Run all analyses over a corpus in one pass and write a run folder with a report.

    MODEL is a hub id, a local folder, or `demo`.

    \b
    headscope atlas demo --demo -o atlas-demo
    headscope atlas bert-base-uncased --text wiki.txt --documents heading -o run
    headscope atlas ./my-model --treebank dev.conllu --workers 4 -o run
    headscope atlas ./my-model --treebank dev.conllu --coref *.conll --frames fndata-1.7 -o run
    headscope atlas ./my-model --text wiki.txt --annotate spacy:en_core_web_sm -o run
    """
    # Everything that can be wrong with the request is found before the model is loaded.
    corpus = read_corpus(given.corpus, limit=given.limit)
    from headscope.run.plan import read_ranks

    settings = run_settings(
        given.asked, given.chance, given.lengths, given.batches, limit=given.limit
    )
    if given.frequency is not None:
        read_ranks(given.frequency, 1)
    check_run_folder(given.output)
    notes = annotate(corpus, quiet=given.how.quiet)
    from headscope.model.model import load
    from headscope.run.atlas import atlas

    loaded = load(given.model, **asdict(given.loading))
    with ProgressBar(quiet=given.how.quiet) as progress:
        run = atlas(
            loaded,
            corpus,
            output=given.output,
            settings=settings,
            execution=execution_of(given.how, given.batches, progress, workers=given.workers),
            frequency=given.frequency,
        )

    def lines(run: Run) -> Iterator[str]:
        counts, model = run.manifest["counts"], run.manifest["model"]
        yield (
            f"{model['name']}: {model['layers']} layers × {model['heads']} heads on "
            f"{counts['documents']} documents, {counts['examples']} inputs, "
            f"{counts['tokens']} tokens"
        )
        yield from reading_lines(counts, progress, notes)

    conclude(
        run,
        given.how,
        lines=lines,
        summary=lambda run: {key: run.manifest[key] for key in ("analyses", "shards")},
    )
