"""`headscope view`, `head` and `report`: what heads do in one text, or in a finished run."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from headscope.cli.options import ModelOptions, Positive, comma_separated, json_flag
from headscope.cli.terminal_output import tell
from headscope.cli.typed_command import Options, argument, group, option, typed_command
from headscope.errors import InputError

if TYPE_CHECKING:
    import xarray as xr

    from headscope.heads.head_card import HeadCard
    from headscope.run.store import Run
    from headscope.views.view_text import View

_HEAD = re.compile(r"[Ll]([0-9]{1,4})\W?[Hh]([0-9]{1,4})|([0-9]{1,4})-([0-9]{1,4})")


class _HeadOptions(Options):
    run: Path = argument()
    head: str = argument()
    output: Path | None = option(
        "The card as a page; it holds those of all heads.", names="-o --output"
    )
    svg: Path | None = option("The card as a figure, vector text.")
    png: Path | None = option("The same at 300 dpi.")
    as_json: bool = json_flag("Everything, machine-readable, on stdout.")


@typed_command("head", _HeadOptions)
def head_command(given: _HeadOptions) -> None:
    """Tell what head HEAD of the run folder RUN is, and all that is known of it.

    HEAD counts from 1, as papers do: L8H10, L8·H10 or 8-10 is head 10 of layer 8.

    \b
    headscope head atlas-demo L3H9
    headscope head atlas-demo 3-9 -o card.html --png card.png
    """
    layer, place = head_named(given.head)
    from headscope.core.results import naming_layers
    from headscope.run.store import open_run

    run = open_run(given.run)
    with naming_layers(run.tree):
        _tell_head(run, place_of_layer(run.tree, layer), place, given)


def _tell_head(run: Run, layer: int, place: int, given: _HeadOptions) -> None:
    from headscope.heads.head_card import card_json, card_text, head_card

    card = head_card(run.tree, layer, place)
    try:
        written = _write_card(run, card, given)
    except OSError as error:
        raise InputError(
            f"cannot write {error.filename or given.output}: {error.strerror}; choose another place"
        ) from error
    if given.as_json:
        files = {kind: str(path) for kind, path in written.items()}
        told = {"run": str(given.run), **card_json(run.tree, card), **files}
        tell((), told, ensure_ascii=False, allow_nan=False)
    elif written:
        tell(f"{kind}: {path}" for kind, path in written.items())
    else:
        tell([card_text(run.tree, card)])


def place_of_layer(tree: xr.DataTree, layer: int) -> int:
    """The place in the run of a layer by the model's own number; InputError if it has none."""
    from headscope.core.results import layer_numbers

    numbers = layer_numbers(tree)
    if numbers and layer not in numbers:
        raise InputError(
            f"layer {layer + 1} has no attention; wanted one of the layers "
            f"{', '.join(str(number + 1) for number in numbers)}"
        )
    return numbers.index(layer) if numbers else layer


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


def _write_card(run: Run, card: HeadCard, given: _HeadOptions) -> dict[str, Path]:
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


class _ReportOptions(Options):
    run: Path = argument()
    as_json: bool = json_flag()


@typed_command("report", _ReportOptions)
def report_command(given: _ReportOptions) -> None:
    """Rebuild report.html, figures and tables of the run folder RUN from atlas.nc alone."""
    from headscope.run.store import open_run

    report = open_run(given.run).report()
    summary = {"run": str(given.run), "report": str(report)}
    tell([f"report: {report}"], summary if given.as_json else None)


class _ViewOptions(Options):
    model: str = argument()
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
    flow: str | None = option(
        "Show what layers take from the input, by rollout, globenc, alti, "
        "weighted_norm_residual, value_zeroing, max_flow; comma-separated.",
        metavar="METHODS",
    )
    svg: Path | None = option("A figure of --heads, vector text.")
    png: Path | None = option("The same at 300 dpi.")
    heads: str | None = option(
        "Heads of the figure, as layer-head from 1: 3-9,5-1; by default the plainest."
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
    loading: ModelOptions = group()
    as_json: bool = json_flag()


@typed_command("view", _ViewOptions)
def view_command(given: _ViewOptions) -> None:
    """Show what every head of MODEL does in TEXT, or in TEXT and TEXT_B.

    TEXT_B is the second segment; for an encoder-decoder, what the decoder reads.

    \b
    headscope view demo "The cat sat on the mat because it was tired." -o cat.html
    headscope view demo "The cat sat." -o cat.html --versus-text "The dog sat."
    headscope view demo "The cat sat on the mat." -o cat.html --svg cat.svg --heads 3-9,3-1
    """
    if not given.text.strip():
        raise click.UsageError("found an empty TEXT; wanted something to read")
    chosen = _heads("--heads", given.heads)
    named = given.detail not in ("auto", "all", "none")
    detail = _heads("--detail", given.detail) if named else given.detail
    window = _window(given.window)
    from headscope.analyses.flow.methods import check_methods

    flow = () if given.flow is None else check_methods(given.flow.split(","), also=["max_flow"])
    if given.measure not in (known := ("attention", "weighted_norm", *flow)):
        raise InputError(f"--measure {given.measure!r}; wanted one of {', '.join(known)}")
    from headscope.model.model import load
    from headscope.views.view_text import view

    loading, other = asdict(given.loading), given.versus_model
    shown = view(
        load(given.model, **loading), given.text, given.text_b, atlas=given.atlas, window=window,
        detail=detail, versus_model=load(other, **loading) if other else None,
        versus_text=given.versus_text, flow=flow,
    )  # fmt: skip
    # Figures first: what cannot be drawn leaves no page behind.
    _draw(shown, chosen, given)
    path = shown.save(given.output or Path(tempfile.mkdtemp(prefix="headscope-"), "view.html"))
    if given.output is None:
        click.launch(path.as_uri())
    tokens, size = [len(side) for side in shown.shown.sides], path.stat().st_size
    summary = {"view": str(path), "tokens": tokens, "bytes": size}
    lines = filter(None, [f"view: {path}", shown.shown.left_out])
    tell(lines, summary if given.as_json else None)


def _draw(shown: View, heads: Sequence[tuple[int, int]], given: _ViewOptions) -> None:
    files = [file for file in (given.svg, given.png) if file]
    if not files:
        return
    from headscope.draw.saving import save_picture

    query = None if given.query is None else given.query - 1
    figure = shown.picture(
        *heads, kind=given.picture, measure=given.measure, stack=given.stack, query=query
    )
    for file in files:
        save_picture(figure, file)


def _heads(option: str, given: str | None) -> list[tuple[int, int]]:
    """`3-9,5-1` as [(2, 8), (4, 0)]; raises InputError for anything else."""
    try:
        return [head_named(name) for name in comma_separated(given)]
    except InputError:
        wanted = "wanted layer-head from 1, say 3-9,5-1"
        raise InputError(f"{option} {given!r}; {wanted}") from None


def _window(given: str | None) -> tuple[int, int] | None:
    """`400-700` as (399, 700); raises InputError for anything else."""
    if given is None:
        return None
    start, _, stop = given.partition("-")
    if not (start.isdecimal() and stop.isdecimal() and int(start)):
        raise InputError(f"--window {given!r}; wanted first and last token from 1, say 400-700")
    return int(start) - 1, int(stop)
