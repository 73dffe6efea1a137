"""`headscope patterns`: label maps by eye, and measure how far annotators agree.

The commands that train and apply the classifier stand in `cli.patterns_classifier`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from headscope.cli import options as shared
from headscope.cli.options import CorpusOptions
from headscope.cli.patterns_classifier import apply_command, train_command
from headscope.cli.terminal_output import annotate, another_port, complain, in_browser, say, tell
from headscope.cli.typed_command import SuggestingGroup, group, typed_command
from headscope.core.options import Options, argument, flag, option
from headscope.errors import InputError
from headscope.live import refuse_without_packages
from headscope.tasks.task_request import Loading

if TYPE_CHECKING:
    from headscope.experiments.map_classifier.annotation_session import Agreement, Session


@click.group(
    "patterns", cls=SuggestingGroup, context_settings={"help_option_names": ["-h", "--help"]}
)
def patterns_command() -> None:
    """Tell of which of five classes the map of a head is (Kovaleva et al. 2019).

    \b
    headscope patterns annotate demo --demo -o session
    headscope patterns agreement session
    headscope patterns train --labels session -o classifier
    headscope patterns apply demo --demo -o classes
    """


class _AnnotateOptions(Options):
    models: tuple[str, ...] = argument(default=(), metavar="[MODEL]...")
    output: Path = option(
        "Folder of the session; one that exists is resumed.",
        names="-o --output",
        usual="session",
        metavar="SESSION",
        heading="The session",
    )
    annotator: str = option("Name of the person who labels; each has a file.", "a")
    sheets: bool = flag("Contact sheets (PNG) to label away from a screen.")
    port: Annotated[int, click.IntRange(0, 65535)] = option(
        "Port of the page, or the next one that is free; by default any.", 0, shown=False
    )
    no_browser: bool = flag("Only print the address of the page.")
    as_json: bool = shared.json_flag()
    maps: int = option(
        "Maps in all, drawn evenly from models, layers and texts.",
        default=400,
        heading="A new session: which maps",
        least=1,
    )
    limit: int = option("Documents of each file that are read at most.", 500, least=1)
    max_length: int = option("Tokens of an input at most, if the model takes so many.", 128)
    seed: int = option("Seed of all random draws.", 0, least=0)
    quiet: bool = flag("No progress bar.")
    corpus: CorpusOptions = group("A new session: what to read")
    loading: Loading = group("A new session: the models")


@typed_command("annotate", _AnnotateOptions)
def annotate_command(options: _AnnotateOptions) -> None:
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

    checked_name(options.annotator)
    if not options.sheets:
        refuse_without_packages("headscope patterns annotate, but for --sheets,")
    resumed = Session.is_one(options.output)
    session = Session(options.output) if resumed else _new_session(options)
    session.labels(options.annotator)  # raises for a name or a file that will not do
    for note in session.torn():
        complain(note)
    if not options.as_json:
        _introduce(session, options.annotator, told_again=resumed and bool(options.models))
    if options.sheets:
        _sheets(session, options)
    else:
        _serve(session, options)


class _AgreementOptions(Options):
    session: Path = argument()
    as_json: bool = shared.json_flag("The same as JSON.")


@typed_command("agreement", _AgreementOptions)
def agreement_command(options: _AgreementOptions) -> None:
    """How far every two annotators of SESSION agree: Cohen's kappa, and where they differ."""
    from headscope.experiments.map_classifier.annotation_session import Session, agreement

    session = Session(options.session)
    for note in session.torn():
        complain(note)
    names = session.annotators()
    if len(names) < 2:
        raise InputError(
            f"{options.session}: found labels of {', '.join(names) or 'nobody'}; wanted two "
            f"annotators: headscope patterns annotate -o {options.session} --annotator NAME"
        )
    labels = {name: session.labels(name) for name in names}
    pairs = [(a, b, agreement(labels[a], labels[b])) for a, b in combinations(names, 2)]
    from headscope.analyses.patterns.classes import NAMES

    rows = [
        {
            "annotators": [first, second],
            "maps": agreed.count,
            "same": agreed.same,
            "kappa": None if math.isnan(agreed.kappa) else agreed.kappa,
            "confusion": agreed.confusion.tolist(),
        }
        for first, second, agreed in pairs
    ]
    summary = {"session": str(options.session), "classes": NAMES, "pairs": rows}
    tell(
        (line for pair in pairs for line in _agreement_lines(*pair)),
        summary if options.as_json else None,
    )


