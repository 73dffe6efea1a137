"""`headscope analyses`: what can be asked of a head."""

from __future__ import annotations

import json
from typing import Any

import click


@click.command("analyses")
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
def command(as_json: bool) -> None:
    """List the analyses: what each tells, what it needs, its options, its source."""
    from headscope.run.analysis import known_analyses, options_of

    rows: list[dict[str, Any]] = [
        {
            "name": name,
            "summary": kind.summary,
            "needs": sorted(kind.needs),
            "options": options_of(kind),
            "source": kind.source,
            "from": kind.__module__,
        }
        for name, kind in known_analyses().items()
    ]
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    for row in rows:
        click.echo(f"{row['name']:<12}{row['summary']}")
        click.echo(f"{'':<12}needs {', '.join(row['needs'])}; {row['source']}")
        for option, default in row["options"].items():
            click.echo(f"{'':<12}--set {row['name']}.{option}={default}")
