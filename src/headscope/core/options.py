"""Options, declared once: the fields of a class, which a command and a function take alike.

    class PruningSettings(Options, heading="Which heads go"):
        allowance: float = option("Points of the score that may be lost.", 0.5, least=0)

    class PruneRequest(PruningSettings, kw_only=False):
        model: str | Path = argument("A checkpoint with a head for the task.")

    @takes(PruneRequest)
    def prune(request: PruneRequest) -> Pruned: ...

    prune("bert-rte", allowance=1.0)  # headscope prune bert-rte --allowance 1

The class is what type checkers see of the function, what `help` says of it, and what the command
line reads. The name of a field gives the option's (`--max-length`), its annotation the type.
"""

from __future__ import annotations

import builtins
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cache, partial, wraps
from numbers import Integral, Real
from typing import (
    Any,
    ClassVar,
    Literal,
    ParamSpec,
    Self,
    TypeVar,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from headscope.core.display import Displayed
from headscope.errors import InputError, unknown

MOST = 2**63 - 1  # what random generators and files of results take
P = ParamSpec("P")
Request = TypeVar("Request", bound="Options")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Declared:
    """How a field is typed on the command line, and explained.

    text      its help
    kind      "keyword" is one of the function alone
    names     as they are typed, say "-o --output"; by default the field's name
    heading   of the help page, from this field of its class on
    usual     of a path: what the command takes by default, made of other fields: atlas-{model}
    least     the smallest value that is allowed
    above     whether the value must be more than that
    reads     what makes a value of the text that is typed; by default the annotation decides
    many      the option may be repeated
    gathers   what makes the value of all that an option was given which may be repeated
    off       of a switch that is on by default: what its `--no-…` says
    python    what the function's help says beside the text
    whole     the class of settings that this keyword takes whole
    metavar   what stands for the value in the command's help
    type      of click, where the annotation does not tell
    shown     whether the command's help shows the default
    before    the inherited field before which it stands in the help; by default it is the last
    values    what completion of shells offers for it, beside the names of files
    """

    text: str
    kind: Literal["option", "argument", "group", "keyword"] = "option"
    names: str = ""
    heading: str = ""
    usual: str = ""
    least: float | None = None
    above: bool = False
    reads: Callable[[str], Any] | None = None
    many: bool = False
    gathers: Callable[[Sequence[str]], Any] | None = None
    off: str = ""
    python: str = ""
    whole: type[Options] | None = None
    metavar: str | None = None
    type: Any = None
    shown: bool = True
    before: str = ""
    values: Sequence[str] | Callable[[], Iterable[str]] = ()


def _field(default: Any, text: str, **how: Any) -> Any:
    kind = "default_factory" if default in (dict, list) else "default"
    return field(**{kind: default}, metadata={"declared": Declared(text, **how)})


def option(text: str, default: Any = None, **how: Any) -> Any:
    """A field that is an option of the command line; for `how` see `Declared`."""
    return _field(default, text, **how)


def required(text: str, **how: Any) -> Any:
    """A field that is an option which must be given."""
    return _field(MISSING, text, **how)


def flag(text: str, default: bool = False, **how: Any) -> Any:
    """A field that is a switch."""
    return _field(default, text, **how)


def several(text: str, **how: Any) -> Any:
    """A field that is an option which may be repeated, none by default."""
    return _field((), text, many=True, **how)


def argument(text: str = "", *, default: Any = MISSING, **how: Any) -> Any:
    """A field that is an argument of the command; with a default it may be left out."""
    return _field(default, text, kind="argument", **how)


def keyword(text: str, default: Any = None, **how: Any) -> Any:
    """A field that the function takes and the command does not."""
    return _field(default, text, kind="keyword", **how)


def whole(kind: type[Options]) -> Any:
    """A field of the function that takes the fields of settings at once."""
    return keyword("whole; or its fields as keywords", whole=kind)


def declared(each: Field[Any]) -> Declared | None:
    """How a field was declared; None for one that is no option."""
    return each.metadata.get("declared")


@dataclass_transform(
    kw_only_default=True, frozen_default=True, field_specifiers=(argument, required)
)
class Options(Displayed):
    """Options as a frozen dataclass, which shows those that are not the usual ones.

    What derives from it may name the heading of its fields in the command's help. With
    `kw_only=False` its fields are taken by their places too.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    headings: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls, *, heading: str = "", kw_only: bool = True) -> None:
        meaning = vars(cls).get("__doc__")
        dataclass(frozen=True, kw_only=kw_only, repr=False)(cls)
        if meaning:
            cls.__doc__ = f"{inspect.cleandoc(meaning)}\n\n{described(cls)}"
        of_bases = {n: h for base in reversed(cls.__bases__) for n, h in _headings(base).items()}
        own = {}
        for name in (name for name in inspect.get_annotations(cls) if name in _fields(cls)):
            how = declared(_fields(cls)[name])
            new = how.heading if how else ""
            heading = new or heading
            own[name] = new or of_bases.get(name, heading)
        cls.headings = of_bases | own

    def __post_init__(self) -> None:
        """Raise InputError for a value that its field does not allow."""
        kind: Any = type(self)
        for each in fields(self):
            how, value = declared(each), getattr(self, each.name)
            if how is None or (value is None and (how.least is None or "None" in str(each.type))):
                continue
            known = choices(kind, each.name)
            if known and value not in known:
                raise InputError(f"{each.name} is {value!r}; wanted one of {', '.join(known)}")
            if how.least is not None:
                _check_number(each, value, how.least, above=how.above)

    @classmethod
    def of(cls, *options: Options, **own: Any) -> Self:
        """The fields of this class that the options have; `own` stand in their place."""
        every = {name: value for some in options for name, value in vars(some).items()}
        return cls(**{name: every[name] for name in _fields(cls) if name in every} | own)

    def facts(self) -> dict[str, object]:
        """Every field with its value."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def __repr__(self) -> str:
        own = self.facts()
        unusual = [f"{f.name}={own[f.name]!r}" for f in fields(self) if own[f.name] != usual(f)]
        return f"{type(self).__name__}({', '.join(unusual)})"


def usual(each: Field[Any]) -> Any:
    """The default of a field."""
    return each.default if each.default_factory is MISSING else each.default_factory()


def type_of(kind: type, name: str) -> Any:
    """The annotation of a field, in the words of the module that holds it."""
    owner = next(one for one in kind.__mro__ if name in inspect.get_annotations(one))
    text = inspect.get_annotations(owner)[name]
    if not isinstance(text, str):
        return text
    one = type("", (), {"__annotations__": {"it": text}})
    words = {**vars(builtins), **vars(sys.modules[owner.__module__])}
    return get_type_hints(one, words, include_extras=True)["it"]


@cache
def choices(kind: type[Any], name: str) -> tuple[str, ...]:
    """The words of which a field holds one; none where it is of another kind."""
    text = kind.__dataclass_fields__[name].type
    if not re.fullmatch(r"Literal\[[^]]*\]( \| None)?", str(text).removeprefix("typing.")):
        return ()
    hint = type_of(kind, name)
    kinds = (hint, *get_args(hint))
    return next(get_args(one) for one in kinds if get_origin(one) is Literal)


def _check_number(each: Field[Any], value: Any, least: float, *, above: bool) -> None:
    whole_number = str(each.type).startswith("int")
    if isinstance(value, bool) or not isinstance(value, Integral if whole_number else Real):
        wrong = True
    else:
        wrong = value < least or (above and value == least)
    if wrong:
        kind = "a whole number, " * whole_number
        bound = "more than" if above else "at least"
        raise InputError(f"{each.name} is {value!r}; wanted {kind}{bound} {least}")
    if whole_number and value > MOST:
        raise InputError(f"{each.name} is {str(value)[:20]}…; wanted a whole number below 2**63")


def takes(
    kind: Callable[P, Request],
) -> Callable[[Callable[[Request], Result]], Callable[P, Result]]:
    """Decorates a function of a request: it is called with the request's fields.

    `help` and signature show each field with its default and its meaning.
    """

    def made(function: Callable[[Request], Result]) -> Callable[P, Result]:
        @wraps(function)
        def call(*args: P.args, **more: P.kwargs) -> Result:
            return function(kind(*args, **_keywords(kind, more)))

        returned = inspect.signature(function).return_annotation
        vars(call)["__signature__"] = _signature(kind).replace(return_annotation=returned)
        call.__doc__ = f"{inspect.cleandoc(function.__doc__ or '')}\n\n{described(kind)}"
        return call

    return made


def comma_separated(text: str | None) -> tuple[str, ...]:
    """`a, b` as ("a", "b")."""
    return tuple(filter(None, map(str.strip, (text or "").split(","))))


def described(kind: Any) -> str:
    """Names and meanings of the fields of a class, one a line; those with places come first."""
    ordered = sorted(fields(kind), key=lambda each: bool(each.kw_only))
    texts = {each.name: how for each in ordered if (how := declared(each))}
    width = max(map(len, texts), default=0)
    after = " " * (width + 2)
    lines = {
        f"{name:<{width}}  ": _without_dashes(" ".join(filter(None, (how.text, how.python))))
        for name, how in texts.items()
    }
    wrap = partial(textwrap.fill, width=100, subsequent_indent=after, break_on_hyphens=False)
    return "\n".join(wrap(text, initial_indent=name) for name, text in lines.items())


def _without_dashes(text: str) -> str:
    return re.sub(r"--([a-z][a-z-]*)", lambda name: name[1].replace("-", "_"), text)


def _keywords(kind: Any, more: Mapping[str, Any]) -> dict[str, Any]:
    """Keywords with those of settings that are given whole; InputError for unknown ones."""
    known = _fields(kind)
    for name in more:
        if name not in known:
            raise unknown("setting", name, known)
    out = dict(more)
    for name, each in known.items():
        how, settings = declared(each), more.get(name)
        if how is None or how.whole is None or settings is None:
            continue
        if not isinstance(settings, how.whole):
            wanted = f"a {how.whole.__name__}(...)"
            raise InputError(f"{name} is a {type(settings).__name__}; wanted {wanted}")
        if both := [field for field in _fields(how.whole) if field in more]:
            raise InputError(
                f"found {name}={how.whole.__name__}(...) and {', '.join(both)} beside it; "
                f"give one or the other, or dataclasses.replace({name}, ...)"
            )
        out |= vars(settings)
    return out


def _signature(kind: Any) -> inspect.Signature:
    signature = inspect.signature(kind)
    known = _fields(kind)
    parameters = [
        each if each.default is each.empty else each.replace(default=usual(known[name]))
        for name, each in signature.parameters.items()
    ]
    return signature.replace(parameters=parameters)


def _fields(kind: Any) -> dict[str, Field[Any]]:
    return {each.name: each for each in fields(kind)}


def _headings(base: type) -> Mapping[str, str]:
    return base.headings if issubclass(base, Options) else {}
