"""Where a rule is tried in an input: queries and keys of it, and those that it is compared with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from headscope.claims.attention_rule import Bools, Rows, RuleInput
from headscope.core.accumulators import Ints

THERE, SAME_KEYS, SAME_OFFSET, OTHER_KEYS = "there", "same_keys", "same_offset", "other_keys"
COMPARED = (SAME_KEYS, SAME_OFFSET, OTHER_KEYS)
NEAR = 8  # ours: tokens
MOST = 6  # ours: queries of an input, so that they hardly reach each other


@dataclass(frozen=True)
class Queries:
    """Queries of an input, and the keys from which their weight is moved.

    of       [query] number among the queries where the rule applies, which each is compared with
    queries  [query] place in the input
    keys     [query, key]
    """

    of: Ints
    queries: Ints
    keys: Bools

    def __len__(self) -> int:
        """How many queries."""
        return len(self.queries)

    def at(self, number: int) -> Queries:
        """One of the queries."""
        one = slice(number, number + 1)
        return Queries(self.of[one], self.queries[one], self.keys[one])


def triggered(rows: Rows, read: RuleInput) -> Bools:
    """[query] where a rule can be tried: it applies, and leaves a key to which weight can go.

    rows  [query, key] of the rule
    """
    elsewhere = read.visible & ~(rows > 0)
    return np.asarray((rows.sum(-1) > 0.5) & elsewhere.any(-1))


def queries_of(
    rows: Rows, read: RuleInput, rng: np.random.Generator, masked: Bools | None = None
) -> dict[str, Queries]:
    """THERE, some queries where the rule applies; and of each what it is compared with, if any.

    SAME_KEYS    another query, as near as can be, to which the rule does not apply, and the same
                 keys: do they matter to whoever asks?
    SAME_OFFSET  such a query, and keys as far away: is it their place alone?
    OTHER_KEYS   the same query, and as many keys next to those of the rule: any token?

    masked       [token] half of the queries are such tokens, if there are as many, and are compared
                 with such; None: no token is masked
    """
    masked = np.zeros(len(read), bool) if masked is None else masked
    may = rng.permutation(np.flatnonzero(triggered(rows, read)))
    first = may[masked[may]][: MOST // 2]
    others = may[~np.isin(may, first)]
    chosen = np.sort(np.concatenate([first, others])[:MOST])
    applies, keys = rows.sum(-1) > 0.5, rows > 0
    there = Queries(np.arange(len(chosen)), chosen, keys[chosen])
    compared = {
        SAME_KEYS: _same_keys(there, applies, read, masked),
        SAME_OFFSET: _same_offset(there, applies, read, masked),
        OTHER_KEYS: _other_keys(there, read, rng),
    }
    made = {name: _queries(list(some), len(read)) for name, some in compared.items()}
    return {THERE: there} | {name: some for name, some in made.items() if len(some)}


Paired = tuple[int, int, Bools]  # number of the query there, query, keys


def _queries(some: list[Paired], tokens: int) -> Queries:
    of, queries = (np.array([one[at] for one in some], np.int64) for at in (0, 1))
    keys = np.array([one[2] for one in some], bool).reshape(len(some), tokens)
    return Queries(of, queries, keys)


def _nearest_first(
    query: int, applies: Bools, read: RuleInput, masked: Bools, taken: set[int]
) -> Iterator[int]:
    """Queries to which the rule does not apply, of the same kind, the nearest first: at most NEAR
    tokens away, and of a decoder not so much earlier that they see less than three quarters as many
    keys.
    """
    like = ~applies & (read.special == read.special[query]) & (masked == masked[query])
    like &= np.abs(read.offset[query]) <= NEAR
    seen = read.visible.sum(-1)
    like &= 4 * seen >= 3 * seen[query]
    for other in sorted(np.flatnonzero(like).tolist(), key=lambda at: (abs(at - query), at)):
        if other not in taken:
            yield other


def _same_keys(there: Queries, applies: Bools, read: RuleInput, masked: Bools) -> Iterator[Paired]:
    taken = set[int]()
    for of, query in enumerate(there.queries.tolist()):
        for other in _nearest_first(query, applies, read, masked, taken):
            keys = there.keys[of] & read.visible[other]
            room = read.visible[other] & ~keys
            if keys.any() and room.any() and not keys[other]:
                taken.add(other)
                yield of, other, keys
                break


def _same_offset(
    there: Queries, applies: Bools, read: RuleInput, masked: Bools
) -> Iterator[Paired]:
    taken = set[int]()
    for of, query in enumerate(there.queries.tolist()):
        places = np.flatnonzero(there.keys[of])
        for other in _nearest_first(query, applies, read, masked, taken):
            moved = places + (other - query)
            if moved.min() < 0 or moved.max() >= len(read):
                continue
            keys = np.zeros(len(read), bool)
            keys[moved] = read.visible[other, moved]
            if keys.sum() == len(moved) and (read.visible[other] & ~keys).any():
                taken.add(other)
                yield of, other, keys
                break


def _other_keys(there: Queries, read: RuleInput, rng: np.random.Generator) -> Iterator[Paired]:
    place = np.arange(len(read))
    for of, query in enumerate(there.queries.tolist()):
        own = there.keys[of]
        free = np.flatnonzero(read.visible[query] & ~own)
        count = int(own.sum())
        if len(free) <= count:  # nothing would be left to which weight can go
            continue
        far = np.abs(place[free][:, None] - np.flatnonzero(own)).min(-1)
        nearest = free[np.lexsort((rng.permutation(len(free)), far))][:count]
        keys = np.zeros(len(read), bool)
        keys[nearest] = True
        yield of, query, keys
