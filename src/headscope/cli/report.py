"""`headscope report`: rebuild what is drawn and written from the results alone."""

from __future__ import annotations

import json
from pathlib import Path

import click

from headscope.cli.options import FILE
from headscope.cli.terminal import say


@click.command("report")
@click.argument("run", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="A machine-readable summary on stdout.")
def command(run: Path, as_json: bool) -> None:
    """Rebuild report.html, figures and tables of the run folder RUN from atlas.nc alone."""
    from headscope.run.finished_run import open_run

    report = open_run(run).report()
    if as_json:
        click.echo(json.dumps({"run": str(run), "report": str(report)}))
    else:
        say(f"report: {report}")
