"""`headscope compare`: what fine-tuning changes in the heads of a model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from headscope.cli.task_options import TaskOptions, asked_task, task_data
from headscope.cli.terminal_output import ProgressBar, annotate, reading_lines
from headscope.cli.typed_command import RESUMES, argument, group, option, typed_command
from headscope.errors import CorpusError, InputError

if TYPE_CHECKING:
    from headscope.corpus import Corpus
    from headscope.run.finished_run import Run
    from headscope.tasks.task_data import TaskData

TASK_LENGTH = 128  # tokens, as in BERT's own scripts for GLUE


@dataclass(frozen=True, kw_only=True)
class QuickAnalysisOptions(AnalysisOptions):
    """Which analyses are run on both models."""

    analyses: str | None = option("Comma-separated names; by default all that are quick.")


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """What `headscope compare` is asked."""

    base: str = argument()
    tuned: str = argument()
    task: TaskOptions = group("The examples of a task")
    corpus: CorpusOptions = group("Or any text")
    limit: int | None = option("Read only the first N documents.")
    asked: QuickAnalysisOptions = group("What to compute")
    padded_to: int | None = option(
        "Also compare maps padded to so many tokens; Kovaleva et al.: 200.",
        metavar="TOKENS",
        minimum=4,
    )
    chance: ChanceOptions = group()
    lengths: LengthOptions = group("Lengths")
    base_revision: str | None = option(
        "Branch, tag or commit of BASE on the hub.", heading="The models"
    )
    loading: ModelOptions = group()
    output: Path = output_option("Run folder; re-running resumes.", heading="How to run")
    batches: BatchOptions = group()
    how: RunOptions = group()


@typed_command("compare", CompareOptions, stopped=RESUMES)
def command(given: CompareOptions) -> None:
    """Tell what TUNED does differently from BASE, head by head, and write a run with a report.

    Both see the same inputs: the examples of a task, or any text. BASE and TUNED are hub ids, local
    folders, or `demo`; they need one shape and one tokenizer.

    \b
    headscope compare bert-base-uncased bert-rte --task rte --data glue -o run
    headscope compare bert-base-uncased bert-rte --treebank dev.conllu -o run
    headscope compare demo ./checkpoint --text wiki.txt -o run
    """
    # Everything that can be wrong with the request is found before a model is loaded.
    texts, data = _asked(given)
    settings = run_settings(
        given.asked, given.chance, given.lengths, given.batches, limit=given.limit
    )

    check_run_folder(given.output)
    notes = [] if texts is None else annotate(texts, quiet=given.how.quiet)
    from headscope.experiments.comparison.compare import compare
    from headscope.experiments.comparison.same_inputs import TaskCorpus
    from headscope.model.model import load

    base = load(given.base, **{**asdict(given.loading), "revision": given.base_revision})
    tuned = load(given.tuned, **asdict(given.loading))
    corpus = texts
    if data is not None:
        length = min(given.lengths.max_length or TASK_LENGTH, base.limit, tuned.limit)
        settings = replace(settings, max_length=length, limit=None)
        corpus = TaskCorpus(base, tuned, data, max_length=length)
        notes += [*data.notes, *([corpus.note] if corpus.note else [])]
    assert corpus is not None
    with ProgressBar(quiet=given.how.quiet) as progress:
        run = compare(
            base,
            tuned,
            corpus,
            output=given.output,
            settings=settings,
            execution=execution_of(given.how, given.batches, progress),
            padded_to=given.padded_to,
        )
    conclude(run, given.how, lines=lambda run: _lines(run, progress, notes), summary=_summary)


def _asked(given: CompareOptions) -> tuple[Corpus | None, TaskData | None]:
    """The examples of a task, or a corpus; InputError for both, CorpusError for neither."""
    texts, task = given.corpus.named, given.task.task
    if task is None:
        if given.task.data is not None:
            raise InputError(f"found --data {given.task.data} and no task; give --task NAME too")
        if not texts:
            raise CorpusError(
                "nothing to compare them on; give the examples of a task (--task rte --data "
                "FOLDER), or one or more of --text, --treebank, --coref, --segments FILE, --frames "
                "DIR, --demo"
            )
        return read_corpus(given.corpus, limit=given.limit), None
    if texts or given.corpus.annotate:
        raise InputError(
            f"found --task {task} and {', '.join(texts) or '--annotate'}; wanted only "
            "one of them: compare twice, into two run folders"
        )
    asked = asked_task(given.task, given.tuned, revision=given.loading.revision)
    return None, task_data(given.task, asked, seed=given.chance.seed, limit=given.limit)


def _summary(run: Run) -> dict[str, Any]:
    from headscope.experiments.comparison.findings import findings

    kept = {key: run.manifest[key] for key in ("base", "analyses", "shards")}
    return {"findings": findings(run.tree), **kept}


def _lines(run: Run, progress: ProgressBar, notes: list[str]) -> Iterator[str]:
    """What was compared on what, and what came of it."""
    from headscope.core.results import counted
    from headscope.experiments.comparison.findings import findings

    base, model, counts = (run.manifest[key] for key in ("base", "model", "counts"))
    yield (
        f"{base['name']} and {model['name']}: {model['layers']} layers × {model['heads']} heads on "
        f"{counts['documents']} {counted(run.tree)}, {counts['examples']} inputs, "
        f"{counts['tokens']} tokens"
    )
    yield from reading_lines(counts, progress, notes)
    yield from findings(run.tree)
