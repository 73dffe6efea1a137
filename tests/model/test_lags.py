"""Are sums over diagonals those of the maps, in any blocks, ranges and types, either way?"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch

from headscope.model.lags import Lags
from headscope.run.contract_bench import Bench, tiny_examples, tiny_views
from headscope.run.known_analyses import known_analyses

CUTS, FIRST = (3, 8), 2


def _summed(maps: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """By loops: [range, example, head, lag], [range, example, head, key]."""
    examples, heads, tokens, _ = maps.shape
    by_lag = np.zeros((len(CUTS) + 1, examples, heads, 2 * tokens - 1))
    first = np.zeros((len(CUTS) + 1, examples, heads, FIRST))
    for example, n in enumerate(lengths):
        for query in range(n):
            at = sum(query >= cut for cut in CUTS)
            for key in range(n):
                by_lag[at, example, :, key - query + tokens - 1] += maps[example, :, query, key]
                if at and key < FIRST:
                    first[at, example, :, key] += maps[example, :, query, key]
    return by_lag, first


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_blocks_of_any_size_add_up_to_the_sums_of_the_maps(dtype: torch.dtype) -> None:
    """Padding holds noise that must not count."""
    rng, lengths = np.random.default_rng(0), np.array([12, 7, 1])
    maps = rng.random((3, 2, 12, 12))
    wanted = _summed(maps, lengths)
    weights = torch.from_numpy(maps).to(dtype)
    whole = Lags.of(CUTS, FIRST, weights, 3, 2, 12)
    whole.add(weights, lengths)
    parts = Lags.of(CUTS, FIRST, weights, 3, 2, 12)
    for query, key in ((q, k) for q in pairwise((0, 2, 9, 12)) for k in pairwise((0, 1, 5, 12))):
        for example in range(3):
            for head in range(2):
                part = weights[example : example + 1, head : head + 1, slice(*query), slice(*key)]
                start = {"example": example, "head": head, "query": query[0], "key": key[0]}
                parts.add(part.contiguous(), lengths[[example]], **start)
    for found in (whole, parts):
        for sums, right in zip((found.by_lag, found.first), wanted, strict=True):
            np.testing.assert_allclose(
                sums.numpy(), right, atol=1e-5 if dtype.itemsize == 4 else 1e-12
            )


@pytest.mark.parametrize("whole", [None, 1])
def test_a_layer_gives_them_whether_maps_are_made_or_not(whole: int | None) -> None:
    bench = Bench(known_analyses()["entropy"], {})
    batch = bench.batch(tiny_examples())
    truth = tiny_views(batch, dtype=torch.float64)
    for view, right in zip(tiny_views(batch, dtype=torch.float32, whole=whole), truth, strict=True):
        view.column_sums(batch)  # a reading before it was known what is asked
        found = view.lags(batch, CUTS, first=FIRST)
        by_lag, first = _summed(right.attention.numpy(), batch.lengths)
        np.testing.assert_allclose(found.by_lag, by_lag, atol=5e-5)
        np.testing.assert_allclose(found.first, first, atol=5e-5)
        assert view.lags(batch, (5,), first=1).by_lag.shape[0] == 2  # others, asked later
