"""Weights in random order or in other directions, a part at a time: large ones take gigabytes."""

import torch

from headscope.model.threads import threads_of_torch

MOST_DEALT, SOME = 1 << 20, 1 << 16  # ours: beyond the cache every entry costs five times as much
TURNED = 128  # ours: directions that are mixed with each other
ROWS = 1 << 14  # ours: of a matrix that are mixed at once


def in_random_order(entries: torch.Tensor, random: torch.Generator) -> torch.Tensor:
    """[entry] all entries in random order; a large tensor is filled from SOME of its entries."""
    count = len(entries)
    if count <= MOST_DEALT:
        return entries.index_select(0, torch.randperm(count, generator=random, dtype=torch.int32))
    some = entries[torch.randint(count, (SOME,), generator=random)]
    made = torch.empty_like(entries)
    for part in torch.split(made, MOST_DEALT):
        drawn = torch.randint(SOME, (len(part),), generator=random, dtype=torch.int32)
        torch.index_select(some, 0, drawn, out=part)
    return made


def random_directions(count: int, random: torch.Generator) -> torch.Tensor:
    """[count, count] an orthogonal matrix; in one thread, as LAPACK's bits depend on how many."""
    with threads_of_torch(1):
        turn: torch.Tensor = torch.linalg.qr(torch.randn(count, count, generator=random))[0]
    return turn


def in_other_directions(
    matrix: torch.Tensor, turn: torch.Tensor, random: torch.Generator
) -> torch.Tensor:
    """[…, row, column] with columns mixed by orthogonal matrices, a number of columns each."""
    columns = matrix.shape[-1]
    order = torch.randperm(columns, generator=random)
    whole = columns // TURNED * TURNED
    rest = random_directions(columns - whole, random)
    made = torch.empty(matrix.shape, dtype=matrix.dtype)
    for rows, out in zip(*(torch.split(one, ROWS, -2) for one in (matrix, made)), strict=True):
        mixed = rows.index_select(-1, order)
        # […, row, block, column]
        blocks = mixed[..., :whole].reshape(*mixed.shape[:-1], -1, TURNED)
        out[..., :whole] = (blocks @ turn).flatten(-2)
        out[..., whole:] = mixed[..., whole:] @ rest
    return made
