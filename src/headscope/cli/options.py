"""Which options do several commands share?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headscope.errors import CorpusError, InputError

if TYPE_CHECKING:
    from headscope.corpus import Corpus

FILE = click.Path(path_type=Path)


def corpus_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """What to read: one option or more, each any number of times."""
    for option in reversed(
        [
            click.option("--demo", is_flag=True,
                         help="The bundled corpus, 14 documents."),
            click.option("--text", type=FILE, multiple=True, help="Plain text, UTF-8."),
            click.option("--treebank", type=FILE, multiple=True, help="CoNLL-U or CoNLL-X."),
            click.option("--coref", type=FILE, multiple=True,
                         help="Coreference: CoNLL-2012, LitBank, CorefUD or GAP."),
            click.option("--frames", type=FILE, multiple=True, metavar="DIR",
                         help="FrameNet 1.5 or 1.7, as it is shipped."),
            click.option("--segments", type=FILE, multiple=True, help="JSON lines."),
            click.option("--annotate", metavar="PARSER",
                         help="spacy:MODEL or stanza:LANG cuts --text and --segments into "
                         "sentences, tags and parses them; kept beside the file."),
            click.option(
                "--documents", type=click.Choice(["blank-line", "file", "heading"]),
                default="blank-line", show_default=True,
                help="What separates the documents of --text; heading: lines like '= Title ='.",
            ),
            click.option(
                "--passages", type=click.Choice(["packed", "line"]), default="packed",
                show_default=True,
                help="--text: sentences packed into windows [CLS] A [SEP] B [SEP], or by line.",
            ),
            click.option(
                "--on-error", type=click.Choice(["stop", "skip"]), default="stop",
                show_default=True,
                help="What to do with a malformed part; skip counts and names it.",
            ),
        ]
    ):  # fmt: skip
        function = option(function)
    return function


CORPORA = ("demo", "text", "treebank", "coref", "frames", "segments")
READING = (*CORPORA, "annotate", "documents", "passages", "on_error")


def read_corpus(given: Mapping[str, Any], *, limit: int | None = None) -> Corpus:
    """The corpus that the options name; nothing is annotated yet.

    given   values of READING, by name
    limit   documents that will be read at most
    raises  CorpusError if they name none; InputError for --annotate without plain text, or with a
            parser that is not installed
    """
    from headscope.corpus import Concatenation

    parser = given["annotate"]
    if not any(given[name] for name in CORPORA):
        raise CorpusError(
            "no corpus; give one or more of --text FILE, --treebank FILE, --coref FILE, "
            "--frames DIR, --segments FILE, --demo"
        )
    if parser is not None and not (given["text"] or given["segments"]):
        raise InputError(
            f"found --annotate {parser} and no plain text; wanted --text FILE or --segments FILE "
            "beside it"
        )
    parts = list(_corpora(given, limit))
    return parts[0] if len(parts) == 1 else Concatenation(parts)


def _corpora(given: Mapping[str, Any], limit: int | None) -> Iterator[Corpus]:
    from headscope import corpus as kinds

    def plain(corpus: Corpus) -> Corpus:
        name = given["annotate"]
        return corpus if name is None else kinds.AnnotatedCorpus(corpus, name, limit=limit)

    documents, on_error = given["documents"].replace("-", "_"), given["on_error"]
    if given["demo"]:
        yield kinds.demo_corpus()
    if given["text"]:
        passages = given["passages"]
        yield plain(
            kinds.TextCorpus(
                given["text"], documents=documents, passages=passages, on_error=on_error
            )
        )
    if given["treebank"]:
        yield kinds.TreebankCorpus(given["treebank"], on_error=on_error)
    if given["coref"]:
        yield kinds.CorefCorpus(given["coref"], on_error=on_error)
    for folder in given["frames"]:
        yield kinds.FramesCorpus(folder, on_error=on_error)
    if given["segments"]:
        yield plain(kinds.SegmentsCorpus(given["segments"], on_error=on_error))


def model_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """How to load the model."""
    for option in reversed(
        [
            click.option("--device", default="cpu", show_default=True,
                         help="cpu, cuda, cuda:1 or mps."),
            click.option(
                "--dtype", default="float32", show_default=True,
                type=click.Choice(["float32", "float64", "bfloat16", "float16", "auto"]),
                help="bfloat16 errs by up to 6e-3 nats in entropies.",
            ),
            click.option("--revision", help="Branch, tag or commit of a hub model."),
            click.option(
                "--trust-remote-code", is_flag=True,
                help="Let the model's repository run its own code on this machine.",
            ),
        ]
    ):  # fmt: skip
        function = option(function)
    return function


def linguistic_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """What the analyses of language are asked; short for several --set."""
    for option in reversed(
        [
            click.option("--relations", metavar="LABELS",
                         help="Of the trees: only these, say nsubj,obj; all by default."),
            click.option("--subtypes", type=click.Choice(["keep", "fold"]),
                         help="nsubj:pass as a relation of its own (default), or as nsubj."),
            click.option("--measure", type=click.Choice(["attention", "weighted_norm"]),
                         help="Whether a head looks there (default), or gathers it: ‖αf(x)‖."),
        ]
    ):  # fmt: skip
        function = option(function)
    return function


def analysis_options(
    given: Mapping[str, Any], analyses: Sequence[str] | None
) -> dict[str, dict[str, Any]]:
    """What --set, --relations, --subtypes and --measure say together: {analysis: {option: value}}.

    analyses  names of those that are run; None for all
    raises    InputError if two of them contradict each other, or no analysis has the option
    """
    from headscope.run.analysis import choose, known_analyses, options_of

    options = parse_options(given["options"])
    known = known_analyses()
    names = choose(None if analyses is None else tuple(analyses))
    takers = {
        "relations": ["dependency"],
        "subtypes": ["dependency"],
        "measure": [name for name in names if "measure" in options_of(known[name])],
    }
    for option, wanted in takers.items():
        value = given[option]
        if value is None:
            continue
        if not set(wanted) & set(names):
            raise InputError(
                f"found --{option} {value}, and no analysis that has it is run; add "
                "dependency to --analyses"
            )
        for name in wanted:
            if options.setdefault(name, {}).setdefault(option, value) != value:
                raise InputError(
                    f"--{option} {value} contradicts --set {name}.{option}="
                    f"{options[name][option]}; give one of them"
                )
    return options


def parse_options(given: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """`--set entropy.smoothing=1e-4` as {"entropy": {"smoothing": 0.0001}}."""
    options: dict[str, dict[str, Any]] = {}
    for text in given:
        place, equals, value = text.partition("=")
        analysis, dot, name = place.partition(".")
        if not (equals and dot and analysis and name):
            raise InputError(f"--set {text!r}; wanted ANALYSIS.OPTION=VALUE")
        options.setdefault(analysis, {})[name] = _value(value)
    return options


def _value(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
