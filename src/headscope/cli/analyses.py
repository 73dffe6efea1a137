"""`headscope analyses`: list the analyses that are installed."""

from typing import Any

from headscope.cli.options import json_flag
from headscope.cli.terminal_output import tell
from headscope.cli.typed_command import typed_command
from headscope.core.options import Options


class _ListingOptions(Options):
    as_json: bool = json_flag("The same as JSON.")


@typed_command("analyses", _ListingOptions)
def analyses_command(options: _ListingOptions) -> None:
    """List the analyses: what each measures, what it needs, its options, its source."""
    from headscope.claims.question import refused
    from headscope.run.known_analyses import measured_questions

    rows: list[dict[str, Any]] = [
        {
            "name": one.name,
            "summary": one.summary,
            "needs": sorted(one.needs or ()),
            "options": {name: option.default for name, option in one.options.items()},
            "source": one.source,
            "from": one.place_of("measure"),
        }
        for one in measured_questions()
    ]
    lines = []
    for row in rows:
        lines += [f"{row['name']:<12}{row['summary']}"]
        lines += [f"{'':<12}needs {', '.join(row['needs'])}; {row['source']}"]
        lines += [f"{'':<12}--set {row['name']}.{o}={v}" for o, v in row["options"].items()]
    lines += [f"left out: {why}" for why in refused()]
    tell(lines, rows if options.as_json else None, ensure_ascii=False, indent=2)
