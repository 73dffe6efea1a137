"""Is it told rightly whether the heads of a layer are alike?"""

from __future__ import annotations

import numpy as np
import pytest

from analyses.divergence.made_heads import layered
from headscope.analyses.divergence import head_clusters
from reference import clusters as reference

FEW = 99


def pairs(divergence):
    return divergence[np.triu_indices(len(divergence), 1)][None]  # [replicate, pair]


def test_heads_that_follow_their_layer_are_told_at_the_least_p_there_is():
    divergence, layer = layered(5, 6, pull=6.0)
    divergence_p, nearest_p = head_clusters.permuted_layers(divergence, layer, seed=0)
    least = 1 / (1 + head_clusters.PERMUTATIONS)
    assert divergence_p == pytest.approx(least)
    assert nearest_p[0] == pytest.approx(least)
    assert head_clusters.nearest_shares(head_clusters.nearest_unit(divergence), layer)[0] == 1


def test_heads_without_regard_to_layers_pass_as_often_as_they_may():
    """p of a true null is uniform: of 60, about 6 lie at or below 0.1."""
    found = [
        head_clusters.permuted_layers(
            *layered(4, 5, pull=0.0, seed=seed), seed=seed, permutations=FEW
        )
        for seed in range(60)
    ]
    for p in ([one for one, _ in found], [near[0] for _, near in found]):
        assert np.mean(np.array(p) <= 0.1) <= 0.2
    assert 0.35 < np.mean([one for one, _ in found]) < 0.65


def test_equal_divergences_tell_nothing():
    flat = 1.0 - np.eye(12)
    found = head_clusters.permuted_layers(
        flat, np.repeat(np.arange(3), 4), seed=0, permutations=FEW
    )
    assert found[0] == 1


def test_heads_of_a_layer_that_avoid_each_other_have_a_large_p():
    layer = np.repeat(np.arange(4), 4)
    divergence = (layer[:, None] == layer) * 1.0 + 1
    np.fill_diagonal(divergence, 0)
    assert head_clusters.permuted_layers(divergence, layer, seed=0, permutations=FEW)[0] == 1


@pytest.mark.parametrize("layer", [np.zeros(6, int), np.arange(6)])
def test_one_layer_or_one_head_a_layer_cannot_be_compared(layer):
    divergence, _ = layered(2, 3, pull=0)
    found = head_clusters.permuted_layers(divergence, layer, seed=0, permutations=FEW)
    assert np.isnan(found[0])
    assert np.isnan(found[1]).all()


def test_divergence_by_distance_of_layers_agrees_with_the_pairs_one_by_one():
    """Of all heads, and without each of them."""
    divergence, layer = layered(4, 3, pull=1.0, seed=2)
    sums, sizes = head_clusters.by_gap(divergence, layer)
    for row, left in enumerate([[], *([unit] for unit in range(12))]):
        kept = np.delete(np.arange(12), left)
        expected = reference.layer_means(divergence[np.ix_(kept, kept)], layer[kept].tolist())
        found = sums[row] / sizes[row]
        np.testing.assert_allclose(found, [expected[gap] for gap in range(4)], rtol=1e-12)


def test_chance_counts_the_other_heads():
    found = head_clusters.chance_shares(np.repeat(np.arange(3), 4))
    # 3 of 11 are in the layer; the middle layer has two neighbours, the others one.
    np.testing.assert_allclose(found, [3 / 11, (4 + 8 + 4) / 3 / 11, (4 + 0 + 4) / 3 / 11])


def test_the_nearest_head_is_never_the_head_itself():
    divergence = np.array([[0, 1, 2.0], [1, 0, 3], [2, 3, 0]])
    assert head_clusters.nearest_unit(divergence).tolist() == [1, 0, 0]


def test_the_same_seed_gives_the_same_p():
    divergence, layer = layered(4, 5, pull=0.3)
    one, same = (
        head_clusters.permuted_layers(divergence, layer, seed=4, permutations=FEW) for _ in range(2)
    )
    assert one[0] == same[0]
    assert (one[1] == same[1]).all()
