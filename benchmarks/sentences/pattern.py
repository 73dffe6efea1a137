"""How a kind of sentence is written, and what its numbers really are."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .judging import compiled
from .totals import Quantity
from .world import places

Match = Mapping[str, str]
True_ = Quantity | float
HEAD = r"^(?P<head>L\d+·H\d+):? "


@dataclass(frozen=True)
class Pattern:
    """A kind of sentence.

    numbers   group of the template -> what it really is
    unbounded of the groups, which may leave 0 to 1
    also      what else must be so; gives what is wrong
    within    what the whole text must match, where the template is a part of it
    """

    name: str
    template: str
    numbers: Mapping[str, Callable[[Any, Match], True_]]
    also: Callable[[Any, Match], list[str]] | None = None
    within: str = ""
    unbounded: tuple[str, ...] = ()

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return compiled(self.template)

    def is_percent(self, group: str) -> bool:
        return f"{{{group}%}}" in self.template


def head_of(m: Match) -> tuple[int, int]:
    return places(m["head"])
