"""`headscope patterns`: label maps by eye, and measure how far annotators agree.

The commands that train and apply the classifier stand in `cli.patterns_classifier`.
"""

from __future__ import annotations

import json
import math
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import combinations, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headscope.cli.options import CorpusOptions, ModelOptions, corpora_by_name, output_option
from headscope.cli.patterns_classifier import apply_command, train_command
from headscope.cli.terminal_output import annotate, say
from headscope.cli.typed_command import argument, flag, group, option, typed_command
from headscope.errors import CorpusError, InputError

if TYPE_CHECKING:
    from headscope.corpus import Corpus
    from headscope.corpus.document import Example
    from headscope.experiments.map_classifier.annotation_session import Agreement, Drawn, Session
    from headscope.model.model import Model


@click.group("patterns", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Tell of which of five classes the map of a head is (Kovaleva et al. 2019).

    \b
    headscope patterns annotate demo --demo -o session
    headscope patterns agreement session
    headscope patterns train --labels session -o classifier
    headscope patterns apply demo --demo -o classes
    """


@dataclass(frozen=True, kw_only=True)
class AnnotateOptions:
    """What `headscope patterns annotate` is asked."""

    models: tuple[str, ...] = argument(default=(), metavar="[MODEL]...")
    output: Path = output_option(
        "Folder of the session; one that exists is resumed.",
        metavar="SESSION",
        heading="The session",
    )
    annotator: str = option("Name of the person who labels; each has a file.", default="a")
    sheets: bool = flag("Contact sheets (PNG) to label away from a screen.")
    port: int = option(
        "Port of the page; by default any that is free.",
        default=0,
        type=click.IntRange(0, 65535),
        show_default=False,
    )
    no_browser: bool = flag("Only print the address of the page.")
    as_json: bool = flag("A machine-readable summary on stdout.", names="--json")
    maps: int = option(
        "Maps in all, drawn evenly from models, layers and texts.",
        default=400,
        minimum=1,
        heading="A new session: which maps",
    )
    limit: int = option("Documents of each file that are read at most.", default=500, minimum=1)
    max_length: int = option("Tokens of an input at most, if the model takes so many.", default=128)
    seed: int = option("Seed of all random draws.", default=0, minimum=0)
    quiet: bool = flag("No progress bar.")
    corpus: CorpusOptions = group("A new session: what to read")
    loading: ModelOptions = group("A new session: the models")


@typed_command("annotate", AnnotateOptions)
def annotate_command(given: AnnotateOptions) -> None:
    """Label maps by eye: keys 1 to 5, in a browser.

    A new SESSION draws maps from every MODEL and every file alike, and hides which is which. A
    second annotator gives another --annotator.

    \b
    headscope patterns annotate demo --demo -o session
    headscope patterns annotate demo my-model --text wiki.txt --segments pairs.jsonl -o session
    headscope patterns annotate -o session --annotator b
    headscope patterns annotate -o session --sheets
    """
    from headscope.experiments.map_classifier.annotation_session import Session, checked_name

    checked_name(given.annotator)
    resumed = Session.is_one(given.output)
    session = Session(given.output) if resumed else _new_session(given)
    session.labels(given.annotator)  # raises for a name or a file that will not do
    if not given.as_json:
        _introduce(session, given.annotator, told_again=resumed and bool(given.models))
    if given.sheets:
        _sheets(session, given)
    else:
        _serve(session, given)


@dataclass(frozen=True, kw_only=True)
class AgreementOptions:
    """What `headscope patterns agreement` is asked."""

    session: Path = argument()
    as_json: bool = flag("The same as JSON.", names="--json")


@typed_command("agreement", AgreementOptions)
def agreement_command(given: AgreementOptions) -> None:
    """How far every two annotators of SESSION agree: Cohen's kappa, and where they differ."""
    from headscope.experiments.map_classifier.annotation_session import Session, agreement

    session = Session(given.session)
    names = session.annotators()
    if len(names) < 2:
        raise InputError(
            f"{given.session}: found labels of {', '.join(names) or 'nobody'}; wanted two "
            f"annotators: headscope patterns annotate -o {given.session} --annotator NAME"
        )
    labels = {name: session.labels(name) for name in names}
    pairs = [(a, b, agreement(labels[a], labels[b])) for a, b in combinations(names, 2)]
    if given.as_json:
        from headscope.analyses.patterns.classes import NAMES

        rows = [_as_json(*pair) for pair in pairs]
        summary = {"session": str(given.session), "classes": NAMES, "pairs": rows}
        click.echo(json.dumps(summary, ensure_ascii=True))
        return
    for first, second, agreed in pairs:
        _tell(first, second, agreed)


for each in (train_command, apply_command, annotate_command, agreement_command):
    command.add_command(each)


# --- a new session --------------------------------------------------------------------------


def _new_session(given: AnnotateOptions) -> Session:
    """Draw maps from every model and text; all that can be wrong is found as early as it can."""
    if not given.models:
        raise click.UsageError(
            f"{given.output} is no session yet; wanted a MODEL and a corpus to draw maps from"
        )
    models = list(dict.fromkeys(given.models))
    if given.maps < len(models):
        raise click.UsageError(f"found {len(models)} models; wanted at least as many --maps")
    texts = dict(corpora_by_name(given.corpus, limit=given.limit))
    from headscope.experiments.map_classifier.annotation_session import Session, shuffled

    for corpus in texts.values():
        for note in annotate(corpus, quiet=given.quiet):
            if not given.as_json:
                say(note)
    drawn: list[Drawn] = []
    for place, name in enumerate(models):
        drawn += _drawn(name, texts, (given.maps + place) // len(models), given)
    return Session.create(given.output, shuffled(drawn, seed=given.seed))


def _drawn(name: str, texts: dict[str, Corpus], count: int, given: AnnotateOptions) -> list[Drawn]:
    """That many maps of one model."""
    from headscope.experiments.map_classifier.drawn_maps import draw
    from headscope.model.model import load

    model = load(name, **asdict(given.loading))
    examples = {text: _examples(model, corpus, given) for text, corpus in texts.items()}
    for text, encoded in examples.items():
        if not encoded:
            raise CorpusError(f"{text}: nothing in it can be shown to {name}")
    return draw(model, examples, name=name, count=count, seed=given.seed)


def _examples(model: Model, corpus: Corpus, given: AnnotateOptions) -> list[Example]:
    """Second segments are marked for every model: the eye sees them in maps of all."""
    from headscope.corpus import Encoder

    encoder = Encoder(
        model.tokenizer,
        model_limit=model.limit,
        has_segments=True,
        max_length=min(given.max_length, model.limit),
        seed=given.seed,
    )
    documents = islice(corpus, given.limit)
    return [example for document in documents for example in encoder.encode(document)]


# --- labelling ------------------------------------------------------------------------------


def _introduce(session: Session, annotator: str, *, told_again: bool) -> None:
    done = len(session.labels(annotator))
    say(f"session: {session.folder}, {done} of {len(session)} maps labelled by {annotator}")
    if told_again:
        say("it is resumed with the maps that it has; for others, give another folder")


def _sheets(session: Session, given: AnnotateOptions) -> None:
    from headscope.analyses.patterns.classes import CLASSES
    from headscope.experiments.map_classifier.annotation_sheets import write_sheets

    files = write_sheets(session)
    label_file = session.label_file(given.annotator)
    if given.as_json:
        click.echo(json.dumps({
            "session": str(session.folder), "maps": len(session), "annotator": given.annotator,
            "sheets": [str(file) for file in files], "labels": str(label_file),
        }))  # fmt: skip
        return
    say(f"sheets: {len(files)} in {files[0].parent}")
    say(f"labels: {label_file}, one line for each map, say `0,{CLASSES[0].key}`:")
    say("the number above the map, a comma, and a class by its key or name")
    for one in CLASSES:
        say(f"  {one.key}  {one.name:<18}{one.seen}")


def _serve(session: Session, given: AnnotateOptions) -> None:
    """Serves the page until Ctrl-C."""
    from headscope.experiments.map_classifier.annotation_server import AnnotationServer

    annotator = given.annotator
    with AnnotationServer(session, annotator, port=given.port) as server:
        if given.as_json:
            click.echo(json.dumps({
                "session": str(session.folder), "maps": len(session), "annotator": annotator,
                "labelled": len(session.labels(annotator)), "address": server.address,
            }))  # fmt: skip
        else:
            say(f"labelling: {server.address} (Ctrl-C ends it; every label is kept at once)")
        if not given.no_browser:
            click.launch(server.address)
        with suppress(KeyboardInterrupt):
            server.serve_forever()
    if not given.as_json:
        click.echo()
        _introduce(session, annotator, told_again=False)


# --- agreement ------------------------------------------------------------------------------


def _as_json(first: str, second: str, agreed: Agreement) -> dict[str, Any]:
    return {
        "annotators": [first, second], "maps": agreed.count, "same": agreed.same,
        "kappa": None if math.isnan(agreed.kappa) else agreed.kappa,
        "confusion": agreed.confusion.tolist(),
    }  # fmt: skip


def _tell(first: str, second: str, agreed: Agreement) -> None:
    from headscope.analyses.patterns.classes import CLASSES

    if agreed.count == 0:
        say(f"{first} and {second}: no map that both labelled")
        return
    one_class = "undefined, as both used one class only"
    kappa = one_class if math.isnan(agreed.kappa) else f"{agreed.kappa:.3f}"
    say(
        f"{first} and {second}: Cohen's kappa {kappa}; the same class for {agreed.same} of "
        f"{agreed.count} maps"
    )
    say(
        f"  {'rows ' + first + ', columns ' + second:<24.24}"
        + "".join(f"{c.key:>6}" for c in CLASSES)
    )
    for one, row in zip(CLASSES, agreed.confusion.tolist(), strict=True):
        say(f"  {one.key}  {one.title:<21}" + "".join(f"{count:>6}" for count in row))
