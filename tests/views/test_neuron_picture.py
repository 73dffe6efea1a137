"""Does the picture of a neuron row show the model's own numbers, and refuse what it cannot?"""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex

from draw.drawn import texts
from headscope.draw.saving import save_picture
from headscope.draw.style import DOUBLE, LIGHT, SINGLE
from headscope.errors import InputError
from headscope.views.figure_neuron_row import MOST_KEYS, MOST_NEURONS
from headscope.views.figure_neurons import (
    BAR,
    SHADES,
)
from views.sided import attention_neurons

TOKENS = ["[CLS]", "the", "cat", "sat", ".", "[SEP]"]
SPECIAL = np.array([True, False, False, False, False, True])


def make_row(n=6, m=None, d=8, *, softcap=None, bias=False, causal=False, seed=0):
    """What `attention_neurons` takes, with weights worked out apart from it."""
    m = n if m is None else m
    rng = np.random.default_rng(seed)
    queries, keys = rng.normal(0, 2, (n, d)), rng.normal(0, 2, (m, d))
    scores = np.array([[sum(q * k) for k in keys] for q in queries]) / d**0.5
    added = rng.normal(0, 1.5, (n, m)) if bias else None
    if softcap:
        scores = softcap * np.tanh(scores / softcap)
    if bias:
        scores = scores + added
    if causal:
        scores = np.where(np.arange(n)[:, None] < np.arange(m)[None], -np.inf, scores)
    weights = np.exp(scores)
    weights /= weights.sum(1, keepdims=True)
    return {
        "queries": queries,
        "keys": keys,
        "weights": weights,
        "scaling": d**-0.5,
        "softcap": softcap,
        "bias": added,
        "query": 2,
    }, scores


def colours(figure):
    """The boxes of all vectors: {(left, upper): colour}, and their width."""
    (axes,) = figure.axes
    found = {}
    for collection in axes.collections:
        assert isinstance(collection, PathCollection)
        (path,) = collection.get_paths()
        for box in path.to_polygons(closed_only=True):
            found[tuple(np.round(box.min(0), 4))] = to_hex(collection.get_facecolor()[0])
    return found


def signed(colour):
    """The share of full blue (above 0) or vermillion (below) that a colour is."""
    shade, page = (
        np.array([int(c[i : i + 2], 16) for i in (1, 3, 5)]) for c in (colour, "#ffffff")
    )
    for name, sign in (("blue", 1), ("vermillion", -1)):
        end = np.array([int(LIGHT[name][i : i + 2], 16) for i in (1, 3, 5)])
        share = float((shade - page) @ (end - page) / ((end - page) @ (end - page)))
        if np.abs(page + share * (end - page) - shade).max() <= 1:
            return sign * share
    raise AssertionError(colour)


def scales(figure):
    """The numbers that end the two keys of colours."""
    words = texts(figure.axes[0])
    ends = [float(word[1:]) for word in words if re.fullmatch("−[0-9.]+", word)]
    return [end for end in ends if f"{end:g}" in words]


def numbers(figure, right):
    """The numbers of the column that ends at `right`, from the top."""
    (axes,) = figure.axes
    at = [t for t in axes.texts if abs(t.get_position()[0] - right) < 0.01]
    found = [t.get_text().replace("−", "-") for t in sorted(at, key=lambda t: t.get_position()[1])]
    return [float(text) for text in found if re.fullmatch(r"-?\d+\.\d+", text)]


def heading(figure, words):
    (one,) = (t for t in figure.axes[0].texts if t.get_text() == words)
    return one.get_position()[0]


def test_the_columns_are_the_score_as_the_model_used_it_and_the_weight():
    row, scores = make_row(softcap=5.0, bias=True)
    figure = attention_neurons(TOKENS, **row)
    dot = row["scaling"] * row["keys"] @ row["queries"][2]
    for words, wanted in (
        ("q·k ÷ √8", dot),
        ("capped", 5 * np.tanh(dot / 5)),
        ("+ bias", row["bias"][2]),
        ("= score", scores[2]),
    ):
        found = numbers(figure, heading(figure, words))
        np.testing.assert_allclose(found, wanted, atol=0.00501)
    found = numbers(figure, heading(figure, "weight"))
    np.testing.assert_allclose(found, row["weights"][2], atol=0.000501)


def test_one_column_of_a_journal_shows_the_sum_of_the_parts_alone():
    row, scores = make_row(softcap=5.0, bias=True)
    figure = attention_neurons(TOKENS, **row, columns=1)
    np.testing.assert_allclose(numbers(figure, heading(figure, "score")), scores[2], atol=0.00501)
    assert "capped" not in texts(figure.axes[0])
    assert figure.get_size_inches()[0] == pytest.approx(SINGLE)
    assert attention_neurons(TOKENS, **row).get_size_inches()[0] == pytest.approx(DOUBLE)


def test_every_colour_is_a_number_of_a_vector_on_the_scale_that_the_key_says():
    row, _ = make_row(d=8)
    figure = attention_neurons(TOKENS, **row)
    boxes = colours(figure)
    vectors = np.concatenate([row["queries"][2:3], row["keys"]])
    products = row["queries"][2] * row["keys"]
    first, second = scales(figure)
    for values, scale, part in ((vectors, first, 0), (products, second, 1)):
        lefts = sorted({left for left, _ in boxes})[part * 8 : part * 8 + 8]
        tops = sorted({top for left, top in boxes if left in lefts})
        assert len(tops) == len(values)
        found = [[signed(boxes.get((x, y), "#ffffff")) for x in lefts] for y in tops]
        wanted = np.clip(values / scale, -1, 1)
        np.testing.assert_allclose(found, wanted, atol=0.5 / SHADES + 0.01)
        beyond = np.abs(values) > scale
        assert beyond.mean() <= 0.02


