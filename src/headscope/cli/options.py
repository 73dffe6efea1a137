"""Options that several commands share, in groups, and the corpus and settings that they ask for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import click
from click import get_current_context

from headscope.cli.defaults import in_effect
from headscope.cli.terminal_output import ProgressBar, annotate, complain, tell
from headscope.core.head_names import options as naming
from headscope.core.options import Options, flag, option, several
from headscope.core.wording import precision_in_words
from headscope.errors import CorpusError, InputError
from headscope.run.execution import Execution, Keeping, Linears, Sharing
from headscope.run.processes import noting_failure

if TYPE_CHECKING:
    from headscope.corpus import Corpus
    from headscope.run.store import Run


FileName = Annotated[str, click.Path()]  # a path, a folder, a pattern or a URL
CORPORA = ("demo", "text", "treebank", "coref", "frames", "segments", "dataset")


def check_parent(*files: Path | None) -> None:
    """Raise InputError for a file in a folder that does not exist: it may be mistyped."""
    for file in files:
        if file is not None and not file.parent.is_dir():
            raise InputError(
                f"there is no folder {file.parent} for {file.name}; make it first, or choose "
                "another place"
            )


def json_flag(text: str = "A machine-readable summary on stdout.") -> Any:
    """The field of `--json`."""
    return flag(text, names="--json")


class CorpusOptions(Options):
    """What to read: one corpus or more, each option any number of times."""

    demo: bool = flag("The bundled corpus, 14 documents.")
    text: tuple[FileName, ...] = several(
        "Plain text, UTF-8, or a format of a plug-in; with --column, Parquet, JSON lines."
    )
    treebank: tuple[FileName, ...] = several("CoNLL-U or CoNLL-X.")
    coref: tuple[FileName, ...] = several("Coreference: CoNLL-2012, LitBank, CorefUD or GAP.")
    frames: tuple[Path, ...] = several("FrameNet 1.5 or 1.7, as it is shipped.", metavar="DIR")
    segments: tuple[FileName, ...] = several("JSON lines.")
    dataset: tuple[str, ...] = several(
        "A dataset of Hugging Face, streamed.", metavar="NAME[/CONFIG][:SPLIT]"
    )
    column: str | None = option("The texts of --dataset ('text' by default), or of --text.")
    annotate: str | None = option(
        "Split --text and --segments into sentences, tag and parse them with spacy:MODEL or "
        "stanza:LANG; kept in the user's cache.",
        metavar="PARSER",
    )
    documents: Literal["blank-line", "file", "heading"] = option(
        "What separates the documents of --text; heading: lines like '= Title ='.",
        default="blank-line",
    )
    passages: Literal["packed", "line"] = option(
        "How --text becomes inputs: packed into windows [CLS] A [SEP] B [SEP], or line by line.",
        default="packed",
    )
    on_error: Literal["stop", "skip"] = option(
        "What to do with a malformed part; skip counts and names it.", "stop"
    )
    format: Literal["auto", "text"] = option(
        "text: files of --text are plain text, whatever they look like.", "auto"
    )

    @property
    def named(self) -> list[str]:
        """The options that name a corpus, as they are typed."""
        return [f"--{name}" for name in CORPORA if getattr(self, name)]


class RunOptions(Keeping, Linears, heading="How to run"):
    """Options of every command that fills a run folder."""

    no_report: bool = flag("Results only; `headscope report` makes the rest.")
    quiet: bool = flag("No progress bar.")
    as_json: bool = json_flag()

    def reporting(self, run: Run) -> Self:
        """The same without a report where another process writes it, or is still there."""
        return self


class SharedRunOptions(Sharing, RunOptions, heading="How to run"):
    """The same, of a command whose work several processes can share."""

    def reporting(self, run: Run) -> Self:
        """The same without a report where another process writes it, or is still there."""
        if self.shard is None or self.no_report or run.path is None:
            return self
        last = not run.elsewhere and is_free(run.path, f"headscope report {run.path}")
        return replace(self, no_report=not last)


# --- what the options ask for ---------------------------------------------------------------


def command_line() -> list[str]:
    """The command as it was typed, and options that are set elsewhere, for manifest and report."""
    words = ["headscope", *sys.argv[1:]]
    words += [word for _, some in in_effect(get_current_context(silent=True)) for word in some]
    for at, word in enumerate(words):
        if word == "--shard" or word.startswith("--shard="):  # the run is that of any process
            return words[:at] + words[at + 1 + (word == "--shard") :]
    return words


def read_corpus(options: CorpusOptions, *, limit: int | None = None) -> Corpus:
    """The corpus that the options name; nothing is annotated yet.

    limit   documents that will be read at most
    raises  CorpusError if they name none; InputError for --annotate without plain text, or with a
            parser that is not installed
    """
    from headscope.corpus import Concatenation

    if not options.named:
        raise CorpusError(
            "no corpus; give one or more of --text FILE, --treebank FILE, --coref FILE, "
            "--frames DIR, --segments FILE, --dataset NAME, --demo"
        )
    if options.annotate is not None and not (options.text or options.segments):
        raise InputError(
            f"found --annotate {options.annotate} and no plain text; wanted --text FILE or "
            "--segments FILE beside it"
        )
    if options.column is not None and not (options.text or options.dataset):
        raise InputError(f"found --column {options.column}; wanted --text or --dataset beside it")
    if options.demo and len(options.named) > 1:
        complain(f"{' and '.join(options.named)}: all of them are read, as one corpus")
    parts = list(_corpora(options, limit))
    return parts[0] if len(parts) == 1 else Concatenation(parts)


def _corpora(options: CorpusOptions, limit: int | None) -> Iterator[Corpus]:
    from headscope import corpus as kinds
    from headscope.corpus.places import is_of_another_package

    def plain(corpus: Corpus) -> Corpus:
        parser = options.annotate
        return corpus if parser is None else kinds.AnnotatedCorpus(corpus, parser, limit=limit)

    on_error = options.on_error
    if options.demo:
        yield kinds.demo_corpus()
    others = [name for name in options.text if is_of_another_package(name)]
    text = [name for name in options.text if name not in others]
    if others:
        yield plain(kinds.corpus_of(others))
    if text and options.column is not None:
        column, passages = options.column, options.passages
        yield plain(kinds.ColumnCorpus(text, column=column, passages=passages, on_error=on_error))
    elif text:
        documents = "blank_line" if options.documents == "blank-line" else options.documents
        yield plain(
            kinds.TextCorpus(
                text,
                documents=documents,
                passages=options.passages,
                on_error=on_error,
                format=options.format,
            )
        )
    if options.treebank:
        yield kinds.TreebankCorpus(options.treebank, on_error=on_error)
    if options.coref:
        yield kinds.CorefCorpus(options.coref, on_error=on_error)
    for folder in options.frames:
        yield kinds.FramesCorpus(folder, on_error=on_error)
    if options.segments:
        yield plain(kinds.SegmentsCorpus(options.segments, on_error=on_error))
    for name in options.dataset:
        yield kinds.DatasetCorpus(name, options.column or "text", options.passages)


def corpora_by_name(options: CorpusOptions, *, limit: int) -> Iterator[tuple[str, Corpus]]:
    """Each file as a corpus, named after itself; `demo` for the bundled one."""
    read_corpus(options, limit=limit)  # complains of options that do not go together
    nothing: dict[str, Any] = dict.fromkeys(CORPORA[1:], ())
    if options.demo:
        yield "demo", read_corpus(replace(options, **nothing, annotate=None))
    files = [(kind, file) for kind in CORPORA[1:] for file in dict.fromkeys(getattr(options, kind))]
    names = ["demo"] * options.demo + [Path(file).name for _, file in files]
    for kind, file in files:
        parser = options.annotate if kind in ("text", "segments") else None
        name = Path(file).name
        name = name if names.count(name) == 1 else f"{kind} {file}"
        column = options.column if kind in ("text", "dataset") else None
        one: dict[str, Any] = nothing | {kind: (file,), "annotate": parser, "column": column}
        yield name, read_corpus(replace(options, demo=False, **one), limit=limit)


def refuse_text(task: object, corpus: CorpusOptions, why: str) -> None:
    """Raise InputError where a corpus is named beside the task; `why` only one will do."""
    if corpus.named or corpus.annotate:
        raise InputError(
            f"found --task {task} and {', '.join(corpus.named) or '--annotate'}; wanted only "
            f"one of them: {why}"
        )


def hold(output: Path) -> None:
    """Hold the place of the results until the command ends; RunFolderError where another does."""
    from headscope.core.whole_file import held

    click.get_current_context().with_resource(held(output))


@contextmanager
def reading_inputs(options: Any) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Inside the context a command reads inputs of its corpus, beside a bar: its corpus and
    execution, and notes of what annotates the corpus.
    """
    with (
        noting_failure(options.output, options.shard),
        ProgressBar(quiet=options.quiet, unit="inputs") as bar,
    ):
        corpus = read_corpus(options.corpus, limit=options.limit)
        notes = annotate(corpus, quiet=options.quiet)
        yield {"corpus": corpus, "execution": execution_of(bar, options)}, notes


