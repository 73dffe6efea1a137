"""Commands whose options are declared once, as the fields of a class: see `core.options`.

The name of a field gives the option's (`--max-length`), its annotation the type. Help shows the
fields below their headings. The command is handed one value of the class.
"""

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, Field, field, fields
from functools import partial
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import click
from click.shell_completion import CompletionItem

from headscope.cli.defaults import in_effect, set_for
from headscope.cli.terminal_output import complain
from headscope.core.options import MOST, Declared, Options, declared, type_of
from headscope.core.progress import Phases, begin, showing
from headscope.errors import InputError, RunStopped, did_you_mean
from headscope.model.request import PACKAGES, model_place

FIRST, OTHER = "Most used", "Other options"
# Which stand first in a help of many options, as many as MOST_FIRST.
USUAL = (
    "task", "data", "demo", "text", "treebank", "coref", "annotate", "train", "test", "epochs",
    "atlas", "versus_text", "heads", "sequences", "length", "prompts", "svg",
    "output", "analyses", "limit", "overwrite", "device",
)  # fmt: skip
# In which order the headings of a help stand; others follow.
HEADINGS = (
    "The result", "The data", "The session", "The examples of a task", "The task", "What to read",
    "Or any text", "The probes", "Features", "Which heads go", "What is switched off",
    "What to compute", "The training", "Lengths", "How sure", "The model", "The models",
    "How to run",
)  # fmt: skip
MOST_FIRST, MANY = 10, 15
FILE = click.Path(path_type=Path)


def group(heading: str = "", *, before: str = "") -> Any:
    """A field whose type is a class of options."""
    how = Declared("", "group", heading=heading, before=before)
    return field(metadata={"declared": how})


Kind = TypeVar("Kind", bound=Options)


def typed_command(
    name: str,
    kind: type[Kind],
    *,
    stopped: str | None = None,
    headings: Mapping[str, str] | None = None,
) -> Callable[[Callable[[Kind], None]], click.Command]:
    """Make a command of a function that takes the parsed options; its docstring is the help.

    kind      declares arguments and options
    stopped   what Ctrl-C says of how to go on, of a command that computes a run; else None
    headings  other names for headings of the help
    """

    def made(function: Callable[[Kind], None]) -> click.Command:
        def callback(**values: Any) -> None:
            _check_size(values)
            places = _usual_places(kind, values)
            with _settings_said(values):
                options = _value(kind, values | places)
            click.get_current_context().with_resource(_progress(options))
            if stopped is None:
                function(options)
                return
            _check_utf8(values)
            from headscope.run.memory import keep_few_products, keep_freed_memory

            keep_freed_memory()
            keep_few_products()
            try:
                function(options)
            except KeyboardInterrupt as error:  # before, between or after the shards
                raise RunStopped(f"stopped; {stopped}") from error

        below = [
            ((headings or {}).get(heading, heading), parameter)
            for heading, parameter in _parameters(kind)
        ]
        return TypedCommand(
            name,
            callback=callback,
            params=[parameter for _, parameter in below],
            help=function.__doc__,
            headings={str(parameter.name): heading for heading, parameter in below if heading},
        )

    return made


@contextmanager
def _settings_said(values: Mapping[str, Any]) -> Iterator[None]:
    """Says which options are set elsewhere than on the command line; in an error of the context,
    too.
    """
    sources: dict[str, list[str]] = {}
    for one, words in in_effect(click.get_current_context()):
        sources.setdefault(one.source, []).extend(words)
    said = "; ".join(f"{source}: {shlex.join(words)}" for source, words in sources.items())
    if said and not values.get("quiet"):
        complain(f"set by {said}")
    try:
        yield
    except InputError as error:
        if said and values.get("quiet"):
            raise type(error)(f"{error}\nset by {said}") from error
        raise


@contextmanager
def _progress(options: Options) -> Iterator[None]:
    """Phases are shown, unless --quiet; a command that can be quiet begins to load."""
    quiet = getattr(options, "quiet", None)
    with showing(None if quiet else Phases()):
        if quiet is False:
            begin("load")
        yield


