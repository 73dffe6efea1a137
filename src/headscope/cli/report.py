"""`headscope report`: write the page of a finished run again; finish one whose shards are
complete."""

from __future__ import annotations

import io
import shlex
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headscope.cli.options import json_flag
from headscope.cli.terminal_output import complain, tell
from headscope.cli.typed_command import typed_command
from headscope.core.options import Options, argument, option
from headscope.errors import InputError, RunFolderError
from headscope.run.manifest_file import run_place

if TYPE_CHECKING:
    from headscope.run.store import RunFolder


LEFT_OUT = ("--debug", "--zero-based", "--overwrite")  # of a command that is given again
# Nothing is left to share out; and what a scheduler answers may be code, of whoever named it.
ALONE = {"engine": "processes", "scheduler": None, "workers": 1}


class _ReportOptions(Options):
    run: Path = argument(reads=run_place)
    paper: Path | None = option(
        "Also what a paper prints: figures as PDF in one and two columns, tables in LaTeX.",
        metavar="DIR",
    )
    as_json: bool = json_flag()


@typed_command("report", _ReportOptions)
def report_command(options: _ReportOptions) -> None:
    """Rebuild report.html, figures and tables of the run folder RUN from atlas.nc alone.

    A run of several processes (atlas --shard) that lacks nothing but its end is finished first; for
    that its model and its corpus must be there, as in its command.
    """
    from headscope.run.run_status import all_shards_there
    from headscope.run.store import RunFolder, open_run

    folder = RunFolder(options.run)
    if not (folder.manifest() or {}).get("results_sha256") and all_shards_there(folder):
        _finish(folder)
    run = open_run(options.run)
    if run.unproven:
        complain(run.unproven)
    report = run.report()
    summary, lines = {"run": str(options.run), "report": str(report)}, [f"report: {report}"]
    if options.paper is not None:
        from headscope.report.paper import write_for_paper

        written = write_for_paper(run, options.paper)
        lines.append(f"for a paper: {len(written)} files in {options.paper}")
        summary["paper"] = str(options.paper)
    tell(lines, summary if options.as_json else None)


def _finish(folder: RunFolder) -> None:
    """Give the run's own command once more, which finds that all shards are there."""
    from headscope.cli.atlas import atlas_command

    command = str((folder.manifest() or {}).get("command", ""))
    words: list[str] = []
    with suppress(ValueError):  # then it is none of ours
        words = [word for word in shlex.split(command) if word not in LEFT_OUT]
    foreign = {word.partition("=")[0] for word in words} & {"--trust-remote-code", "--annotate"}
    if words[:2] != ["headscope", "atlas"] or foreign:
        raise RunFolderError(
            f"all shards of {folder.path} are finished; the rest needs the model, and headscope "
            f"does not run this command by itself: run it again{': ' * bool(command)}{command}"
        )
    end = words.index("--") if "--" in words else len(words)
    words[end:end] = ["--output", str(folder.path), "--no-report", "--quiet"]
    try:
        with (
            redirect_stdout(io.StringIO()),
            atlas_command.make_context("atlas", words[2:]) as context,
        ):
            context.params |= ALONE
            atlas_command.invoke(context)
    except (InputError, click.UsageError) as error:
        said = error.format_message() if isinstance(error, click.UsageError) else str(error)
        raise RunFolderError(
            f"all shards of {folder.path} are finished; the rest needs model and corpus: {said}\n"
            f"run this command again in its first folder: {command}"
        ) from error
