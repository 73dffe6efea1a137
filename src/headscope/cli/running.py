"""Which options say how a corpus is run through a model, and what is told of it?

Shared by `atlas` and `compare`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from headscope.cli.options import analysis_options
from headscope.cli.terminal import say

if TYPE_CHECKING:
    from headscope.run.settings import Settings

LENGTHS = ("max_length", "long", "segment_ids")
EXECUTING = ("threads", "linears", "batch_tokens", "shard_tokens", "overwrite", "no_report",
             "quiet", "as_json")  # fmt: skip
RANDOM = ("replicates", "seed")
_SETTINGS = ("max_length", "long", "segment_ids", "batch_tokens", "shard_tokens", "limit", "seed",
             "replicates")  # fmt: skip


def length_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """How long an input may be, and what happens to longer ones."""
    for option in reversed(
        [
            click.option("--max-length", type=int,
                         help="Tokens of an input; 128 packed, else up to 512."),
            click.option(
                "--long", type=click.Choice(["window", "skip", "error"]), default="window",
                show_default=True, help="What to do with anything longer.",
            ),
            click.option(
                "--segment-ids", type=click.Choice(["auto", "zeros"]), default="auto",
                show_default=True, help="zeros: all 0, as Clark et al.'s script.",
            ),
        ]
    ):  # fmt: skip
        function = option(function)
    return function


def run_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """How to run: batches, shards, chance, threads, and what is said meanwhile."""
    for option in reversed(
        [
            click.option("--batch-tokens", type=int, default=2048, show_default=True),
            click.option("--shard-tokens", type=int, default=32_768, show_default=True),
            click.option("--limit", type=int, help="Read only the first N documents."),
            click.option("--seed", type=int, default=0, show_default=True),
            click.option("--replicates", type=int, default=200, show_default=True,
                         help="Of the bootstrap."),
            click.option("--threads", type=click.IntRange(min=1),
                         help="Threads of each process; all cores shared by default."),
            click.option(
                "--linears", type=click.Choice(["auto", "onednn", "stock"]), default="auto",
                show_default=True, help="Matrix products on a CPU; auto times both.",
            ),
            click.option("--overwrite", is_flag=True,
                         help="Replace a run of another spec in the folder."),
            click.option("--no-report", is_flag=True,
                         help="Results only; `headscope report` makes the rest."),
            click.option("--quiet", is_flag=True, help="No progress bar."),
            click.option("--json", "as_json", is_flag=True,
                         help="A machine-readable summary on stdout."),
        ]
    ):  # fmt: skip
        function = option(function)
    return function


class Progress:
    """A bar on stderr, over shards or another unit; silent when quiet or not on a terminal."""

    def __init__(self, *, quiet: bool, unit: str = "shard") -> None:
        self.unit = unit
        self.quiet = quiet or not sys.stderr.isatty()
        self.bar: Any = None
        self.found: int | None = None  # shards that were finished before this run began
        self.total = 0

    def __enter__(self) -> Progress:
        return self

    def __call__(self, done: int, total: int) -> None:
        """Show that so many shards of all are finished."""
        if self.found is None:
            self.found, self.total = done, total
        if self.quiet:
            return
        from tqdm import tqdm

        if self.bar is None:
            self.bar = tqdm(total=total, unit=self.unit, initial=done, file=sys.stderr)
        else:
            self.bar.update(done - self.bar.n)

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()


def run_settings(given: Mapping[str, Any]) -> Settings:
    """What these options, and those that name analyses, come to."""
    from headscope.run.settings import Settings

    asked = given["analyses"]
    names = None if asked is None else tuple(filter(None, map(str.strip, asked.split(","))))
    kept = {name: given[name] for name in _SETTINGS}
    return Settings(analyses=names, options=analysis_options(given, names), **kept)


def tell_reading(counts: Mapping[str, Any], progress: Progress, notes: Sequence[str]) -> None:
    """Says what was resumed, cut into windows, and left out and why."""
    for note in notes:
        say(note)
    if progress.found:
        say(f"resumed: {progress.found} of {progress.total} shards were finished before")
    if counts["windowed"]:
        say(f"windowed: {counts['windowed']} passages were longer than an input")
    for reason, entry in counts["reasons"].items():
        first = ", ".join(_short(name) for name in entry["first"][:3])
        more = ", …" if entry["total"] > 3 else ""
        say(f"skipped: {entry['total']} × {reason} ({first}{more})")


def _short(name: str) -> str:
    return name if len(name) <= 60 else name[:59] + "…"
