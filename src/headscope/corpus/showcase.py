"""Which few sentences of a treebank are worth drawing?"""

from __future__ import annotations

import hashlib
from bisect import insort

from headscope.corpus.annotations import ROOT, has_tree, label
from headscope.corpus.document import Example

SHOWN = 8
CANDIDATES = 200
WORDS = range(6, 15)  # fewer say little, more do not fit into a column


class Showcase:
    """Picks sentences of 6 to 14 words that together show as many relations as possible.

    Candidates are drawn evenly from the corpus by a hash of the seed and the sentence's id, so the
    choice depends on nothing else; it holds at most CANDIDATES of them.
    """

    def __init__(self, *, seed: int) -> None:
        self.seed = seed
        self._drawn: list[tuple[bytes, str, Example]] = []

    def consider(self, example: Example) -> None:
        """Take one example into account."""
        if example.words is None or len(example.words) not in WORDS or not has_tree(example):
            return
        name = f"{self.seed}\0{example.document}\0{example.id}".encode("utf-8", "surrogatepass")
        key = hashlib.blake2b(name, digest_size=16).digest()
        if len(self._drawn) < CANDIDATES or key < self._drawn[-1][0]:
            insort(self._drawn, (key, example.id, example), key=lambda drawn: drawn[:2])
            del self._drawn[CANDIDATES:]

    def chosen(self) -> tuple[Example, ...]:
        """At most SHOWN examples; each adds as many new relations as any of those left."""
        left = {place: _relations(example) for place, (*_, example) in enumerate(self._drawn)}
        chosen: list[Example] = []
        shown: set[str] = set()
        while left and len(chosen) < SHOWN:
            best = max(left, key=lambda place: (len(left[place] - shown), -place))
            shown |= left.pop(best)
            chosen.append(self._drawn[best][2])
        return tuple(chosen)


def _relations(example: Example) -> set[str]:
    assert example.words is not None
    return {label(example, index) for index in range(len(example.words))} - {ROOT}
