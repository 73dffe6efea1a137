"""`headscope view`: what every head does in one text, as a page or as a figure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headscope.cli.options import FILE, model_options
from headscope.cli.terminal import say
from headscope.errors import InputError

if TYPE_CHECKING:
    from headscope.model.model import Model
    from headscope.views.view import View

LOADING = ("device", "dtype", "revision", "trust_remote_code")
PICTURES = ("lines", "matrix", "neurons")


@click.command("view")
@click.argument("model")
@click.argument("text")
@click.argument("text_b", required=False)
@click.option("-o", "--output", type=FILE, help="The page; without it, a browser opens one.")
@click.option("--atlas", type=FILE, metavar="RUN", help="Name the heads by a finished atlas.")
@click.option("--versus-model", metavar="MODEL", help="Show the difference from another model.")
@click.option("--versus-text", metavar="TEXT", help="Show the difference from another text.")
@click.option("--window", metavar="FROM-TO", help="Tokens, from 1, to show of a long text.")
@click.option(
    "--detail", default="auto", show_default=True,
    help="Heads with exact weights and neuron view: 3-9,5-1, all, none; auto: as many as keep "
    "the page small.",
)  # fmt: skip
@click.option("--flow", metavar="METHODS",
              help="Show what layers take from the input, by rollout, globenc, alti, "
              "weighted_norm_residual, value_zeroing, max_flow; commas between.")  # fmt: skip
@click.option("--svg", type=FILE, help="A figure of --heads, vector text.")
@click.option("--png", type=FILE, help="The same at 300 dpi.")
@click.option("--heads", help="Layer-head as papers count, from 1: 3-9,5-1; else the plainest.")
@click.option("--picture", type=click.Choice(PICTURES), default="lines", show_default=True,
              help="What the figure shows; matrix and neurons of one head.")  # fmt: skip
@click.option("--measure", default="attention", show_default=True,
              help="What its lines or cells are: attention, weighted_norm, or one of "
              "--flow.")  # fmt: skip
@click.option("--stack", type=click.Choice(["encoder", "decoder", "cross"]),
              help="Of an encoder-decoder, which attention it shows.")  # fmt: skip
@click.option("--query", type=click.IntRange(1), help="neurons: the token that looks, from 1.")
@model_options
@click.option("--json", "as_json", is_flag=True, help="A machine-readable summary on stdout.")
def command(model: str, text: str, text_b: str | None, output: Path | None, **given: Any) -> None:
    """Show what every head of MODEL does in TEXT, or in TEXT and TEXT_B.

    TEXT_B is the second segment; for an encoder-decoder, what the decoder reads.

    \b
    headscope view demo "The cat sat on the mat because it was tired." -o cat.html
    headscope view demo "The cat sat." -o cat.html --versus-text "The dog sat."
    headscope view demo "The cat sat on the mat." -o cat.html --svg cat.svg --heads 3-9,3-1
    """  # fmt: skip
    if not text.strip():
        raise click.UsageError("found an empty TEXT; wanted something to read")
    chosen, detail = _heads("--heads", given["heads"]), given["detail"]
    if detail not in ("auto", "all", "none"):
        detail = _heads("--detail", detail)
    window = _window(given["window"])
    flow = _flow(given["flow"])
    if given["measure"] not in (known := ("attention", "weighted_norm", *flow)):
        raise InputError(f"--measure {given['measure']!r}; wanted one of {', '.join(known)}")
    from headscope.views.view import view

    other = given["versus_model"]
    shown = view(
        _loaded(model, given), text, text_b, atlas=given["atlas"], window=window, detail=detail,
        versus_model=_loaded(other, given) if other else None, versus_text=given["versus_text"],
        flow=flow,
    )  # fmt: skip
    # Figures first: what cannot be drawn leaves no page behind.
    _draw(shown, chosen, given)
    path = shown.save(output or _temporary())
    if output is None:
        click.launch(path.as_uri())
    if given["as_json"]:
        tokens = [len(side) for side in shown.shown.sides]
        size = path.stat().st_size
        click.echo(json.dumps({"view": str(path), "tokens": tokens, "bytes": size}))
    else:
        say(f"view: {path}")
        if shown.shown.left_out:
            say(shown.shown.left_out)


def _loaded(name: str, given: dict[str, Any]) -> Model:
    from headscope.model.model import load

    return load(name, **{option: given[option] for option in LOADING})


def _draw(shown: View, heads: Sequence[tuple[int, int]], given: dict[str, Any]) -> None:
    files = [file for file in (given["svg"], given["png"]) if file]
    if not files:
        return
    from headscope.draw.saving import save_picture

    query = None if given["query"] is None else given["query"] - 1
    figure = shown.picture(
        *heads, kind=given["picture"], measure=given["measure"], stack=given["stack"], query=query
    )
    for file in files:
        save_picture(figure, file)


def _heads(option: str, given: str | None) -> list[tuple[int, int]]:
    """`3-9,5-1` as [(2, 8), (4, 0)]; raises InputError for anything else."""
    found = []
    for name in (given or "").split(","):
        layer, dash, head = name.strip().partition("-")
        if not name.strip():
            continue
        if not (dash and layer.isdecimal() and head.isdecimal() and int(layer) and int(head)):
            raise InputError(f"{option} {given!r}; wanted layer-head from 1, say 3-9,5-1")
        found.append((int(layer) - 1, int(head) - 1))
    return found


def _window(given: str | None) -> tuple[int, int] | None:
    """`400-700` as (399, 700); raises InputError for anything else."""
    if given is None:
        return None
    start, _, stop = given.partition("-")
    if not (start.isdecimal() and stop.isdecimal() and int(start)):
        raise InputError(f"--window {given!r}; wanted first and last token from 1, say 400-700")
    return int(start) - 1, int(stop)


def _flow(given: str | None) -> tuple[str, ...]:
    """`rollout,alti` as a tuple; raises InputError for a method that is not known."""
    from headscope.analyses.flow.methods import check_methods

    return () if given is None else check_methods(given.split(","), also=["max_flow"])


def _temporary() -> Path:
    import tempfile

    return Path(tempfile.mkdtemp(prefix="headscope-")) / "view.html"
