"""`headscope report`: write the page of a finished run anew."""

from pathlib import Path

from headscope.cli.options import json_flag
from headscope.cli.terminal_output import tell
from headscope.cli.typed_command import Options, argument, typed_command


class _ReportOptions(Options):
    run: Path = argument()
    as_json: bool = json_flag()


@typed_command("report", _ReportOptions)
def report_command(given: _ReportOptions) -> None:
    """Rebuild report.html, figures and tables of the run folder RUN from atlas.nc alone."""
    from headscope.run.store import open_run

    report = open_run(given.run).report()
    summary = {"run": str(given.run), "report": str(report)}
    tell([f"report: {report}"], summary if given.as_json else None)
