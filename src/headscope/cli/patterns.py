"""`headscope patterns`: of which class is a map? Labelling by eye, and how far annotators agree.

What the classifier learns and tells is in `cli.classifier`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headscope.cli.classifier import apply_command, train_command
from headscope.cli.long_command import long_command
from headscope.cli.new_session import LOADING, new_session
from headscope.cli.options import (
    FILE,
    READING,
    corpus_options,
    model_options,
)
from headscope.cli.terminal import say
from headscope.errors import InputError

if TYPE_CHECKING:
    from headscope.analyses.patterns.agreement import Agreement
    from headscope.analyses.patterns.session import Session

SECTIONS = {
    "The session": ("output", "annotator", "sheets", "port", "no_browser", "as_json"),
    "A new session: which maps": ("maps", "limit", "max_length", "seed", "quiet"),
    "A new session: what to read": READING,
    "A new session: the models": LOADING,
}


@click.group("patterns", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Tell of which of five classes the map of a head is (Kovaleva et al. 2019).

    \b
    headscope patterns annotate demo --demo -o session
    headscope patterns agreement session
    headscope patterns train --labels session -o classifier
    headscope patterns apply demo --demo -o classes
    """  # fmt: skip


command.add_command(train_command)
command.add_command(apply_command)


@command.command("annotate", cls=long_command(SECTIONS))
@click.argument("models", nargs=-1, metavar="[MODEL]...")
@corpus_options
@click.option("-o", "--output", type=FILE, required=True, metavar="SESSION",
              help="Folder of the session; one that exists is resumed.")  # fmt: skip
@click.option("--annotator", default="a", show_default=True, help="Whose labels; one file each.")
@click.option("--sheets", is_flag=True, help="Contact sheets (PNG) to label away from a screen.")
@click.option("--port", type=click.IntRange(0, 65535), default=0,
              help="Of the page; any that is free by default.")  # fmt: skip
@click.option("--no-browser", is_flag=True, help="Only print the address of the page.")
@click.option("--maps", type=click.IntRange(1), default=400, show_default=True,
              help="In all; models, layers and texts alike.")  # fmt: skip
@click.option("--limit", type=click.IntRange(1), default=500, show_default=True,
              help="Documents of each file that are read at most.")  # fmt: skip
@click.option("--max-length", type=int, default=128, show_default=True,
              help="Tokens of an input, if the model takes so many.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--quiet", is_flag=True, help="No progress bar.")
@model_options
@click.option("--json", "as_json", is_flag=True, help="A machine-readable summary on stdout.")
def annotate_command(models: tuple[str, ...], **given: Any) -> None:
    """Label maps by eye: keys 1 to 5, in a browser.

    A new SESSION draws maps from every MODEL and every file alike, and hides which is which. A
    second annotator gives another --annotator.

    \b
    headscope patterns annotate demo --demo -o session
    headscope patterns annotate demo my-model --text wiki.txt --segments pairs.jsonl -o session
    headscope patterns annotate -o session --annotator b
    headscope patterns annotate -o session --sheets
    """  # fmt: skip
    from headscope.analyses.patterns.session import Session, checked_name

    checked_name(given["annotator"])
    resumed = Session.is_one(given["output"])
    session = Session(given["output"]) if resumed else new_session(models, given)
    session.labels(given["annotator"])  # raises for a name or a file that will not do
    if not given["as_json"]:
        _introduce(session, given["annotator"], told_again=resumed and bool(models))
    if given["sheets"]:
        _sheets(session, given)
    else:
        _serve(session, given)


