"""Does the figure of a head show its labels, maps and numbers, whatever is missing or hostile?"""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_hex

from draw.drawn import painted, steps_of
from headscope.draw.saving import picture_bytes
from headscope.draw.style import DOUBLE, LIGHT
from headscope.heads.figure import draw_head_card
from headscope.heads.head_card import head_card
from recorded import ALONE, BOTH, DECODER, LANGUAGE, hostile, recorded, with_maps


@pytest.fixture(scope="module")
def tree():
    return recorded(6, 12, groups=BOTH)


def words(figure):
    return [text.get_text() for text in figure.texts]


def strips(figure):
    return [axes for axes in figure.axes if not axes.axison]


def test_the_figure_says_what_the_card_says(tree):
    card = head_card(tree, 2, 0)
    figure = draw_head_card(tree, card)
    shown = words(figure)
    assert shown[0] == "L3·H1"
    assert shown[1] == "demo, n = 14 documents, 3,385 tokens"
    assert shown[2 : 2 + len(card.labels.labels)] == [label.label for label in card.labels.labels]
    numbers = {n.metric.key: n for n in card.numbers}
    first = card.data["relations"][0]
    for key in (
        "surface.attention.cls",
        "entropy.entropy.all",
        f"dependency.accuracy.{first['direction']}.{first['relation']}",
    ):
        at = shown.index(numbers[key].metric.label)
        assert shown[at + 2] == f"{numbers[key].rank} of 72"
    assert figure.get_figwidth() == DOUBLE


def test_each_strip_has_all_heads_and_this_one_with_its_interval(tree):
    card = head_card(tree, 2, 0)
    figure = draw_head_card(tree, card)
    at = words(figure).index("entropy, all tokens")
    names = [text for text in words(figure) if text in {n.metric.label for n in card.numbers}]
    axes = strips(figure)[names.index("entropy, all tokens")]
    entropy = tree["entropy"].to_dataset().sel(query="all")
    every, band, own = axes.collections
    drawn = sorted(path.vertices[0, 0] for path in every.get_paths())
    assert drawn == pytest.approx(sorted(entropy.entropy.values.ravel()))
    assert own.get_paths()[0].vertices[0, 0] == pytest.approx(float(entropy.entropy[2, 0]))
    assert to_hex(own.get_color()[0]) == LIGHT["vermillion"]
    ends = band.get_paths()[0].vertices[:, 0]
    low, high = float(entropy.entropy_ci_low[2, 0]), float(entropy.entropy_ci_high[2, 0])
    assert (ends.min(), ends.max()) == pytest.approx((low, high))
    assert axes.get_xlim()[1] >= high
    assert at > 0


def test_maps_name_their_tokens(tree):
    card = head_card(tree, 2, 0)
    maps = [axes for axes in draw_head_card(tree, card).axes if axes.axison]
    assert len(maps) == len(card.maps) == 3
    for axes, one in zip(maps, card.maps, strict=True):
        shown = [label.get_text() for label in axes.get_yticklabels()]
        assert shown == [token.replace("##", "-") for token in one.tokens]


def test_a_map_has_the_shades_of_the_roots_of_its_weights():
    card = head_card(with_maps(recorded(2, 2)), 0, 0)
    axes = next(a for a in draw_head_card(with_maps(recorded(2, 2)), card).axes if a.axison)
    one = card.maps[0]
    levels = steps_of(np.sqrt(one.weights), 1.0)
    found = {shade for _, shade in painted(axes)}
    assert len(found) == len(np.unique(levels))
    assert axes.get_xlabel() == "diagonal, 90 % sure"


@pytest.mark.parametrize(
    "made",
    [
        lambda: recorded(1, 1, groups=()),
        lambda: recorded(2, 2, kind=DECODER),
        lambda: recorded(2, 2, kind=ALONE),
        lambda: recorded(1, 1),
        lambda: hostile(recorded(2, 3, groups=LANGUAGE)),
        lambda: with_maps(
            recorded(2, 3, model="$x^2$\x1b"), tokens=["$a$", "\u202eb", "\x00", "橋"]
        ),
    ],
)
def test_whatever_is_missing_or_hostile_there_is_a_figure(made):
    made = made()
    card = head_card(made, 0, 0)
    figure = draw_head_card(made, card)
    assert picture_bytes(figure, "png").startswith(b"\x89PNG")


def test_the_same_head_gives_the_same_bytes(tree):
    pictures = [picture_bytes(draw_head_card(tree, head_card(tree, 0, 6)), "svg") for _ in range(2)]
    assert pictures[0] == pictures[1]
    assert b"<text" in pictures[0]


def test_an_unlabelled_head_says_what_stands_out_most():
    made = recorded(1, 1, groups=())
    assert words(draw_head_card(made, head_card(made, 0, 0)))[2] == "unlabelled"
