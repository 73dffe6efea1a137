"""Commands whose options are declared once, as the fields of a class.

    class LengthOptions(Options):
        max_length: Positive | None = option("Tokens of an input.")
        long: Literal["window", "skip", "error"] = option("What to do else.", "window")

The name of a field gives the option's (`--max-length`), its annotation the type. A field whose type
is such a class is a group of options. Help shows the fields in their order; a heading holds for its
field and for those after it. The command is handed one value of the class.
"""

import re
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args, get_origin

import click

from headscope.core.progress import Phases, begin, showing
from headscope.errors import InputError, RunStopped, did_you_mean

FIRST, OTHER = "Most used", "Other options"
# Which stand first in a help of many options, as many as MOST_FIRST.
USUAL = (
    "task", "data", "demo", "text", "treebank", "coref", "annotate", "train", "test", "epochs",
    "atlas", "versus_text", "heads", "sequences", "length", "prompts", "svg",
    "output", "analyses", "limit", "overwrite", "device",
)  # fmt: skip
MOST_FIRST, MANY = 10, 15
MOST = 2**63 - 1  # what random generators and files of results take
FILE = click.Path(path_type=Path)


def option(
    text: str,
    default: Any = None,
    *,
    names: str = "",
    required: bool = False,
    heading: str = "",
    before: str = "",
    usual: str = "",
    **settings: Any,
) -> Any:
    """A field that is an option of the command line.

    text      its help
    names     as they are typed, say "-o --output"; by default the field's name
    heading   of the help page, from this field on
    before    the inherited field before which it stands in the help; by default it is the last
    usual     of a path: what it is by default, made of other fields and printed: atlas-{model}
    settings  for click.Option: metavar, type, show_default
    """
    settings |= {"help": text, "param_decls": names.split()}
    if usual:
        settings["show_default"] = re.sub(r"\{(\w+)\}", lambda field: field[1].upper(), usual)
    metadata = {"settings": settings, "heading": heading, "before": before, "usual": usual}
    return field(metadata=metadata) if required else field(default=default, metadata=metadata)


def flag(text: str, *, names: str = "") -> Any:
    """A field that is a switch, off by default."""
    return option(text, names=names, default=False)


def several(text: str, **settings: Any) -> Any:
    """A field that is an option which may be repeated, none by default."""
    return option(text, default=(), **settings)


def argument(*, default: Any = MISSING, **settings: Any) -> Any:
    """A field that is an argument of the command; with a default it may be left out.

    settings  for click.Argument: metavar
    """
    return field(default=default, metadata={"settings": settings, "argument": True})


def group(heading: str = "", *, before: str = "") -> Any:
    """A field whose type is a class of options; `heading` and `before` as for `option`."""
    return field(metadata={"heading": heading, "before": before})


@typing.dataclass_transform(kw_only_default=True, frozen_default=True)
class Options:
    """The options of a command, or a group of them; what derives from it is a frozen dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)


Given = TypeVar("Given", bound=Options)


def typed_command(
    name: str, kind: type[Given], *, stopped: str | None = None
) -> Callable[[Callable[[Given], None]], click.Command]:
    """Make a command of a function that takes the parsed options; its docstring is the help.

    kind     declares arguments and options
    stopped  what Ctrl-C says of how to go on, of a command that computes a run; else None
    """

    def made(function: Callable[[Given], None]) -> click.Command:
        declared = list(_parameters(kind))

        def callback(**values: Any) -> None:
            _check_size(values)
            given = _value(kind, values | _usual_places(kind, values))
            click.get_current_context().with_resource(_progress(given))
            if stopped is None:
                function(given)
                return
            from headscope.run.memory import keep_few_products, keep_freed_memory

            keep_freed_memory()
            keep_few_products()
            try:
                function(given)
            except KeyboardInterrupt as error:  # before, between or after the shards
                raise RunStopped(f"stopped; {stopped}") from error

        return TypedCommand(
            name,
            callback=callback,
            params=[parameter for _, parameter in declared],
            help=function.__doc__,
            headings={str(parameter.name): heading for heading, parameter in declared if heading},
        )

    return made


@contextmanager
def _progress(given: Options) -> Iterator[None]:
    """What is told of phases is shown, unless --quiet; one that can be quiet begins to load."""
    quiet = getattr(given, "quiet", getattr(getattr(given, "how", None), "quiet", None))
    with showing(None if quiet else Phases()):
        if quiet is False:
            begin("load")
        yield


def _check_size(values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        if isinstance(value, int) and abs(value) > MOST:
            option = f"--{name.replace('_', '-')}"
            raise InputError(f"{option} is {str(value)[:20]}…; wanted a whole number below 2**63")


def _usual_places(kind: type[Options], values: Mapping[str, Any]) -> dict[str, Path]:
    """The paths that were not given and have a default made of other fields; each is printed."""
    last = {
        name: Path(value).absolute().name
        for name, value in values.items()
        if isinstance(value, str)
    }
    places = {
        each.name: Path(each.metadata["usual"].format_map(last))
        for each in fields(kind)
        if each.metadata.get("usual") and values[each.name] is None
    }
    for name, place in places.items():
        click.echo(f"headscope: --{name} {place}", err=True)
    return places


run_command = partial(typed_command, stopped="the same command goes on from what is finished")


class SuggestingGroup(click.Group):
    """A group of commands that says which one may have been meant."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is named; UsageError for none of them."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            meant = did_you_mean(args[0], self.list_commands(ctx))
            raise click.UsageError(error.message.rstrip(".") + meant, ctx) from error


