"""Does a sheet show the maps and their numbers, and nothing that tells whose they are?"""

import io
import re
from html import unescape

import numpy as np
import pytest
from PIL import Image

from experiments.map_classifier.made import SECRETS, make_drawn, make_map
from headscope.draw.saving import picture_bytes
from headscope.draw.style import ramp
from headscope.experiments.map_classifier.annotation_session import Session
from headscope.experiments.map_classifier.label_sheets import PER_SHEET, sheet, write_sheets

pytestmark = pytest.mark.usefixtures("fine_pictures")


def said(figure):
    """All texts of a figure, in the order in which they are drawn."""
    svg = picture_bytes(figure, "svg").decode()
    return [unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg) if text]


def test_twenty_maps_a_sheet_the_last_one_with_the_rest(tmp_path):
    session = Session.create(tmp_path / "s", make_drawn(43))
    files = write_sheets(session)
    assert [file.name for file in files] == ["0000.png", "0020.png", "0040.png"]
    assert {file.parent for file in files} == {session.folder / "sheets"}
    for file in files:
        with Image.open(file) as image:
            assert min(image.size) > 2000
            assert not {"Software", "Title"} & set(image.info)


def test_maps_are_numbered_as_in_the_session_and_no_name_is_on_the_sheet():
    drawn = make_drawn(7)
    figure = sheet([d.map for d in drawn], [d.boundary for d in drawn], first=40)
    *numbers, key = said(figure)
    assert numbers == [str(n) for n in range(40, 47)]
    assert [part.strip() for part in re.split("[1-5]", key)[1:]] == [
        "Vertical",
        "Diagonal",
        "Vertical + diagonal",
        "Block",
        "Heterogeneous",
    ]
    svg = picture_bytes(figure, "svg").decode()
    assert not [name for name in SECRETS if name in svg]


def test_second_segments_are_marked_and_nothing_else():
    figure = sheet([make_map(n, 12) for n in range(3)], [4, -1, 0], first=0)
    ticks = [(list(a.get_xticks()), list(a.get_yticks())) for a in figure.axes[:3]]
    assert ticks == [([3.5], [3.5]), ([], []), ([], [])]
    assert said(figure)[:-1] == ["0", "1", "2"]


def test_a_cell_has_the_colour_of_the_root_of_its_share():
    weights = np.zeros((10, 10), np.float16)
    weights[2, 3], weights[7, 1] = 0.5, 0.125  # roots of the shares: 1 and 0.5
    figure = sheet([weights], [-1], first=0)
    (image,) = figure.axes[0].images
    shades = image.to_rgba(image.get_array(), bytes=True)
    steps = ramp()
    assert "#{:02x}{:02x}{:02x}".format(*shades[2, 3][:3]) == steps[-1]
    assert "#{:02x}{:02x}{:02x}".format(*shades[7, 1][:3]) == steps[len(steps) // 2]
    assert "#{:02x}{:02x}{:02x}".format(*shades[0, 0][:3]) == steps[0]
    drawn = Image.open(io.BytesIO(picture_bytes(figure, "png")))
    colours = {color for _, color in drawn.convert("RGB").getcolors(1 << 24)}
    assert tuple(bytes.fromhex(steps[-1][1:])) in colours


def test_a_map_of_nothing_can_be_shown():
    figure = sheet([np.zeros((10, 10), np.float16)] * PER_SHEET, [-1] * PER_SHEET, first=0)
    assert len(said(figure)) == PER_SHEET + 1
