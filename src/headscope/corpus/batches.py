"""Which examples share a forward pass, so that little of it is padding?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Sized

from headscope.errors import InputError


def batches(examples: Sequence[Sized], *, budget: int) -> Iterator[list[int]]:
    """Indices of the examples of each batch, shortest examples first.

    examples  anything with a length in tokens
    budget    padded tokens of a batch at most: its longest example times its size
    yields    every index once; equal lengths keep their order. An example longer than the budget
              makes a batch of its own

    raises  InputError if the budget is less than 1
    """
    if budget < 1:
        raise InputError(f"a batch budget of {budget} tokens; wanted at least 1")
    batch: list[int] = []
    for index in sorted(range(len(examples)), key=lambda i: len(examples[i])):
        # Lengths ascend, so this example would be the longest of the batch.
        if batch and len(examples[index]) * (len(batch) + 1) > budget:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
