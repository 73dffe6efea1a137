"""What may reach a terminal, and how is it made fit for one?"""

from __future__ import annotations

import os
import sys

import click


def printable(text: str) -> str:
    """The text with control characters and lone surrogates escaped: file names may hold any."""
    return "".join(
        c if c.isprintable() or c == "\n" else c.encode("unicode_escape", "replace").decode()
        for c in text
    )


def say(text: str) -> None:
    """One line or more on stdout."""
    click.echo(printable(text))


def complain(text: str) -> None:
    """One line or more on stderr, after the program's name."""
    click.echo(f"headscope: {printable(text)}", err=True)


def prepare() -> None:
    """No telemetry, bars and advice of the libraries between our lines; any character prints."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
