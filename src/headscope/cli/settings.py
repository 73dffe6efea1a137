"""`headscope settings`: the defaults of options, and where each comes from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from headscope.cli.defaults import (
    FILE,
    Setting,
    all_settings,
    commands_of,
    options_of,
    refuse_unknown,
    set_for,
)
from headscope.cli.options import json_flag
from headscope.cli.terminal_output import tell
from headscope.cli.typed_command import typed_command
from headscope.core.options import Options, argument
from headscope.errors import unknown

USUAL = ("zero-based", "device", "dtype", "threads", "output", "quiet")  # shown in any case


class _SettingsOptions(Options):
    command: tuple[str, ...] = argument(default=(), many=True, metavar="[COMMAND]")
    as_json: bool = json_flag("The settings as JSON on stdout.")


@typed_command("settings", _SettingsOptions)
def settings_command(options: _SettingsOptions) -> None:
    """Show what options are set to where they are not typed, and where each value comes from.

    A variable HEADSCOPE_… comes before headscope.toml in this folder, and that before the default.
    With COMMAND, every option of that command.

    \b
    headscope settings
    headscope settings atlas
    HEADSCOPE_DEVICE=cuda headscope settings atlas
    """
    context = click.get_current_context()
    rows = list(
        _of_command(" ".join(options.command), context) if options.command else _all(context)
    )
    width = max(len(row["name"]) for row in rows)
    values = max(len(_shown(row["value"])) for row in rows)
    lines = [
        f"{row['name']:<{width}}  {_shown(row['value']):<{values}}  {row['source']}" for row in rows
    ]
    if not Path(FILE).is_file():
        lines.append(f"there is no {FILE} in this folder")
    tell(lines, rows if options.as_json else None)


def _all(context: click.Context) -> Iterator[dict[str, Any]]:
    """What is set, and a few usual options; raises InputError for what is set wrongly."""
    root = context.find_root()
    assert isinstance(root.command, click.Group)
    commands = dict(commands_of(root.command, root))
    _refuse(all_settings(), commands, root)
    one_by_one = {(one.command, one.name): one for one in all_settings()}
    for one in one_by_one.values():
        yield _row(f"{one.command}: {one.name}".removeprefix(": "), one.value, one.source)
    of_all: dict[str, click.Option] = {}
    for command in (*commands.values(), root.command):
        of_all = options_of(command) | of_all
    for name in USUAL:
        if ("", name) not in one_by_one:
            yield _row(name, _default(of_all[name]), "default")


def _refuse(
    settings: list[Setting], commands: dict[str, click.Command], root: click.Context
) -> None:
    for path in {one.command for one in settings} - {""}:
        if path not in commands:
            raise unknown("command", path, commands)
    refuse_unknown([one for one in settings if not one.command], "", {}, root)
    for path, command in [("", root.command), *commands.items()]:
        with click.Context(command, parent=root if path else None, info_name=path) as own:
            set_for(command, own)


def _of_command(path: str, context: click.Context) -> Iterator[dict[str, Any]]:
    root = context.find_root()
    assert isinstance(root.command, click.Group)
    commands = dict(commands_of(root.command, root))
    if path not in commands:
        raise unknown("command", path, commands)
    command = commands[path]
    with click.Context(command, parent=root, info_name=path) as own:
        set_for(command, own)
    by_name = {one.name: one for one in all_settings() if one.command in ("", path)}
    for name, option in options_of(command).items():
        one = by_name.get(name)
        value = _default(option) if one is None else one.value
        yield _row(name, value, "default" if one is None else one.source)


def _row(name: str, value: Any, source: str) -> dict[str, Any]:
    return {"name": name, "value": value, "source": source}


def _default(option: click.Option) -> Any:
    """The default of an option, as help shows it."""
    if option.is_flag:
        return False
    if isinstance(option.show_default, str):
        return option.show_default
    value = option.default
    return value if isinstance(value, str | int | float) else None


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "not set" if value is None else str(value)
