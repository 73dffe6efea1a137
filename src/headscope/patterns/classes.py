"""Which classes of maps are told apart, and how does an annotator tell them?

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
        "One or more columns carry the map, the first and the last count; no plain line along the "
        "diagonal.",
    ),
    PatternClass(
        "2", "diagonal", "Diagonal",
        "A plain line or band along the diagonal, on it or a few tokens beside it; columns faint "
        "or not there.",
    ),
    PatternClass(
        "3", "vertical_diagonal", "Vertical + diagonal",
        "A line or band along the diagonal and columns, both plain.",
    ),
    PatternClass(
        "4", "block", "Block",
        "Up to about six filled squares on the diagonal (of a decoder: triangles) whose rows "
        "change together, at a plain edge; a band of many small lumps is none.",
    ),
    PatternClass(
        "5", "heterogeneous", "Heterogeneous",
        "Anything else: spots, rows, curves, a wide haze, an even grey without structure.",
    ),
)  # fmt: skip
NAMES = tuple(c.name for c in CLASSES)
