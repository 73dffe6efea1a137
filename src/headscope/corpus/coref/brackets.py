"""Which bracket closes which, when spans are marked on the words where they begin and end?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


class BracketFault(ValueError):
    """What is wrong with a bracket, and at which place (as in its mark)."""

    def __init__(self, reason: str, *, place: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.place = place


@dataclass(frozen=True, slots=True)
class Mark:
    """One bracket, or a pair of them around a single place."""

    place: int
    name: str
    opens: bool
    shuts: bool
    content: str = ""  # whatever else an opening bracket says


@dataclass(frozen=True, slots=True)
class Span:
    """A pair of brackets: places first..last, inclusive."""

    first: int
    last: int
    name: str
    content: str


def paired(marks: Iterable[Mark]) -> list[Span]:
    """The spans in order of their first place, an enclosing one before those within it.

    Spans of different names may cross. Of one name, a closing bracket belongs to the last one that
    is open, so a span may lie within another of its name.

    raises  BracketFault for a bracket that is closed but not open, or open at the end
    """
    opened: dict[str, list[Mark]] = {}
    found = []
    for mark in marks:
        if mark.opens:
            opened.setdefault(mark.name, []).append(mark)
        if mark.shuts:
            if not opened.get(mark.name):
                raise BracketFault(
                    f"bracket {mark.name!r} is closed but not open; wanted ({mark.name} before it "
                    "in the sentence",
                    place=mark.place,
                )
            begun = opened[mark.name].pop()
            found.append(Span(begun.place, mark.place, mark.name, begun.content))
    left = [mark for stack in opened.values() for mark in stack]
    if left:
        first = min(left, key=lambda mark: mark.place)
        raise BracketFault(
            f"bracket {first.name!r} is not closed in its sentence; wanted {first.name}) behind it",
            place=first.place,
        )
    return sorted(found, key=lambda span: (span.first, -span.last))
