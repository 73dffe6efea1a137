"""The classes of maps, and how an annotator tells them.

Kovaleva et al. (2019), section 4.1. The definitions are ours, as precise as a glance allows. They
are asked in the order: block, line and columns, one of the two, else heterogeneous; so every map
has one class. "Plain" is what one would mention when describing the map in one breath.
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
        "Columns, the first and last count; no plain line along the diagonal.",
    ),
    PatternClass(
        "2", "diagonal", "Diagonal",
        "A plain line or band along the diagonal or beside it; no plain column.",
    ),
    PatternClass(
        "3", "vertical_diagonal", "Vertical + diagonal",
        "A line or band along the diagonal, and columns, both plain.",
    ),
    PatternClass(
        "4", "block", "Block",
        "Up to about six filled squares (triangles) on the diagonal with plain edges; no band of "
        "small lumps.",
    ),
    PatternClass(
        "5", "heterogeneous", "Heterogeneous",
        "Anything else: spots, rows, curves, a wide haze, an even grey without structure.",
    ),
)  # fmt: skip
NAMES = tuple(c.name for c in CLASSES)
