"""Draw a random sample of inputs in one pass over the corpus, and of the queries of an input."""

import hashlib
from heapq import heappop, heappush
from typing import Self

import numpy as np

from headscope.core.accumulators import Ints, generator
from headscope.corpus.document import Example


def drawn_queries(example: Example, most: int, *, seed: int) -> tuple[Ints, Ints]:
    """Cut an input into `most` stretches and draw one query of each; all of a shorter input.

    The draw depends on nothing but the seed and the names of the document and the input.

    returns  queries [query], ascending, and the tokens of the stretch of each [query]: a mean of
             the queries that is weighted with these is that of all tokens, without bias
    """
    edges = np.linspace(0, len(example), min(most, len(example)) + 1).astype(np.int64)
    draw = generator(seed, "rows", example.document, example.id)
    return draw.integers(edges[:-1], edges[1:]), np.diff(edges)


class InputSample:
    """A random sample of inputs, drawn by a hash of the seed and the input's id.

    Those of the lowest keys are held, up to the first that would be one too many. The choice
    depends on nothing else, neither on the order nor on how the corpus is divided; no more of the
    corpus is held than the sample.

    most   tokens that are held at most
    below  the lowest key that was too many: no higher one may come after it
    """

    def __init__(self, *, seed: int, most: int, below: int = 1 << 128) -> None:
        self.seed, self.most, self.tokens = seed, most, 0
        # A heap, the highest key first; numbered, as an input may come twice.
        self._kept: list[tuple[int, str, int, Example]] = []
        self._number = 0
        self.below = below

    @property
    def held(self) -> list[Example]:
        """The stored inputs; a sample with the same `below` that considers them equals this one."""
        return [example for *_, example in sorted(self._kept, key=lambda one: one[2])]

    def consider(self, example: Example) -> None:
        """Add one input if it is drawn."""
        name = f"{self.seed}\0sample\0{example.document}\0{example.id}"
        hashed = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16)
        self._take(int.from_bytes(hashed.digest()), example)

    def merge(self, other: Self) -> None:
        """Add the inputs of another sample."""
        held = other._kept + self._kept
        self._kept, self.tokens, self.below = [], 0, min(self.below, other.below)
        for key, *_, example in held:
            self._take(-key, example)

    def _take(self, key: int, example: Example) -> None:
        if key >= self.below:
            return
        self._number += 1
        heappush(self._kept, (-key, example.id, self._number, example))
        self.tokens += len(example)
        while self.tokens > self.most and len(self._kept) > 1:
            highest, *_, dropped = heappop(self._kept)
            self.tokens, self.below = self.tokens - len(dropped), -highest

    def within(self, tokens: int) -> tuple[Example, ...]:
        """Stored inputs of `tokens` tokens together, the shortest first; of one alone a part.

        They lie evenly in the order of the lengths: much that is said of heads depends on these.
        """
        held = sorted(self._kept, key=lambda one: (len(one[-1]), one[:3]))
        for count in range(min(len(held), len(held) * tokens // self.tokens), 1, -1):
            chosen = [held[(2 * at + 1) * len(held) // (2 * count)][-1] for at in range(count)]
            if sum(map(len, chosen)) <= tokens:
                return tuple(chosen)
        return (held[len(held) // 2][-1].window(tokens),)
