"""Which sentences share a window, where is it split in two, and where is a long one cut?

Pure functions of lengths; nothing here sees a token. The windows are those of Clark et al. (2019,
section 3), who follow BERT's pre-training: `[CLS] A [SEP] B [SEP]`, A and B consecutive text of
one document. Two differences: an over-long sentence is cut into windows where theirs is trimmed,
and a window ends before the sentence that would overfill it, so that every token is read once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt


def fill(lengths: Sequence[int], *, capacity: int) -> Iterator[range]:
    """Runs of consecutive sentences that fit into one window, greedily from the first.

    lengths   [sentence] tokens of each
    capacity  content tokens of a window, at least 1
    yields    ranges that together cover every sentence once, in order; a sentence longer than
              the capacity has a range of its own
    """
    start, total = 0, 0
    for index, length in enumerate(lengths):
        if total + length > capacity and index > start:
            yield range(start, index)
            start, total = index, 0
        total += length
    if start < len(lengths):
        yield range(start, len(lengths))


def split_point(count: int, *, seed: int, document: str, index: int) -> int:
    """How many of the `count` sentences of a window are its first segment: 1 to count - 1.

    Drawn evenly. The generator is seeded by a hash of (seed, document, index of the window), so
    that the answer does not depend on what was read before, or by which process.
    """
    name = f"{seed}\0{index}\0{document}".encode("utf-8", "surrogatepass")
    key = int.from_bytes(hashlib.sha256(name).digest(), "big")
    return int(np.random.default_rng(key).integers(1, count))


def windows(
    length: int, *, capacity: int, word_index: npt.NDArray[np.int64] | None = None
) -> Iterator[slice]:
    """Consecutive slices of at most `capacity` tokens that cover 0..length once, in order.

    word_index  [token] the word of each token: where it is given, a window ends between words,
                unless one word alone is longer than the window
    """
    start = 0
    while start < length:
        end = min(start + capacity, length)
        if word_index is not None and end < length:
            first = int(np.searchsorted(word_index, word_index[end]))  # where the word cut begins
            end = first if first > start else end
        yield slice(start, end)
        start = end
