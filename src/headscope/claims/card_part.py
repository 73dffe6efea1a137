"""What a question adds to the card of a head: lines, data for programs, and typical maps."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from headscope.claims.reading import Reading
from headscope.core.results import Floats, pieces

MAPS = 3  # of a head
LINKS = 5


@dataclass(frozen=True)
class TypicalMap:
    """One map that shows what a head typically does.

    tokens   [place] as the vocabulary has them; a place may stand for several
    special  [place] whether the tokenizer added it
    weights  [query, key]
    kind     the class of the map; '' where it is not known
    title    the same in words
    score    the classifier's probability of the class; NaN where it is not known
    away     from examples: the largest difference of a share from the head's mean; else NaN
    """

    tokens: tuple[str, ...]
    special: npt.NDArray[np.bool_]
    weights: Floats
    kind: str = ""
    title: str = ""
    score: float = float("nan")
    away: float = float("nan")

    @property
    def pieces(self) -> tuple[str, ...]:
        """The tokens as displayed."""
        return pieces(self.tokens, self.special)

    def links(self, *, most: int = LINKS) -> list[tuple[int, int, float]]:
        """(query, key, weight) of the strongest links, one per query at most, strongest first.

        Between tokens that the tokenizer did not add, where there are any; `rests` tells of those.
        """
        ordinary = np.flatnonzero(~self.special)
        places = ordinary if len(ordinary) else np.arange(len(self.tokens))
        keys = places[self.weights[np.ix_(places, places)].argmax(1)]
        strongest = [
            (int(query), int(key), float(self.weights[query, key]))
            for query, key in zip(places, keys, strict=True)
        ]
        return sorted(strongest, key=lambda link: (-link[2], link[0]))[:most]

    @property
    def rests(self) -> list[tuple[str, float]]:
        """The share of all attention on each kind of special token."""
        shares: dict[str, float] = {}
        for at in np.flatnonzero(self.special).tolist():
            share = float(self.weights[:, at].mean())
            shares[self.tokens[at]] = shares.get(self.tokens[at], 0.0) + share
        return sorted(shares.items(), key=lambda item: -item[1])


@dataclass(frozen=True)
class HeadMaps:
    """The typical maps of every head of a run.

    source  the group that they come from; '' where there are none
    words   how they were chosen
    of      (layer, head) -> the maps of one head, the most typical first; MAPS at most
    """

    source: str
    words: str
    of: Callable[[int, int], list[TypicalMap]]


@dataclass(frozen=True, kw_only=True)
class CardPart:
    """What a question adds to the card of a head; a head is (layer, head), 0-based.

    The run may have no results of the question (`Reading.there`).

    place    its order on the card
    title    the heading of its lines
    lines    (Reading, layer, head) -> lines of text; none: no heading either
    data     (Reading, layer, head) -> the same by name, for programs
    page     Reading -> what the page's script needs of all heads, by name
    numbers  (Reading, layer, head) -> ends of the keys of numbers that come first in its picture
    maps     Reading -> the typical maps of heads
    """

    place: float
    title: str
    lines: Callable[[Reading, int, int], Iterable[str]]
    data: Callable[[Reading, int, int], dict[str, Any]]
    page: Callable[[Reading], dict[str, Any]] = lambda run: {}
    numbers: Callable[[Reading, int, int], Iterable[str]] = lambda run, layer, head: ()
    maps: Callable[[Reading], HeadMaps] | None = None


def named_ends(ends: tuple[float, float, float]) -> dict[str, float]:
    """A number and the ends of its interval by name, for programs."""
    return dict(zip(("value", "ci_low", "ci_high"), ends, strict=True))
