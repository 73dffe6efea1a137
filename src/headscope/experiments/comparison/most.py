"""In which examples did the maps change most, whatever the order in which they are seen?"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from headscope.core.accumulators import Float64
from headscope.core.top_records import TopRecords
from headscope.corpus.document import Example
from headscope.run.analysis import AnalysisPart

KEPT = 20
LEAST_TOKENS = 8  # ours: a shorter input has little to look at
ROUND = 1e-6  # what a batch of another shape changes decides nothing
RECORD = np.dtype([("score", "f8"), ("key", "u8"), ("shard", "i4"), ("row", "i4")])


class MostChanged(AnalysisPart):
    """The examples of largest change, and where in the corpus they are."""

    def __init__(self) -> None:
        self.best = TopRecords.zeros(KEPT, record=RECORD)

    def add(
        self, examples: Sequence[Example], change: Float64, *, shard: int, rows: Sequence[int]
    ) -> None:
        """Take the examples of one batch into account.

        change  [example] from 0; those without any are not kept
        rows    [example] their places in the shard
        """
        for example, score, row in zip(examples, change, rows, strict=True):
            if len(example) < LEAST_TOKENS:
                continue
            name = f"{example.document}\0{example.id}".encode("utf-8", "surrogatepass")
            key = int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "big")
            rounded = np.round(score / ROUND) * ROUND
            if len(self.best.wanted(np.array(rounded), key)):
                self.best.put((), np.array((rounded, key, shard, row), RECORD))

    @property
    def records(self) -> npt.NDArray[np.void]:
        """[rank] RECORDs of those there are, the largest change first."""
        found: npt.NDArray[np.void] = self.best.records
        return found[found["score"] > 0]
