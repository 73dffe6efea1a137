"""Is each panel of a figure a picture of its own on the page, whole and without its title?"""

from __future__ import annotations

import re
from functools import partial
from xml.etree import ElementTree

import pytest

from headscope.draw.panel import Panel, compose
from headscope.draw.saving import vector
from headscope.page.svg import Styles, inline_panels

SVG = "{http://www.w3.org/2000/svg}"


def marked(number, axes):
    axes.plot([0, 1], [0, number], "o-", clip_on=True)
    axes.set_xlabel(f"axis {number}")
    axes.text(0.5, 0.5, f"inside {number}")


@pytest.fixture(scope="module")
def panels():
    """Three panels in two rows that share their marker and their titles' first word."""
    made = [Panel(f"Title {n}", partial(marked, n)) for n in (1, 2, 3)]
    markup = inline_panels(vector(compose(made), 3)[0], Styles(), prefix="p")
    return [ElementTree.fromstring(one) for one in markup]


def texts(panel):
    return ["".join(text.itertext()) for text in panel.iter(f"{SVG}text")]


def test_each_holds_what_is_its_own_and_no_title(panels):
    for number, panel in enumerate(panels, start=1):
        said = texts(panel)
        assert {f"axis {number}", f"inside {number}"} <= set(said)
        assert not [text for text in said if "Title" in text]
        assert not [text for text in said if text.startswith(("axis", "inside"))][2:]


def test_what_a_panel_refers_to_is_in_it_and_no_id_is_in_two(panels):
    every = []
    for panel in panels:
        ids = [node.get("id") for node in panel.iter() if node.get("id")]
        values = [value for node in panel.iter() for value in node.attrib.values()]
        wanted = {name for value in values for name in re.findall(r"#([\w.-]+)", value)}
        assert wanted  # a marker and a clip path at least
        assert wanted <= set(ids)
        every += ids
    assert len(every) == len(set(every))


def test_all_are_of_one_width_and_nothing_lies_outside(panels):
    boxes = [[float(x) for x in panel.get("viewBox").split()] for panel in panels]
    assert len({box[2] for box in boxes}) == 1
    for panel, (left, top, width, height) in zip(panels, boxes, strict=True):
        for text in panel.iter(f"{SVG}text"):
            place = text.get("x"), text.get("y")
            if None not in place:
                assert left <= float(place[0]) <= left + width
                assert top <= float(place[1]) <= top + height


def test_a_hatched_bar_refers_to_the_hatching_that_is_in_its_panel():
    """The reference stands in a style, which goes into the page's style sheet."""

    def bar(axes):
        axes.bar([0], [1], hatch="////", facecolor="white", edgecolor="black")

    styles = Styles()
    (markup,) = inline_panels(vector(compose([Panel("Bar", bar)]), 1)[0], styles, prefix="p")
    (hatching,) = ElementTree.fromstring(markup).iter(f"{SVG}pattern")
    assert f"url(#{hatching.get('id')})" in styles.css()
