"""Pack sentences into windows, split long texts, and batch examples of similar length.

Pure functions of lengths; nothing here sees a token. The windows are those of Clark et al. (2019,
section 3), who follow BERT's pre-training: `[CLS] A [SEP] B [SEP]`, A and B consecutive text of
one document. Two differences: an over-long sentence is cut into windows where theirs is trimmed,
and a window ends before the sentence that would overfill it, so that every token is read once.
"""

import hashlib
from collections.abc import Iterator, Sequence, Sized

import numpy as np
import numpy.typing as npt

from headscope.errors import InputError


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


# Batches come in few shapes: matrix libraries compile a product for every new one and keep it, so
# that memory would grow with the corpus. Lengths up to 32 are padded to a multiple of 4, longer
# ones to a multiple of 8; a full batch of more than 8 examples holds a multiple of 8.
SHORT = 32
COUNT_STEP = 8


def padded_length(longest: int, limit: int | None = None) -> int:
    """The padded length of a batch whose longest example has this many tokens.

    limit  tokens that the model takes at most: no more are padded to
    """
    step = 4 if longest <= SHORT else 8
    padded = -(-longest // step) * step
    return padded if limit is None else max(longest, min(padded, limit))


def batches(examples: Sequence[Sized], *, budget: int) -> Iterator[list[int]]:
    """Indices of the examples of each batch, shortest examples first.

    examples  anything with a length in tokens
    budget    padded tokens of a batch at most: its padded length times its size
    yields    every index once; equal lengths keep their order. An example longer than the budget
              makes a batch of its own; full batches hold a multiple of 8 examples, if they hold
              more than 8

    raises  InputError if the budget is less than 1
    """
    if budget < 1:
        raise InputError(f"a batch budget of {budget} tokens; wanted at least 1")
    batch: list[int] = []
    for index in sorted(range(len(examples)), key=lambda i: len(examples[i])):
        # Lengths ascend, so this example would be the longest of the batch.
        while batch and padded_length(len(examples[index])) * (len(batch) + 1) > budget:
            full = len(batch) - len(batch) % COUNT_STEP or len(batch)
            yield batch[:full]
            batch = batch[full:]
        batch.append(index)
    if batch:
        yield batch
