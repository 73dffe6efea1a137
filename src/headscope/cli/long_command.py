"""What makes a command with many options and many files easy to read and to type?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

OTHER = "Other options"


def long_command(sections: Mapping[str, Sequence[str]]) -> type[click.Command]:
    """A kind of command whose help has headings, and whose file options take several files each.

    sections  names of parameters under each heading; the rest comes last
    """

    class Long(click.Command):
        """A command with headings in its help, and `--text a.txt b.txt`."""

        def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
            """`--text a.txt b.txt` is read as `--text a.txt --text b.txt`."""
            return super().parse_args(ctx, spread(args, self.get_params(ctx)))

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

    return Long


def spread(args: Sequence[str], parameters: Sequence[click.Parameter]) -> list[str]:
    """The arguments with the option's name before each of the files that follow it.

    Only behind the command's own arguments: in `--text a.txt MODEL` the last word is one.
    """
    wanted = sum(isinstance(p, click.Argument) and p.required for p in parameters)
    options = [p for p in parameters if isinstance(p, click.Option) and not p.is_flag]
    valued = {name for option in options for name in option.opts}
    files = {
        name
        for option in options
        if option.multiple and isinstance(option.type, click.Path)
        for name in option.opts
    }
    out: list[str] = []
    taking, arguments = "", 0
    left = iter(args)
    for word in left:
        if word == "--":
            return [*out, word, *left]
        if word.startswith("-"):
            taking = word if word in files else ""
            out += [word, *([next(left, "")] if word in valued else [])]
        elif taking and arguments >= wanted:
            out += [taking, word]
        else:
            out.append(word)
            arguments += 1
    return out
