"""Can one side look at the tokens of another, as a decoder looks at what its encoder read?"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from draw.drawn import painted, steps_of
from headscope.draw.style import LIGHT, ramp
from headscope.errors import InputError
from headscope.views.figure_lines import (
    FADED,
    FAINT,
    THICK,
    THIN,
)
from views.sided import attention_lines, attention_map
from views.test_attention_pictures import SPECIAL, TOKENS, lines_of

OTHERS = ["das", "Haus", "</s>"]
ACROSS = {"key_tokens": OTHERS, "key_special": np.array([False, False, True])}


def make_cross(queries=6, keys=3):
    weights = np.random.default_rng(3).gamma(0.3, size=(1, 2, queries, keys))
    return (weights / weights.sum(-1, keepdims=True)).astype(np.float32)


def test_lines_across_go_from_the_tokens_of_one_side_to_those_of_the_other():
    maps = make_cross()
    figure = attention_lines(TOKENS, maps, heads=[(0, 1)], threshold=0, special=SPECIAL, **ACROSS)
    places, widths, colors = lines_of(figure)
    found = np.zeros((6, 3))
    found[tuple(places.T)] = (widths - np.float64(THIN)) / (THICK - THIN)
    np.testing.assert_allclose(found, maps[0, 1], atol=1e-6)
    back = np.where(SPECIAL[places[:, 0]] | (places[:, 1] == 2), FADED, 1)
    opacity = FAINT + (1 - FAINT) * maps[0, 1][tuple(places.T)]
    np.testing.assert_allclose(colors[:, 3], back * opacity, atol=1e-6)
    right = [t for t in figure.axes[0].texts if t.get_ha() == "left"]
    shown = [(t.get_text(), t.get_color()) for t in right if t.get_text() in OTHERS]
    ink, grey = LIGHT["ink"], LIGHT["grey"]
    assert shown == [("das", ink), ("Haus", ink), ("</s>", grey)]


@pytest.mark.parametrize(("queries", "keys"), [(6, 3), (3, 6), (1, 30), (30, 1)])
def test_a_map_across_has_square_cells_and_the_tokens_of_each_side(queries, keys):
    weights = make_cross(queries, keys)[0, 0]
    rows, columns = [f"a{q}" for q in range(queries)], [f"b{k}" for k in range(keys)]
    figure = attention_map(rows, weights, key_tokens=columns, name="L1·H1")
    (axes,) = figure.axes
    np.testing.assert_array_equal(shades_of(axes, weights.shape), steps_of(weights, weights.max()))
    assert [text.get_text() for text in axes.get_yticklabels()] == rows
    assert [text.get_text() for text in axes.get_xticklabels()] == columns
    figure.draw_without_rendering()
    box = axes.get_window_extent()
    assert box.width / keys == pytest.approx(box.height / queries)
    assert box.x1 <= figure.bbox.width
    texts_of = [*axes.get_xticklabels(), *axes.get_yticklabels(), *figure.texts]
    boxes = [text.get_window_extent().padded(-0.5) for text in texts_of]
    boxes += [axes.artists[0].get_window_extent()]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
    assert all(one.x0 >= -0.5 and one.x1 <= figure.bbox.width + 0.5 for one in boxes)


def shades_of(axes, shape):
    """[row, column] the step of the ramp of a map that is no square."""
    steps = np.zeros(shape, dtype=int)
    for path, shade in painted(axes):
        for box in path.vertices.reshape(-1, 5, 2):  # [box, corner, axis]
            left, row = np.round(box[0] + 0.5).astype(int)
            steps[row, left : round(box[2, 0] + 0.5)] = ramp().index(shade)
    return steps


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"key_tokens": OTHERS[:2]}, r"found 6 and 2 tokens and weights of the shape"),
        ({"key_tokens": []}, "found no key_tokens"),
        ({"key_special": ACROSS["key_special"]}, "key_special without key_tokens"),
        ({"key_tokens": OTHERS, "key_special": SPECIAL}, r"key_special has the shape \(6,\)"),
    ],
)
def test_sides_that_do_not_fit_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        attention_lines(TOKENS, make_cross(), heads=[(0, 0)], **options)
    with pytest.raises(InputError, match=words):
        attention_map(TOKENS, make_cross()[0, 0], **options)


def test_either_side_across_can_be_too_long_for_a_page():
    for queries, keys in ((97, 1), (1, 97)):
        maps, names = make_cross(queries, keys), ["a"] * keys
        with pytest.raises(InputError, match="found 97 tokens; a page holds 96"):
            attention_lines(["a"] * queries, maps, heads=[(0, 0)], key_tokens=names)
        with pytest.raises(InputError, match="found 97 tokens; a map names"):
            attention_map(["a"] * queries, maps[0, 0], key_tokens=names)
