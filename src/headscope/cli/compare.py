"""`headscope compare`: from two models and a corpus to a report on what differs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headscope.cli import options as shared
from headscope.cli.run_request import asked_corpus, run_settings
from headscope.cli.terminal_output import ProgressBar, annotate, reading_lines, size_of
from headscope.cli.typed_command import group, run_command
from headscope.core.options import argument, option
from headscope.errors import CorpusError, InputError
from headscope.run.execution import control_option
from headscope.tasks.task_request import TASK, TaskRequest, TaskSource, examples_of

if TYPE_CHECKING:
    from headscope.corpus import Corpus
    from headscope.run.store import Run
    from headscope.tasks.task_data import TaskData


class _QuickAnalysisOptions(shared.AnalysisOptions):
    analyses: str | None = option("Comma-separated names; by default all that are quick.")


class _TaskOptions(TaskSource):
    task: str | None = option(TASK, metavar="NAME", before="data")


class _CompareOptions(shared.CorpusRunOptions):
    base: shared.ModelName = argument()
    tuned: shared.ModelName = argument()
    task: _TaskOptions = group("The examples of a task", before="corpus")
    output: Path = shared.output_option("Run folder; re-running resumes.", "compare-{base}-{tuned}")
    asked: _QuickAnalysisOptions = group("What to compute", before="whole_maps")
    padded_to: int | None = option(
        "Also compare maps padded to so many tokens; Kovaleva et al.: 200.",
        type=click.IntRange(4),
        metavar="TOKENS",
        before="seed",
    )
    control: str = control_option("the heads", before="seed")
    base_revision: str | None = option(
        "Branch, tag or commit of BASE on the hub.", heading="The models", before="loading"
    )


@run_command(
    "compare",
    _CompareOptions,
    headings={"What to read": "Or any text", "The model": "The models"},
)
def compare_command(options: _CompareOptions) -> None:
    """Tell what TUNED does differently from BASE, head by head, and write a run with a report.

    Both see the same inputs: the examples of a task, or any text. BASE and TUNED are hub ids, local
    folders, or `demo`; they need one shape and one tokenizer.

    \b
    headscope compare bert-base-uncased bert-rte --task rte --data glue -o run
    headscope compare bert-base-uncased bert-rte --treebank dev.conllu -o run
    headscope compare demo ./checkpoint --text wiki.txt -o run
    """
    # Everything that can be wrong with the request is found before a model is loaded.
    models = (options.base, options.tuned) if options.task.task is None else ()  # a task cuts
    settings = run_settings(options, *models)
    shared.check_run_folder(options.output)
    texts, data = _asked(options)
    notes = [] if texts is None else annotate(texts, quiet=options.how.quiet)
    from headscope.experiments.comparison.compare import compare
    from headscope.experiments.comparison.paired_inputs import task_corpus
    from headscope.model.model import load

    base = load(options.base, **{**asdict(options.loading), "revision": options.base_revision})
    tuned = load(options.tuned, **asdict(options.loading))
    corpus = texts
    if data is not None:
        corpus, settings = task_corpus(base, tuned, data, settings)
        notes += [*data.notes, *([corpus.note] if corpus.note else [])]
    assert corpus is not None
    with ProgressBar(quiet=options.how.quiet) as progress:
        run = compare(
            base,
            tuned,
            corpus,
            output=options.output,
            settings=settings,
            padded_to=options.padded_to,
            control=options.control,
            execution=shared.execution_of(progress, options, options.how),
        )
    shared.conclude(run, options.how, lines=_compared(run, progress, notes), summary=_summary)


def _asked(options: _CompareOptions) -> tuple[Corpus | None, TaskData | None]:
    """The examples of a task, or a corpus; InputError for both, CorpusError for neither."""
    if options.task.task is not None:
        shared.refuse_text(options.task.task, options.corpus, "compare twice, into two run folders")
        seed, limit = options.seed, options.limit
        return None, examples_of(
            options.task.task,
            TaskRequest.of(options.task, limit=limit),
            seed=seed,
            checkpoint=options.tuned,
            revision=options.loading.revision,
        )
    if options.task.data is not None:
        raise InputError(f"found --data {options.task.data} and no task; give --task NAME too")
    if not options.corpus.named:
        raise CorpusError(
            "nothing to compare them on; give the examples of a task (--task rte --data FOLDER), "
            "or one or more of --text, --treebank, --coref, --segments FILE, --frames DIR, --demo"
        )
    return asked_corpus(options), None


def _summary(run: Run) -> dict[str, Any]:
    from headscope.claims.reading import run_findings

    kept = {key: run.manifest[key] for key in ("base", "analyses", "shards")}
    return {"findings": run_findings(run.tree), **kept}


def _compared(run: Run, progress: ProgressBar, notes: list[str]) -> Iterator[str]:
    from headscope.claims.reading import run_findings
    from headscope.core.results import counted
    from headscope.experiments.comparison.findings import control_words

    base, model, counts = (run.manifest[key] for key in ("base", "model", "counts"))
    yield (
        f"{base['name']} and {size_of(model)} on {counts['documents']} {counted(run.tree)}, "
        f"{counts['examples']} inputs, {counts['tokens']} tokens"
    )
    yield from reading_lines(counts, progress, notes)
    yield from filter(
        None, (run.manifest.get("long"), control_words(run.tree), *run_findings(run.tree))
    )
