"""`headscope view`: a page of what every head looks at in one text."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from headscope.cli.options import (
    ModelName,
    Positive,
    check_parent,
    json_flag,
)
from headscope.cli.terminal_output import heads_given, tell
from headscope.cli.typed_command import group, typed_command
from headscope.core.options import Options, argument, comma_separated, option
from headscope.errors import InputError
from headscope.tasks.task_request import Loading

if TYPE_CHECKING:
    from headscope.views.view_text import View


class _ViewOptions(Options):
    model: ModelName = argument()
    text: str = argument()
    text_b: str | None = argument(default=None)
    output: Path | None = option("The page; without it, a browser opens one.", names="-o --output")
    atlas: Path | None = option("Name the heads by a finished atlas.", metavar="RUN")
    versus_model: str | None = option("Show the difference from another model.", metavar="MODEL")
    versus_text: str | None = option("Show the difference from another text.", metavar="TEXT")
    window: str | None = option(
        "First and last token, from 1, to show of a long text.", metavar="FROM-TO"
    )
    detail: str = option(
        "Heads with exact weights and neuron view: 3-9,5-1, all, none; auto: as many as keep the "
        "page small.",
        default="auto",
    )
    opened: str | None = option(
        "The head that the page opens with: L3H9, 3-9, or from 0 2.8; all heads by default.",
        names="--open",
        metavar="HEAD",
    )
    flow: str | None = option(
        "Show what layers take from the input, by rollout, globenc, alti, "
        "weighted_norm_residual, value_zeroing, max_flow; comma-separated.",
        metavar="METHODS",
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
    query: Positive | None = option("For --picture neurons: the query token, from 1.")
    loading: Loading = group()
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
    named = options.detail not in ("auto", "all", "none")
    heads = comma_separated(options.detail) if named else ()
    detail = heads_given("--detail", *heads) or options.detail
    opened = None if options.opened is None else heads_given("--open", options.opened)[0]
    window = _window(options.window)
    from headscope.analyses.flow import check_methods

    flow = () if options.flow is None else check_methods(options.flow.split(","), also=["max_flow"])
    if options.measure not in (known := ("attention", "weighted_norm", *flow)):
        raise InputError(f"--measure {options.measure!r}; wanted one of {', '.join(known)}")
    from headscope.model.model import load
    from headscope.views.view_text import view

    loading, other = asdict(options.loading), options.versus_model
    shown = view(
        load(options.model, **loading),
        options.text,
        options.text_b,
        atlas=options.atlas,
        window=window,
        detail=detail,
        versus_model=load(other, **loading) if other else None,
        versus_text=options.versus_text,
        flow=flow,
        head=opened,
    )
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


def _window(text: str | None) -> tuple[int, int] | None:
    """`400-700` as (399, 700); raises InputError for anything else."""
    if text is None:
        return None
    start, _, stop = text.partition("-")
    if not (start.isdecimal() and stop.isdecimal() and int(start)):
        raise InputError(f"--window {text!r}; wanted first and last token from 1, say 400-700")
    return int(start) - 1, int(stop)
