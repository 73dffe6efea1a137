"""Is what the classifier sees of a map what its definition says, at any size?"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.analyses.patterns.measure_network import SIDE, seen, seen_bytes
from reference.patterns import picture


@settings(max_examples=40)
@given(st.integers(1, 90), st.integers(0, 1000))
def test_every_cell_pools_the_part_that_it_covers(n, seed):
    kept = np.random.default_rng(seed).random((n, n)) + 1e-3
    found = seen(torch.from_numpy(kept)[None])[0].numpy()
    np.testing.assert_allclose(found, picture(kept, SIDE), atol=1e-12)


def test_the_scale_of_a_map_does_not_matter():
    kept = np.random.default_rng(0).random((1, 40, 40))
    np.testing.assert_array_equal(seen_bytes(kept), seen_bytes(kept * 7))


@pytest.mark.parametrize("n", [5, 32, 128])
def test_a_thin_diagonal_stays_whole(n):
    found = seen(torch.eye(n)[None])[0, 0]
    assert found.diagonal().min() == 1


def test_a_map_of_zeros_is_empty():
    assert seen(torch.zeros(1, 4, 4)).abs().max() == 0
