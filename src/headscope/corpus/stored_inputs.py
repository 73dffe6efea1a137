"""Choose the few inputs of a corpus that a report shows."""

import hashlib
from bisect import insort
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from headscope.core.accumulators import Float64, Ints
from headscope.corpus.contents import ROOT, has_tree, label
from headscope.corpus.document import Example

SENTENCES = 8
CANDIDATES = 200
WORDS = range(6, 15)  # fewer say little, more do not fit into a column
INPUTS = 3
TOKENS = range(12, 41)  # likewise


@dataclass
class _LowestKeys:
    """The `most` examples with the lowest keys, whatever their order."""

    most: int
    kept: list[tuple[bytes, str, Example]] = field(default_factory=list)

    def take(self, key: bytes, example: Example) -> None:
        if len(self.kept) < self.most or key < self.kept[-1][0]:
            insort(self.kept, (key, example.id, example), key=lambda entry: entry[:2])
            del self.kept[self.most :]

    @property
    def examples(self) -> list[Example]:
        return [example for *_, example in self.kept]


class StoredInputChoice:
    """Chooses sentences of 6 to 14 words that together show many relations, and a few other inputs.

    The others have 12 to 40 tokens; where there are no sentences and too few of these, longer ones
    join them, or else shorter ones. Everything is drawn evenly from the corpus by a hash of the
    seed and the input's id, so the choice depends on nothing else; little of the corpus is held.
    """

    def __init__(self, *, seed: int) -> None:
        self.seed = seed
        self._sentences = _LowestKeys(CANDIDATES)
        self._fitting, self._longer, self._shorter = (_LowestKeys(INPUTS) for _ in range(3))

    def consider(self, example: Example) -> None:
        """Consider one example."""
        name = f"{self.seed}\0{example.document}\0{example.id}".encode("utf-8", "surrogatepass")
        key = hashlib.blake2b(name, digest_size=16).digest()
        if is_sentence(example) and len(example.words or ()) >= WORDS.start:
            among = self._sentences
        elif len(example) in TOKENS:
            among = self._fitting
        else:
            among = self._longer if len(example) >= TOKENS.stop else self._shorter
        among.take(key, example)

    def merge(self, other: Self) -> None:
        """Add the candidates of another choice."""
        for mine, others in zip(self._every, other._every, strict=True):
            for key, _, example in others.kept:
                mine.take(key, example)

    @property
    def held(self) -> list[Example]:
        """All candidates; a choice that considers them equals this one."""
        return [example for among in self._every for example in among.examples]

    @property
    def _every(self) -> tuple[_LowestKeys, ...]:
        return self._sentences, self._fitting, self._longer, self._shorter

    def chosen(self, beside: Self | None = None) -> tuple[Example, ...]:
        """At most SENTENCES sentences, then at most INPUTS others, from `beside` if given."""
        sentences, among = self._varied(), beside or self
        others = among._fitting.examples
        if beside or not sentences:
            others = [*others, *among._longer.examples, *among._shorter.examples][:INPUTS]
        return (*sentences, *others)

    def _varied(self) -> list[Example]:
        drawn = self._sentences.examples
        left = {place: _relations(example) for place, example in enumerate(drawn)}
        chosen: list[Example] = []
        shown: set[str] = set()
        while left and len(chosen) < SENTENCES:
            best = max(left, key=lambda place: (len(left[place] - shown), -place))
            shown |= left.pop(best)
            chosen.append(drawn[best])
        return chosen


def is_sentence(example: Example) -> bool:
    """Whether an input has a tree, and few enough words to draw it."""
    return has_tree(example) and len(example.words or ()) < WORDS.stop


def segments(example: Example) -> Ints:
    """[token] 0 before the second of two segments, 1 from there on; 0 for a single segment.

    For models without segment ids, the second begins after the special tokens that
    stand between ordinary ones.
    """
    if example.segment_ids.any():
        return np.asarray(example.segment_ids > 0).astype(np.int64)
    ordinary = np.flatnonzero(~example.special)  # [ordinary token]
    gaps = ordinary[1:][np.diff(ordinary) > 1]
    start = gaps[0] if len(gaps) else len(example)
    return (np.arange(len(example)) >= start).astype(np.int64)


def places(example: Example) -> Ints:
    """[place] the first token of each place of a displayed input.

    Every token has a place of its own, in an input of at most 40. In a longer one, the middle of
    it (of each segment, if there are two) shares a place, so that its beginning, its end and what
    is between the segments are seen.
    """
    tokens, most = len(example), TOKENS.stop - 1
    if tokens <= most:
        return np.arange(tokens)
    second = int((segments(example) == 0).sum())
    first_room = min(second, max(most // 2, most - (tokens - second)))
    return np.array(
        [*_ends(0, second, first_room), *_ends(second, tokens, most - first_room)], np.int64
    )


def folded(maps: Float64, first: Ints) -> Float64:
    """[head, query, key] → [head, place, place]: sums over keys, means over queries."""
    to = np.add.reduceat(maps, first, axis=2)  # [head, query, place]
    sizes = np.diff(first, append=maps.shape[1])
    folded: Float64 = np.add.reduceat(to, first, axis=1) / sizes[:, None]  # [head, place, place]
    return folded


def _ends(start: int, stop: int, room: int) -> list[int]:
    """Both ends of a range, and the start of its middle, within the available room."""
    if stop - start <= room:
        return list(range(start, stop))
    ahead = room // 2
    behind = room - ahead - 1
    return [*range(start, start + ahead + 1), *range(stop - behind, stop)]


def _relations(example: Example) -> set[str]:
    assert example.words is not None
    return {label(example, index) for index in range(len(example.words))} - {ROOT}
