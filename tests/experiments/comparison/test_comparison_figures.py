"""Do the figures of two models show what the numbers say, and only what is sure?"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from matplotlib.colors import to_hex

from draw.drawn import shades, steps_of, texts
from experiments.comparison.pairs_made import compared
from headscope.claims.reading import run_findings
from headscope.draw.figures import draw, pictures
from headscope.draw.style import LIGHT

NAMES = ("similarity", "training", "change", "words_change")


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return compared(tmp_path_factory.mktemp("pair")).tree


def axes_of(tree, name):
    return draw(tree, name).axes


def test_the_grids_show_one_minus_the_cosine_and_the_divergence(tree):
    similarity = tree["similarity"].to_dataset()
    first, second, _ = axes_of(tree, "similarity")
    for axes, values in (
        (first, 1 - similarity["cosine"].values),
        (second, similarity["js"].values),
    ):
        assert (shades(axes, values.shape) == steps_of(values, values.max())).all()


def test_only_heads_that_are_sure_are_coloured_by_their_sign(tree):
    change = tree["change"].to_dataset()
    panels = pictures()["change"].panels(tree)
    titles = [panel.title for panel in panels]
    axes = axes_of(tree, "change")[titles.index("To [SEP]")]
    row = change.sel(quantity="surface.attention.sep")
    sure = row["sure"].values
    assert 0 < (sure != 0).sum() < sure.size
    found = np.zeros(sure.shape)
    for collection in axes.collections:
        hue = to_hex(collection.get_facecolor()[0])
        (path,) = collection.get_paths()
        for box in path.vertices.reshape(-1, 5, 2):  # [box, corner, axis]
            head, layer = np.round((box[0] + box[2]) / 2).astype(int)
            found[layer, head] = {LIGHT["blue"]: 1, LIGHT["vermillion"]: -1}[hue]
    assert (found == sure).all()


def test_lines_before_and_after_are_the_means_of_layers(tree):
    change = tree["change"].to_dataset()
    titles = [panel.title for panel in pictures()["words_change"].panels(tree)]
    axes = axes_of(tree, "words_change")[titles.index("To nouns")]
    row = change.sel(quantity="features.attention.noun")
    drawn = {to_hex(line.get_color()): line.get_ydata() for line in axes.lines}
    np.testing.assert_allclose(drawn[LIGHT["grey"]], row["layer_before"].values)
    np.testing.assert_allclose(drawn[LIGHT["blue"]], row["layer_after"].values)
    assert any(text.startswith(("+", "−", "0")) and "[" in text for text in texts(axes))


def test_gradients_stand_beside_the_change_with_their_rank_correlation(tree):
    _, gradients, weights = axes_of(tree, "training")
    assert gradients.lines[0].get_ydata().tolist() == [4, 3, 2, 1]
    assert "ρ = −1.00, p = 0.083" in texts(gradients)
    assert "ρ = 1.00, p = 0.083" in texts(weights)
    caption = pictures()["training"].caption(tree)
    assert "Gradients were largest in layer 1" in caption
    assert "so few layers cannot tell" in caption


@pytest.mark.parametrize("name", NAMES)
def test_captions_say_how_much_was_read_and_no_number_is_missing(tree, name):
    caption = pictures()[name].caption(tree)
    assert "n = 24 documents" in caption
    shown = " ".join(text for axes in axes_of(tree, name) for text in texts(axes))
    assert "nan" not in (caption + shown).lower().split()


def test_without_a_record_there_is_no_figure_of_the_training(tmp_path):
    tree = compared(tmp_path, record=False, limit=6).tree
    assert not pictures()["training"].available(tree)
    assert not any("Gradients" in finding for finding in run_findings(tree))


STARTS = ("L4·H1", "Attention changed", "Gradients were", "Of 12 heads", "Attention to kinds")


def sentence(tree, start):
    """The one sentence of the findings that begins so."""
    (only,) = [one for one in run_findings(tree) if one.startswith(start)]
    return only


def test_the_largest_change_comes_first(tree):
    tree = tree.copy(deep=True)
    change = tree["change"]
    for rose, first in ((12, "Of 12 heads"), (0, "L4·H1")):
        change["rose"].values[...], change["fell"].values[...] = rose, 0
        assert run_findings(tree)[0].startswith(first)
    assert run_findings(tree)[1].startswith("Attention changed most in layer")
    assert not run_findings(tree)[-1].startswith("L4·H1")


def test_the_findings_name_the_last_layers_and_the_kinds_of_words(tree):
    most, depth, training, heads, words = map(partial(sentence, tree), STARTS)
    assert most.startswith(
        "L4·H1 changed most of 12 heads, 1 − cosine of its maps 0.05 [0.04, 0.06]"
    )
    change = 1 - tree["similarity"]["layer_cosine"].values
    assert depth.startswith(f"Attention changed most in layer 4 ({change[3]:.3f}), then layer 3 (")
    assert "the last two layers, in 100 % of corpora drawn anew" in depth
    assert training.count("rank correlation") == 2
    assert heads.startswith("Of 12 heads, ")
    assert "nouns" in words
    assert "[SEP]" in words


def test_a_difference_that_the_documents_cannot_tell_is_none_and_what_they_could_is_said(tree):
    tree = tree.copy(deep=True)
    ends = {"": 0.0001, "_ci_low": -0.0003, "_ci_high": 0.0005}
    for end, value in ends.items():
        tree["similarity"][f"last_minus_other{end}"].values[...] = value
        tree["change"][f"model_difference{end}"].values[...] = value
    depth, words = (sentence(tree, STARTS[at]) for at in (1, -1))
    assert depth.endswith(
        "difference 0.00010 [−0.00030, 0.00050], none that these 24 documents can tell; they could "
        "tell 0.00040."
    )
    assert "no difference that these 24 documents can tell, which could tell 0.04" in words
    for end in ends:
        tree["change"][f"model_difference{end}"].values[...] += 0.01
        tree["similarity"][f"last_minus_other{end}"].values[...] += 0.01
    assert not any("can tell" in sentence for sentence in run_findings(tree))
