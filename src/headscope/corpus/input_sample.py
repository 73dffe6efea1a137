"""Draw a sample of the inputs of a corpus, so many tokens of it, in one pass."""

import hashlib
from heapq import heappop, heappush

from headscope.corpus.document import Example


class InputSample:
    """Inputs drawn evenly from a corpus by a hash of the seed and the input's id.

    The choice depends on nothing else, neither on the order nor on how the corpus is divided; no
    more of the corpus is held than the sample.

    most  tokens that are held at most
    """

    def __init__(self, *, seed: int, most: int) -> None:
        self.seed, self.most, self.tokens = seed, most, 0
        self._kept: list[tuple[int, str, Example]] = []  # a heap, the highest key first

    def consider(self, example: Example) -> None:
        """Take one input into account."""
        name = f"{self.seed}\0sample\0{example.document}\0{example.id}"
        hashed = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16)
        heappush(self._kept, (-int.from_bytes(hashed.digest()), example.id, example))
        self.tokens += len(example)
        while self.tokens > self.most and len(self._kept) > 1:
            self.tokens -= len(heappop(self._kept)[2])

    def within(self, tokens: int) -> tuple[Example, ...]:
        """Of what is held, inputs that have so many tokens, the shortest first; one at least.

        They lie evenly in the order of the lengths: much that is said of heads depends on these.
        """
        held = sorted(self._kept, key=lambda one: (len(one[2]), one[:2]))
        for count in range(min(len(held), len(held) * tokens // self.tokens), 1, -1):
            chosen = [held[(2 * at + 1) * len(held) // (2 * count)][2] for at in range(count)]
            if sum(map(len, chosen)) <= tokens:
                return tuple(chosen)
        return (held[len(held) // 2][2],)
