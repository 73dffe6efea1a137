"""Are made clusters found, their number chosen, and clouds without clusters told as such?"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import silhouette_samples

from analyses.divergence.made_heads import blobs, cloud
from headscope.analyses.divergence import clustering
from reference import clusters as reference

COUNTS = range(2, 11)


def number_of(distances, *, seed=0):
    found = clustering.curve(distances, clustering.labels_by("k_medoids", distances, COUNTS))
    references = clustering.reference_curves(distances, COUNTS, seed=seed)
    best, p = clustering.choose(found, references)
    return COUNTS[best], p


@pytest.mark.parametrize("method", clustering.METHODS)
@pytest.mark.parametrize("sizes", [[10, 12, 9], [5, 20, 8, 11], [12, 3]])
def test_both_methods_find_made_clusters(method, sizes):
    distances, labels = blobs(sizes)
    (found,) = clustering.labels_by(method, distances, [len(sizes)])
    assert clustering.agreement(found, labels) == 1


@pytest.mark.parametrize("sizes", [[20, 25], [12, 14, 11], [9, 8, 10, 9, 11], [6] * 8])
def test_the_number_of_made_clusters_is_chosen_and_they_are_told_from_a_cloud(sizes):
    distances, _ = blobs(sizes)
    number, p = number_of(distances)
    assert number == len(sizes)
    assert p == pytest.approx(1 / (1 + clustering.REFERENCES))


def test_a_cloud_without_clusters_does_not_pass_for_clusters():
    """At 5 %, one of twenty clouds may; here at most three of twenty do."""
    p = [number_of(cloud(40, seed=seed), seed=seed)[1] for seed in range(20)]
    assert np.mean(np.array(p) <= 0.05) <= 0.15
    assert np.median(p) > 0.2


def test_one_head_far_from_all_others_is_not_taken_for_the_only_cluster():
    """By the plain maximum, average linkage would say 2 clusters: that head, and the rest."""
    distances, _ = blobs([12, 12, 12], apart=5.0)
    far = np.pad(distances, ((0, 1), (0, 1)), constant_values=30.0)
    far[-1, -1] = 0
    tree = clustering.curve(far, clustering.labels_by("average", far, COUNTS))
    assert COUNTS[int(tree.argmax())] == 2
    assert number_of(far)[0] in (3, 4)


def test_the_same_seed_gives_the_same_clouds():
    distances = cloud(20)
    one, same, other = (
        clustering.reference_curves(distances, COUNTS, seed=seed, draws=3) for seed in (1, 1, 2)
    )
    assert (one == same).all()
    assert not (one == other).any()


def test_clouds_have_the_main_axes_of_the_heads():
    """A line stays a line: its clouds have distances along one axis only, and clusters' height."""
    line = np.abs(np.subtract.outer(np.arange(30.0), np.arange(30.0)))
    on_a_line = clustering.reference_curves(line, [2], seed=0).mean()
    round_cloud = clustering.reference_curves(cloud(30, dims=29), [2], seed=0).mean()
    assert on_a_line > 0.5 > round_cloud


@pytest.mark.parametrize("seed", range(5))
def test_silhouettes_agree_with_the_definition_and_with_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    distances, labels = cloud(23, seed=seed), rng.integers(4, size=23)
    labels[:4] = range(4)
    labels[5] = 4  # alone
    found = clustering.silhouettes(distances, labels)
    np.testing.assert_allclose(found, reference.silhouette(distances, labels.tolist()), atol=1e-12)
    by_sklearn = silhouette_samples(distances, labels, metric="precomputed")
    np.testing.assert_allclose(found, by_sklearn, atol=1e-12)


def test_one_cluster_has_no_silhouette():
    assert np.isnan(clustering.silhouettes(cloud(5), np.zeros(5, int))).all()


def test_equal_heads_lie_between_clusters():
    assert (clustering.silhouettes(np.zeros((4, 4)), np.array([0, 0, 1, 1])) == 0).all()


# --- stability ------------------------------------------------------------------------------


def test_a_clustering_agrees_with_itself_whatever_its_numbers():
    labels = np.random.default_rng(0).integers(5, size=40)
    assert clustering.agreement(labels, labels) == 1
    assert clustering.agreement(labels, 4 - labels) == 1


@pytest.mark.parametrize("seed", range(4))
def test_agreement_is_the_adjusted_rand_index(seed):
    one, other = np.random.default_rng(seed).integers(4, size=(2, 30))
    expected = reference.adjusted_rand(one.tolist(), other.tolist())
    assert clustering.agreement(one, other) == pytest.approx(expected, abs=1e-12)


def test_random_clusterings_agree_by_chance_only():
    pairs = np.random.default_rng(0).integers(4, size=(200, 2, 50))
    assert abs(np.mean([clustering.agreement(*pair) for pair in pairs])) < 0.01


def test_a_cluster_cut_in_half_is_found_again_by_half():
    labels = np.array([0, 0, 0, 0, 1, 1])
    halves = np.array([[0, 0, 1, 1, 2, 2]])
    assert clustering.jaccard(labels, halves).tolist() == [0.5, 1.0]
    assert clustering.jaccard(labels, labels[None]).tolist() == [1.0, 1.0]


def test_found_again_agrees_with_the_definition():
    rng = np.random.default_rng(1)
    labels, others = rng.integers(4, size=30), rng.integers(5, size=(6, 30))
    expected = reference.jaccard(labels.tolist(), others.tolist())
    np.testing.assert_allclose(clustering.jaccard(labels, others), expected, atol=1e-12)


def test_a_head_stays_where_its_medoid_is():
    labels, medoids = np.array([0, 0, 0, 1, 1]), np.array([1, 3])
    others = np.array([[0, 0, 0, 1, 1], [1, 0, 0, 1, 1], [5, 2, 2, 2, 5], [0, 0, 1, 1, 2]])
    assert clustering.stays(labels, medoids, others).tolist() == [0.5, 1.0, 0.75, 1.0, 0.5]


def test_without_replicates_nothing_is_said_of_stability():
    none = np.empty((0, 3), int)
    assert np.isnan(clustering.jaccard(np.array([0, 0, 1]), none)).all()
    assert np.isnan(clustering.stays(np.array([0, 0, 1]), np.array([0, 2]), none)).all()


def test_clusters_are_numbered_by_depth():
    labels, layer = np.array([2, 2, 0, 1, 1, 0]), np.array([0, 0, 1, 1, 2, 2])
    order = clustering.by_depth(labels, layer)
    assert order.tolist() == [2, 0, 1]  # 0 and 1 lie equally deep: their own order


def test_the_typical_head_of_a_cluster_is_its_medoid():
    distances = cloud(50)
    (labels,) = clustering.labels_by("k_medoids", distances, [5])
    typical = clustering.typical(distances, labels)
    for at, unit in enumerate(typical.tolist()):
        own = np.flatnonzero(labels == at)
        assert unit == own[distances[np.ix_(own, own)].sum(0).argmin()]


@pytest.mark.parametrize(("units", "last"), [(4, 2), (9, 4), (72, 20), (1024, 20)])
def test_clusters_of_two_heads_on_average_are_the_most_that_are_tried(units, last):
    assert list(clustering.counts_for(units)) == list(range(2, last + 1))
