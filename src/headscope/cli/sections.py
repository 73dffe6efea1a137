"""In which order does a long help list its options?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

OTHER = "Other options"


def sectioned(sections: Mapping[str, Sequence[str]]) -> type[click.Command]:
    """A kind of command whose help lists options under headings.

    sections  names of parameters under each heading; the rest comes last
    """

    class Sectioned(click.Command):
        """A command with headings in its help."""

        def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
            """The options, heading by heading."""
            heading_of = {name: heading for heading, names in sections.items() for name in names}
            rows: dict[str, list[tuple[str, str]]] = {name: [] for name in (*sections, OTHER)}
            for parameter in self.get_params(ctx):
                record = parameter.get_help_record(ctx)
                if isinstance(parameter, click.Option) and record is not None:
                    rows[heading_of.get(parameter.name or "", OTHER)].append(record)
            for heading, records in rows.items():
                if records:
                    with formatter.section(heading):
                        formatter.write_dl(records)

    return Sectioned
