"""`headscope status`: how far a run folder is, and what its processes do."""

from pathlib import Path

from headscope.cli.options import json_flag
from headscope.cli.terminal_output import tell
from headscope.cli.typed_command import typed_command
from headscope.core.options import Options, argument


class _StatusOptions(Options):
    run: Path = argument()
    as_json: bool = json_flag()


@typed_command("status", _StatusOptions)
def status_command(options: _StatusOptions) -> None:
    """Show the progress of the run folder RUN: shards done, rate, time left, and each process.

    A process that was killed, or that has been silent for two minutes, is dead; its shards are
    computed by the others.
    """
    from headscope.run.run_status import run_status

    status = run_status(options.run)
    tell(status.lines(), status.as_dict() if options.as_json else None)
