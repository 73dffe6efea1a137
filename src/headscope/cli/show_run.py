"""Commands that read a finished run: `headscope head` and `headscope report`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headscope.cli.terminal_output import say
from headscope.cli.typed_command import argument, flag, option, typed_command
from headscope.errors import InputError

if TYPE_CHECKING:
    from headscope.heads.head_card import HeadCard
    from headscope.run.finished_run import Run

_HEAD = re.compile(r"[Ll]([0-9]{1,4})\W?[Hh]([0-9]{1,4})|([0-9]{1,4})-([0-9]{1,4})")


@dataclass(frozen=True, kw_only=True)
class HeadOptions:
    """What `headscope head` is asked."""

    run: Path = argument()
    head: str = argument()
    output: Path | None = option(
        "The card as a page; it holds those of all heads.", names="-o --output"
    )
    svg: Path | None = option("The card as a figure, vector text.")
    png: Path | None = option("The same at 300 dpi.")
    as_json: bool = flag("Everything, machine-readable, on stdout.", names="--json")


@typed_command("head", HeadOptions)
def head_command(given: HeadOptions) -> None:
    """Tell what head HEAD of the run folder RUN is, and all that is known of it.

    HEAD counts from 1, as papers do: L8H10, L8·H10 or 8-10 is head 10 of layer 8.

    \b
    headscope head atlas-demo L3H9
    headscope head atlas-demo 3-9 -o card.html --png card.png
    """
    layer, place = head_named(given.head)
    from headscope.heads.head_card import head_card
    from headscope.run.finished_run import open_run

    run = open_run(given.run)
    card = head_card(run.tree, layer, place)
    try:
        written = _write(run, card, given)
    except OSError as error:
        raise InputError(
            f"cannot write {error.filename or given.output}: {error.strerror}; choose another place"
        ) from error
    if given.as_json:
        from headscope.heads.card_json import card_json

        files = {kind: str(path) for kind, path in written.items()}
        told = {"run": str(given.run), **card_json(run.tree, card), **files}
        click.echo(json.dumps(told, ensure_ascii=False, allow_nan=False))
    elif written:
        for kind, path in written.items():
            say(f"{kind}: {path}")
    else:
        from headscope.heads.card_text import card_text

        say(card_text(run.tree, card))


def head_named(name: str) -> tuple[int, int]:
    """`L8H10`, `L8·H10` or `8-10` as (7, 9); raises InputError for anything else."""
    match = _HEAD.fullmatch(name.strip())
    layer, head = (int(part) for part in match.groups() if part is not None) if match else (0, 0)
    if not (layer and head):
        raise InputError(
            f"found the head {name!r}; wanted layer and head from 1, as papers count: L8H10, "
            "L8·H10 or 8-10"
        )
    return layer - 1, head - 1


def _write(run: Run, card: HeadCard, given: HeadOptions) -> dict[str, Path]:
    """Figures first: what cannot be drawn leaves no page behind."""
    written = {}
    for kind, path in (("svg", given.svg), ("png", given.png)):
        if path is not None:
            from headscope.draw.saving import save_picture
            from headscope.heads.figure import draw_head_card

            written[kind] = save_picture(draw_head_card(run.tree, card), path)
    if given.output is not None:
        from headscope.report.card_page import build_card

        written["card"] = build_card(run.tree, card, given.output)
    return written


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """What `headscope report` is asked."""

    run: Path = argument()
    as_json: bool = flag("A machine-readable summary on stdout.", names="--json")


@typed_command("report", ReportOptions)
def report_command(given: ReportOptions) -> None:
    """Rebuild report.html, figures and tables of the run folder RUN from atlas.nc alone."""
    from headscope.run.finished_run import open_run

    report = open_run(given.run).report()
    if given.as_json:
        click.echo(json.dumps({"run": str(given.run), "report": str(report)}))
    else:
        say(f"report: {report}")
