"""The option by which processes share the work of a command: `--shard I/N`."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

import click

from headscope.cli.options import RunOptions
from headscope.cli.terminal_output import complain
from headscope.cli.typed_command import option
from headscope.errors import InputError
from headscope.run.processes import check_shard

if TYPE_CHECKING:
    from headscope.run.store import Run


class _Shard(click.ParamType):  # type: ignore[type-arg]  # click 8.1 takes none
    name = "shard"

    def convert(self, value: str, *_: object) -> tuple[int, int]:
        """The two numbers; InputError for anything else."""
        found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", value)
        if not found:
            raise InputError(f"--shard is {value!r}; wanted I/N, say 1/4 to 4/4")
        return int(found[1]), int(found[2])


class SharedRunOptions(RunOptions):
    """The same, of a command whose work processes can share."""

    shard: tuple[int, int] | None = option(
        "Process I of N, from 1, that fill one run folder together, started anywhere: it begins "
        "with its share and helps with what is left.", type=_Shard(), metavar="I/N",
    )  # fmt: skip

    def __post_init__(self) -> None:
        """Raise InputError for a share that is none, or does not go with --overwrite."""
        check_shard(self.shard, workers=1, overwrite=self.overwrite)

    def reporting(self, run: Run) -> Self:
        """The same without a report where another process writes it, or is still there."""
        if self.shard is None or self.no_report or run.path is None:
            return self
        last = not run.elsewhere and is_free(run.path, f"headscope report {run.path}")
        return replace(self, no_report=not last)


def is_free(output: Path, instead: str) -> bool:
    """Whether a run folder is free within a minute: processes that have shared it soon see its end.

    Else says what to do `instead`.
    """
    from headscope.core.whole_file import held

    with suppress(InputError), held(output, patience=60):
        return True
    complain(f"another process is in {output}; when it has ended: {instead}")
    return False
