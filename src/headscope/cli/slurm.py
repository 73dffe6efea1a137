"""`headscope slurm COMMAND …`: an array script by which n tasks fill one run folder together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import click

from headscope.cli.terminal_output import say
from headscope.cli.typed_command import typed_command
from headscope.core.options import Options, argument, flag, option
from headscope.errors import InputError
from headscope.run.processes import DIVIDED, check_shard
from headscope.run.slurm_script import array_script, submitted

# What a line of #SBATCH may hold: no shell reads it, so that nothing can be quoted there.
_PLAIN = re.compile(r"[\w.,:@%+/=-]+")


def _plain(text: str) -> str:
    """The text; InputError for one that a line of #SBATCH cannot hold."""
    if not _PLAIN.fullmatch(text):
        raise InputError(f"found {text!r}; wanted letters, digits and any of . , : @ % + / = -")
    return text


class _SlurmOptions(Options):
    command: tuple[str, ...] = argument(
        default=(), many=True, metavar="COMMAND MODEL ...", type=click.UNPROCESSED
    )
    tasks: int = option("Tasks of the array.", 16, least=1)
    time: str | None = option("Time limit of a task, say 4:00:00.", reads=_plain)
    mem: str | None = option("Memory of a task, say 16G.", reads=_plain)
    cpus: int | None = option("Processors of a task.", least=1)
    gpus: str | None = option("GPUs of a task, say 1 or a100:1; give --device too.", reads=_plain)
    partition: str | None = option("Partition of the cluster.", reads=_plain)
    submit: bool = flag("Hand the script to sbatch instead of printing it.")


@typed_command("slurm", _SlurmOptions)
def slurm_command(options: _SlurmOptions) -> None:
    """Print an array script for Slurm that runs `headscope COMMAND ...` in several tasks.

    COMMAND is one that takes --shard, such as atlas, ablate or study; all that it takes is given
    as there. A task that is killed, preempted or requeued costs the shard it computed; the last one
    merges and reports. `headscope status RUN` tells how far it is.

    \b
    headscope slurm atlas bert-base-uncased --text wiki.txt -o run --tasks 64 --time 4:00:00
    headscope slurm atlas my-model --text wiki.txt -o run --tasks 8 --gpus 1 --device cuda --submit
    """
    _check(options.command, options.tasks)
    script = array_script(
        options.command,
        tasks=options.tasks,
        folder=Path.cwd(),
        time=options.time,
        mem=options.mem,
        cpus_per_task=options.cpus,
        gpus=options.gpus,
        partition=options.partition,
    )
    say(submitted(script) if options.submit else script.rstrip())


# What is not its own is the other command's, and is read by it.
slurm_command.context_settings = {"ignore_unknown_options": True}


def _check(command: Sequence[str], tasks: int) -> None:
    """Raise InputError, or click's error, for what the command would not take."""
    if not command or command[0] not in DIVIDED:
        name = repr(command[0]) if command else "no command"
        raise InputError(f"found {name}; wanted headscope slurm {'|'.join(DIVIDED)} MODEL ...")
    if strange := [word for word in command if not word.isprintable()]:
        raise InputError(f"found {strange[0]!r}; wanted printable arguments without line breaks")
    module = import_module(f"headscope.cli.{command[0]}")
    of_shards: click.Command = getattr(module, f"{command[0]}_command")
    with of_shards.make_context(command[0], [*command[1:]]) as context:
        values = context.params
    if values["shard"] is not None:
        raise InputError("found --shard; leave it out: each task gets its own")
    check_shard((1, tasks), workers=values.get("workers", 1), overwrite=values["overwrite"])
