"""Group the entries of a report's menu by what a reader wants to know."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headscope.page.sections import Section

LANGUAGE_GROUP = "What they know"
# From which place on a section belongs to a group; see `SectionPlan.place`.
GROUPS = (
    (0.0, "Where they look"),
    (30.0, "What they move"),
    (70.0, "Which are alike"),
    (100.0, LANGUAGE_GROUP),
    (160.0, "In one picture"),
    (200.0, "More"),
)
Entry = tuple[str, str]  # address, words


@dataclass(frozen=True)
class MenuGroup:
    """Entries under a common title."""

    title: str
    entries: tuple[Entry, ...]


def menu_groups(parts: Iterable[tuple[str, Sequence[Entry]]]) -> list[MenuGroup]:
    """The groups that have entries; those of one title are one group, at the place of the first.

    parts  title and entries, in the order of the page
    """
    groups: dict[str, list[Entry]] = {}
    for title, entries in parts:
        groups.setdefault(title, []).extend(entries)
    return [MenuGroup(title, tuple(entries)) for title, entries in groups.items() if entries]


def group_at(place: float) -> str:
    """The title of the group of a section that stands at `place` of the page."""
    return next(title for start, title in reversed(GROUPS) if place >= start)


def by_place(sections: Iterable[Section]) -> list[tuple[str, list[Entry]]]:
    """The sections as entries, each with the title of its group."""
    return [(group_at(one.place), [(f"#{one.id}", one.title)]) for one in sections]
