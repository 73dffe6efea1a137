"""Options that several commands share, in groups, and the corpus and settings that they ask for."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from headscope.cli.terminal_output import ProgressBar, say
from headscope.cli.typed_command import flag, option, several
from headscope.errors import CorpusError, InputError

if TYPE_CHECKING:
    from headscope.corpus import Corpus
    from headscope.run.atlas import Execution
    from headscope.run.finished_run import Run
    from headscope.run.settings import Settings

CORPORA = ("demo", "text", "treebank", "coref", "frames", "segments")


@dataclass(frozen=True, kw_only=True)
class CorpusOptions:
    """What to read: one corpus or more, each option any number of times."""

    demo: bool = flag("The bundled corpus, 14 documents.")
    text: tuple[Path, ...] = several("Plain text, UTF-8.")
    treebank: tuple[Path, ...] = several("CoNLL-U or CoNLL-X.")
    coref: tuple[Path, ...] = several("Coreference: CoNLL-2012, LitBank, CorefUD or GAP.")
    frames: tuple[Path, ...] = several("FrameNet 1.5 or 1.7, as it is shipped.", metavar="DIR")
    segments: tuple[Path, ...] = several("JSON lines.")
    annotate: str | None = option(
        "Split --text and --segments into sentences, tag and parse them with spacy:MODEL or "
        "stanza:LANG; kept beside the file.",
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
        "What to do with a malformed part; skip counts and names it.", default="stop"
    )

    @property
    def named(self) -> list[str]:
        """The options that name a corpus, as they are typed."""
        return [f"--{name}" for name in CORPORA if getattr(self, name)]


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """How to load the model: the arguments of `load` and `load_for_task`."""

    device: str = option("cpu, cuda, cuda:1 or mps.", default="cpu")
    dtype: Literal["float32", "float64", "bfloat16", "float16", "auto"] = option(
        "Precision; bfloat16 errs by up to 6e-3 nats in entropies.", default="float32"
    )
    revision: str | None = option("Branch, tag or commit of a hub model.")
    trust_remote_code: bool = flag("Let the model's repository run its own code on this machine.")


@dataclass(frozen=True, kw_only=True)
class AnalysisOptions:
    """Which analyses are run, and with which options; the last three are short for --set."""

    analyses: str | None = option("Comma-separated names; all by default (`headscope analyses`).")
    options: tuple[str, ...] = several("ANALYSIS.OPTION=VALUE, repeatable.", names="--set")
    relations: str | None = option(
        "Dependency relations to score, say nsubj,obj; all by default.", metavar="LABELS"
    )
    subtypes: Literal["keep", "fold"] | None = option(
        "nsubj:pass as a relation of its own (keep, the default) or as nsubj (fold)."
    )
    measure: Literal["attention", "weighted_norm"] | None = option(
        "Score heads by attention (default) or by the weighted norm ‖αf(x)‖."
    )


@dataclass(frozen=True, kw_only=True)
class LengthOptions:
    """How long an input may be, and what happens to longer ones."""

    max_length: int | None = option(
        "Tokens of an input at most; by default 128 for packed text, else up to 512."
    )
    long: Literal["window", "skip", "error"] = option(
        "What to do with anything longer.", default="window"
    )
    segment_ids: Literal["auto", "zeros"] = option(
        "zeros: all segment ids are 0, as in Clark et al.'s script.", default="auto"
    )


@dataclass(frozen=True, kw_only=True)
class ChanceOptions:
    """What is left to chance in a run over a corpus."""

    seed: int = option("Seed of all random draws.", default=0)
    replicates: int = option("Bootstrap replicates.", default=200)


@dataclass(frozen=True, kw_only=True)
class BootstrapOptions:
    """What is left to chance in a run over the examples of a task."""

    replicates: int = option("Bootstrap replicates.", default=1000, minimum=0)
    seed: int = option("Seed of all random draws.", default=0, minimum=0)


@dataclass(frozen=True, kw_only=True)
class BatchOptions:
    """How a corpus is divided, and by how many threads it is computed."""

    batch_tokens: int = option("Tokens of a batch at most, padding included.", default=2048)
    shard_tokens: int = option("Tokens of a shard; finished shards are kept.", default=32_768)
    threads: int | None = option("Threads of each process; all cores shared by default.", minimum=1)


@dataclass(frozen=True, kw_only=True)
class LinearsOption:
    """Who multiplies matrices."""

    linears: Literal["auto", "onednn", "stock"] = option(
        "Library for matrix products on a CPU; auto takes the faster one.", default="auto"
    )


@dataclass(frozen=True, kw_only=True)
class RunOptions(LinearsOption):
    """What every command that fills a run folder is asked."""

    overwrite: bool = flag("Replace a run with other settings in the folder.")
    no_report: bool = flag("Results only; `headscope report` makes the rest.")
    quiet: bool = flag("No progress bar.")
    as_json: bool = flag("A machine-readable summary on stdout.", names="--json")


def output_option(text: str, *, metavar: str | None = None, heading: str = "") -> Any:
    """`-o`, `--output`, which is required."""
    return option(text, names="-o --output", required=True, heading=heading, metavar=metavar)


# --- what the options ask for ---------------------------------------------------------------


def command_line() -> list[str]:
    """The command as it was typed, for the manifest and the report."""
    return ["headscope", *sys.argv[1:]]


def comma_separated(text: str | None) -> tuple[str, ...]:
    """`a, b` as ("a", "b")."""
    return tuple(filter(None, map(str.strip, (text or "").split(","))))


def read_corpus(given: CorpusOptions, *, limit: int | None = None) -> Corpus:
    """The corpus that the options name; nothing is annotated yet.

    limit   documents that will be read at most
    raises  CorpusError if they name none; InputError for --annotate without plain text, or with a
            parser that is not installed
    """
    from headscope.corpus import Concatenation

    if not given.named:
        raise CorpusError(
            "no corpus; give one or more of --text FILE, --treebank FILE, --coref FILE, "
            "--frames DIR, --segments FILE, --demo"
        )
    if given.annotate is not None and not (given.text or given.segments):
        raise InputError(
            f"found --annotate {given.annotate} and no plain text; wanted --text FILE or "
            "--segments FILE beside it"
        )
    parts = list(_corpora(given, limit))
    return parts[0] if len(parts) == 1 else Concatenation(parts)


def _corpora(given: CorpusOptions, limit: int | None) -> Iterator[Corpus]:
    from headscope import corpus as kinds

    def plain(corpus: Corpus) -> Corpus:
        parser = given.annotate
        return corpus if parser is None else kinds.AnnotatedCorpus(corpus, parser, limit=limit)

    on_error = given.on_error
    if given.demo:
        yield kinds.demo_corpus()
    if given.text:
        documents = "blank_line" if given.documents == "blank-line" else given.documents
        yield plain(
            kinds.TextCorpus(
                given.text, documents=documents, passages=given.passages, on_error=on_error
            )
        )
    if given.treebank:
        yield kinds.TreebankCorpus(given.treebank, on_error=on_error)
    if given.coref:
        yield kinds.CorefCorpus(given.coref, on_error=on_error)
    for folder in given.frames:
        yield kinds.FramesCorpus(folder, on_error=on_error)
    if given.segments:
        yield plain(kinds.SegmentsCorpus(given.segments, on_error=on_error))


def corpora_by_name(given: CorpusOptions, *, limit: int) -> Iterator[tuple[str, Corpus]]:
    """Each file as a corpus, named after itself; `demo` for the bundled one."""
    read_corpus(given, limit=limit)  # complains of options that do not go together
    nothing = replace(
        given, demo=False, text=(), treebank=(), coref=(), frames=(), segments=(), annotate=None
    )
    if given.demo:
        yield "demo", read_corpus(replace(nothing, demo=True))
    files = [(kind, file) for kind in CORPORA[1:] for file in _once(getattr(given, kind))]
    names = ["demo"] * given.demo + [file.name for _, file in files]
    for kind, file in files:
        parser = given.annotate if kind in ("text", "segments") else None
        name = file.name if names.count(file.name) == 1 else f"{kind} {file}"
        one: dict[str, Any] = {kind: (file,), "annotate": parser}
        yield name, read_corpus(replace(nothing, **one), limit=limit)


def _once(files: Sequence[Path]) -> list[Path]:
    return list(dict.fromkeys(files))


def check_run_folder(folder: Path) -> None:
    """Raise InputError for a folder that cannot hold a run, before anything is computed."""
    from headscope.run.store import RunFolder

    RunFolder(folder).check()


def execution_of(
    how: RunOptions, batches: BatchOptions, progress: ProgressBar, *, workers: int = 1
) -> Execution:
    """How a run over a corpus is executed."""
    from headscope.run.atlas import Execution

    return Execution(
        workers=workers,
        threads=batches.threads,
        linears=how.linears,
        overwrite=how.overwrite,
        progress=progress,
        command=command_line(),
    )


def run_settings(
    asked: AnalysisOptions,
    chance: ChanceOptions,
    lengths: LengthOptions,
    batches: BatchOptions,
    *,
    limit: int | None,
) -> Settings:
    """The settings of a run over a corpus, at most `limit` documents of it."""
    from headscope.run.settings import Settings

    names = None if asked.analyses is None else comma_separated(asked.analyses)
    return Settings(
        analyses=names,
        options=analysis_options(asked, names),
        limit=limit,
        batch_tokens=batches.batch_tokens,
        shard_tokens=batches.shard_tokens,
        **asdict(chance),
        **asdict(lengths),
    )


def analysis_options(
    given: AnalysisOptions, analyses: Sequence[str] | None
) -> dict[str, dict[str, Any]]:
    """What --set, --relations, --subtypes and --measure say together: {analysis: {option: value}}.

    analyses  names of those that are run; None for all
    raises    InputError if two of them contradict each other, or no analysis has the option
    """
    from headscope.run.analysis import choose, known_analyses, options_of

    options = parse_options(given.options)
    known = known_analyses()
    names = choose(None if analyses is None else tuple(analyses))
    for name in ("relations", "subtypes", "measure"):
        value = getattr(given, name)
        if value is None:
            continue
        takers = [analysis for analysis in known if name in options_of(known[analysis])]
        if not set(takers) & set(names):
            raise InputError(
                f"found --{name} {value}, and no analysis that has it is run; add "
                f"{' or '.join(takers)} to --analyses"
            )
        for analysis in filter(takers.__contains__, names):
            if options.setdefault(analysis, {}).setdefault(name, value) != value:
                raise InputError(
                    f"--{name} {value} contradicts --set {analysis}.{name}="
                    f"{options[analysis][name]}; give one of them"
                )
    return options


def parse_options(given: Sequence[str]) -> dict[str, dict[str, Any]]:
    """`--set flow.layers=3` as {"flow": {"layers": 3}}."""
    options: dict[str, dict[str, Any]] = {}
    for text in given:
        place, equals, value = text.partition("=")
        analysis, dot, name = place.partition(".")
        if not (equals and dot and analysis and name):
            raise InputError(f"--set {text!r}; wanted ANALYSIS.OPTION=VALUE")
        options.setdefault(analysis, {})[name] = _parsed(value)
    return options


def _parsed(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


# --- what a run came to -----------------------------------------------------------------------


def conclude(
    run: Run,
    how: RunOptions,
    *,
    lines: Callable[[Run], Iterable[str]],
    summary: Callable[[Run], Mapping[str, Any]],
) -> None:
    """Write the report, unless --no-report says otherwise, and print what the run came to.

    lines    of text, before the one that says where the run is
    summary  for --json, beside what the summaries of all commands hold
    """
    if not (how.no_report or run.has_report):
        run.report()
    report = f"{run.path}/report.html" if run.has_report else None
    if how.as_json:
        kept = {key: run.manifest[key] for key in ("model", "counts", "fingerprint", "linears")}
        told = {"run": str(run.path), "report": report, **kept, **summary(run)}
        click.echo(json.dumps(told, ensure_ascii=True))
        return
    for line in lines(run):
        say(line)
    say(f"results: {run.path}/atlas.nc" if report is None else f"report: {report}")
