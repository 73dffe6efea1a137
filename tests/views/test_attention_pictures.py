"""Are the pictures of one example true to its weights, legible, and always the same?"""

from __future__ import annotations

import itertools
import re

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex

from draw.drawn import painted, steps_of, texts
from headscope.draw.saving import save_picture
from headscope.draw.style import DOUBLE, LIGHT, SINGLE, ramp
from headscope.errors import InputError
from headscope.views.figure_lines import (
    FADED,
    FAINT,
    HUES,
    MOST_TOKENS,
    THICK,
    THIN,
)
from headscope.views.figure_map import most_tokens
from views.sided import attention_lines, attention_map

TOKENS = ["[CLS]", "the", "cat", "sat", ".", "[SEP]"]
SPECIAL = np.array([True, False, False, False, False, True])
HOSTILE = [
    "</script>",
    "$x^2$",
    "<img onerror=x>",
    "a\u0000b",
    "\ud800",
    "\u202eevil",
    "▁\u0332",
    "",
    " ",
    "&amp;",
    "{{x}}",
    "橋渡し機関車が走るとても長い単語です",
    "שלום",
    "العربية",
    "W" * 60,
    "\u2028",
    "\U0001f600",
    "\ufffe",
]


def make_maps(tokens=6, *, layers=2, heads=14, seed=0):
    """[layer, head, query, key] probabilities, peaked."""
    weights = np.random.default_rng(seed).gamma(0.3, size=(layers, heads, tokens, tokens))
    return (weights / weights.sum(-1, keepdims=True)).astype(np.float32)


def lines_of(figure):
    """[(query, key), …], with widths and colours, read back from where the lines are."""
    (axes,) = figure.axes
    (collection,) = (c for c in axes.collections if isinstance(c, LineCollection))
    ends = np.array(collection.get_segments()).reshape(-1, 2, 2)  # [line, end, axis]
    left = np.array([t.get_position() for t in axes.texts if t.get_ha() == "right"])[1:]
    assert (ends[:, 0, 0] < ends[:, 1, 0]).all()  # queries are left
    assert (abs(ends[:, 0, 0] - left[0, 0]) < 10).all()
    places = abs(ends[:, :, 1, None] - left[:, 1]).argmin(-1)  # [line, end], past the heading
    return places, collection.get_linewidths(), collection.get_colors()


def drawn_weights(figure, hue):
    """[query, key] the weights as the widths of the lines of one colour give them."""
    places, widths, colors = lines_of(figure)
    found = np.zeros((len(TOKENS), len(TOKENS)))
    for (query, key), width, shade in zip(places, widths, colors, strict=True):
        if to_hex(shade) == LIGHT[hue]:
            found[query, key] = (width - THIN) / (THICK - THIN)
    return found


def shades(axes):
    """[row, column] the step of the ramp that each cell has; neighbours alike are one box."""
    steps = np.zeros((len(TOKENS), len(TOKENS)), dtype=int)
    for path, shade in painted(axes):
        step = ramp().index(shade)
        for box in path.vertices.reshape(-1, 5, 2):  # [box, corner, axis]
            left, row = np.round(box[0] + 0.5).astype(int)
            right = round(box[2, 0] + 0.5)
            steps[row, left:right] = step
    return steps


# --- lines ----------------------------------------------------------------------------------


def test_every_line_is_as_wide_as_its_weight_and_runs_from_query_to_key():
    maps = make_maps()
    places = [(0, 3), (1, 0), (1, 13)]
    figure = attention_lines(TOKENS, maps, heads=places, threshold=0)
    for hue, place in zip(HUES, places, strict=False):
        np.testing.assert_allclose(drawn_weights(figure, hue), maps[place], atol=1e-6)


def test_no_line_is_drawn_below_the_threshold():
    maps = make_maps()
    figure = attention_lines(TOKENS, maps, heads=[(0, 1)], threshold=0.2)
    kept = np.where(maps[0, 1] >= 0.2, maps[0, 1], 0)
    assert 0 < (kept > 0).sum() < kept.size
    np.testing.assert_allclose(drawn_weights(figure, "blue"), kept, atol=1e-6)


