"""Draw the attention of one head in one example as a heat map with tokens on both axes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from headscope.claims.caption_words import clipped
from headscope.draw import token_axes
from headscope.draw.marks import KEY_BELOW, cell_key, cells
from headscope.draw.saving import ShownFigure
from headscope.draw.style import color, house_style
from headscope.draw.token_axes import EDGE, SIZE, TYPE, Floats, Sides, fitted, shown_value, width_of
from headscope.errors import InputError
from headscope.views import figure_page
from headscope.views.figure_page import NAME, NAME_SIZE, page_width

TOKENS_SHARE = 0.2  # of the width that the tokens beside the map take at most
LEAST_PITCH = 6.2  # points from row to row
GAP = 3.0  # points between tokens and map
FOOT = -KEY_BELOW + 6.0  # points below the map
LABEL_ROOM = 0.5  # of the width that the name of the weights takes


def most_tokens(columns: int) -> int:
    """How many tokens a map of 1 or 2 journal columns can name legibly."""
    return int((1 - TOKENS_SHARE) * page_width(columns) / LEAST_PITCH)


def attention_map(
    sides: Sides,
    weights: Floats,
    *,
    name: str = "",
    label: str = "attention",
    unit: str = "probability",
    top: float | None = None,
    columns: int | None = None,
) -> Figure:
    """A row for each token that attends, a column for each that is attended to.

    weights  [query, key] at least 0, in 24 even shades
    name     stands above, such as `L3·H5`
    label    what the weights are; unit: "probability", else "1"
    top      the weight of the last shade; None: the largest. Larger ones get the last shade too
    columns  1 or 2 columns of a journal wide; None: 1 if the tokens fit
    raises   InputError for more tokens than `most_tokens(columns)`, and for what does not fit
    """
    figure_page.check_one_map(weights)
    token_axes.check_weights(sides, weights, unit=unit)
    columns = _columns(max(weights.shape), columns)
    end = token_axes.largest(weights) if top is None else top
    if not (np.isfinite(end) and end > 0):
        raise InputError(f"top is {top!r}; wanted the weight of the last shade, above 0")
    with house_style():
        layout = _layout(sides, page_width(columns), named=bool(name))
        figure = ShownFigure(figsize=(layout.width / 72, layout.height / 72))
        axes = figure.add_axes(layout.box)
        rows, across = (np.arange(count + 1, dtype=np.float64) - 0.5 for count in weights.shape)
        cells(axes, across, rows, weights.astype(np.float64), top=end)
        axes.invert_yaxis()  # the first token is above
        special = sides.query_special, sides.key_special
        token_axes.set_tokens(axes, layout.words, special, size=layout.size, pad=GAP)
        wide = layout.pitch * len(sides.keys)
        cell_key(axes, shown_value(end, unit), end=(layout.width - EDGE - layout.left) / wide)
        _write(figure, layout, name=name, label=label)
    return figure


def _columns(count: int, columns: int | None) -> int:
    chosen = columns or (1 if count <= most_tokens(1) else 2)
    if count > most_tokens(chosen):
        raise InputError(
            f"found {count} tokens; a map names {most_tokens(1)} in one column and "
            f"{most_tokens(2)} in two: shorten the text"
        )
    return chosen


@dataclass(frozen=True, slots=True)
class _MapLayout:
    """Where things stand, in points; cells are squares.

    words  [from or to][token] as they are set, in `size` points
    left   of the map: room for the tokens beside it; above: for those over it, and the name
    """

    words: tuple[list[str], list[str]]
    size: float
    pitch: float
    left: float
    above: float
    width: float
    height: float

    @property
    def box(self) -> tuple[float, float, float, float]:
        """The map as shares of the page: left, lower, width, height."""
        across, down = (self.pitch * len(words) for words in reversed(self.words))
        return (
            self.left / self.width,
            FOOT / self.height,
            across / self.width,
            down / self.height,
        )


def _layout(sides: Sides, width: float, *, named: bool) -> _MapLayout:
    count = max(len(sides.queries), len(sides.keys))
    size = min(SIZE, TYPE * (1 - TOKENS_SHARE) * width / count)
    room = TOKENS_SHARE * width - GAP - 2 * EDGE
    queries, keys = figure_page.set_words(sides, size=size, room=room)
    left, above = (
        max(width_of(word, size) for word in [*words, "from ↓"]) + GAP + EDGE
        for words in (queries, keys)
    )
    if sides.keys is sides.queries:
        above = left
    over = NAME if named else 0.0
    pitch = (width - left - EDGE) / count
    height = over + above + pitch * len(queries) + FOOT
    return _MapLayout((queries, keys), size, pitch, left, above + over, width, height)


def _write(figure: Figure, layout: _MapLayout, *, name: str, label: str) -> None:
    width, height, size = layout.width, layout.height, layout.size
    corner: dict[str, Any] = {"fontsize": size, "color": color("muted"), "style": "italic"}
    if name:
        shown = clipped(name, figure_page.LONGEST_NAME)
        figure.text(
            EDGE / width, 1 - 1 / height, shown, fontsize=NAME_SIZE, weight="bold", va="top"
        )
    y = height - layout.above + GAP
    right = (layout.left - GAP) / width
    figure.text(right, (y + 1.2 * size) / height, "to →", ha="right", **corner)
    figure.text(right, y / height, "from ↓", ha="right", **corner)
    figure.text(
        EDGE / width,
        (FOOT + KEY_BELOW) / height,
        fitted(label, size=SIZE, room=LABEL_ROOM * width),
        fontsize=SIZE,
        va="center_baseline",
        color=color("muted"),
    )
