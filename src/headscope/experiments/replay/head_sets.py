"""The sets of heads that are replaced together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headscope.core.accumulators import Float64, generator
from headscope.core.head_names import Head

EXPLAINED, RANDOM, CHOSEN = "explained", "random", "chosen"


@dataclass(frozen=True)
class HeadSet:
    """Heads that are replaced together.

    order  by what they were chosen: EXPLAINED, RANDOM, or CHOSEN by the user
    draw   number of the random order
    share  of all heads that was wanted
    heads  (layer, head), both places from 0
    """

    order: str
    draw: int
    share: float
    heads: frozenset[Head]


def chosen_set(heads: Sequence[Head], shape: tuple[int, int]) -> list[HeadSet]:
    """The user's heads as one set."""
    size = len(set(heads)) / (shape[0] * shape[1])
    return [HeadSet(CHOSEN, 0, size, frozenset(heads))]


def sets_by_share(
    explained: Float64, shares: Sequence[float], *, draws: int, seed: int
) -> list[HeadSet]:
    """The first heads of each order, for each share of them.

    explained  [layer, head] the best explained come first; heads without a number last
    draws      random orders; all heads together are one set, whatever the order
    """
    heads = explained.shape[1]
    order = np.argsort(-np.nan_to_num(explained.ravel(), nan=-1.0), kind="stable")
    sets = []
    for draw in range(draws + 1):
        own = generator(seed, "random heads", str(draw)).permutation(order) if draw else order
        for share in shares:
            if draw and share == 1:
                continue
            most = max(1, round(share * len(own)))
            places = frozenset(divmod(int(unit), heads) for unit in own[:most])
            sets.append(HeadSet(RANDOM if draw else EXPLAINED, draw, share, places))
    return sets


def replaced_in(sets: Sequence[HeadSet], shape: tuple[int, int]) -> Float64:
    """[set, layer, head] 1 where a head is in a set, else 0."""
    there = np.zeros((len(sets), *shape))
    for row, one in zip(there, sets, strict=True):
        row[tuple(np.transpose(sorted(one.heads)))] = 1
    return there
