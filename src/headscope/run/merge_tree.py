"""The tree in which shards are merged; its shape depends only on their number.

Sums of floating point depend on their order. In a tree of fixed shape that order does not depend on
who computed what, or when: any process may merge any node once its children are there.
"""

from __future__ import annotations

from functools import lru_cache

FAN_IN = 8  # ours: a state is written once more for each 7 others; up to 8 shards need no node
Span = tuple[int, int]  # the first and the last shard of a node; a shard by itself has both alike


def children(node: Span) -> list[Span]:
    """The nodes, in order, that are merged into a node; a single shard has itself."""
    first, last = node
    width = 1
    while width * FAN_IN <= last - first:
        width *= FAN_IN
    return [(at, min(at + width - 1, last)) for at in range(first, last + 1, width)]


@lru_cache(1 << 16)  # each of many processes asks for the same ones again and again
def parent(node: Span, shards: int) -> Span:
    """The node that a node is merged into, given the number of shards; the root has itself."""
    first, last = node
    width = FAN_IN
    while True:
        start = first // width * width
        above = start, min(start + width, shards) - 1
        if above[1] - above[0] > last - first or above == (0, shards - 1):
            return above
        width *= FAN_IN


def text_of(span: Span) -> str:
    """The name of a node's file: 00012, or 00008..00015."""
    first, last = span
    return f"{first:05d}" if first == last else f"{first:05d}..{last:05d}"


def covering(shards: int) -> list[Span]:
    """The largest complete nodes that together hold the first `shards`, in order.

    They are nodes of the tree of any number of shards that is larger.
    """
    nodes, first = list[Span](), 0
    while first < shards:
        width = 1
        while first % (width * FAN_IN) == 0 and first + width * FAN_IN <= shards:
            width *= FAN_IN
        nodes.append((first, first + width - 1))
        first += width
    return nodes


def looks(shards: int) -> list[int]:
    """After how many shards a run that may stop early looks: 1, 2, 3, 4, 6, 8, 12, … and all."""
    every, at = list[int](), 1
    while at < shards:
        every += [at, 3 * at // 2] if at > 1 and 3 * at // 2 < shards else [at]
        at *= 2
    return [*every, shards]
