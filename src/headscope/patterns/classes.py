"""Which classes of maps are told apart, and how does an annotator tell them?

Kovaleva et al. (2019), section 4.1. The definitions are ours, as precise as a glance allows; the
last class takes what the others leave, so that every map has one.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PatternClass:
    """A class with its key, its name in data, its name for people, and what is seen."""

    key: str
    name: str
    title: str
    seen: str


CLASSES = (
    PatternClass(
        "1", "vertical", "Vertical",
        "One or a few columns carry the map; nothing follows the diagonal.",
    ),
    PatternClass(
        "2", "diagonal", "Diagonal",
        "A line along the diagonal, on it or beside it, carries the map; columns are faint or not "
        "there.",
    ),
    PatternClass(
        "3", "vertical_diagonal", "Vertical + diagonal",
        "A diagonal line and columns, both plain at a glance.",
    ),
    PatternClass(
        "4", "block", "Block",
        "Squares on the diagonal: rows of a part attend within it, and change together at its end.",
    ),
    PatternClass(
        "5", "heterogeneous", "Heterogeneous",
        "Anything else: spots, rows, curves, or an even grey without structure.",
    ),
)  # fmt: skip
NAMES = tuple(c.name for c in CLASSES)
