"""`headscope report`: rebuild what is drawn and written from the results alone."""

from __future__ import annotations

import json

import click

from headscope.cli.options import FILE


@click.command("report")
@click.argument("run", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="A machine-readable summary on stdout.")
def command(run: str, as_json: bool) -> None:
    """Rebuild report.html, figures and tables of the run folder RUN from atlas.nc alone."""
    from headscope.run import open_run

    report = open_run(run).report()
    click.echo(json.dumps({"report": str(report)}) if as_json else f"report: {report}")