class TypedCommand(click.Command):
    """A command with headings in its help; one with headings reads `--text a.txt b.txt`."""

    def __init__(self, name: str, *, headings: Mapping[str, str], **settings: Any) -> None:
        super().__init__(name, **settings)
        self.headings = headings  # of each parameter

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """`--text a.txt b.txt` is read as `--text a.txt --text b.txt`."""
        return super().parse_args(ctx, spread(args, self.params) if self.headings else args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options, heading by heading."""
        other = OTHER if self.headings else "Options"
        names = [str(p.name) for p in self.params if isinstance(p, click.Option)]
        first = [name for name in USUAL if name in names][:MOST_FIRST]
        first = first if len(names) > MANY else []
        rows: dict[str, list[tuple[str, str]]] = {FIRST: []} if first else {}
        for parameter in self.get_params(ctx):
            record, name = parameter.get_help_record(ctx), str(parameter.name)
            if isinstance(parameter, click.Option) and record is not None:
                heading = FIRST if name in first else self.headings.get(name, other)
                rows.setdefault(heading, []).append(record)
        for heading, records in rows.items():
            with formatter.section(heading):
                formatter.write_dl(records)


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


def _parameters(kind: type[Options]) -> Iterator[tuple[str, click.Parameter]]:
    """(heading, parameter) of each field, groups opened."""
    hints, heading = typing.get_type_hints(kind, include_extras=True), ""
    for each in _in_order(kind):
        hint, heading = hints[each.name], each.metadata.get("heading") or heading
        if _is_group(hint):
            yield from ((heading, parameter) for _, parameter in _parameters(hint))
        else:
            yield heading, _parameter(each, hint)


def _in_order(kind: type[Options]) -> list[Field[Any]]:
    ordered: list[Field[Any]] = []
    for each in fields(kind):
        names = [field.name for field in ordered]
        before = each.metadata.get("before")
        ordered.insert(names.index(before) if before else len(names), each)
    return ordered


def _is_group(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Options)


def _parameter(each: Field[Any], hint: Any) -> click.Parameter:
    many = get_origin(hint) is tuple
    one = get_args(hint)[0] if many or type(None) in get_args(hint) else hint
    settings = {"type": _click_type(one), **each.metadata["settings"]}
    if each.default not in (MISSING, None, ()) and one is not bool:
        settings["default"] = each.default
    required = each.default is MISSING
    if each.metadata.get("argument"):
        return click.Argument([each.name], required=required, nargs=-1 if many else 1, **settings)
    names = settings.pop("param_decls") or [f"--{each.name.replace('_', '-')}"]
    if one is bool:
        settings = {"help": settings["help"], "is_flag": True}
    settings = {"show_default": True, **settings}
    return click.Option([*names, each.name], required=required, multiple=many, **settings)


def _click_type(kind: Any) -> Any:
    if get_origin(kind) is Annotated:
        return get_args(kind)[1]
    if get_origin(kind) is Literal:
        return click.Choice(get_args(kind))
    return FILE if kind is Path else kind


def _value(kind: type[Given], values: Mapping[str, Any]) -> Given:
    hints = typing.get_type_hints(kind)
    return kind(
        **{
            name: _value(hints[name], values) if _is_group(hints[name]) else values[name]
            for name in kind.__dataclass_fields__
        }
    )
