"""Widths, words and checks that the figures of one example share."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headscope.core.head_names import HeadNames
from headscope.draw.saving import ShownFigure
from headscope.draw.style import DOUBLE, SINGLE
from headscope.draw.token_axes import Floats, Sides, fitted
from headscope.errors import InputError

Head = tuple[int, int]  # layer and head, from 0
NAME, NAME_SIZE = 14.0, 8.0  # points that a name above the figure takes, and its type
LONGEST_NAME = 50


def page_width(columns: int) -> float:
    """In points, of 1 or 2 columns of a journal; raises InputError for others."""
    if columns not in (1, 2):
        raise InputError(f"columns is {columns!r}; wanted 1 or 2 columns of a journal")
    return 72 * (SINGLE if columns == 1 else DOUBLE)


def page_of(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure without frame whose axes are in points from the upper left corner."""
    figure = ShownFigure(figsize=(width / 72, height / 72))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    return figure, axes


def set_words(sides: Sides, *, size: float, room: float) -> tuple[list[str], list[str]]:
    """[from or to][token] as they are set in `size` points, cut to `room` points."""
    queries, keys = (
        [fitted(token, size=size, room=room) for token in side]
        for side in (sides.queries, sides.keys)
    )
    return queries, keys


def check_one_map(weights: Floats) -> None:
    """Raises InputError for weights that are not [query, key]."""
    if weights.ndim != 2:
        raise InputError(f"weights has the shape {weights.shape}; wanted [query, key] of one head")


def check_heads(maps: Floats, heads: Sequence[Head], names: HeadNames) -> None:
    """Raises InputError for a head that maps [layer, head, …] do not hold."""
    layers, count = maps.shape[:2]
    for layer, head in heads:
        if not (0 <= layer < layers and 0 <= head < count):
            raise InputError(
                f"found layer {names.layer(layer)}, head {names.within(head)}; wanted layers "
                f"{names.layer(0)} to {names.layer(layers - 1)} and heads {names.first} to "
                f"{names.within(count - 1)}, counted {names.counted}"
            )