def test_a_weight_of_nothing_has_no_line_even_without_a_threshold():
    maps = np.zeros((1, 1, 6, 6), np.float32)
    maps[..., 2] = 1
    places, _, _ = lines_of(attention_lines(TOKENS, maps, heads=[(0, 0)], threshold=0))
    assert sorted(places.tolist()) == [[query, 2] for query in range(6)]


def test_a_head_without_attention_is_drawn_as_no_line():
    maps = np.zeros((1, 1, 6, 6), np.float32)
    places, _, _ = lines_of(attention_lines(TOKENS, maps, heads=[(0, 0)], unit="1"))
    assert len(places) == 0


def test_opacity_follows_the_weight_and_special_tokens_stand_back():
    maps = make_maps()
    options = {"heads": [(0, 0)], "threshold": 0}
    places, widths, colors = lines_of(attention_lines(TOKENS, maps, special=SPECIAL, **options))
    share = (widths - np.float64(THIN)) / (THICK - THIN)
    back = np.where(SPECIAL[places].any(-1), FADED, 1)
    np.testing.assert_allclose(colors[:, 3], back * (FAINT + (1 - FAINT) * share), atol=1e-6)
    figure = attention_lines(TOKENS, maps, special=SPECIAL, **options)
    greyed = [t.get_text() for t in figure.axes[0].texts if t.get_color() == LIGHT["grey"]]
    assert sorted(greyed) == ["[CLS]", "[CLS]", "[SEP]", "[SEP]"]


def test_the_strongest_lines_are_drawn_last():
    _, widths, _ = lines_of(attention_lines(TOKENS, make_maps(), heads=[(0, 0), (1, 1)]))
    assert (np.diff(widths) >= 0).all()


def test_two_heads_with_the_same_line_do_not_cover_each_other():
    maps = np.tile(np.eye(6, dtype=np.float32), (1, 12, 1, 1))
    figure = attention_lines(TOKENS, maps, heads=[(0, head) for head in range(12)])
    (collection,) = (c for c in figure.axes[0].collections if isinstance(c, LineCollection))
    ends = {tuple(np.round(segment, 6).ravel()) for segment in collection.get_segments()}
    assert len(ends) == 12 * 6


def test_each_of_twelve_heads_has_a_look_of_its_own():
    maps = make_maps()
    figure = attention_lines(TOKENS, maps, heads=[(0, head) for head in range(12)])
    looks = [
        (line.get_color(), line.get_linestyle())
        for line in figure.axes[0].lines
        if line.get_linewidth() == 2
    ]
    assert len(looks) == len(set(looks)) == 12


def test_norms_are_drawn_up_to_the_largest_of_the_heads_shown():
    maps = 9 * make_maps()
    maps[1, 1] *= 10  # not shown
    options = {"heads": [(0, 0), (0, 1)], "unit": "1", "label": "weighted norm ‖αf(x)‖"}
    figure = attention_lines(TOKENS, maps, threshold=0, **options)
    top = maps[0, :2].max()
    np.testing.assert_allclose(drawn_weights(figure, "blue"), maps[0, 0] / top, atol=1e-6)
    assert {"weighted norm ‖αf(x)‖", f"{top:.2f}"} <= set(texts(figure.axes[0]))


def test_the_key_names_heads_from_one_and_says_what_they_do():
    labels = [[""] * 14, ["previous token 87 %"] * 14]
    figure = attention_lines(TOKENS, make_maps(), heads=[(0, 4), (1, 0)], labels=labels)
    assert {"L1·H5", "L2·H1  previous token 87 %"} <= set(texts(figure.axes[0]))


# --- map ------------------------------------------------------------------------------------


def test_the_map_has_the_shade_of_every_weight_with_the_first_token_above():
    weights = make_maps()[0, 0]
    figure = attention_map(TOKENS, weights, name="L1·H1")
    (axes,) = figure.axes
    top = weights.max()
    np.testing.assert_array_equal(shades(axes), steps_of(weights, top))
    assert [text.get_text() for text in axes.get_yticklabels()] == TOKENS
    assert [text.get_text() for text in axes.get_xticklabels()] == TOKENS
    assert axes.get_ylim()[0] > axes.get_ylim()[1]
    assert axes.get_xlim()[0] < axes.get_xlim()[1]
    assert {text.get_text() for text in figure.texts} == {"L1·H1", "to →", "from ↓", "attention"}


