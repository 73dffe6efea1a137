"""Do the pictures of clusters show every head once, in its cluster, and stay readable?"""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from matplotlib.patches import Rectangle

from draw.drawn import texts
from headscope.analyses.divergence.clusters import clusters
from headscope.analyses.divergence.figure_cluster_checks import verdict
from headscope.analyses.divergence.figure_clusters import HUES, ordered_units, spread
from headscope.draw.figures import draw, pictures
from headscope.draw.saving import picture_bytes
from headscope.page.svg import Styles, inline_panel
from recorded import ALONE, changed, reading, recorded

NAMES = ("clusters", "cluster_tree", "cluster_number", "layers_alike")
TREE = recorded(6, 12)


def axes_of(name, tree=TREE):
    return draw(tree, name).axes


def test_the_picture_has_every_head_once_cluster_after_cluster():
    found = clusters(TREE)
    order = ordered_units(TREE["divergence"]["js"].values, found)
    assert sorted(order) == list(range(72))
    start = 0
    for one in found:
        assert set(order[start : start + len(one.units)]) == set(one.units)
        start += len(one.units)


def test_the_caption_of_the_map_of_heads_is_true_of_two_panels_and_of_one_with_a_switch():
    """The page shows one panel, coloured as chosen; its caption said what is left and right."""
    caption = pictures()["divergence_map"].caption(TREE)
    assert "coloured by layer, light to dark, or by the most telling label" in caption
    assert "left" not in caption
    assert "right" not in caption


def test_the_words_of_every_cluster_stand_in_the_picture_and_in_the_caption():
    shown, caption = texts(axes_of("clusters")[0]), pictures()["clusters"].caption(TREE)
    for one in clusters(TREE):
        assert str(one.number + 1) in shown
        assert one.name.partition(":")[0] in shown
        assert f"({one.number + 1}) {one.name}" in caption


def test_alike_heads_are_pale_and_only_one_half_is_drawn():
    (axes,) = axes_of("clusters")
    cells = axes.collections[0].get_paths()
    corners = np.concatenate([path.vertices.reshape(-1, 5, 2) for path in cells])
    middles = (corners[:, 0] + corners[:, 2]) / 2
    right, bottom = corners[:, 2, 0], middles[:, 1]
    assert (right <= bottom + 0.5 + 1e-9).all()  # left of the diagonal
    area = sum((box[2, 0] - box[0, 0]) * (box[2, 1] - box[0, 1]) for box in corners)
    assert area == pytest.approx(72 * 71 / 2)


