"""`headscope head`: all that a finished run says of one head."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.cli.options import json_flag
from headscope.cli.terminal_output import complain, tell
from headscope.cli.typed_command import typed_command
from headscope.core.head_names import HeadNames, head_named, names_of
from headscope.core.options import Options, argument, option
from headscope.run.manifest_file import run_place

if TYPE_CHECKING:
    from headscope.heads.head_card import HeadCard
    from headscope.run.store import Run


class _HeadOptions(Options):
    run: Path = argument(reads=run_place)
    head: str = argument()
    output: Path | None = option(
        "The card as a page; it holds those of all heads.", names="-o --output"
    )
    svg: Path | None = option("The card as a figure, vector text.")
    png: Path | None = option("The same at 300 dpi.")
    as_json: bool = json_flag("Everything, machine-readable, on stdout.")


@typed_command("head", _HeadOptions)
def head_command(options: _HeadOptions) -> None:
    """Tell what head HEAD of the run folder RUN is, and all that is known of it.

    HEAD counts from 1, as papers do: L8H10, L8·H10 or 8-10 is head 10 of layer 8. With a dot it
    counts from 0, as TransformerLens does: 7.9 is the same head.

    \b
    headscope head atlas-demo L3H9
    headscope head atlas-demo 3-9 -o card.html --png card.png
    """
    head_named(options.head)  # before the run is opened
    from headscope.core.results import derived_once
    from headscope.heads.head_card import head_card
    from headscope.run.store import open_run

    run = open_run(options.run)
    if run.unproven:
        complain(run.unproven)
    with run.showing(), derived_once():
        names = names_of(run.tree)
        card = head_card(run.tree, *names.read(options.head))
        lines, content = _shown(run, card, names, options)
    tell(lines, content, ensure_ascii=False, allow_nan=False)


def _shown(
    run: Run, card: HeadCard, names: HeadNames, options: _HeadOptions
) -> tuple[list[str], dict[str, Any] | None]:
    """What is printed: lines, or what --json asks for."""
    from headscope.heads.head_card import card_json, card_text

    written = _write_card(run, card, options)
    if options.as_json:
        files = {kind: str(path) for kind, path in written.items()}
        return [], {"run": str(options.run), **card_json(run.tree, card), **files}
    if written:
        named = names.both(card.layer, card.head)
        return [f"head: {named}", *(f"{kind}: {path}" for kind, path in written.items())], None
    return [card_text(run.tree, card)], None


def _write_card(run: Run, card: HeadCard, options: _HeadOptions) -> dict[str, Path]:
    """Figures first: what cannot be drawn leaves no page behind."""
    written = {}
    for kind, path in (("svg", options.svg), ("png", options.png)):
        if path is not None:
            from headscope.draw.saving import save_picture
            from headscope.heads.figure import draw_head_card

            written[kind] = save_picture(draw_head_card(run.tree, card), path)
    if options.output is not None:
        from headscope.report.card_page import build_card

        written["card"] = build_card(run.tree, card, options.output)
    return written
