"""The entry point `headscope`: its commands, and how errors end them.

Exit codes: 0 done, 1 failed, 2 wrong usage or bad input, 130 stopped by Ctrl-C. Errors are one to
three lines; `--debug` shows the traceback.
"""

import gc
import signal
import sys
from functools import cache
from importlib.metadata import EntryPoint
from typing import Any

import click

from headscope import __version__
from headscope.cli.terminal_output import complain, lost_output, prepare, refusal
from headscope.cli.typed_command import SuggestingGroup, set_defaults
from headscope.core.head_names import counting_from
from headscope.core.plug_ins import entries_of
from headscope.errors import HeadscopeError, InputError, RunStopped, memory_told, one_line

GROUP = "headscope.commands"  # of entry points: ours, and those of other packages
# What each of ours does, so that help imports nothing of it.
COMMANDS = {
    "atlas": "Run all analyses over a corpus; ends in a report.",
    "plan": "How much an atlas with --until will read.",
    "view": "What every head looks at in one text, as a page.",
    "serve": "A live page: type a text, switch heads off; a run’s pages.",
    "finetune": "Teach a model a task; record how its layers change.",
    "study": "Tasks × seeds: what training changes, and which heads count.",
    "ablate": "Switch heads off: which does a task need?",
    "importance": "Gradients: how much a loss depends on each head.",
    "circuits": "What heads of a decoder do on made inputs.",
    "trial": "Try a run’s labels: is what they say a cause?",
    "explain": "Replay heads by rules: how much of them do rules do?",
    "prune": "Remove heads that a task can do without.",
    "compare": "What fine-tuning changes in the heads of a model.",
    "evolve": "Heads over training: when is each label born?",
    "reproduce": "A paper’s tables: published beside ours.",
    "probe": "How much syntax probes find in attention.",
    "zoo": "Which claims hold for which of several models?",
    "patterns": "Classes of attention maps: label, learn, apply.",
    "head": "Tell what one head of a run is: labels, numbers, maps.",
    "report": "Rebuild report, figures and tables of a run.",
    "cite": "BibTeX of the sources behind a run, and its methods.",
    "export": "A run as a folder of pages, for any web host or the disk.",
    "status": "How far a run is, and what each process does.",
    "slurm": "An array script that fills a run on a Slurm cluster.",
    "analyses": "List the analyses and their options.",
    "models": "List the families of models that were tried.",
    "settings": "Defaults of options: what is set, and where.",
    "doctor": "Check the installation, a model, a corpus, a run.",
}
# Figures are full of references in circles, of which few are garbage: to look after each thousand
# objects takes a thirteenth of a run's time.
LOOK_FOR_GARBAGE = (200_000, 20, 50)


@cache
def announced_commands() -> dict[str, EntryPoint]:
    """The entry points of all commands: ours in the order of the table, then others by name.

    raises  HeadscopeError where headscope is not installed
    """
    entries = entries_of(GROUP, "command", COMMANDS)
    first = {entry.name: entry for entry in reversed(entries)}  # a name that ours has stays ours
    return {name: first[name] for name in (*COMMANDS, *sorted(first.keys() - COMMANDS.keys()))}


class LazyGroup(SuggestingGroup):
    """A group that imports a command's module only when that command is used."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """`help COMMAND` is read as `COMMAND --help`, and `help` as `--help`."""
        words = [at for at, word in enumerate(args) if not word.startswith("-")]
        if words and args[words[0]] == "help":
            args = [*args[: words[0]], *args[words[0] + 1 :], "--help"]
        if not words or args[words[0]] != "settings":  # which says by itself what is wrong
            set_defaults(self, ctx, args)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands, in the order in which they are mostly used."""
        return list(announced_commands())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name; InputError for one of another package that is none."""
        entry = announced_commands().get(cmd_name)
        if entry is None:
            return None
        command: Any = entry.load()
        if not isinstance(command, click.Command):
            raise InputError(f"{entry.value} is no command but {command!r:.80}")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands; of ours from the table above, so that help imports nothing."""
        others = [entry for name, entry in announced_commands().items() if name not in COMMANDS]
        with formatter.section("Commands"):
            rows = [*COMMANDS.items(), *((one.name, _said_of(one)) for one in others)]
            formatter.write_dl([*rows, ("help", "The options of a command: headscope help atlas.")])


def _said_of(entry: EntryPoint) -> str:
    try:
        return str(entry.load().get_short_help_str())
    except Exception as error:  # whatever a stranger's module does, help is shown
        return f"cannot be used: {one_line(error)}"


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-v", "--version", prog_name="headscope")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.option(
    "--zero-based", is_flag=True, help="Count layers and heads from 0: names, pages, all."
)
@click.pass_context
def group(ctx: click.Context, debug: bool, zero_based: bool) -> None:
    """Tell what every attention head of a transformer looks at."""
    if zero_based:  # main reads --debug itself: it must know before anything fails
        ctx.with_resource(counting_from(0))


def main() -> None:
    """The entry point: turns errors into a few lines and an exit code."""
    prepare()
    gc.set_threshold(*LOOK_FOR_GARBAGE)
    # A scheduler's or a system's request to end is answered as Ctrl-C is: with what is kept.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    name, *words = sys.argv
    debug, everywhere = "--debug" in words, ("--debug", "--zero-based")  # wherever they stand
    sys.argv = [name, *(a for a in everywhere if a in words)]
    sys.argv += [a for a in words if a not in everywhere]
    try:
        code = _done(debug)
    finally:
        gc.freeze()  # at the end all is let go: nothing is looked for in a million objects
    lost = lost_output()
    sys.exit(code or int(lost))


def _done(debug: bool) -> int:
    """Do what the words ask for; returns the exit code."""
    try:
        with memory_told("ask for less at once, say --batch-tokens 1024, or free some"):
            code = group(prog_name="headscope", standalone_mode=False)
    except click.ClickException as error:
        _show(error)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        complain("stopped")
        return RunStopped.exit_code
    except Exception as error:
        # The reader of our output went away, or it cannot be written.
        if isinstance(error, BrokenPipeError) or (isinstance(error, OSError) and lost_output()):
            return 1
        if debug:
            raise
        if isinstance(error, HeadscopeError):
            complain(str(error))
            return error.exit_code
        lines = str(error).strip().splitlines() or [""]
        complain(
            refusal(error)
            or f"failed with {type(error).__name__}: {lines[0][:200]}\n"
            "this is an error of headscope: run again with --debug and report it"
        )
        return 1
    return code if isinstance(code, int) else 0


def _show(error: click.ClickException) -> None:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return
    context = error.ctx if isinstance(error, click.UsageError) else None
    more = f"\nsee {context.command_path} --help" if context else ""
    complain(error.format_message().expandtabs(2) + more)
