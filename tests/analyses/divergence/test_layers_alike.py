"""Is it told rightly whether the heads of a layer are alike?"""

from __future__ import annotations

import numpy as np
import pytest

from analyses.divergence.made_heads import layered
from headscope.analyses.divergence import layers_alike
from reference import clusters as reference

FEW = 99


def pairs(divergence):
    return divergence[np.triu_indices(len(divergence), 1)][None]  # [replicate, pair]


def test_heads_that_follow_their_layer_are_told_at_the_least_p_there_is():
    divergence, layer = layered(5, 6, pull=6.0)
    found = layers_alike.permuted_layers(divergence, layer, seed=0)
    least = 1 / (1 + layers_alike.PERMUTATIONS)
    assert found.divergence_p == pytest.approx(least)
    assert found.nearest_p[0] == pytest.approx(least)
    assert layers_alike.nearest_shares(layers_alike.nearest_unit(divergence), layer)[0] == 1


def test_heads_without_regard_to_layers_pass_as_often_as_they_may():
    """p of a true null is uniform: of 60, about 6 lie at or below 0.1."""
    found = [
        layers_alike.permuted_layers(
            *layered(4, 5, pull=0.0, seed=seed), seed=seed, permutations=FEW
        )
        for seed in range(60)
    ]
    for p in ([one.divergence_p for one in found], [one.nearest_p[0] for one in found]):
        assert np.mean(np.array(p) <= 0.1) <= 0.2
    assert 0.35 < np.mean([one.divergence_p for one in found]) < 0.65


def test_equal_divergences_tell_nothing():
    flat = 1.0 - np.eye(12)
    found = layers_alike.permuted_layers(flat, np.repeat(np.arange(3), 4), seed=0, permutations=FEW)
    assert found.divergence_p == 1


def test_heads_of_a_layer_that_avoid_each_other_have_a_large_p():
    layer = np.repeat(np.arange(4), 4)
    divergence = (layer[:, None] == layer) * 1.0 + 1
    np.fill_diagonal(divergence, 0)
    assert (
        layers_alike.permuted_layers(divergence, layer, seed=0, permutations=FEW).divergence_p == 1
    )


@pytest.mark.parametrize("layer", [np.zeros(6, int), np.arange(6)])
def test_one_layer_or_one_head_a_layer_cannot_be_compared(layer):
    divergence, _ = layered(2, 3, pull=0)
    found = layers_alike.permuted_layers(divergence, layer, seed=0, permutations=FEW)
    assert np.isnan(found.divergence_p)
    assert np.isnan(found.nearest_p).all()


def test_divergence_by_distance_of_layers_agrees_with_the_pairs_one_by_one():
    divergence, layer = layered(4, 3, pull=1.0, seed=2)
    expected = reference.layer_means(divergence, layer.tolist())
    found = layers_alike.by_gap(pairs(divergence), layer)[0]
    np.testing.assert_allclose(found, [expected[gap] for gap in range(4)], rtol=1e-12)


def test_within_and_between_are_the_means_of_their_pairs():
    divergence, layer = layered(3, 4, pull=1.0)
    same = layer[:, None] == layer
    off = ~np.eye(12, dtype=bool)
    found = layers_alike.within_and_between(pairs(divergence), layer)[0]
    expected = [divergence[same & off].mean(), divergence[~same].mean()]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_layers_without_pairs_have_no_mean():
    divergence, _ = layered(2, 2, pull=0)
    found = layers_alike.within_and_between(pairs(divergence), np.arange(4))[0]
    assert np.isnan(found[0])
    assert np.isfinite(found[1])


def test_chance_counts_the_other_heads():
    found = layers_alike.chance_shares(np.repeat(np.arange(3), 4))
    # 3 of 11 are in the layer; the middle layer has two neighbours, the others one.
    np.testing.assert_allclose(found, [3 / 11, (4 + 8 + 4) / 3 / 11, (4 + 0 + 4) / 3 / 11])


def test_the_nearest_head_is_never_the_head_itself():
    divergence = np.array([[0, 1, 2.0], [1, 0, 3], [2, 3, 0]])
    assert layers_alike.nearest_unit(divergence).tolist() == [1, 0, 0]


def test_the_same_seed_gives_the_same_p():
    divergence, layer = layered(4, 5, pull=0.3)
    one, same = (
        layers_alike.permuted_layers(divergence, layer, seed=4, permutations=FEW) for _ in range(2)
    )
    assert one.divergence_p == same.divergence_p
    assert (one.nearest_p == same.nearest_p).all()
