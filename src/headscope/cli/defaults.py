"""Defaults of options that the working folder or the environment sets: headscope.toml, HEADSCOPE_…

    device = "cuda"        # of every command that has such an option
    zero-based = true

    [atlas]                # of one command
    limit = 100

What is typed comes first, then a variable (HEADSCOPE_DEVICE=cuda), then the file, where the table
of the command comes before what stands above all tables, and last what the option has by itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from headscope.errors import HeadscopeError, InputError, did_you_mean

FILE, PREFIX = "headscope.toml", "HEADSCOPE_"
META = "headscope.defaults"  # of a context: the settings in effect
OF_TESTS = ("HEADSCOPE_BROWSER", "HEADSCOPE_TRIAL")  # variables that set no option
# What a folder that came with somebody's data must not decide, and what belongs to one command.
TYPED_ALONE = (
    *("trust-remote-code", "scheduler", "host"),
    *("overwrite", "submit", "shard", "debug", "help"),
)
SWITCHES = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


@dataclass(frozen=True)
class Setting:
    """One default that is set somewhere.

    command  which it is of: "atlas", "patterns annotate"; "" for all that have the option
    name     of the option, without dashes in front
    value    as it stands there
    source   where that is: "headscope.toml", "headscope.toml [atlas]", "HEADSCOPE_DEVICE"
    """

    command: str
    name: str
    value: Any
    source: str


def all_settings() -> list[Setting]:
    """Everything that is set, what comes first last; nothing is checked but the file's form."""
    own = [
        Setting("", _plain(name.removeprefix(PREFIX)), value, name)
        for name, value in sorted(os.environ.items())
        if name.startswith(PREFIX) and name not in OF_TESTS
    ]
    return [*_of_file(), *own]


def set_for(command: click.Command, ctx: click.Context) -> dict[str, Any]:
    """The defaults that are set for a command, by the names of its parameters.

    They are noted in the context.

    raises  InputError for an unknown name, a value that the option does not take, or a file that
            is no TOML
    """
    path, every = " ".join(ctx.command_path.split()[1:]), all_settings()
    if not every:
        return {}
    options = options_of(command)
    refuse_unknown([one for one in every if one.command in ("", path)], path, options, ctx)
    values, effective = {}, {}
    for one in every:
        if one.command in ("", path) and one.name in options:
            parameter = options[one.name]
            values[str(parameter.name)] = _checked(one, parameter, ctx)
            effective[one.name] = one
    ctx.meta.setdefault(META, {}).update(effective)
    return values


def in_effect(ctx: click.Context | None) -> Iterator[tuple[Setting, list[str]]]:
    """The settings that decide an option of a command, nothing typed; each as it would be typed."""
    noted: Mapping[str, Setting] = {} if ctx is None else ctx.meta.get(META, {})
    while ctx is not None:
        for name, parameter in options_of(ctx.command).items():
            source = ctx.get_parameter_source(str(parameter.name))
            if name not in noted or source is not click.core.ParameterSource.DEFAULT_MAP:
                continue
            if words := _typed(noted[name], parameter):
                yield noted[name], words
        ctx = ctx.parent


def options_of(command: click.Command) -> dict[str, click.Option]:
    """The options of a command by the long name, without dashes in front."""
    options = [one for one in command.params if isinstance(one, click.Option)]
    return {max(one.opts, key=len).lstrip("-"): one for one in options}


def commands_of(group: click.Group, ctx: click.Context) -> Iterator[tuple[str, click.Command]]:
    """Every command of a group, and of groups in it, by its path; what cannot be used is left
    out.
    """
    for name in group.list_commands(ctx):
        try:
            command = group.get_command(ctx, name)
        except Exception:  # a stranger's module may raise anything
            continue
        if isinstance(command, click.Group):
            yield from ((f"{name} {path}", one) for path, one in commands_of(command, ctx))
        elif command is not None:
            yield name, command


def refuse_unknown(
    settings: Sequence[Setting],
    path: str,
    options: Mapping[str, click.Option],
    ctx: click.Context,
) -> None:
    """Raise InputError for a setting that names no option.

    path     of the command, whose own table may name only its options
    options  of the command; those of all commands are looked up only for what is not among them
    """
    others: dict[str, Any] | None = None
    for one in settings:
        if one.name in TYPED_ALONE:
            raise InputError(
                f"{one.source} sets {one.name}, which is never a default; remove it there, and "
                f"type --{one.name} with the command that needs it"
            )
        if one.name in options:
            continue
        known: Mapping[str, Any] = options
        root = ctx.find_root()
        if not (one.command and one.command == path) and isinstance(root.command, click.Group):
            if others is None:
                others = dict(options_of(root.command))
                for _, command in commands_of(root.command, root):
                    others |= options_of(command)
            known = others
        if one.name not in known:
            where = f"option of {one.command}" if one.command else "option of any command"
            raise InputError(
                f"{one.source} sets {one.name!r}, which is no {where}"
                f"{did_you_mean(one.name, known)}\nremove or correct it there; the options of a "
                "command: headscope help COMMAND"
            )


def _of_file() -> list[Setting]:
    file = Path(FILE)
    if not file.is_file():
        return []
    import tomllib

    try:
        content = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {FILE} in this folder: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(
            f'{FILE} in this folder is no TOML ({error}); wanted lines like device = "cuda", and '
            "tables like [atlas]; correct it, or move it away"
        ) from error
    return sorted(_tables(content, ""), key=lambda one: bool(one.command))


def _tables(content: Mapping[str, Any], command: str) -> Iterator[Setting]:
    source = f"{FILE} [{'.'.join(command.split())}]" if command else FILE
    for name, value in content.items():
        if isinstance(value, dict):
            yield from _tables(value, f"{command} {name}".strip())
        else:
            yield Setting(command, _plain(name), value, source)


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")


def _checked(one: Setting, parameter: click.Option, ctx: click.Context) -> Any:
    """The value as click takes it; InputError for one that the option does not take."""
    if parameter.is_flag:
        on = one.value if isinstance(one.value, bool) else SWITCHES.get(str(one.value).lower())
        if on is None:
            raise _wrong(one, "wanted true or false")
        return on != (parameter.flag_value is False)  # which `--no-…` switches off
    values = one.value if isinstance(one.value, list) else [one.value]
    if len(values) != 1 and not parameter.multiple:
        raise _wrong(one, "wanted one value")
    if any(isinstance(value, bool) or not isinstance(value, str | int | float) for value in values):
        raise _wrong(one, "wanted a text or a number" + ", or a list" * parameter.multiple)
    texts = [str(value) for value in values]
    value = texts if parameter.multiple else texts[0]
    try:
        parameter.type_cast_value(ctx, value)
    except click.BadParameter as error:
        raise _wrong(one, error.message.rstrip(".")) from error
    except HeadscopeError as error:
        raise _wrong(one, str(error)) from error
    return value


def _wrong(one: Setting, why: str) -> InputError:
    shown = str(one.value).lower() if isinstance(one.value, bool) else repr(one.value)
    return InputError(
        f"{one.source} sets {one.name} = {shown}: {why}\ncorrect or remove it there, or type "
        f"--{one.name} with the command"
    )


def _typed(one: Setting, parameter: click.Option) -> list[str]:
    word = f"--{one.name}"
    if parameter.is_flag:
        on = one.value if isinstance(one.value, bool) else SWITCHES[str(one.value).lower()]
        return [word] if on else []
    values = one.value if isinstance(one.value, list) else [one.value]
    return [text for value in values for text in (word, str(value))]
