"""The entry point `python -m trials`: one command for each trial, in a module of its own."""

from __future__ import annotations

import signal
from importlib import import_module

import click

# What each does. The module of its name holds a click command called `command`.
TRIALS = {
    "file-operations": "Every k-th file operation fails, of every command that writes.",
    "kills": "Kills and stops of the command and its workers, full disks, two commands at once.",
    "pages": "Hostile strings in every place of every page.",
    "strangers": "Hostile run folders through six commands and a browser.",
    "bits": "A flipped bit in every kind of file of a run: does doctor tell?",
    "together": "Kills of processes that fill one run folder together.",
    "dask-kills": "Kills of workers, scheduler and command of a run on Dask.",
    "slurm-kills": "Tasks requeued, preempted and killed in a Slurm of this machine.",
    "power-loss": "What was not synced is lost, at every point of every command that writes.",
    "short": "Short forms of those that fork, as the suite runs them.",
    "stateful": "A folder through runs, faults, damage and changed inputs, in any order.",
    "environments": "Closed streams, deleted folders, no home, odd locales: in words, or done.",
    "fuzz": "Damaged files through every reader, run folders and model folders.",
}


class Trials(click.Group):
    """Imports a trial's module only when that trial is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(TRIALS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in TRIALS:
            return None
        command: click.Command = import_module(f"trials.{cmd_name.replace('-', '_')}").command
        return command


@click.group(cls=Trials, context_settings={"help_option_names": ["-h", "--help"]})
def trials() -> None:
    """Break headscope on purpose, and count what comes of it."""


if __name__ == "__main__":
    # A shell lets what it runs in the background ignore Ctrl-C, and so would the commands on trial.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    trials(prog_name="python -m trials")
