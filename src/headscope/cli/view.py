"""`headscope view`: a page of what every head looks at in one text."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from headscope.cli.options import check_parent, json_flag
from headscope.cli.terminal_output import heads_given, tell
from headscope.cli.typed_command import typed_command
from headscope.core.options import comma_separated, option
from headscope.errors import InputError
from headscope.views.view import ViewRequest, view

if TYPE_CHECKING:
    from headscope.views.view_text import View


class _ViewOptions(ViewRequest):
    output: Path | None = option(
        "The page; without it, a browser opens one.", names="-o --output", before="device"
    )
    svg: Path | None = option("A figure of --heads, vector text.")
    png: Path | None = option("The same at 300 dpi.")
    heads: str | None = option(
        "Heads of the figure: 3-9,5-1, or from 0 2.8,4.0; by default the plainest."
    )
    picture: Literal["lines", "matrix", "neurons"] = option(
        "What the figure shows; matrix and neurons show one head.", "lines"
    )
    measure: str = option(
        "What the figure's lines or cells mean: attention, weighted_norm, or one of --flow.",
        default="attention",
    )
    stack: Literal["encoder", "decoder", "cross"] | None = option(
        "Which attention of an encoder-decoder the figure shows."
    )
    query: int | None = option("For --picture neurons: the query token, from 1.", least=1)
    as_json: bool = json_flag()


@typed_command("view", _ViewOptions)
def view_command(options: _ViewOptions) -> None:
    """Show what every head of MODEL looks at in TEXT, or in TEXT and TEXT_B.

    TEXT_B is the second segment; for an encoder-decoder, what the decoder reads.

    \b
    headscope view demo "The cat sat on the mat because it was tired." -o cat.html
    headscope view demo "The cat sat." -o cat.html --versus-text "The dog sat."
    headscope view demo "The cat sat on the mat." -o cat.html --svg cat.svg --heads 3-9,3-1
    """
    if not options.text.strip():
        raise click.UsageError("found an empty TEXT; wanted something to read")
    check_parent(options.output, options.svg, options.png)
    chosen = heads_given("--heads", *comma_separated(options.heads))
    if not isinstance(options.detail, str):
        heads_given("--detail", *options.detail)
    if options.head is not None:
        heads_given("--open", options.head)
    known = ("attention", "weighted_norm", *options.methods)
    if options.measure not in known:
        raise InputError(f"--measure {options.measure!r}; wanted one of {', '.join(known)}")
    shown = view(**vars(ViewRequest.of(options)))
    _draw(shown, chosen, options)  # first: what cannot be drawn leaves no page behind
    path = shown.save(options.output or Path(tempfile.mkdtemp(prefix="headscope-"), "view.html"))
    if options.output is None:
        click.launch(path.as_uri())
    tokens, size = [len(side) for side in shown.shown.sides], path.stat().st_size
    summary = {"view": str(path), "tokens": tokens, "bytes": size}
    lines = filter(None, [f"view: {path}", shown.shown.left_out])
    tell(lines, summary if options.as_json else None)


def _draw(shown: View, heads: Sequence[tuple[int, int]], options: _ViewOptions) -> None:
    files = [file for file in (options.svg, options.png) if file]
    if not files:
        return
    from headscope.draw.saving import save_picture

    query = None if options.query is None else options.query - 1
    figure = shown.picture(
        *heads, kind=options.picture, measure=options.measure, stack=options.stack, query=query
    )
    for file in files:
        save_picture(figure, file)
