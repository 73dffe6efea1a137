"""Are clusters read and named rightly, and are a head's nearest heads its nearest?"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from headscope.analyses.divergence.clusters import (
    MIXED,
    cluster_of,
    clusters,
    nearest_heads,
    tables,
)
from headscope.analyses.divergence.figure_layers import has_layers, layers_verdict, neighbour_labels
from headscope.heads.tables import write_tables
from recorded import reading, recorded

TOLD = (("_ci_low", -0.01), ("", 0.0), ("_ci_high", 0.01))


def changed(tree, group, **values):
    """A tree with other numbers in one group; an array goes into value and interval alike."""
    dataset = tree[group].to_dataset().copy(deep=True)
    for name, value in values.items():
        for end, shift in TOLD:
            if name + end in dataset:
                dataset[name + end][...] = np.asarray(value) + shift
    tree[group].dataset = dataset
    return tree


def two_clusters(layers=4, heads=3, **attrs):
    """A run with two clusters, the first half of the layers and the second, and even heads."""
    tree = recorded(layers, heads, groups=("surface", "entropy", "divergence"), **attrs)
    number = np.repeat([0.0, 1.0], layers * heads // 2)
    dataset = tree["divergence"].to_dataset().isel(cluster_number=[0, 1]).copy(deep=True)
    dataset["cluster"][...] = number
    dataset["medoid"][...] = [1, layers * heads - 2]
    tree["divergence"].dataset = dataset
    tree = changed(tree, "surface", attention=0.05)
    tree["surface"].dataset = tree["surface"].to_dataset().drop_dims("word_kind")
    return spread_so(tree, 2.5)


def spread_so(tree, nats):
    """A tree whose heads have these entropies, where uniform ones are 4.28 nats."""
    share = np.asarray(nats) / 4.28
    tree["entropy"]["uniform"][...] = 4.28
    return changed(tree, "entropy", entropy=nats, relative_entropy=share)


def attending(tree, target, share):
    """A tree in which heads give these shares [unit] to a target."""
    attention = tree["surface"]["attention"].values.copy()
    at = tree["surface"]["target"].values.tolist().index(target)
    attention[..., at] = np.reshape(share, attention.shape[:2])  # [layer, head]
    return changed(tree, "surface", attention=attention)


def test_a_cluster_has_its_heads_its_medoid_and_its_layers():
    first, second = clusters(two_clusters())
    assert first.units == (0, 1, 2, 3, 4, 5)
    assert (first.medoid, second.medoid) == (1, 10)
    assert (first.place, second.place) == ("layers 1–2", "layers 3–4")
    assert first.name == "6 heads, layers 1–2: mixed"


def test_layers_that_hold_most_of_the_heads_are_named_as_such():
    tree = two_clusters(8, 2)
    dataset = tree["divergence"].to_dataset().copy(deep=True)
    dataset["cluster"][...] = [1] + [0] * 9 + [1] * 5 + [0]
    tree["divergence"].dataset = dataset
    assert clusters(tree)[0].place == "mostly layers 2–5"
    assert cluster_of(tree, 7, 1).number == 0


def test_a_cluster_whose_heads_mostly_have_one_label_is_named_by_it():
    share = [0.9, 0.9, 0.9, 0.9, 0.1, 0.1] + [0.1] * 6
    first, second = clusters(attending(two_clusters(), "next", share))
    assert first.what == "next token (4 of 6)"
    assert second.what == MIXED


def test_a_label_that_all_heads_of_a_cluster_bear_needs_no_count():
    first, _ = clusters(attending(two_clusters(), "previous", [0.9] * 6 + [0.1] * 6))
    assert first.what == "previous token"


def test_a_cluster_without_labels_is_named_by_where_it_attends_more():
    first, second = clusters(attending(two_clusters(), "previous", [0.3] * 6 + [0.02] * 6))
    assert first.what == "more to the previous token (30 %, others 2.0 %)"
    assert second.what == MIXED


def test_a_label_that_the_other_heads_bear_as_often_names_no_cluster():
    first, second = clusters(attending(two_clusters(), "next", [0.9] * 12))
    assert (first.what, second.what) == (MIXED, MIXED)


def test_a_label_that_leaves_open_where_heads_attend_is_followed_by_where():
    """Half of uniform entropy is narrow (`few tokens`); 2.5 nats are not."""
    tree = attending(two_clusters(), "previous", [0.3] * 6 + [0.02] * 6)
    nats = tree["entropy"]["entropy"].values.copy()
    nats[:2], nats[2:] = 1.0, 2.5
    first, _ = clusters(spread_so(tree, nats))
    assert first.what == (
        "few tokens, no one target; more to the previous token (30 %, others 2.0 %)"
    )


def test_a_small_share_names_no_cluster():
    first, _ = clusters(attending(two_clusters(), "previous", [0.08] * 6 + [0.01] * 6))
    assert first.what == MIXED


def test_a_cluster_that_only_attends_wider_or_narrower_is_named_by_that():
    tree = two_clusters()
    nats = tree["entropy"]["entropy"].values.copy()
    nats[:2], nats[2:] = 3.1, 2.4
    first, second = clusters(spread_so(tree, nats))
    assert first.what == "spread wider (entropy 3.10 nats, others 2.40)"
    assert second.what == "on fewer tokens (entropy 2.40 nats, others 3.10)"


def test_a_run_without_other_analyses_has_mixed_clusters():
    found = clusters(recorded(4, 3, groups=("divergence",)))
    assert found
    assert {one.what for one in found} == {MIXED}


def test_names_of_tokens_are_the_tokenizers_own_and_harmless():
    tree = two_clusters(sep_token="<\x1b[31msep\n>")
    first, _ = clusters(attending(tree, "sep", [0.4] * 6 + [0.1] * 6))
    assert first.what.startswith("more to <�[31msep�> (40 %")


# --- runs without clusters ------------------------------------------------------------------


def old_run():
    """As runs were before there were clusters."""
    tree = recorded(3, 4)
    tree["divergence"].dataset = tree["divergence"].to_dataset()[["js", "mds", "mds_stress"]]
    return tree


@pytest.mark.parametrize("tree", [old_run(), recorded(3, 4, groups=("surface",)), recorded(1, 3)])
def test_old_runs_runs_without_divergence_and_few_heads_have_no_clusters(tree):
    assert clusters(tree) == []
    assert cluster_of(tree, 0, 0) is None
    run = reading(tree, "divergence")
    if run.there:
        assert tables(run)["clusters"].empty
        assert not has_layers(run)
        assert layers_verdict(run) == ""


def test_an_old_run_still_knows_the_nearest_heads(tmp_path):
    assert len(nearest_heads(old_run(), 0, 0, 3)) == 3
    assert not any(path.name.startswith("clusters") for path in write_tables(old_run(), tmp_path))


# --- nearest heads --------------------------------------------------------------------------


def test_the_nearest_heads_are_those_of_least_divergence_without_the_head_itself():
    tree = recorded(3, 4)
    js = tree["divergence"]["js"].values
    found = nearest_heads(tree, 1, 2, 4)
    expected = [unit for unit in np.argsort(js[6], kind="stable") if unit != 6][:4]
    assert [near.layer * 4 + near.head for near in found] == expected
    assert [near.js for near in found] == js[6, expected].tolist()


def test_there_are_no_more_nearest_heads_than_other_heads():
    assert len(nearest_heads(recorded(1, 3), 0, 1, 10)) == 2


def test_the_interval_of_a_nearest_head_is_that_of_the_divergence():
    tree = recorded(2, 3)
    dataset = tree["divergence"].to_dataset()
    low, high = (dataset["js"] * factor for factor in (0.9, 1.1))
    tree["divergence"].dataset = dataset.assign(js_ci_low=low, js_ci_high=high)
    near = nearest_heads(tree, 0, 0, 1)[0]
    assert (near.low, near.high) == pytest.approx((0.9 * near.js, 1.1 * near.js))


# --- the table ------------------------------------------------------------------------------


def test_the_table_has_a_row_per_cluster_and_every_head_once(tmp_path):
    tree = recorded(4, 3)
    write_tables(tree, tmp_path)
    table = pd.read_csv(tmp_path / "clusters.csv")
    found = clusters(tree)
    assert table["cluster"].tolist() == list(range(len(found)))
    assert table["size"].tolist() == [len(one.units) for one in found]
    assert table["name"].tolist() == [one.name for one in found]
    heads = " ".join(table["heads"]).split()
    assert sorted(heads) == sorted(f"L{x + 1}·H{y + 1}" for x in range(4) for y in range(3))
    assert (pd.read_parquet(tmp_path / "clusters.parquet")["jaccard"] <= 1).all()


# --- layers ---------------------------------------------------------------------------------


def test_the_verdict_on_layers_says_what_the_numbers_say():
    tree = changed(recorded(4, 3), "divergence", layer_js=[0.24, 0.31], layer_js_ratio=0.77)
    tree["divergence"]["layer_js_p"][...] = 0.001
    words = layers_verdict(reading(tree, "divergence"))
    assert words.startswith("Heads of one layer are more alike than heads of different layers: ")
    assert "0.240 [0.230, 0.250] nats on average against 0.310 [0.300, 0.320] between" in words
    assert "(23 % less; p = 0.001)" in words


def test_the_verdict_does_not_claim_what_does_not_hold():
    words = layers_verdict(
        reading(changed(recorded(4, 3), "divergence", layer_js_p=0.4), "divergence")
    )
    assert words.startswith("Heads of one layer are not clearly more alike")
    assert "p = 0.40" in words


def test_labels_that_go_with_layers_are_found_in_neighbouring_ones():
    """Two layers for each of two labels: most neighbours have the same one."""
    tree = two_clusters(8, 4)
    tree = attending(tree, "next", [0.9] * 16 + [0.0] * 16)
    tree = attending(tree, "previous", [0.0] * 16 + [0.9] * 16)
    found = neighbour_labels(tree)
    assert (found.heads, found.pairs) == (32, 7 * 16)
    assert found.share == pytest.approx(6 / 7)
    assert found.expected < 0.6
    assert found.p <= 0.005


def test_labels_that_every_layer_has_are_not():
    tree = two_clusters(8, 4)
    share = np.tile([0.9, 0.9, 0.0, 0.0], 8)
    tree = attending(attending(tree, "next", share), "previous", 0.9 - share)
    found = neighbour_labels(tree)
    assert found.share == pytest.approx(0.5)
    assert found.p > 0.1


def test_of_few_labelled_heads_or_of_one_label_alone_nothing_is_said():
    tree = two_clusters()
    assert neighbour_labels(tree) is None
    assert neighbour_labels(attending(tree, "next", [0.9] * 12)) is None


def test_a_finished_run_keeps_its_clusters_on_disk(tmp_path):
    tree = recorded(4, 3)
    tree.to_netcdf(tmp_path / "atlas.nc", engine="h5netcdf")
    with xr.open_datatree(tmp_path / "atlas.nc", engine="h5netcdf") as found:
        assert repr(clusters(found)) == repr(clusters(tree))  # of one head there is no interval