@command.command("agreement")
@click.argument("session", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
def agreement_command(session: Path, as_json: bool) -> None:
    """How far every two annotators of SESSION agree: Cohen's kappa, and where they differ."""
    from headscope.analyses.patterns.agreement import agreement
    from headscope.analyses.patterns.session import Session

    opened = Session(session)
    names = opened.annotators()
    if len(names) < 2:
        raise InputError(
            f"{session}: found labels of {', '.join(names) or 'nobody'}; wanted two annotators: "
            f"headscope patterns annotate -o {session} --annotator NAME"
        )
    labels = {name: opened.labels(name) for name in names}
    pairs = [(a, b, agreement(labels[a], labels[b])) for a, b in combinations(names, 2)]
    if as_json:
        from headscope.analyses.patterns.classes import NAMES

        rows = [_as_json(*pair) for pair in pairs]
        summary = {"session": str(session), "classes": NAMES, "pairs": rows}
        click.echo(json.dumps(summary, ensure_ascii=True))
        return
    for first, second, found in pairs:
        _tell(first, second, found)


# --- labelling ------------------------------------------------------------------------------


def _introduce(session: Session, annotator: str, *, told_again: bool) -> None:
    done = len(session.labels(annotator))
    say(f"session: {session.folder}, {done} of {len(session)} maps labelled by {annotator}")
    if told_again:
        say("it is resumed with the maps that it has; for others, give another folder")


def _sheets(session: Session, given: Mapping[str, Any]) -> None:
    from headscope.analyses.patterns.classes import CLASSES
    from headscope.analyses.patterns.sheets import write_sheets

    files = write_sheets(session)
    label_file = session.label_file(given["annotator"])
    if given["as_json"]:
        click.echo(json.dumps({
            "session": str(session.folder), "maps": len(session), "annotator": given["annotator"],
            "sheets": [str(file) for file in files], "labels": str(label_file),
        }))  # fmt: skip
        return
    say(f"sheets: {len(files)} in {files[0].parent}")
    say(f"labels: {label_file}, one line for each map, say `0,{CLASSES[0].key}`:")
    say("the number above the map, a comma, and a class by its key or name")
    for one in CLASSES:
        say(f"  {one.key}  {one.name:<18}{one.seen}")


def _serve(session: Session, given: Mapping[str, Any]) -> None:
    """Serves the page until Ctrl-C."""
    from headscope.analyses.patterns.serve import Server

    annotator = given["annotator"]
    with Server(session, annotator, port=given["port"]) as server:
        if given["as_json"]:
            click.echo(json.dumps({
                "session": str(session.folder), "maps": len(session), "annotator": annotator,
                "labelled": len(session.labels(annotator)), "address": server.address,
            }))  # fmt: skip
        else:
            say(f"labelling: {server.address} (Ctrl-C ends it; every label is kept at once)")
        if not given["no_browser"]:
            click.launch(server.address)
        with suppress(KeyboardInterrupt):
            server.serve_forever()
    if not given["as_json"]:
        click.echo()
        _introduce(session, annotator, told_again=False)


# --- agreement ------------------------------------------------------------------------------


def _as_json(first: str, second: str, found: Agreement) -> dict[str, Any]:
    return {
        "annotators": [first, second], "maps": found.count, "same": found.same,
        "kappa": None if math.isnan(found.kappa) else found.kappa,
        "confusion": found.confusion.tolist(),
    }  # fmt: skip


def _tell(first: str, second: str, found: Agreement) -> None:
    from headscope.analyses.patterns.classes import CLASSES

    if found.count == 0:
        say(f"{first} and {second}: no map that both labelled")
        return
    one_class = "undefined, as both used one class only"
    kappa = one_class if math.isnan(found.kappa) else f"{found.kappa:.3f}"
    say(
        f"{first} and {second}: Cohen's kappa {kappa}; the same class for {found.same} of "
        f"{found.count} maps"
    )
    say(
        f"  {'rows ' + first + ', columns ' + second:<24.24}"
        + "".join(f"{c.key:>6}" for c in CLASSES)
    )
    for one, row in zip(CLASSES, found.confusion.tolist(), strict=True):
        say(f"  {one.key}  {one.title:<21}" + "".join(f"{count:>6}" for count in row))