def test_the_bars_are_as_long_as_the_weights():
    row, _ = make_row()
    (axes,) = attention_neurons(TOKENS, **row).axes
    bars = [p for p in axes.patches if to_hex(p.get_facecolor()) == LIGHT["muted"]]
    bars.sort(key=lambda bar: bar.get_y())
    found = np.array([bar.get_width() for bar in bars]) / BAR
    np.testing.assert_allclose(found, row["weights"][2], atol=1e-9)


def test_keys_that_the_model_masks_are_left_out():
    row, _ = make_row(causal=True)
    shown = texts(attention_neurons(TOKENS, **row).axes[0])
    assert {"[CLS]", "the", "cat", "q of cat"} <= set(shown)
    assert not {"sat", ".", "[SEP]"} & set(shown)


def test_a_weight_too_small_to_be_a_number_is_not_taken_for_a_mask():
    row, _ = make_row()
    row["keys"][4] = -60 * row["queries"][2]
    scores = row["scaling"] * row["queries"] @ row["keys"].T
    weights = np.exp(scores - scores.max(1, keepdims=True))
    row["weights"] = (weights / weights.sum(1, keepdims=True)).astype(np.float32)
    assert row["weights"][2, 4] == 0
    assert "." in texts(attention_neurons(TOKENS, **row).axes[0])


def test_other_tokens_are_looked_at_across():
    row, _ = make_row(6, 3)
    others = ["das", "Haus", "</s>"]
    back = np.array([False, False, True])
    (axes,) = attention_neurons(
        TOKENS, **row, special=SPECIAL, key_tokens=others, key_special=back
    ).axes
    shown = {t.get_text(): t.get_color() for t in axes.texts}
    assert {"das", "Haus", "</s>", "q of cat"} <= set(shown)
    assert shown["</s>"] == LIGHT["grey"]
    assert shown["das"] == LIGHT["ink"]
    assert "the" not in shown


@pytest.mark.parametrize(("scaling", "words"), [(1, ""), (0.125, " ÷ 8"), (0.3, " × 0.3")])
def test_the_scaling_is_said(scaling, words):
    row, _ = make_row()
    scores = scaling * row["queries"] @ row["keys"].T
    weights = np.exp(scores - scores.max(1, keepdims=True))
    row |= {"scaling": scaling, "weights": weights / weights.sum(1, keepdims=True)}
    assert f"q·k{words}" in texts(attention_neurons(TOKENS, **row).axes[0])


@pytest.mark.parametrize("columns", [1, 2])
def test_the_largest_picture_fits_a_page_with_no_word_over_another(columns):
    row, _ = make_row(MOST_KEYS, d=MOST_NEURONS, softcap=20.0, bias=True)
    tokens = ["W" * 60] * MOST_KEYS
    figure = attention_neurons(tokens, **row, name="L12·H12", columns=columns)
    figure.draw_without_rendering()
    assert figure.get_size_inches()[1] <= 9.2
    (axes,) = figure.axes
    boxes = [text.get_window_extent().padded(-0.5) for text in axes.texts]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
    for text, box in zip(axes.texts, boxes, strict=True):
        assert -0.5 <= box.x0 <= box.x1 <= figure.bbox.width + 0.5, text.get_text()
        assert text.get_fontsize() >= 6
    lefts = [left for left, _ in colours(figure)]
    assert max(lefts) < min(heading(figure, "weight"), figure.get_size_inches()[0] * 72)


def test_the_same_numbers_give_the_same_bytes_and_text_stays_text(tmp_path):
    row, _ = make_row()
    hostile = ["</script>", "a\u0000b", "\ud800", "\u202eevil", "$x$", "\ufffe"]
    for folder in ("a", "b"):
        figure = attention_neurons(hostile, **row, name="<b>")
        save_picture(figure, tmp_path / folder / "1.svg")
    first, second = ((tmp_path / folder / "1.svg").read_bytes() for folder in ("a", "b"))
    assert first == second
    svg = first.decode()
    assert "&lt;/script&gt;" in svg
    assert not re.search(r"<script|<b>|<image|\u202e", svg)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"query": 6}, "query is 6; wanted the place of a token, 0 to 5"),
        ({"scaling": 2.0}, "not the softmax of these scores"),
        ({"columns": 3}, "columns is 3"),
        ({"keys": np.zeros((6, 7))}, r"shapes \(6, 8\) and \(6, 7\)"),
        ({"queries": np.full((6, 8), np.nan)}, "NaN"),
        ({"bias": np.zeros((6, 5))}, r"bias has the shape \(6, 5\)"),
        ({"weights": np.zeros((6, 6))}, "weights of this token are all 0"),
        ({"weights": np.zeros((2, 6, 6))}, r"wanted \[query, key\]"),
        ({"special": SPECIAL[:-1]}, r"special has the shape \(5,\)"),
        ({"key_special": SPECIAL}, "key_special without key_tokens"),
        ({"key_tokens": []}, "no key_tokens"),
    ],
)
def test_what_cannot_be_shown_is_refused(change, words):
    row, _ = make_row()
    with pytest.raises(InputError, match=words):
        attention_neurons(TOKENS, **{**row, **change})


def test_more_than_a_page_holds_is_refused_with_the_limit():
    row, _ = make_row(41)
    with pytest.raises(InputError, match="found 41 keys that token 2 sees; a page holds 40"):
        attention_neurons(["a"] * 41, **row)
    row, _ = make_row(d=257)
    with pytest.raises(InputError, match="found 257 neurons; wanted 1 to 256"):
        attention_neurons(TOKENS, **row)
    row, _ = make_row(41, causal=True)  # of 41 keys, the third token sees three
    attention_neurons(["a"] * 41, **row)
