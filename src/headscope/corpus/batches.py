"""Which examples share a forward pass, so that little of it is padding?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Sized

from headscope.errors import InputError

# Batches come in few shapes: matrix libraries compile a product for every new one and keep it, so
# that memory would grow with the corpus. Lengths up to 32 are padded to a multiple of 4, longer
# ones to a multiple of 8; a full batch of more than 8 examples holds a multiple of 8.
SHORT = 32
COUNT_STEP = 8


def padded_length(longest: int) -> int:
    """To how many tokens a batch is padded whose longest example has so many."""
    step = 4 if longest <= SHORT else 8
    return -(-longest // step) * step


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
