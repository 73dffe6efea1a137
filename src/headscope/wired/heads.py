"""A head that is known by construction: what it matches, how far it looks, what it writes, and
which labels are true of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from headscope.core.accumulators import Float64
from headscope.wired.features import JUNK, NOTED, SPECIAL, WORD, Feature


@dataclass(frozen=True)
class Match:
    """Log-odds that a key gains by holding what a query asks for.

    query, key  features of one width; their product is 1 where they match
    """

    query: Feature
    key: Feature
    weight: float


@dataclass(frozen=True)
class Value:
    """What a head writes of the tokens that it attends to.

    reads   features of the key; of JUNK, all that the block has room for
    writes  a feature that is "written"
    gain    length of what is written for a feature of length 1; 0: nothing, −: against it
    turns   seed of the network -> [number that is read, number that is written]; None: as it is
    """

    reads: tuple[Feature, ...] = (WORD, SPECIAL)
    writes: Feature = JUNK
    gain: float = 0.1
    turns: Callable[[int], Float64] | None = None


TAKES = Value()
TAKES_WORDS = Value((WORD,))  # nothing from special tokens: rest on them is a sink
TAKES_NOTHING = Value(gain=0.0)


@dataclass(frozen=True)
class Said:
    """A label of a head.

    kind   of the rule
    about  what the claim is about, or any of several; (): whatever it is
    """

    kind: str
    about: tuple[str, ...] = ()

    def fits(self, kind: str, about: str) -> bool:
        """Whether a label is this one."""
        return kind == self.kind and (not self.about or about in self.about)


@dataclass(frozen=True)
class WiredHead:
    """One wired head.

    name     what it does
    matches  what it looks for
    reach    offset (key − query) -> log-odds of that place; all others have 0
    value    what it writes
    said     labels that must be said of it
    also     labels that may be said, and count for nothing
    decoy    kinds that it looks like and is not
    late     stands behind one whose notes it reads
    roles    how many things it does, by trigger, that are each a tenth of all that it gathers or
             more; 0: one of them is about a tenth, so that neither number is wrong
    """

    name: str
    matches: tuple[Match, ...] = ()
    reach: Mapping[int, float] = field(default_factory=dict)
    value: Value = TAKES
    said: tuple[Said, ...] = ()
    also: tuple[Said, ...] = ()
    decoy: tuple[str, ...] = ()
    late: bool = False
    roles: int = 1

    @property
    def notes(self) -> bool:
        """Whether it writes what a later head may read."""
        return self.value.writes.name == NOTED.name

    @property
    def features(self) -> list[Feature]:
        """All blocks of the stream that it needs."""
        of_matches = [side for one in self.matches for side in (one.query, one.key)]
        return [*of_matches, *self.value.reads, self.value.writes]
