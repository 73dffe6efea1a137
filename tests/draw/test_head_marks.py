"""Does a page know where each head lies in a chart, and with which number?"""

from __future__ import annotations

import json
import re
from functools import partial
from xml.etree import ElementTree

import numpy as np
import pytest

from headscope.core.head_names import HeadNames
from headscope.core.intervals import Estimate
from headscope.draw.head_grid import grid_panel
from headscope.draw.head_marks import note_pairs
from headscope.draw.marks import head_scatter
from headscope.draw.panel import Panel, compose
from headscope.draw.saving import vector
from headscope.page.svg import Styles, inline_panels

VALUE = np.array([[0.1, 0.5, 0.25], [0.75, 1.0, np.nan]])
PARTS = Estimate(VALUE, VALUE - 0.05, VALUE + 0.05)
EVIL = '"><script>alert(1)</script>'


def scatter(axes):
    head_scatter(axes, PARTS, "all", unit="probability", series=EVIL)
    axes.set_xlim(-0.6, 1.6)
    axes.set_ylim(0, 1)


@pytest.fixture(scope="module")
def pages():
    grid = grid_panel("Grid", VALUE, HeadNames(()), unit="probability", parts=PARTS)
    plain = Panel("Line", lambda axes: axes.plot([0, 1], [0, 1]))
    drawn = vector(compose([grid, Panel("Scatter", scatter), plain]), 3)[0]
    return inline_panels(drawn, Styles(), prefix="p")


def noted(markup):
    (series,) = json.loads(ElementTree.fromstring(markup).get("data-heads"))
    return {**series, "t": series["t"].split("\n")}


def test_a_cell_of_a_grid_lies_where_it_is_drawn(pages):
    """Every cell that is drawn is a box in one of the paths of the picture."""
    series = noted(pages[0])
    boxes = re.findall(r"M([\d.]+) ([\d.]+)H([\d.]+)V([\d.]+)H", pages[0])
    middles = {
        (round((float(a) + float(c)) / 2, 1), round((float(b) + float(d)) / 2, 1))
        for a, b, c, d in boxes
    }
    places = list(zip(series["x"], series["y"], strict=True))
    assert len(places) == 6
    for unit in range(5):  # the last has no value, and so no box
        assert any(np.allclose(places[unit], one, atol=0.2) for one in middles), unit
    assert np.diff(series["x"][:3]) == pytest.approx(2 * series["w"], abs=0.2)
    assert series["y"][3] - series["y"][0] == pytest.approx(2 * series["h"], abs=0.2)


def test_a_mark_of_a_scatter_lies_where_it_is_drawn_and_one_without_a_value_is_none(pages):
    series = noted(pages[1])
    root = ElementTree.fromstring(pages[1])
    uses = [
        (float(one.get("x")), float(one.get("y")))
        for one in root.iter()
        if one.tag.endswith("use") and one.get("x")
    ]
    assert len(series["t"]) == 5
    for place in zip(series["x"], series["y"], strict=True):
        assert any(np.allclose(place, one, atol=0.1) for one in uses), place


def test_the_number_stands_with_its_interval_and_hostile_words_are_text(pages):
    assert noted(pages[0])["t"][0] == "10 % [5, 15]"
    assert noted(pages[0])["t"][5] == "–"
    assert noted(pages[1])["s"] == EVIL
    assert "<script" not in pages[1]


def test_a_cell_of_a_matrix_of_heads_is_a_pair_with_its_interval():
    order, value = [2, 0, 1], np.arange(9.0).reshape(3, 3)
    parts = Estimate(value, value - 1, value + 1)

    def draw(axes):
        note_pairs(axes, order, parts, "apart")
        axes.set(xlim=(0, 3), ylim=(3, 0))

    drawn = vector(compose([Panel("Matrix", draw)]), 1)[0]
    series = noted(inline_panels(drawn, Styles(), prefix="q")[0])
    assert (series["u"], series["p"]) == (order, 1)
    # row by row, left of the diagonal: (0, 2), (1, 2), (1, 0)
    assert [float(text.split()[0]) for text in series["t"]] == [value[0, 2], value[1, 2], 3.0]
    assert all("[" in text for text in series["t"])
    assert np.diff(series["y"]) == pytest.approx(2 * series["h"], abs=0.2)


def test_a_matrix_of_one_head_has_no_pairs_and_says_nothing():
    one = np.zeros((1, 1))
    draw = partial(note_pairs, order=[0], parts=Estimate(one, one, one), series="apart")
    drawn = vector(compose([Panel("Matrix", draw)]), 1)[0]
    assert "data-heads" not in inline_panels(drawn, Styles(), prefix="q")[0]


def test_a_chart_without_heads_says_nothing(pages):
    assert "data-heads" not in pages[2]


def test_what_is_noted_does_not_change_the_picture():
    with_parts, without = (
        vector(compose([grid_panel("Grid", VALUE, HeadNames(()), unit="1", **more)]), 1)[0].svg
        for more in ({"parts": PARTS}, {})
    )
    assert with_parts == without
