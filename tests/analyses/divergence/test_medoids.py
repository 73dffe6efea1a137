"""Does k-medoids find the heads that stand best for the others?"""

from __future__ import annotations

import numpy as np
import pytest

from analyses.divergence.made_heads import blobs, cloud
from headscope.analyses.divergence.clustering import agreement
from headscope.analyses.divergence.medoids import _exchange, k_medoids
from reference import clusters as reference


def test_of_few_heads_it_nearly_always_finds_the_cheapest_of_all_choices():
    """It is a local search: of 100 searches here, 90 or more are perfect, and none is far off."""
    excess = [
        found.cost / reference.cheapest(distances, count) - 1
        for distances in (cloud(11, seed=seed) for seed in range(20))
        for count, found in zip(range(1, 6), k_medoids(distances, range(1, 6)), strict=True)
    ]
    assert np.mean(np.array(excess) < 1e-12) >= 0.9
    assert -1e-12 < min(excess) <= max(excess) < 0.05


@pytest.mark.parametrize("seed", range(6))
def test_no_exchange_of_a_medoid_for_another_head_would_help(seed):
    """Also where distances are no metric."""
    half = np.triu(np.random.default_rng(seed).random((14, 14)), 1)
    distances = half + half.T
    for found in k_medoids(distances, (2, 3, 4)):
        for at in range(len(found.medoids)):
            for other in range(14):
                exchanged = found.medoids.copy()
                exchanged[at] = other
                assert distances[:, exchanged].min(1).sum() >= found.cost - 1e-12


def test_made_clusters_are_found_with_a_medoid_in_each():
    distances, labels = blobs([9, 4, 14, 6])
    (found,) = k_medoids(distances, [4])
    assert agreement(found.labels, labels) == 1
    assert sorted(labels[found.medoids]) == [0, 1, 2, 3]
    assert (found.labels[found.medoids] == np.arange(4)).all()


def test_every_head_goes_with_its_nearest_medoid_and_the_cost_is_the_sum():
    distances = cloud(40)
    (found,) = k_medoids(distances, [6])
    to = distances[:, found.medoids]
    assert (found.labels == to.argmin(1)).all()
    assert found.cost == pytest.approx(to.min(1).sum(), rel=1e-12)


def test_more_medoids_never_cost_more():
    costs = [found.cost for found in k_medoids(cloud(60, seed=3), range(1, 21))]
    assert (np.diff(costs) < 0).all()


def test_the_order_of_heads_does_not_matter():
    distances, _ = blobs([7, 8, 9], apart=4.0)
    shuffled = np.random.default_rng(0).permutation(len(distances))
    one = k_medoids(distances, [3])[0]
    other = k_medoids(distances[np.ix_(shuffled, shuffled)], [3])[0]
    assert agreement(one.labels[shuffled], other.labels) == 1


def test_heads_that_are_the_same_leave_no_cluster_empty():
    """Two kinds of heads and three medoids: the third is a head of its own."""
    distances = 1.0 - np.kron(np.eye(2), np.ones((3, 3)))
    (found,) = k_medoids(distances, [3])
    assert sorted(np.bincount(found.labels).tolist()) == [1, 2, 3]
    assert found.cost == 0


@pytest.mark.parametrize("seed", range(10))
def test_rounding_does_not_decide_between_equals(seed):
    """Of two heads alone with each other either may be the medoid; what is near both must not
    depend on the last bit.
    """
    distances = cloud(9, seed=seed)
    half = np.triu(1 + 1e-9 * np.random.default_rng(seed).normal(size=(9, 9)), 1)
    moved = distances * (half + half.T)
    for one, other in zip(
        k_medoids(distances, (2, 3, 4)), k_medoids(moved, (2, 3, 4)), strict=True
    ):
        assert one.medoids.tolist() == other.medoids.tolist()
        assert one.labels.tolist() == other.labels.tolist()


def test_one_medoid_is_the_most_central_head():
    distances = np.abs(np.subtract.outer(np.arange(7.0), np.arange(7.0)))
    assert k_medoids(distances, [1])[0].medoids.tolist() == [3]


def test_distances_of_any_layout_are_read_by_the_same_compiled_loop():
    """Another layout would be compiled for a second, in each process."""
    distances = cloud(9)
    plain, kinds = k_medoids(distances, [3])[0], len(_exchange.signatures)
    distances.flags.writeable = False
    for other in (distances, np.asfortranarray(distances), distances.astype(">f8")):
        assert k_medoids(other, [3])[0].medoids.tolist() == plain.medoids.tolist()
    assert len(_exchange.signatures) == kinds


@pytest.mark.parametrize(("seed", "count"), [(19, 2), (287, 4)])
def test_a_search_starts_from_one_medoid_more_without_the_least_missed(seed, count):
    """From the other starts, or without another medoid, the cheapest choice is not reached here."""
    distances = cloud(11, seed=seed)
    best = k_medoids(distances, range(1, 6))[count - 1]
    assert best.cost == pytest.approx(reference.cheapest(distances, count), rel=1e-12)
