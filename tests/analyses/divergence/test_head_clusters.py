"""Does `divergence` tell clusters of heads and layers that are alike, with their certainty?"""

from __future__ import annotations

import numpy as np
import pytest

from analyses.divergence.made_heads import blobs, layered
from analyses.running import planted, run
from headscope.analyses.divergence.clustering import agreement
from headscope.analyses.divergence.head_clusters import cluster_results
from headscope.core.intervals import estimate
from headscope.core.results import labelled
from headscope.run.contract_bench import tiny_examples
from reference import clusters as reference

LONGER = [e for e in tiny_examples() if len(e) > 1]


def results(distances, *, heads, noise=0.0, replicates=20, seed=0):
    """The variables of made distances; draws differ from the data by `noise`."""
    divergence = distances[np.triu_indices(len(distances), 1)] ** 2
    rng = np.random.default_rng(5)
    spread = noise * rng.normal(size=(replicates, len(divergence)))
    draws = np.abs(np.concatenate([divergence[None], divergence * (1 + spread)]))
    made, coords = cluster_results(draws, heads=heads, seed=seed, unit="nats")
    return labelled(made, coords=coords)


def test_made_clusters_come_back_surely():
    distances, labels = blobs([8, 6, 10], seed=1)
    found = results(distances, heads=4, noise=0.02)
    assert float(found.cluster_count) == 3
    assert agreement(found.cluster.values.astype(int), labels) == 1
    assert (found.jaccard == 1).all()
    assert (found.stays == 1).all()
    assert (found.stability == 1).all()
    assert float(found.method_agreement) == 1
    assert float(found.k_share.sel(k=3)) == 1
    assert float(found.cluster_p) == 0.025


def test_clusters_that_hang_on_single_heads_are_told_as_unsure():
    clear, cloud = (blobs([10, 10], apart=apart)[0] for apart in (6.0, 0.0))
    sure, unsure = (results(distances, heads=5) for distances in (clear, cloud))
    assert float(unsure.stability[0]) < min(0.7, float(sure.stability[0]))
    assert float(unsure.jaccard.mean()) < float(sure.jaccard.mean())
    assert float(unsure.stays.mean()) < float(sure.stays.mean())


def test_what_is_said_of_heads_in_general_is_as_sure_as_there_are_heads():
    """However many documents: with many, "yes (ρ = 0.10 [0.09, 0.12])" was said of 72 heads."""
    few, many = (results(layered(4, each, pull=1.0)[0], heads=each) for each in (4, 24))
    for name in ("layer_js_ratio", "layer_js", "nearest_layer"):
        assert few[f"{name}_ci_low"].attrs["interval_over"] == "heads"
        widths = [float((x[f"{name}_ci_high"] - x[f"{name}_ci_low"]).mean()) for x in (few, many)]
        assert widths[0] > 1.5 * widths[1] > 0, name
    assert "interval_over" not in few.silhouette_ci_low.attrs


def test_the_mean_silhouette_has_the_interval_of_a_mean_over_heads():
    distances, labels = blobs([9, 8, 10])
    found = results(distances, heads=3)
    each = np.array(reference.silhouette(distances, labels.tolist()))
    kept = [each, *(np.delete(each, unit) for unit in range(27))]
    expected = estimate(np.array([values.mean() for values in kept]), bounds=(-1, 1))
    here = {"variant": "k_medoids", "k": 3}
    assert float(found.silhouette_by_k_ci_low.sel(here)) == pytest.approx(expected.low)
    assert float(found.silhouette_by_k_ci_high.sel(here)) == pytest.approx(expected.high)


def test_a_cluster_is_numbered_by_depth_and_described_by_its_own_heads():
    distances, labels = blobs([4, 8, 6])
    found = results(distances, heads=2, noise=0.02)
    assert found.cluster.values.tolist() == labels.tolist()  # the made ones lie in order
    assert found.cluster_size.values.tolist() == [4, 8, 6]
    assert labels[found.medoid.values.astype(int)].tolist() == [0, 1, 2]
    each = reference.silhouette(distances, labels.tolist())
    np.testing.assert_allclose(found.silhouette, each, atol=1e-12)
    means = [np.mean(np.array(each)[labels == at]) for at in range(3)]
    np.testing.assert_allclose(found.cluster_silhouette, means, atol=1e-12)
    by_k = found.silhouette_by_k.sel({"variant": "k_medoids", "k": 3})
    assert float(by_k) == pytest.approx(np.mean(each))


def test_layers_that_are_alike_are_told_with_the_means_of_their_pairs():
    distances, layer = layered(4, 5, pull=3.0)
    found = results(distances, heads=5, noise=0.02)
    expected = reference.layer_means(distances**2, layer.tolist())
    np.testing.assert_allclose(found.js_by_layer_gap, [expected[gap] for gap in range(4)])
    assert float(found.layer_js[0]) == pytest.approx(expected[0])
    assert float(found.layer_js_ratio) == pytest.approx(
        float(found.layer_js[0] / found.layer_js[1])
    )
    assert float(found.layer_js_p) == 0.001
    assert (found.nearest_layer.sum(), found.nearest_chance.sum()) == pytest.approx((1, 1))


def test_clusters_do_not_depend_on_the_scale_of_divergences():
    """So that sums over tokens (Clark et al.) give what means give."""
    distances, _ = blobs([6, 7, 5], apart=2.0)
    one, other = (results(distances * scale, heads=3, noise=0.05) for scale in (1.0, 37.0))
    for name in ("cluster", "silhouette", "jaccard", "reference_silhouette", "layer_js_p"):
        np.testing.assert_allclose(one[name], other[name], atol=1e-9)


def test_one_document_has_clusters_but_no_silhouettes_for_sure():
    distances, _ = blobs([6, 7, 5])
    found = results(distances, heads=3, replicates=0)
    assert float(found.cluster_count) == 3
    assert np.isnan(found.silhouette_ci_low).all()
    assert np.isfinite(found.layer_js_ci_low).all()


def test_fewer_than_four_heads_and_heads_that_are_all_the_same_have_no_clusters():
    for units in (1, 2, 3):
        assert not results(np.ones((units, units)) - np.eye(units), heads=1)
    assert not results(np.zeros((6, 6)), heads=3)


def test_heads_that_do_the_same_thing_share_a_cluster():
    """Heads of two layers that look back, ahead or everywhere: three kinds, two heads each."""
    plant = planted(("previous", "next", "uniform"), ("next", "uniform", "previous"))
    found = run({"divergence": {}}, examples=LONGER, plant=plant)["divergence"]
    assert float(found.cluster_count) == 3
    previous, ahead, broad, same_ahead, same_broad, same_previous = found.cluster.values
    assert (previous, ahead, broad) == (same_previous, same_ahead, same_broad)
    assert len({previous, ahead, broad}) == 3
    np.testing.assert_allclose(found.silhouette, 1, atol=1e-3)
