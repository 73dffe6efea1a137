"""What a package adds to headscope: objects that it announces as entry points of a group.

Ours are announced in the same way (pyproject.toml) and come first. A faulty one of another package
is left out with a warning, and the rest works.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection
from functools import cache
from importlib.metadata import Distribution, EntryPoint, entry_points
from typing import Protocol, TypeVar

from headscope.errors import HeadscopeError, InputError

OURS = "headscope"


class Named(Protocol):
    """An object with the name under which users ask for it."""

    @property
    def name(self) -> str:
        """The name."""


Kind = TypeVar("Kind", bound=Named)


def announced(
    group: str, what: str, check: Callable[[object, bool], Kind]
) -> tuple[dict[str, Kind], list[str]]:
    """The objects of a group by name, ours first; and why others are left out, a sentence each.

    group   of entry points: `headscope.analyses`, `headscope.papers`
    what    each of them is, in a word: "question"
    check   (object, whether it is ours) -> what is kept; raises for an impossible one
    raises  HeadscopeError where headscope itself is not installed, what `check` says of ours
    """
    known, left_out = dict[str, Kind](), list[str]()
    for entry in entries_of(group, what):
        ours = _is_ours(entry)
        try:
            one = check(entry.load(), ours)
            if one.name in known:
                raise InputError(f"another {what} is called {one.name!r} already")
        except Exception as error:  # whatever a stranger's module does, the rest goes on
            if ours:
                raise
            package = _package(entry) or entry.value
            left_out.append(f"the plug-in {entry.name!r} of {package} is left out: {error}")
            warnings.warn(left_out[-1], stacklevel=2)
            continue
        known[one.name] = one
    return known, left_out


def entries_of(group: str, what: str, ours: Collection[str] = ()) -> list[EntryPoint]:
    """The entry points of a group, by name, ours first; nothing is loaded.

    ours    names that are among them
    raises  HeadscopeError where headscope is not installed, or was before some of ours were added
    """
    entries = sorted(entry_points(group=group), key=lambda one: (not _is_ours(one), one.name))
    own = {entry.name for entry in entries if _is_ours(entry)}
    if not own or not own.issuperset(ours):
        raise HeadscopeError(
            f"headscope is on the path but not installed, so its own {what}s are unknown; install "
            "it: pip install -e . in the checkout"
        )
    return entries


def _is_ours(entry: EntryPoint) -> bool:
    return _package(entry) == OURS


def _package(entry: EntryPoint) -> str:
    return _name(entry.dist) if entry.dist is not None else ""


@cache  # each time a distribution is asked for its name it parses all of its metadata
def _name(package: Distribution) -> str:
    return package.name
