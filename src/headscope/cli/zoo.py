"""`headscope zoo`: do claims made of one model hold for others?"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from headscope.cli.annotating import annotate
from headscope.cli.long_command import long_command
from headscope.cli.options import (
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
)
from headscope.cli.terminal import complain, say
from headscope.errors import RunStopped

if TYPE_CHECKING:
    from headscope.papers.zoo.run_zoo import Zoo

SECTIONS = {
    "What to read": (*READING, "limit"),
    "What to compute": ("analyses", "options", "relations", "subtypes", "measure", *RANDOM),
    "Lengths": LENGTHS,
    "The models": ("device", "dtype", "revision", "trust_remote_code"),
    "How to run": ("output", *EXECUTING),
}  # fmt: skip


@click.command("zoo", cls=long_command(SECTIONS))
@click.argument("models", nargs=-1, required=True)
@corpus_options
@click.option("-o", "--output", type=FILE, required=True, help="Folder; re-running resumes.")
@click.option("--analyses", help="Comma-separated names; by default those that the claims need.")
@click.option("--set", "options", multiple=True, help="ANALYSIS.OPTION=VALUE, repeatable.")
@linguistic_options
@model_options
@length_options
@run_options
def command(models: tuple[str, ...], **given: Any) -> None:
    """Ask of several models what was claimed of BERT: one table, and pictures side by side.

    MODELS are hub ids, local folders, or `demo`. Each gets a run folder below OUT/models.

    \b
    headscope zoo bert-base-uncased roberta-base gpt2 --treebank dev.conllu -o zoo
    headscope zoo demo ./my-model --text wiki.txt -o zoo
    """  # fmt: skip
    try:
        found = _run(models, given)
    except KeyboardInterrupt as error:  # before, between or after the models
        raise RunStopped("stopped; the same command goes on from what is finished") from error
    if given["as_json"]:
        click.echo(json.dumps(_summary(found), ensure_ascii=True))
    else:
        _tell(found)
    for label, why in found.failed.items():
        complain(f"{label}: {why}")
    if found.failed:
        click.get_current_context().exit(1)


def _run(models: tuple[str, ...], given: dict[str, Any]) -> Zoo:
    # Everything that can be wrong with the request is found before a model is loaded.
    corpus = read_corpus(given, limit=given["limit"])
    settings = run_settings(given)
    from headscope.papers.zoo.model_list import listed_models
    from headscope.run.store import RunFolder

    listed_models(models)
    RunFolder(given["output"]).check()
    for note in annotate(corpus, quiet=given["quiet"]):
        complain(note)
    from headscope.papers.zoo.run_zoo import zoo
    from headscope.run.atlas import Execution
    from headscope.run.engine.memory import keep_few_products, keep_freed_memory

    keep_freed_memory()
    keep_few_products()
    with _Bars(quiet=given["quiet"]) as bars:
        execution = Execution(
            threads=given["threads"], linears=given["linears"], overwrite=given["overwrite"],
            progress=bars, command=["headscope", *sys.argv[1:]],
        )  # fmt: skip
        found = zoo(
            models, corpus, output=given["output"], settings=settings, execution=execution,
            reports=not given["no_report"], begin=bars.begin,
            loading={k: given[k] for k in ("device", "dtype", "revision", "trust_remote_code")},
        )  # fmt: skip
    found.report()
    return found


class _Bars:
    """A bar for the shards of each model in turn."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self.now = Progress(quiet=quiet)

    def __enter__(self) -> _Bars:
        return self

    def begin(self, label: str) -> None:
        """Turn to the next model."""
        self.now.__exit__()
        if not self.quiet:
            complain(label)
        self.now = Progress(quiet=self.quiet)

    def __call__(self, done: int, total: int) -> None:
        """Show that so many shards of this model are finished."""
        self.now(done, total)

    def __exit__(self, *_: object) -> None:
        self.now.__exit__()


def _summary(found: Zoo) -> dict[str, Any]:
    from headscope.papers.zoo.tables import as_json

    page = str(found.path / "report.html")
    runs = {label: str(run.path) for label, run in found.runs.items()}
    return {"zoo": str(found.path), "report": page, "runs": runs, **as_json(found)}


def _tell(found: Zoo) -> None:
    """What was asked of whom, what holds, and where it is."""
    for label, run in found.runs.items():
        counts, model = run.manifest["counts"], run.manifest["model"]
        say(
            f"{label}: {model['layers']} layers × {model['heads']} heads on "
            f"{counts['documents']} documents, {counts['tokens']} tokens"
        )
        for key in ("windowed", "skipped"):
            if counts[key]:
                say(f"{label}: {key}: {counts[key]}")
    for sentence in found.headlines:
        say(f"- {sentence}")
    say(f"claims: {found.path}/claims.csv")
    say(f"report: {found.path}/report.html")
