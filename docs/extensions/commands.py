"""The directives `command`, a command with its help, and `commands`, a list of some: from click."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from headscope.cli.main import COMMANDS, group


class MarkdownFormatter(click.HelpFormatter):
    """Writes help as Markdown: a heading is bold, options are a list of definitions."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """The usage line as code."""
        self.write(f"```text\n{prog} {args}\n```\n\n")

    def write_text(self, text: str) -> None:
        r"""Paragraphs; those behind \b, whose lines stay, as code."""
        for part in text.split("\n\n"):
            as_code = part.startswith("\b\n")
            self.write(f"```text\n{part[2:]}\n```\n\n" if as_code else f"{_escaped(part)}\n\n")

    def write_dl(
        self, rows: Sequence[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        """Names and what they mean."""
        for names, text in rows:
            self.write(f"`{names}`\n: {_escaped(text)}\n\n")

    @contextmanager
    def section(self, name: str) -> Iterator[None]:
        """Options of one heading."""
        self.write(f"**{name}**\n\n")
        yield


def _escaped(text: str) -> str:
    """Without what Markdown would take for its own; `code` stays."""
    for mark in "<*[_|":
        text = text.replace(mark, f"\\{mark}")
    return text


def _markdown(command: click.Command, context: click.Context, marks: str = "") -> Iterator[str]:
    """The help of a command; of a group its own, then that of its commands under headings."""
    formatter = MarkdownFormatter()
    command.format_usage(context, formatter)
    command.format_help_text(context, formatter)
    kind = click.Command if isinstance(command, click.Group) else type(command)
    kind.format_options(command, context, formatter)  # of a group its options, not its commands
    heading = f"{marks} {context.command_path}\n\n" if marks else ""
    yield f"{heading}{formatter.getvalue()}"
    if isinstance(command, click.Group) and command is not group:
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                yield from _markdown(
                    below, click.Context(below, info_name=name, parent=context), "##"
                )


class Command(SphinxDirective):
    """One command, by its name; without a name headscope's own options."""

    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Its help."""
        context = click.Context(group, info_name="headscope")
        command: click.Command | None = group
        if self.arguments:
            name = self.arguments[0]
            command = group.get_command(context, name)
            if command is None:
                raise self.error(f"headscope has no command {name!r}")
            context = click.Context(command, info_name=name, parent=context)
        text = "\n".join(_markdown(command, context))
        return self.parse_text_to_nodes(text, allow_section_headings=True)


class Commands(SphinxDirective):
    """A list of commands, a name a line, each with what it does and a link to its page."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """The list."""
        rows = [
            f"[`headscope {name}`](commands/{name}.md)\n: {COMMANDS[name]}" for name in self.content
        ]
        return self.parse_text_to_nodes("\n\n".join(rows))


def setup(app: Sphinx) -> dict[str, bool]:
    """Make the directives known."""
    app.add_directive("command", Command)
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True}
