"""Are cosine and divergence of two maps those of their definitions, on any device and precision?"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from headscope.experiments.comparison.similarity import COSINE, JS, alike
from reference import similarity

LENGTHS = np.array([9, 5, 1])


def maps(seed: int, dtype: torch.dtype) -> torch.Tensor:
    """[example, head, query, key] rows that sum to 1 over real keys; noise in rows of padding."""
    draws = torch.Generator().manual_seed(seed)
    scores = 3 * torch.randn((3, 4, 9, 9), generator=draws, dtype=torch.float64)
    padding = torch.arange(9) >= torch.from_numpy(LENGTHS)[:, None]
    weights = scores.masked_fill(padding[:, None, None], -torch.inf).softmax(-1)
    noise = torch.rand(weights.shape, generator=draws, dtype=torch.float64)
    return torch.where(padding[:, None, :, None], noise, weights).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_both_are_those_of_the_definitions_padding_cut_off(dtype: torch.dtype) -> None:
    first, second = maps(0, dtype), maps(1, dtype)
    found = alike(first, second, LENGTHS)
    for row, n in enumerate(LENGTHS):
        a, b = (m[row : row + 1, :, :n, :n].double().numpy() for m in (first, second))
        np.testing.assert_allclose(found[row, :, COSINE], similarity.cosine(a, b)[0], rtol=2e-6)
        expected = similarity.divergence(a, b)[0]
        np.testing.assert_allclose(found[row, :, JS], expected, rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_equal_maps_have_exactly_cosine_1_and_divergence_0(dtype: torch.dtype) -> None:
    found = alike(maps(0, dtype), maps(0, dtype), LENGTHS)
    assert (found[..., COSINE] == 1).all()
    assert (found[..., JS] == 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_maps_that_share_no_place_have_cosine_0_and_ln_2_nats(dtype: torch.dtype) -> None:
    one = torch.eye(9, dtype=dtype).expand(3, 4, 9, 9)
    other = one.roll(1, dims=-1)
    found = alike(one, other, np.array([9, 9, 9]))
    assert (found[..., COSINE] == 0).all()
    np.testing.assert_allclose(found[..., JS], np.log(2), rtol=1e-7)