for each in (train_command, apply_command, annotate_command, agreement_command):
    patterns_command.add_command(each)


def _new_session(options: _AnnotateOptions) -> Session:
    if not options.models:
        raise click.UsageError(
            f"{options.output} is no session yet; wanted a MODEL and a corpus to draw maps from"
        )
    models = list(dict.fromkeys(options.models))
    if options.maps < len(models):
        raise click.UsageError(f"found {len(models)} models; wanted at least as many --maps")
    texts = dict(shared.corpora_by_name(options.corpus, limit=options.limit))
    from headscope.experiments.map_classifier.annotation_session import Session, shuffled
    from headscope.experiments.map_classifier.labelled_maps import draw_from_all

    for corpus in texts.values():
        for note in annotate(corpus, quiet=options.quiet):
            if not options.as_json:
                say(note)
    shared.hold(options.output)
    drawn = draw_from_all(
        models,
        texts,
        options.maps,
        options.loading,
        limit=options.limit,
        max_length=options.max_length,
        seed=options.seed,
    )
    return Session.create(options.output, shuffled(drawn, seed=options.seed))


def _introduce(session: Session, annotator: str, *, told_again: bool) -> None:
    done = len(session.labels(annotator))
    say(f"session: {session.folder}, {done} of {len(session)} maps labelled by {annotator}")
    if told_again:
        say("the session continues with its maps; for other maps, give another folder")


def _sheets(session: Session, options: _AnnotateOptions) -> None:
    from headscope.analyses.patterns import CLASSES
    from headscope.experiments.map_classifier.label_sheets import write_sheets

    files = write_sheets(session)
    label_file = session.label_file(options.annotator)
    summary = {
        "session": str(session.folder),
        "maps": len(session),
        "annotator": options.annotator,
        "sheets": [str(file) for file in files],
        "labels": str(label_file),
    }
    lines = [
        f"sheets: {len(files)} in {files[0].parent}",
        f"labels: {label_file}, one line for each map, say `0,{CLASSES[0].key}`:",
        "the number above the map, a comma, and a class by its key or name",
        *(f"  {one.key}  {one.name:<18}{one.seen}" for one in CLASSES),
    ]
    tell(lines, summary if options.as_json else None)


def _serve(session: Session, options: _AnnotateOptions) -> None:
    from headscope.live.annotation import annotation_server

    annotator = options.annotator
    with (
        annotation_server(session, annotator, port=options.port) as server,
        ExitStack() as ending,
    ):

        def ready() -> None:
            another_port(options.port, server.port)
            line = f"labelling: {server.address} (Ctrl-C ends it; every label is kept at once)"
            summary = {
                "session": str(session.folder),
                "maps": len(session),
                "annotator": annotator,
                "labelled": len(session.labels(annotator)),
                "address": server.address,
            }
            tell([line], summary if options.as_json else None)
            if not options.no_browser:
                ending.enter_context(in_browser(server.address))

        server.run(ready)
    if not options.as_json:
        click.echo()
        _introduce(session, annotator, told_again=False)


def _agreement_lines(first: str, second: str, agreed: Agreement) -> Iterator[str]:
    from headscope.analyses.patterns import CLASSES

    if agreed.count == 0:
        yield f"{first} and {second}: no map that both labelled"
        return
    one_class = "undefined, as both used one class only"
    kappa = one_class if math.isnan(agreed.kappa) else f"{agreed.kappa:.3f}"
    same = f"the same class for {agreed.same} of {agreed.count} maps"
    yield f"{first} and {second}: Cohen's kappa {kappa}; {same}"
    header = "".join(f"{c.key:>6}" for c in CLASSES)
    yield f"  {'rows ' + first + ', columns ' + second:<24.24}{header}"
    for one, row in zip(CLASSES, agreed.confusion.tolist(), strict=True):
        yield f"  {one.key}  {one.title:<21}" + "".join(f"{count:>6}" for count in row)