def test_of_a_large_model_neighbours_share_a_cell_and_the_caption_says_so():
    large = recorded(24, 16)
    assert "means of 3 × 3 heads" in pictures()["clusters"].caption(large)
    assert "every head against every other" in pictures()["clusters"].caption(TREE)
    (axes,) = axes_of("clusters", large)
    cells = sum(len(path.vertices) // 5 for path in axes.collections[0].get_paths())
    assert cells <= 128 * 129 / 2


def test_no_two_clusters_look_the_same():
    """Of more clusters than hues, the second set is hollow, the third half as wide."""
    large = recorded(24, 16)
    assert len(clusters(large)) > len(HUES)
    (axes,) = axes_of("clusters", large)
    bars = [p for p in axes.patches if isinstance(p, Rectangle) and p.get_zorder() == 4]
    looks = {(b.get_facecolor(), b.get_edgecolor(), round(b.get_width(), 3)) for b in bars}
    assert len(looks) == len(bars) == len(clusters(large))


def test_the_strip_of_the_tree_has_the_cluster_of_every_row():
    (axes,) = axes_of("cluster_tree")
    image = axes.images[0].get_array()
    assert image.shape == (72, 72)
    assert (np.diag(image) == 0).all()
    bars = [p for p in axes.patches if isinstance(p, Rectangle) and p.get_zorder() == 4]
    assert sum(bar.get_height() for bar in bars) == pytest.approx(72)


def test_the_tree_joins_all_heads():
    _, joins = axes_of("cluster_tree")[0].collections
    assert len(joins.get_segments()) == 71


def test_the_strip_of_layers_has_a_row_for_every_head():
    for name, at in (("clusters", 1), ("cluster_tree", 0)):
        strip = axes_of(name)[0].collections[at]
        rows = np.concatenate([np.diff(path.vertices[1:3, 1]) for path in strip.get_paths()])
        assert (rows > 0).all()
        assert rows.sum() == 72
        assert len({*map(tuple, strip.get_facecolor())}) == 6  # one shade for each layer


def test_the_chosen_number_is_marked_on_the_curve():
    curve = axes_of("cluster_number")[0]
    marked = [line for line in curve.lines if len(set(line.get_xdata())) == 1]
    assert [line.get_xdata()[0] for line in marked] == [float(TREE["divergence"].cluster_count)]


def test_every_head_has_a_bar_as_long_as_its_silhouette():
    bars = [p for p in axes_of("cluster_number")[1].patches if isinstance(p, Rectangle)]
    found = sorted(bar.get_width() for bar in bars)
    np.testing.assert_allclose(found, np.sort(TREE["divergence"].silhouette.values))


def test_without_replicates_there_is_no_panel_on_stability():
    one = changed(recorded(3, 4, kind=ALONE), "divergence", stays=np.nan, jaccard=np.nan)
    assert len(axes_of("cluster_number", one)) == 2
    assert "(c)" not in pictures()["cluster_number"].caption(one)
    assert "nan" not in pictures()["cluster_number"].caption(one)


@pytest.mark.parametrize(
    ("p", "silhouette", "words"),
    [
        (0.025, 0.7, "do fall into clusters (p = 0.025), clear ones"),
        (0.025, 0.1, "do fall into clusters (p = 0.025), fuzzy ones"),
        (0.3, 0.7, "Heads without clusters would stand out as much (p = 0.30)"),
    ],
)
def test_the_verdict_on_clusters_says_what_the_numbers_say(p, silhouette, words):
    tree = recorded(3, 4)
    dataset = tree["divergence"].to_dataset().copy(deep=True)
    dataset["cluster_p"][...] = p
    dataset["silhouette_by_k"][...] = silhouette
    tree["divergence"].dataset = dataset
    assert words in verdict(reading(tree, "divergence"))


def test_the_found_share_and_chance_stand_in_the_rows_of_where_the_nearest_head_is():
    axes = axes_of("layers_alike")[1]
    found, chance = axes.lines[:2]
    np.testing.assert_allclose(found.get_xdata(), TREE["divergence"].nearest_layer)
    np.testing.assert_allclose(chance.get_xdata(), TREE["divergence"].nearest_chance)


@pytest.mark.parametrize("name", NAMES)
def test_an_old_run_has_none_of_these_pictures(name):
    old = recorded(3, 4)
    old["divergence"].dataset = old["divergence"].to_dataset()[["js", "mds", "mds_stress"]]
    assert not pictures()[name].available(old)


@pytest.mark.parametrize("name", NAMES)
def test_every_picture_fits_the_report(name):
    if name == "cluster_tree":
        return  # an image: for files, as pages allow none
    for panel in pictures()[name].panels(TREE):
        markup = inline_panel(panel, Styles(), prefix="p", width=6.9)
        assert "<image" not in markup
        assert len(markup) < 200_000


# --- words beside each other ----------------------------------------------------------------


def test_words_stand_where_they_are_wanted_if_there_is_room():
    wanted = np.array([2.0, 5.0, 9.0])
    assert spread(wanted, np.ones(3), 10).tolist() == wanted.tolist()


@pytest.mark.parametrize("seed", range(8))
def test_words_never_overlap_and_stay_inside(seed):
    rng = np.random.default_rng(seed)
    wanted, heights = np.sort(rng.uniform(0, 10, 9)), rng.uniform(0.3, 1.2, 9)
    places = spread(wanted, heights, 12)
    gaps = np.diff(places) - (heights[1:] + heights[:-1]) / 2
    assert gaps.min() > -1e-9
    assert places[0] - heights[0] / 2 > -1e-9
    assert places[-1] + heights[-1] / 2 < 12 + 1e-9


def test_pictures_are_the_same_every_time():
    for name in NAMES:
        first, second = (picture_bytes(draw(TREE, name), "svg") for _ in range(2))
        assert first == second


@pytest.mark.parametrize(
    ("p", "silhouette", "words"),
    [
        (0.05, 0.1, "a network without training fall into clusters, too (silhouette 0.10)"),
        (0.5, 0.3, "need not tell of what was learned"),
        (0.5, 0.1, "Heads do fall into clusters"),
    ],
)
def test_clusters_tell_of_learning_only_where_no_network_without_training_has_any(
    p, silhouette, words
):
    """Networks of twenty steps had clearer clusters than the control's of three."""
    tree = TREE.copy(deep=True)
    dataset = tree["divergence"].to_dataset()
    own = xr.Dataset({"silhouette": dataset["silhouette"] * 0 + silhouette, "cluster_p": p})
    tree["control/few steps"] = xr.DataTree(children={"divergence": xr.DataTree(own)})
    tree["divergence"]["cluster_p"][...] = 0.01
    assert words in verdict(reading(tree, "divergence"))
