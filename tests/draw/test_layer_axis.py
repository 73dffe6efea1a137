"""Do the numbers of layers stand apart along an axis, however many there are?"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from headscope.core.head_names import HeadNames
from headscope.draw.marks import layer_axis
from headscope.draw.panel import Panel, compose


@pytest.mark.parametrize("layers", [1, 6, 12, 13, 24, 30, 32, 80, 126])
def test_numbers_of_layers_do_not_touch_in_a_third_of_a_page(layers):
    panels = [Panel("", lambda axes: layer_axis(axes, layers, HeadNames(())))] * 3
    figure = compose(panels, columns=3)
    for axes in figure.axes:
        axes.set_yticks([0, 1], ["0 %", "100 %"])  # as shares have
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    labels = figure.axes[0].get_xticklabels()
    boxes = [label.get_window_extent(canvas.get_renderer()) for label in labels]
    gaps = [right.x0 - left.x1 for left, right in pairwise(boxes)]
    assert np.min(gaps, initial=9) * 72 / figure.dpi >= 1.5  # points
    assert labels[0].get_text() == "1"
    assert len(labels) >= min(layers, 6)
