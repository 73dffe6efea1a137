"""Read the documents of a corpus in a random order that a seed fixes.

So that the first few stand for all. The order depends on the seed and on the documents' places,
never on who reads. Of a corpus of many partitions some are drawn, whose number bounds what is read;
within these the documents are mixed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heappop, heappush
from itertools import chain, islice
from typing import Any

from headscope.core.accumulators import generator
from headscope.corpus.document import Corpus, Document, Passage
from headscope.corpus.partitions import partitions_of

MOST_PARTITIONS = 64  # ours: half a gigabyte is read in seconds; and as many tell how they differ
MOST_TEXT = 1 << 25  # ours: characters that are held; about 8 million tokens
WORD = 6  # ours: characters of a word with its space


@dataclass(frozen=True)
class Draw:
    """The documents that were drawn, in their order.

    documents  as many of the lowest keys as MOST_TEXT holds
    of         documents in the partitions that were drawn
    whole      whether all documents of the corpus are among `documents`
    share      of the corpus, by size, in the partitions that were drawn
    partition  id of each document -> which of the drawn partitions it is from, counted from 0;
               empty where all partitions were drawn
    """

    documents: tuple[Document, ...]
    of: int
    whole: bool
    share: float
    partition: dict[str, int]


@dataclass(frozen=True)
class DrawnCorpus:
    """A corpus in random order; it is read once, and as many documents are held as fit.

    limit  only the first documents of the corpus are considered
    """

    corpus: Corpus
    seed: int = 0
    limit: int | None = None
    most_text: int = field(default=MOST_TEXT, kw_only=True)
    most_partitions: int = field(default=MOST_PARTITIONS, kw_only=True)

    def __iter__(self) -> Iterator[Document]:
        return iter(self.draw.documents)

    def describe(self) -> dict[str, Any]:
        """As the corpus describes itself."""
        return self.corpus.describe()

    @cached_property
    def draw(self) -> Draw:
        """What was drawn; the corpus is read the first time."""
        partitions = partitions_of(self.corpus)
        places = [*range(len(partitions))]
        if few := self.limit is None and len(places) > self.most_partitions:
            random = generator(self.seed, "partitions")
            places = sorted(random.choice(len(places), self.most_partitions, replace=False))
        every = chain.from_iterable(((at, one) for one in partitions[at]) for at in places)
        held = _Lowest(self.most_text)
        count = 0
        for count, (at, document) in enumerate(islice(every, self.limit), start=1):
            held.consider(_key(self.seed, count), int(at), document)
        ordered = held.in_order()
        size = sum(one.size for one in partitions) or len(partitions)
        read = sum(partitions[at].size for at in places) or len(places)
        return Draw(
            tuple(document for _, document in ordered),
            of=count,
            whole=not few and len(ordered) == count,
            share=read / size,
            partition={one.id: places.index(at) for at, one in ordered} if few else {},
        )


class _Lowest:
    """The documents of the lowest keys, as many as have `most` characters; at least one."""

    def __init__(self, most: int) -> None:
        self.most, self.size = most, 0
        self.held: list[tuple[int, int, Document]] = []  # a heap, the highest key first
        self.below = 1 << 64

    def consider(self, key: int, partition: int, document: Document) -> None:
        if key >= self.below:
            return
        heappush(self.held, (-key, partition, document))
        self.size += sum(map(_size, document.passages))
        while self.size > self.most and len(self.held) > 1:
            highest, _, dropped = heappop(self.held)
            self.size -= sum(map(_size, dropped.passages))
            self.below = -highest

    def in_order(self) -> list[tuple[int, Document]]:
        return [one[1:] for one in sorted(self.held, key=lambda one: -one[0])]


def _key(seed: int, place: int) -> int:
    hashed = hashlib.blake2b(f"{seed}\0order\0{place}".encode(), digest_size=8)
    return int.from_bytes(hashed.digest())


def _size(passage: Passage) -> int:
    words = len(passage.words or passage.tokens or ())
    return len(passage.text or "") + len(passage.text_pair or "") + WORD * words
