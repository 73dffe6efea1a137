"""`headscope compare`: what does fine-tuning change in the heads of a model?"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from headscope.cli.annotating import annotate
from headscope.cli.long_command import long_command
from headscope.cli.options import (
    CORPORA,
    FILE,
    READING,
    corpus_options,
    linguistic_options,
    model_options,
    read_corpus,
)
from headscope.cli.running import (
    EXECUTING,
    LENGTHS,
    RANDOM,
    Progress,
    length_options,
    run_options,
    run_settings,
    tell_reading,
)
from headscope.cli.tasking import QUESTION, asked_task, question_options, task_data
from headscope.cli.terminal import say
from headscope.errors import CorpusError, InputError, RunStopped

if TYPE_CHECKING:
    from headscope.corpus import Corpus
    from headscope.model.model import Model
    from headscope.run.finished_run import Run
    from headscope.tasks.task_data import TaskData

SECTIONS = {
    "The examples of a task": QUESTION,
    "Or any text": (*READING, "limit"),
    "What to compute": ("analyses", "options", "relations", "subtypes", "measure", "padded_to",
                        *RANDOM),
    "Lengths": LENGTHS,
    "The models": ("device", "dtype", "base_revision", "revision", "trust_remote_code"),
    "How to run": ("output", *EXECUTING),
}  # fmt: skip
TASK_LENGTH = 128  # tokens, as in BERT's own scripts for GLUE


@click.command("compare", cls=long_command(SECTIONS))
@click.argument("base")
@click.argument("tuned")
@partial(question_options, required=False)
@corpus_options
@click.option("-o", "--output", type=FILE, required=True, help="Run folder; re-running resumes.")
@click.option("--analyses", help="Comma-separated names; by default all that are quick.")
@click.option("--set", "options", multiple=True, help="ANALYSIS.OPTION=VALUE, repeatable.")
@linguistic_options
@click.option("--padded-to", type=click.IntRange(4), metavar="TOKENS",
              help="Also the cosine of padded maps; Kovaleva et al.: 200.")  # fmt: skip
@click.option("--base-revision", help="Branch, tag or commit of BASE on the hub.")
@model_options
@length_options
@run_options
def command(base: str, tuned: str, **given: Any) -> None:
    """Tell what TUNED does differently from BASE, head by head, and write a run with a report.

    Both see the same inputs: the examples of a task, or any text. BASE and TUNED are hub ids, local
    folders, or `demo`; they need one shape and one tokenizer.

    \b
    headscope compare bert-base-uncased bert-rte --task rte --data glue -o run
    headscope compare bert-base-uncased bert-rte --treebank dev.conllu -o run
    headscope compare demo ./checkpoint --text wiki.txt -o run
    """  # fmt: skip
    try:
        _run(base, tuned, given)
    except KeyboardInterrupt as error:  # before, between or after the shards
        raise RunStopped("stopped; the same command goes on from what is finished") from error


def _run(base: str, tuned: str, given: dict[str, Any]) -> None:
    # Everything that can be wrong with the request is found before a model is loaded.
    texts, data = _asked(given, tuned)
    settings = run_settings(given)
    from headscope.run.store import RunFolder

    RunFolder(given["output"]).check()
    notes = [] if texts is None else annotate(texts, quiet=given["quiet"])
    from headscope.experiments.comparison.compare import compare
    from headscope.experiments.comparison.same_inputs import TaskCorpus
    from headscope.run.atlas import Execution
    from headscope.run.engine.memory import keep_few_products, keep_freed_memory

    keep_freed_memory()
    keep_few_products()
    first, second = _load(base, given, "base_revision"), _load(tuned, given, "revision")
    corpus = texts
    if data is not None:
        length = min(given["max_length"] or TASK_LENGTH, first.limit, second.limit)
        settings = replace(settings, max_length=length, limit=None)
        corpus = TaskCorpus(first, second, data, max_length=length)
        notes += [*data.notes, *([corpus.note] if corpus.note else [])]
    assert corpus is not None
    with Progress(quiet=given["quiet"]) as progress:
        execution = Execution(
            threads=given["threads"], linears=given["linears"], overwrite=given["overwrite"],
            progress=progress, command=["headscope", *sys.argv[1:]],
        )  # fmt: skip
        run = compare(
            first, second, corpus, output=given["output"], settings=settings,
            execution=execution, padded_to=given["padded_to"],
        )  # fmt: skip
    if not (given["no_report"] or run.has_report):
        run.report()
    if given["as_json"]:
        click.echo(json.dumps(_summary(run), ensure_ascii=True))
    else:
        _tell(run, progress, notes)


# --- what is asked --------------------------------------------------------------------------


def _asked(given: Mapping[str, Any], tuned: str) -> tuple[Corpus | None, TaskData | None]:
    """The examples of a task, or a corpus; InputError for both, CorpusError for neither."""
    texts = [f"--{name}" for name in CORPORA if given[name]]
    if given["task"] is None:
        if given["data"] is not None:
            raise InputError(f"found --data {given['data']} and no task; give --task NAME too")
        if not texts:
            raise CorpusError(
                "nothing to compare them on; give the examples of a task (--task rte --data "
                "FOLDER), or one or more of --text, --treebank, --coref, --segments FILE, --frames "
                "DIR, --demo"
            )
        return read_corpus(given, limit=given["limit"]), None
    if texts or given["annotate"]:
        raise InputError(
            f"found --task {given['task']} and {', '.join(texts) or '--annotate'}; wanted one of "
            "both: compare twice, into two run folders"
        )
    return None, task_data(given, asked_task(given, tuned))


def _load(name: str, given: Mapping[str, Any], revision: str) -> Model:
    from headscope.model.model import load

    options = {k: given[k] for k in ("device", "dtype", "trust_remote_code")}
    return load(name, revision=given[revision], **options)


# --- what is said ---------------------------------------------------------------------------


def _summary(run: Run) -> dict[str, Any]:
    m = run.manifest
    report = str(run.path / "report.html") if run.path and run.has_report else None
    kept = ("base", "model", "counts", "analyses", "fingerprint", "linears", "shards")
    told = {"findings": _findings(run), **{k: m[k] for k in kept}}
    return {"run": str(run.path), "report": report, **told}


def _findings(run: Run) -> list[str]:
    from headscope.experiments.comparison.findings import findings

    return findings(run.tree)


def _tell(run: Run, progress: Progress, notes: Sequence[str]) -> None:
    """What was compared on what, what came of it, and where it is."""
    from headscope.core.results import counted

    m, counts = run.manifest, run.manifest["counts"]
    say(
        f"{m['base']['name']} and {m['model']['name']}: {m['model']['layers']} layers × "
        f"{m['model']['heads']} heads on {counts['documents']} {counted(run.tree)}, "
        f"{counts['examples']} inputs, {counts['tokens']} tokens"
    )
    tell_reading(counts, progress, notes)
    for finding in _findings(run):
        say(finding)
    page = run.has_report
    say(f"report: {run.path}/report.html" if page else f"results: {run.path}/atlas.nc")
