"""In which order does a training see its examples, so that little of a batch is padding?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from torch.utils.data import Sampler

from headscope.core.accumulators import generator

# Batches that are cut from one pool of examples in order of length: few enough that every epoch
# mixes examples anew, enough that those of a batch are alike (a third to a half of all padding).
POOL = 16


class Batches(Sampler[list[int]]):
    """Every example once an epoch: shuffled, pooled, sorted by length, cut, and shuffled again.

    The order depends on the seed and the epoch only, so that a training that goes on sees what it
    would have seen.

    lengths      [example] tokens
    steps_done   how many batches were trained on so far, in all epochs
    """

    def __init__(
        self, lengths: Sequence[int], *, size: int, seed: int, steps_done: Callable[[], int]
    ) -> None:
        self.lengths = np.asarray(lengths)
        self.size, self.seed, self.steps_done = size, seed, steps_done

    def __len__(self) -> int:
        return math.ceil(len(self.lengths) / self.size)

    def __iter__(self) -> Iterator[list[int]]:
        epoch = self.steps_done() // len(self)
        random = generator(self.seed, "order of training", str(epoch))
        order = random.permutation(len(self.lengths))
        pools = [order[at : at + POOL * self.size] for at in range(0, len(order), POOL * self.size)]
        sorted_pools = [pool[np.argsort(self.lengths[pool], kind="stable")] for pool in pools]
        batches = [
            pool[at : at + self.size].tolist()
            for pool in sorted_pools
            for at in range(0, len(pool), self.size)
        ]
        for at in random.permutation(len(batches)):
            yield batches[at]