def test_maps_can_share_a_scale():
    weights = make_maps()[0, 0] / 2
    (axes,) = attention_map(TOKENS, weights, top=1.0).axes
    np.testing.assert_array_equal(shades(axes), steps_of(weights, 1.0))


def test_the_axes_of_a_map_set_special_tokens_back():
    (axes,) = attention_map(TOKENS, make_maps()[0, 0], special=SPECIAL).axes
    for labels in (axes.get_xticklabels(), axes.get_yticklabels()):
        grey = [text.get_text() for text in labels if text.get_color() == LIGHT["grey"]]
        assert grey == ["[CLS]", "[SEP]"]


def test_a_map_takes_the_second_column_only_when_it_needs_it():
    limit = most_tokens(1)
    for count, inches in ((1, SINGLE), (limit, SINGLE), (limit + 1, DOUBLE)):
        figure = attention_map(["a"] * count, np.ones((count, count)) / count)
        assert figure.get_size_inches()[0] == pytest.approx(inches)


# --- both -----------------------------------------------------------------------------------


def both(tokens, maps, **options):
    return (
        attention_lines(tokens, maps, heads=[(0, 0), (1, 2)], **options),
        attention_map(tokens, maps[0, 0], **options),
    )


def test_the_same_numbers_give_the_same_bytes_and_text_stays_text(tmp_path):
    maps = make_maps()
    for figures in ("a", "b"):
        for at, figure in enumerate(both(TOKENS, maps, special=SPECIAL)):
            for suffix in ("svg", "png"):
                save_picture(figure, tmp_path / figures / f"{at}.{suffix}")
    paths = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert paths == ["0.png", "0.svg", "1.png", "1.svg"]
    for name in paths:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    for at in (0, 1):
        svg = (tmp_path / "a" / f"{at}.svg").read_text()
        assert len(re.findall(r"<text[^>]*>cat</text>", svg)) == 2
        assert not re.search(r"<dc:date>|\d{4}-\d\d-\d\dT", svg)


def test_drawing_leaves_the_callers_settings_alone(tmp_path):
    before = dict(mpl.rcParams)
    for figure in both(TOKENS, make_maps()):
        save_picture(figure, tmp_path / "a.svg")
    assert dict(mpl.rcParams) == before


@pytest.mark.filterwarnings("ignore:Glyph .* missing")
def test_hostile_tokens_are_drawn_as_text_and_stay_on_the_page(tmp_path):
    for figure in both(HOSTILE, make_maps(len(HOSTILE))):
        save_picture(figure, tmp_path / "a.png")
        svg = save_picture(figure, tmp_path / "a.svg").read_text(encoding="utf-8")
        assert "&lt;/script&gt;" in svg
        assert not re.search(r"<script|<img|\u202e|\u2028", svg)
        figure.draw_without_rendering()
        (axes,) = figure.axes
        ticks = [*axes.get_xticklabels(), *axes.get_yticklabels()] if axes.axison else []
        for text in [*axes.texts, *figure.texts, *ticks]:
            box = text.get_window_extent()
            assert -0.5 <= box.x0 <= box.x1 <= figure.bbox.width + 0.5, text.get_text()
            assert -0.5 <= box.y0 <= box.y1 <= figure.bbox.height + 0.5, text.get_text()


@pytest.mark.parametrize("count", [1, 2, 31, MOST_TOKENS])
def test_tokens_do_not_cover_each_other_and_do_not_shrink_below_five_points(count):
    figure = attention_lines(["Ågy"] * count, make_maps(count), heads=[(0, 0)], threshold=0.5)
    figure.draw_without_rendering()
    words = [t for t in figure.axes[0].texts if t.get_text() == "Ågy"]
    assert len(words) == 2 * count
    assert min(text.get_fontsize() for text in words) >= 5
    boxes = [text.get_window_extent().padded(-0.5) for text in figure.axes[0].texts]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
    assert figure.get_size_inches()[1] <= 9.5  # a page


