"""What do axes show: which texts, marks, whiskers, shades and framed cells?"""

from __future__ import annotations

import numpy as np
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from headscope.draw.style import LIGHT, RAMP_STEPS, ramp


def texts(axes):
    return [text.get_text() for text in axes.texts]


def marks(axes, shade):
    """(x, y) of the marks of a colour, from the top; a hollow one is known by its edge."""
    found = [
        (float(line.get_xdata()[0]), float(line.get_ydata()[0]))
        for line in axes.lines
        if len(line.get_xdata()) == 1 and to_hex(line.get_markeredgecolor()) == LIGHT[shade]
    ]
    return sorted(found, key=lambda place: place[1])


def whiskers(axes, shade):
    """(low, high) of the horizontal lines of a colour, from the top."""
    found = []
    for collection in axes.collections:
        if to_hex(collection.get_edgecolor()[0]) == LIGHT[shade]:
            found += [path.vertices for path in collection.get_paths()]
    return [(line[0, 0], line[1, 0]) for line in sorted(found, key=lambda line: line[0, 1])]


def painted(axes):
    """(path, colour) of each shade of a heat map."""
    for collection in axes.collections:
        for path, shade in zip(collection.get_paths(), collection.get_facecolor(), strict=True):
            yield path, to_hex(shade)


def shades(axes, shape):
    """[row, column] the step of the ramp that each cell of a heat map has."""
    steps = np.zeros(shape, dtype=int)
    for path, shade in painted(axes):
        step = ramp().index(shade)
        for box in path.vertices.reshape(-1, 5, 2):  # [box, corner, axis]
            column, row = np.round((box[0] + box[2]) / 2).astype(int)
            steps[row, column] = step
    return steps


def steps_of(values, top):
    return np.ceil(np.clip(values / top, 0, 1) * (RAMP_STEPS - 1)).astype(int)


def frames_of(axes):
    """(layer, head) of the framed cells."""
    boxes = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    return [(round(box.get_y() + 0.5), round(box.get_x() + 0.5)) for box in boxes]
