"""`headscope view`: what every head does in one text, as a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from headscope.cli.options import FILE, model_options
from headscope.cli.terminal import say


@click.command("view")
@click.argument("model")
@click.argument("text")
@click.argument("text_b", required=False)
@click.option("-o", "--output", type=FILE, help="The page; without it, a browser opens one.")
@model_options
@click.option("--json", "as_json", is_flag=True, help="A machine-readable summary on stdout.")
def command(
    model: str, text: str, text_b: str | None, output: Path | None, as_json: bool, **how: Any
) -> None:
    """Show what every head of MODEL does in TEXT, or in TEXT and TEXT_B as two segments.

    \b
    headscope view demo "The cat sat on the mat because it was tired." -o cat.html
    """  # fmt: skip
    if not text.strip():
        raise click.UsageError("found an empty TEXT; wanted something to read")
    from headscope.model import load
    from headscope.views.view import view

    shown = view(load(model, **how), text, text_b)
    path = shown.save(output or _temporary())
    if output is None:
        click.launch(path.as_uri())
    if as_json:
        tokens, size = len(shown.shown.tokens), path.stat().st_size
        click.echo(json.dumps({"view": str(path), "tokens": tokens, "bytes": size}))
    else:
        say(f"view: {path}")


def _temporary() -> Path:
    import tempfile

    return Path(tempfile.mkdtemp(prefix="headscope-")) / "view.html"
