"""Which options do several commands share?"""

from __future__ import annotations

from collections.abc import Callable
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
            click.option("--demo", is_flag=True, help="The bundled corpus, 195 sentences."),
            click.option("--text", type=FILE, multiple=True, help="Plain text, UTF-8."),
            click.option("--treebank", type=FILE, multiple=True, help="CoNLL-U or CoNLL-X."),
            click.option("--segments", type=FILE, multiple=True, help="JSON lines."),
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
        ]
    ):  # fmt: skip
        function = option(function)
    return function


def read_corpus(
    *,
    demo: bool,
    text: tuple[Path, ...],
    treebank: tuple[Path, ...],
    segments: tuple[Path, ...],
    documents: str,
    passages: str,
) -> Corpus:
    """The corpus that the options name; raises CorpusError if they name none."""
    from headscope.corpus import (
        Concatenation,
        SegmentsCorpus,
        TextCorpus,
        TreebankCorpus,
        demo_corpus,
    )

    parts: list[Corpus] = []
    if demo:
        parts.append(demo_corpus())
    if text:
        parts.append(
            TextCorpus(text, documents=documents.replace("-", "_"), passages=passages)  # type: ignore[arg-type]
        )
    if treebank:
        parts.append(TreebankCorpus(treebank))
    if segments:
        parts.append(SegmentsCorpus(segments))
    if not parts:
        raise CorpusError(
            "no corpus; give one or more of --text FILE, --treebank FILE, --segments FILE, --demo"
        )
    return parts[0] if len(parts) == 1 else Concatenation(parts)


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
