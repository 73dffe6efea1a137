"""Functions that take the fields of settings as keywords, beside arguments of their own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

from headscope.core.options import Options, described, usual
from headscope.errors import InputError, unknown

Kind = TypeVar("Kind", bound=Options)
Call = TypeVar("Call", bound=Callable[..., Any])


def keywords(more: Mapping[str, Any], *kinds: type[Options]) -> list[dict[str, Any]]:
    """The keywords that are fields of each kind; InputError for one that is of none."""
    known = [[each.name for each in fields(kind)] for kind in kinds]
    every = list(dict.fromkeys(name for names in known for name in names))
    for name in more:
        if name not in every:
            raise unknown("setting", name, every)
    return [{name: more[name] for name in names if name in more} for names in known]


def settings_of(kind: type[Kind], settings: Kind | None, more: Mapping[str, Any]) -> Kind:
    """Settings given whole or by their fields; InputError for both at once or an unknown field."""
    keywords(more, kind)
    if settings is None:
        return kind(**more)
    if more:
        raise InputError(
            f"found settings={kind.__name__}(...) and {', '.join(more)} beside it; "
            "give one or the other, or dataclasses.replace(settings, ...)"
        )
    if not isinstance(settings, kind):
        raise InputError(f"settings is a {type(settings).__name__}; wanted a {kind.__name__}(...)")
    return settings


def documented(*kinds: type[Options]) -> Callable[[Call], Call]:
    """Decorates a function whose further keywords are the fields of settings classes.

    `help` and signature show each with its default and its meaning, as the classes say.
    """

    def made(function: Call) -> Call:
        signature = inspect.signature(function)
        own = {n: p for n, p in signature.parameters.items() if p.kind is not p.VAR_KEYWORD}
        text = [inspect.cleandoc(function.__doc__ or "")]
        for kind in kinds:
            for each in fields(kind):
                own.setdefault(
                    each.name,
                    inspect.Parameter(
                        each.name,
                        inspect.Parameter.KEYWORD_ONLY,
                        default=usual(each),
                        annotation=each.type,
                    ),
                )
            text.append(f"The fields of {kind.__name__}, as keywords:\n\n{described(kind)}")
        vars(function)["__signature__"] = signature.replace(parameters=list(own.values()))
        function.__doc__ = "\n\n".join(text)
        return function

    return made