def execution_of(progress: ProgressBar | None, *options: Options) -> Execution:
    """How a run is executed."""
    own: dict[str, Any] = {"progress": progress, "command": command_line()}
    return Execution.of(*options, **own)


def make_report(run: Run) -> None:
    """The report, where it is not there; one whose names count from 0 is made in any case."""
    if naming.zero_based or not run.has_report:
        run.report()


def conclude(
    run: Run, how: RunOptions, *, lines: Iterable[str], summary: Callable[[Run], Mapping[str, Any]]
) -> None:
    """Write the report, unless --no-report says otherwise, and print what the run came to.

    lines    of text, before the one that says where the run is
    summary  for --json, beside what the summaries of all commands hold
    """

    how = how.reporting(run)
    if not how.no_report:
        make_report(run)
    report = f"{run.path}/report.html" if run.has_report else None
    content: dict[str, Any] | None = None
    with run.showing():
        if how.as_json:
            kept = {key: run.manifest[key] for key in ("model", "counts", "fingerprint", "linears")}
            kept |= {"notes": list(run.notes)} if run.notes else {}
            content = {"run": str(run.path), "report": report, **kept, **summary(run)}
        last = f"results: {run.path}/atlas.nc" if report is None else f"report: {report}"
        dtype = str(run.manifest["spec"].get("model", {}).get("dtype"))
        notes = (f"note: {one}" for one in (*run.notes, precision_in_words(dtype)) if one)
        lines = [*notes, *lines, last] if content is None else ()
    tell(lines, content)


def is_free(output: Path, instead: str) -> bool:
    """Whether a run folder is free within a minute: processes that have shared it soon see its end.

    Else says what to do `instead`.
    """
    from headscope.core.whole_file import held

    with suppress(InputError), held(output, patience=60):
        return True
    complain(f"another process is in {output}; when it has ended: {instead}")
    return False
