"""Are the cells of heat maps the same boxes after they are written shorter?"""

from __future__ import annotations

import re

import numpy as np

from headscope.draw.marks import cells
from headscope.draw.panel import Panel
from headscope.page.svg import Styles, inline_panel

BOX = re.compile(r"M([-\d.]+) ([-\d.]+)H([-\d.]+)V([-\d.]+)H\1z")


def test_every_cell_is_a_box_of_its_own_size_in_its_own_place():
    values = np.arange(1.0, 13).reshape(3, 4)  # [y, x]

    def show(axes):
        cells(axes, np.arange(5.0), np.arange(4.0), values, top=12, gap=0.1)
        axes.set_axis_off()

    markup = inline_panel(Panel("", show), Styles(), prefix="p", width=3)
    boxes = np.array([[float(x) for x in box] for box in BOX.findall(markup)])
    assert len(boxes) == values.size
    wide, high = boxes[:, 2] - boxes[:, 0], np.abs(boxes[:, 3] - boxes[:, 1])
    assert np.ptp(wide) <= 0.021  # rounded to hundredths
    assert np.ptp(high) <= 0.021
    assert len({(round(x), round(y)) for x, y in boxes[:, :2]}) == values.size
