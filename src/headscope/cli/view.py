"""`headscope view`: what every head does in one text, as a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from headscope.cli.options import FILE, model_options
from headscope.cli.terminal import say
from headscope.errors import InputError

LOADING = ("device", "dtype", "revision", "trust_remote_code")


@click.command("view")
@click.argument("model")
@click.argument("text")
@click.argument("text_b", required=False)
@click.option("-o", "--output", type=FILE, help="The page; without it, a browser opens one.")
@click.option("--svg", type=FILE, help="The lines of --heads as a figure, vector text.")
@click.option("--png", type=FILE, help="The same at 300 dpi.")
@click.option("--heads", help="Layer-head as papers count, from 1: 3-9,5-1; else the plainest.")
@model_options
@click.option("--json", "as_json", is_flag=True, help="A machine-readable summary on stdout.")
def command(model: str, text: str, text_b: str | None, output: Path | None, **given: Any) -> None:
    """Show what every head of MODEL does in TEXT, or in TEXT and TEXT_B as two segments.

    \b
    headscope view demo "The cat sat on the mat because it was tired." -o cat.html
    headscope view demo "The cat sat on the mat." -o cat.html --svg cat.svg --heads 3-9,3-1
    """  # fmt: skip
    if not text.strip():
        raise click.UsageError("found an empty TEXT; wanted something to read")
    chosen = _heads(given["heads"])
    from headscope.draw.saving import save_picture
    from headscope.model import load
    from headscope.views.view import view

    shown = view(load(model, **{name: given[name] for name in LOADING}), text, text_b)
    path = shown.save(output or _temporary())
    for file in filter(None, (given["svg"], given["png"])):
        save_picture(shown.picture(*chosen), file)
    if output is None:
        click.launch(path.as_uri())
    if given["as_json"]:
        tokens, size = len(shown.shown.tokens), path.stat().st_size
        click.echo(json.dumps({"view": str(path), "tokens": tokens, "bytes": size}))
    else:
        say(f"view: {path}")


def _heads(given: str | None) -> list[tuple[int, int]]:
    """`3-9,5-1` as [(2, 8), (4, 0)]; raises InputError for anything else."""
    found = []
    for name in (given or "").split(","):
        layer, dash, head = name.strip().partition("-")
        if not name.strip():
            continue
        if not (dash and layer.isdecimal() and head.isdecimal() and int(layer) and int(head)):
            raise InputError(f"--heads {given!r}; wanted layer-head from 1, say 3-9,5-1")
        found.append((int(layer) - 1, int(head) - 1))
    return found


def _temporary() -> Path:
    import tempfile

    return Path(tempfile.mkdtemp(prefix="headscope-")) / "view.html"
