"""Damaged files through every reader, run folders and model folders."""

from __future__ import annotations

import click


@click.command("fuzz")
@click.option("--inputs", default=1000, show_default=True, help="How many inputs.")
@click.option("--seed", default=0, show_default=True, help="Seed of the mutations.")
def command(inputs: int, seed: int) -> None:
    """Damaged files through every reader, run folders and model folders."""
    raise click.UsageError("not yet")