def _check_size(values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        if isinstance(value, int) and abs(value) > MOST:
            option = f"--{name.replace('_', '-')}"
            raise InputError(f"{option} is {str(value)[:20]}…; wanted a whole number below 2**63")


def _check_utf8(values: Mapping[str, Any]) -> None:
    """Raise InputError for a folder to write that some libraries could not name, after the work."""
    output = str(values.get("output") or "")
    if output != output.encode("utf-8", "replace").decode():
        raise InputError(f"--output {output} is not UTF-8; choose another name")


def _usual_places(kind: type[Options], values: Mapping[str, Any]) -> dict[str, Path]:
    """The paths that nobody named, and whose default other fields make; each is printed."""
    last = {
        name: Path(value).absolute().name
        for name, value in values.items()
        if isinstance(value, str)
    }
    places = {
        each.name: Path(how.usual.format_map(last))
        for each in fields(kind)
        if (how := declared(each)) and how.usual and values[_place(each, how)] is None
    }
    for name, place in places.items():
        complain(f"--{name} {place}")
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


def set_defaults(command: click.Command, ctx: click.Context, args: Sequence[str]) -> None:
    """Let click know the defaults that are set for a command; InputError for wrong ones.

    Help is shown whatever is set.
    """
    shown = {"-h", "--help", "-v", "--version"}.intersection(args)
    if not (shown or ctx.resilient_parsing):  # which completes words in a shell
        ctx.default_map = {**(ctx.default_map or {}), **set_for(command, ctx)}


class TypedCommand(click.Command):
    """A command with headings in its help; one with headings reads `--text a.txt b.txt`."""

    def __init__(self, name: str, *, headings: Mapping[str, str], **settings: Any) -> None:
        super().__init__(name, **settings)
        self.headings = headings  # of each parameter

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """`--text a.txt b.txt` is read as `--text a.txt --text b.txt`."""
        set_defaults(self, ctx, args)
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
        known = [FIRST, *HEADINGS]
        for heading in sorted(rows, key=lambda h: known.index(h) if h in known else len(known)):
            with formatter.section(heading):
                formatter.write_dl(rows[heading])


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
    for each in _in_order(kind):
        how, heading = declared(each), kind.headings[each.name]
        if how is None or how.kind == "keyword":
            continue
        if how.kind == "group":
            inner = _parameters(type_of(kind, each.name))
            yield from ((heading, parameter) for _, parameter in inner)
        else:
            yield heading, _parameter(each, how, kind)


def _in_order(kind: type[Options]) -> list[Field[Any]]:
    ordered: list[Field[Any]] = []
    for each in fields(kind):
        names = [field.name for field in ordered]
        how = declared(each)
        before = how.before if how else ""
        ordered.insert(names.index(before) if before else len(names), each)
    return ordered


def _parameter(each: Field[Any], how: Declared, kind: type[Options]) -> click.Parameter:
    many, default = how.many, each.default
    hint = None if how.reads or how.type else type_of(kind, each.name)
    if how.reads is None and get_origin(hint) is tuple:
        many, hint = True, get_args(hint)[0]
    settings: dict[str, Any] = {"type": how.type or _click_type(hint, how), "metavar": how.metavar}
    if not many and how.reads is not None and isinstance(default, tuple):
        default = ",".join(default)
    if default not in (MISSING, None, ()) and hint is not bool:
        settings["default"] = default
    required = not how.usual and each.default is each.default_factory is MISSING
    if values := how.values or (tuple(PACKAGES) if how.reads is model_place else ()):
        settings["shell_complete"] = partial(_completed, values)
    if how.kind == "argument":
        return click.Argument([each.name], required=required, nargs=-1 if many else 1, **settings)
    names = how.names.split() or [f"--{'no-' * bool(how.off)}{each.name.replace('_', '-')}"]
    if hint is bool:
        value = {"flag_value": False, "default": True} if each.default else {}
        settings = {"is_flag": True, "show_default": False, **value}
    if how.usual:
        settings["show_default"] = re.sub(r"\{(\w+)\}", partial(_shown, kind), how.usual)
    shown = how.shown and hint is not bool and default != ""
    settings = {"show_default": shown, "help": how.off or how.text, **settings}
    return click.Option([*names, _place(each, how)], required=required, multiple=many, **settings)


def _place(each: Field[Any], how: Declared) -> str:
    """What click calls a parameter: its own long name, which two groups of options cannot share."""
    return how.names.split()[-1].strip("-").replace("-", "_") if how.names else each.name


def _shown(kind: type[Options], name: re.Match[str]) -> str:
    """What stands for the value of a field in the help."""
    how = declared(kind.__dataclass_fields__[name[1]])
    return (how and how.kind == "argument" and how.metavar) or name[1].upper()


def _completed(
    values: Sequence[str] | Callable[[], Iterable[str]],
    _ctx: click.Context,
    _parameter: click.Parameter,
    incomplete: str,
) -> list[CompletionItem]:
    """What a shell offers for the last of several values between commas, and files.

    Files stand first: in bash they replace what stands before them.
    """
    before, comma, last = incomplete.rpartition(",")
    known = values() if callable(values) else values
    words = [f"{before}{comma}{one}" for one in known if one.startswith(last)]
    return [CompletionItem(incomplete, type="file"), *map(CompletionItem, words)]


class ReadParam(click.ParamType):  # type: ignore[type-arg]  # click 8.1 takes none
    """Reads a value by a function of the text."""

    name = "text"

    def __init__(self, reads: Callable[[str], Any]) -> None:
        self.reads = reads

    def convert(self, value: Any, *_: object) -> Any:
        """The value of what is typed."""
        return self.reads(value) if isinstance(value, str) else value


def _click_type(hint: Any, how: Declared) -> Any:
    if how.reads is not None:
        return FILE if how.reads is Path else ReadParam(how.reads)
    if get_origin(hint) is Annotated:
        return get_args(hint)[1]
    if get_origin(hint) is Literal:
        return click.Choice(get_args(hint))
    if get_origin(hint) in (Union, UnionType):
        return _click_type(Path if Path in (kinds := get_args(hint)) else kinds[0], how)
    if how.least is not None:
        return (
            click.IntRange(int(how.least))
            if hint is int
            else click.FloatRange(how.least, min_open=how.above)
        )
    return FILE if hint is Path else hint


def _value(kind: type[Kind], values: Mapping[str, Any]) -> Kind:
    own = {}
    for each in fields(kind):
        how = declared(each)
        if how is None or how.kind == "keyword":
            continue
        if how.kind == "group":
            own[each.name] = _value(type_of(kind, each.name), values)
        else:
            value = values[_place(each, how)]
            own[each.name] = how.gathers(value) if how.gathers else value
    return kind(**own)
