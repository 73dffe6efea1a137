"""Do the figures show every change with its sign, and where it is more than chance?"""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_hex

from draw.drawn import texts
from headscope.draw.figures import draw, pictures
from headscope.draw.head_grid import STEPS
from headscope.draw.saving import picture_bytes
from headscope.draw.style import LIGHT
from headscope.experiments.ablation.pruning import Pruning, prune_curves
from headscope.experiments.ablation.settings import PruningSettings
from headscope.experiments.ablation.terms import best_order, verdict_counts
from headscope.page.svg import Styles, inline_panel
from headscope.run.execution import Execution
from headscope.tasks.task_model import load_for_task
from recorded import recorded
from tasks.made import MOOD, data

STOCK = Execution(linears="stock")


@pytest.fixture
def tree(ablated):
    """The run, with changes and verdicts that are known."""
    tree = ablated.tree.copy(deep=True)
    found = tree["ablation"]
    found["difference"].values[:] = [[0.02, -0.04, 0.0], [0.01, -0.01, -0.02]]
    found["verdict"].values[:] = [
        ["harmful", "helpful", "no effect"],
        ["cannot tell", "indifferent", "unknown"],  # the last two of older versions
    ]
    found["layer_difference"].values[:] = [-0.1, 0.05]
    found["layer_difference_ci_low"].values[:] = [-0.15, -0.02]
    found["layer_difference_ci_high"].values[:] = [-0.05, 0.12]
    return tree


def cells_of(axes, shape):
    """[layer, head] the signed share of the ramp that each cell has."""
    found = np.zeros(shape)
    for collection in axes.collections:
        sign = {LIGHT["blue"]: 1, LIGHT["vermillion"]: -1}[to_hex(collection.get_facecolor()[0])]
        for box in collection.get_paths()[0].vertices.reshape(-1, 5, 2):  # [box, corner, axis]
            head, layer = np.round((box[0] + box[2]) / 2).astype(int)
            found[layer, head] = sign * collection.get_alpha()
    return found


def test_a_cell_is_blue_where_the_score_rises_and_vermillion_where_it_falls(tree):
    values = tree["ablation"]["difference"].values
    axes = draw(tree, "ablation").axes[0]
    wanted = np.sign(values) * np.ceil(np.abs(values) / 0.04 * STEPS - 1e-9) / STEPS
    np.testing.assert_allclose(cells_of(axes, values.shape), wanted)
    assert axes.get_ylim()[0] > axes.get_ylim()[1]  # layers downwards


def test_no_whisker_leads_to_a_score_that_cannot_be(tree):
    """Of 20 examples a layer's accuracy reached up to 125 %."""
    tree["ablation"]["layer_difference_ci_low"].values[:] = -3.0
    tree["ablation"]["layer_difference_ci_high"].values[:] = 3.0
    (whiskers,) = draw(tree, "ablation").axes[1].collections[-1:]
    ends = np.concatenate(whiskers.get_segments())[:, 1]
    assert (ends.min(), ends.max()) == pytest.approx((0, 1))


def test_heads_that_differ_by_more_than_chance_are_marked(tree):
    axes = draw(tree, "ablation").axes[0]
    marks = {text.get_position(): text.get_text() for text in axes.texts}
    assert marks == {(0, 0): "+", (1, 0): "−"}


def test_bars_of_layers_hang_from_the_score_of_the_whole_model(tree):
    axes = draw(tree, "ablation").axes[1]
    base = float(tree["ablation"]["baseline"])
    bars = {round(b.get_x() + b.get_width() / 2): b for b in axes.patches}
    assert bars[0].get_y() + bars[0].get_height() == pytest.approx(base - 0.1)
    assert bars[1].get_y() + bars[1].get_height() == pytest.approx(base + 0.05)
    assert bars[0].get_y() == bars[1].get_y() == pytest.approx(base)
    assert to_hex(bars[0].get_facecolor()) == LIGHT["vermillion"]
    assert "whole model" in texts(axes)
    low, high = axes.get_ylim()
    assert low < base - 0.15
    assert base + 0.12 < high


def test_up_is_better_in_the_figure_of_the_loss_too(tree):
    found = tree["ablation"]
    rise = found["loss_difference"].values
    cells = cells_of(draw(tree, "ablation_loss").axes[0], rise.shape)
    assert (np.sign(cells) == -np.sign(rise)).all()


def test_captions_count_the_verdicts_and_name_the_correction(tree):
    caption = pictures()["ablation"].caption(tree)
    counts = verdict_counts(tree["ablation"].to_dataset())
    assert counts == {"helpful": 1, "harmful": 1, "no effect": 1, "cannot tell": 3}
    assert "1 helpful, 1 harmful, 1 no effect, 3 cannot tell" in caption
    assert "corrected for 6 heads by Benjamini and Hochberg" in caption
    assert "attends to all tokens evenly" in caption
    assert "n = 40 examples" in caption
    assert "cross-entropy" in pictures()["ablation_loss"].caption(tree)


@pytest.fixture(scope="module")
def pruned(mood):
    model = load_for_task(mood, MOOD)
    settings = PruningSettings(step=2, draws=2, replicates=20, batch_tokens=200)
    return prune_curves(Pruning(model, data(12, seed=1), data(24), settings), execution=STOCK).tree


def test_a_curve_passes_through_its_scores_and_a_ring_marks_what_can_go(pruned):
    axes, grid = draw(pruned, "pruning").axes
    found = pruned["pruning"].to_dataset()
    lines = {line.get_label(): line for line in axes.lines}
    greedy = found.sel(order="greedy")
    x, y = lines["greedy"].get_data()
    np.testing.assert_allclose(x, greedy["removed"].values / 6)
    np.testing.assert_allclose(y, greedy["score"].values)
    chance = found.sel(order=["random 1", "random 2"])["score"].mean("order")
    np.testing.assert_allclose(lines["random"].get_ydata(), chance)
    rings = [line for line in axes.lines if line.get_markersize() == 8]
    can = found["can_go"].values[:2] / 6
    assert sorted(float(ring.get_xdata()[0]) for ring in rings) == pytest.approx(sorted(can))
    caption = pictures()["pruning"].caption(pruned)
    assert f"{int(greedy['can_go'])} (greedy)" in caption
    assert "0.5 points below" in caption
    assert "12 other examples" in caption
    turns = found["turn"].sel(order=best_order(found)).values
    np.testing.assert_array_equal(np.sort(turns.ravel()), np.arange(6))
    assert grid.get_title(loc="left").endswith("1: first")


@pytest.mark.parametrize("name", ["ablation", "ablation_loss", "pruning"])
def test_pictures_take_the_colours_of_the_page_and_are_the_same_every_time(name, tree, pruned):
    there = pruned if name == "pruning" else tree
    assert picture_bytes(draw(there, name), "svg") == picture_bytes(draw(there, name), "svg")
    styles = Styles()
    for at, panel in enumerate(pictures()[name].panels(there)):
        inline_panel(panel, styles, prefix=f"x{at}-", width=3.5)
    css = styles.css().lower()
    assert "var(--" in css
    for shade in ("blue", "vermillion", "ink", "grey", "orange"):
        assert LIGHT[shade] not in css


def test_without_the_group_there_is_no_figure():
    atlas = recorded(2, 3)
    for name in ("ablation", "ablation_loss", "pruning"):
        assert not pictures()[name].available(atlas)