def test_the_longest_map_sets_no_token_smaller_than_four_and_a_half_points():
    for columns in (1, 2):
        count = most_tokens(columns)
        weights = np.eye(count)
        (axes,) = attention_map(["token"] * count, weights, columns=columns).axes
        assert min(text.get_fontsize() for text in axes.get_xticklabels()) >= 4.9


def test_more_tokens_than_a_page_holds_are_refused_with_the_limit():
    count = MOST_TOKENS + 1
    with pytest.raises(InputError, match="found 97 tokens; a page holds 96"):
        attention_lines(["a"] * count, np.zeros((1, 1, count, count)), heads=[(0, 0)])
    limits = most_tokens(1), most_tokens(2)
    with pytest.raises(InputError, match=f"names {limits[0]} in one column and {limits[1]} in two"):
        attention_map(["a"] * count, np.zeros((count, count)))
    with pytest.raises(InputError, match=f"found {limits[0] + 1} tokens"):
        attention_map(["a"] * (limits[0] + 1), np.zeros((limits[0] + 1,) * 2), columns=1)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tokens": TOKENS[:-1]}, r"found 5 tokens and weights of the shape"),
        ({"tokens": []}, "found no tokens"),
        ({"special": SPECIAL[:-1]}, r"special has the shape \(5,\); wanted \(6,\)"),
        ({"scale": np.nan}, "NaN, infinite or negative"),
        ({"scale": -1}, "NaN, infinite or negative"),
        ({"scale": 3}, "in the unit probability; wanted at most 1"),
        ({"columns": 3}, "columns is 3"),
    ],
)
def test_what_cannot_be_shown_is_refused(change, words):
    options = {"tokens": TOKENS, **change}
    maps = np.tile(np.eye(6), (1, 1, 1, 1)) * options.pop("scale", 1)
    tokens = options.pop("tokens")
    with pytest.raises(InputError, match=words):
        attention_lines(tokens, maps, heads=[(0, 0)], **options)
    with pytest.raises(InputError, match=words):
        attention_map(tokens, maps[0, 0], **options)


@pytest.mark.parametrize(
    ("heads", "options", "words"),
    [
        ([], {}, "found 0 heads to draw; wanted 1 to 12"),
        ([(0, 0)] * 13, {}, "found 13 heads"),
        ([(2, 0)], {}, "found layer 3, head 1; wanted layers 1 to 2"),
        ([(0, -1)], {}, "found layer 1, head 0; wanted .* heads 1 to 14"),
        ([(0, 0)], {"threshold": 5}, "threshold is 5"),
    ],
)
def test_heads_that_cannot_be_drawn_are_refused(heads, options, words):
    with pytest.raises(InputError, match=words):
        attention_lines(TOKENS, make_maps(), heads=heads, **options)


def test_shapes_and_scales_of_the_wrong_kind_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"wanted \[layer, head, query, key\]"):
        attention_lines(TOKENS, make_maps()[0], heads=[(0, 0)])
    with pytest.raises(InputError, match=r"wanted \[query, key\]"):
        attention_map(TOKENS, make_maps()[0])
    with pytest.raises(InputError, match="above 0"):
        attention_map(TOKENS, make_maps()[0, 0], top=0.0)
    figure = attention_map(TOKENS, make_maps()[0, 0])
    with pytest.raises(InputError, match=r"wanted a name in \.svg, \.png or \.pdf"):
        save_picture(figure, tmp_path / "a.gif")
    assert list(tmp_path.iterdir()) == []


def test_a_notebook_shows_a_picture_at_its_size_on_paper():
    maps = np.eye(6)[None, None]
    lines = attention_lines(TOKENS, maps, heads=[(0, 0)], threshold=0)
    for figure in (lines, attention_map(TOKENS, np.eye(6))):
        png, size = figure._repr_png_()
        assert png[:8] == b"\x89PNG\r\n\x1a\n"
        pixels = int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")
        shown = np.array([size["width"], size["height"]]) / 96  # inches
        np.testing.assert_allclose(shown, figure.get_size_inches(), atol=1 / 96)
        np.testing.assert_allclose(shown[0] / shown[1], pixels[0] / pixels[1], rtol=0.01)
