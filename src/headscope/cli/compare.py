"""`headscope compare`: from two models and a corpus to a report on what differs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from headscope.cli import options as shared
from headscope.cli.terminal_output import ProgressBar, annotate, reading_lines, size_of
from headscope.cli.typed_command import group, run_command
from headscope.core.wording import grid_size, how_many
from headscope.errors import CorpusError, InputError
from headscope.experiments.comparison.compare import CompareRequest, compare
from headscope.run.execution import Threads
from headscope.run.manifest_file import is_run
from headscope.tasks.remembered_task import remembered_task, with_remembered_task

if TYPE_CHECKING:
    from headscope.run.store import Run


class _CompareOptions(shared.RunOptions, Threads, CompareRequest):
    corpus: shared.CorpusOptions = group("Or any text", before="limit")  # type: ignore[assignment]


@run_command(
    "compare",
    _CompareOptions,
    headings={
        "The task": "The examples of a task",
        "What to read": "Or any text",
        "The model": "The models",
    },
)
def compare_command(options: _CompareOptions) -> None:
    """Tell what TUNED does differently from BASE, head by head, and write a run with a report.

    Both see the same inputs: the examples of a task, or any text. BASE and TUNED are hub ids, local
    folders, or `demo`; they need one shape and one tokenizer.

    Or both are finished runs, of models of any shape: then tell which heads have the same role.

    \b
    headscope compare bert-base-uncased bert-rte --task rte --data glue -o run
    headscope compare bert-base-uncased bert-rte --treebank dev.conllu -o run
    headscope compare demo ./checkpoint --text wiki.txt -o run
    headscope compare atlas-demo atlas-e5 --also circuits-demo --also circuits-e5 -o roles
    """
    if any(map(is_run, (options.base, options.tuned))):
        _compare_runs(options)
        return
    notes: list[str] = []
    if options.task is None and not options.corpus.named and remembered_task(options.tuned):
        options, notes = with_remembered_task(options, options.tuned)
    _check(options)
    own: dict[str, Any] = {"corpus": None}
    if options.task is None:
        own["corpus"] = shared.read_corpus(options.corpus, limit=options.limit)
    with ProgressBar(quiet=options.quiet) as progress:
        request = CompareRequest.of(
            options,
            execution=shared.execution_of(progress, options),
            before_loading=lambda corpus: notes.extend(annotate(corpus, quiet=options.quiet)),
            tell=notes.append,
            **own,
        )
        run = compare(**vars(request))
    shared.conclude(run, options, lines=_compared(run, progress, notes), summary=_summary)


def _compare_runs(options: _CompareOptions) -> None:
    """Two finished runs; InputError for texts beside them, as no model is read."""
    if options.corpus.named:
        raise InputError("found texts beside a finished run; leave them out: no model is read")
    with ProgressBar(quiet=options.quiet) as progress:
        execution = shared.execution_of(progress, options)
        request = CompareRequest.of(options, corpus=None, execution=execution)
        run = compare(**vars(request))
    shared.conclude(run, options, lines=_of_roles(run), summary=_roles_summary)


def _of_roles(run: Run) -> Iterator[str]:
    from headscope.claims.reading import run_findings

    other = run["same_roles"].attrs
    yield (
        f"{size_of(run.manifest['model'])}, and {other['other_model']}: "
        f"{grid_size(other['other_layers'], other['other_heads'])}"
    )
    yield from run_findings(run.tree)


def _roles_summary(run: Run) -> dict[str, Any]:
    from headscope.claims.reading import run_findings
    from headscope.experiments.comparison.same_roles_section import summary

    return {
        "findings": run_findings(run.tree),
        "compared": run.manifest["compared"],
        **summary(run.tree),
    }


def _check(options: _CompareOptions) -> None:
    """Raise InputError for both a task and a corpus, CorpusError for neither."""
    if options.task is not None:
        shared.refuse_text(options.task, options.corpus, "compare twice, into two run folders")
    elif options.data is not None:
        raise InputError(f"found --data {options.data} and no task; give --task NAME too")
    elif not options.corpus.named:
        raise CorpusError(
            "no inputs to compare the models on; give the examples of a task (--task rte --data "
            "FOLDER), "
            "or one or more of --text, --treebank, --coref, --segments FILE, --frames DIR, --demo"
        )


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
        f"{how_many(counts['examples'], 'input')}, {how_many(counts['tokens'], 'token')}"
    )
    yield from reading_lines(counts, progress, notes)
    yield from filter(
        None, (run.manifest.get("long"), control_words(run.tree), *run_findings(run.tree))
    )
