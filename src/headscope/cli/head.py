"""`headscope head`: all that a run knows of one head, in the terminal, as a page or as a figure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headscope.cli.options import FILE
from headscope.cli.terminal import say
from headscope.errors import InputError

if TYPE_CHECKING:
    from headscope.heads.head_card import HeadCard
    from headscope.run.finished_run import Run

_HEAD = re.compile(r"[Ll]([0-9]{1,4})\W?[Hh]([0-9]{1,4})|([0-9]{1,4})-([0-9]{1,4})")


@click.command("head")
@click.argument("run", type=FILE)
@click.argument("head")
@click.option("-o", "--output", type=FILE, help="The card as a page; it holds those of all heads.")
@click.option("--svg", type=FILE, help="The card as a figure, vector text.")
@click.option("--png", type=FILE, help="The same at 300 dpi.")
@click.option("--json", "as_json", is_flag=True, help="Everything, machine-readable, on stdout.")
def command(
    run: Path, head: str, output: Path | None, *, as_json: bool, **pictures: Path | None
) -> None:
    """Tell what head HEAD of the run folder RUN is, and all that is known of it.

    HEAD counts from 1, as papers do: L8H10, L8·H10 or 8-10 is head 10 of layer 8.

    \b
    headscope head atlas-demo L3H9
    headscope head atlas-demo 3-9 -o card.html --png card.png
    """
    layer, place = head_named(head)
    from headscope.heads.head_card import head_card
    from headscope.run.finished_run import open_run

    found = open_run(run)
    card = head_card(found.tree, layer, place)
    try:
        written = _write(found, card, output, pictures)
    except OSError as error:
        raise InputError(
            f"cannot write {error.filename or output}: {error.strerror}; choose another place"
        ) from error
    if as_json:
        from headscope.heads.card_json import card_json

        files = {kind: str(path) for kind, path in written.items()}
        told = {"run": str(run), **card_json(found.tree, card), **files}
        click.echo(json.dumps(told, ensure_ascii=False, allow_nan=False))
    elif written:
        for kind, path in written.items():
            say(f"{kind}: {path}")
    else:
        from headscope.cli.head_text import head_text

        say(head_text(found.tree, card))


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


def _write(
    run: Run, card: HeadCard, page: Path | None, pictures: Mapping[str, Path | None]
) -> dict[str, Path]:
    """Figures first: what cannot be drawn leaves no page behind."""
    written = {}
    for kind, path in pictures.items():
        if path is not None:
            from headscope.draw.saving import save_picture
            from headscope.heads.figure import draw_head_card

            written[kind] = save_picture(draw_head_card(run.tree, card), path)
    if page is not None:
        from headscope.report.card_page import build_card

        written["card"] = build_card(run.tree, card, page)
    return written
