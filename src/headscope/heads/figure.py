"""What is one head? Its labels, its most typical maps, and where its numbers stand among all heads.

A figure for a paper, as wide as a page. What it has no room for is in the card of the report.
"""

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headscope.claims.caption_words import clipped, over
from headscope.claims.card_part import TypicalMap
from headscope.claims.head_labels import UNLABELLED
from headscope.claims.head_metrics import chosen_keys
from headscope.core.display import printable
from headscope.core.results import derived_once, model_name
from headscope.core.wording import by_unit, percent
from headscope.draw.marks import cells
from headscope.draw.style import DOUBLE, color, house_style
from headscope.draw.token_axes import fitted, set_tokens, width_of
from headscope.heads.head_card import HeadCard, RankedNumber

WIDTH = 72 * DOUBLE  # points
LINE = 11.0  # points from line to line
HEADING = 22.0
WRAP = 108  # characters of a label on a line
GUTTER = 12.0  # points between maps
TOKENS = 44.0  # points that the tokens beside a map take, and those above at most
MOST_TYPE = 6.5  # points
UNDER = 16.0  # points under a map: what class it is
ROW = 12.5  # points of a strip
VALUE, RANK, STRIP = 0.27, 0.505, 0.595  # of the width: where these begin
LEFT = 2 / WIDTH
FOOT = 12.0
MOST_FIRST = 4


@derived_once()
def draw_head_card(tree: xr.DataTree, card: HeadCard) -> Figure:
    """The figure of one head; parts that the run lacks are left out."""
    with house_style():
        # Maps are as large as three in a row, also where there are fewer.
        side = (WIDTH - 2 * GUTTER) / max(len(card.maps), 3) - TOKENS
        texts = (_words(one, side) for one in card.maps)
        tokens = max((width_of(w, size) + 4 for words, size in texts for w in words), default=0.0)
        lines, strips = _lines(card), _strips(card)
        above_maps = HEADING + LINE * len(lines) + 8.0 + tokens
        above_strips = above_maps + (side + UNDER + 4.0 if card.maps else 0.0)
        height = above_strips + ROW * len(strips) + FOOT
        figure = Figure(figsize=(DOUBLE, height / 72))
        _write_labels(figure, tree, card, lines, height)
        for at, one in enumerate(card.maps):
            left = at * (side + TOKENS + GUTTER) + TOKENS
            bottom = height - above_maps - side
            box = (left / WIDTH, bottom / height, side / WIDTH, side / height)
            _draw_map(figure.add_axes(box), one, side)
        for at, number in enumerate(strips):
            y = 1 - (above_strips + ROW * (at + 0.5)) / height
            _draw_strip(figure, number, y, height)
    return figure


def _lines(card: HeadCard) -> list[str]:
    head = card.labels
    texts = [label.label for label in head.labels] or [UNLABELLED]
    if head.nearly:
        texts[-1] += f"; most: {head.nearly}"
    return [line for text in texts for line in textwrap.wrap(printable(text), WRAP) or [""]]


def _strips(card: HeadCard) -> list[RankedNumber]:
    numbers = {number.metric.key: number for number in card.numbers}
    first = [key for end in card.first for key in numbers if key.endswith(end)]
    return [numbers[key] for key in [*first[:MOST_FIRST], *chosen_keys(numbers, "card")]]


def _write_labels(
    figure: Figure, tree: xr.DataTree, card: HeadCard, lines: list[str], top: float
) -> None:
    figure.text(LEFT, 1 - 3 / top, card.name, fontsize=11, weight="bold", va="top")
    model = clipped(model_name(tree), 60)
    figure.text(
        1 - LEFT,
        1 - 5 / top,
        f"{model}, {over(tree)}",
        fontsize=6.5,
        va="top",
        ha="right",
        color=color("muted"),
    )
    weight = "bold" if card.labels.labels else None
    for at, line in enumerate(lines):
        figure.text(
            LEFT, 1 - (HEADING + LINE * at) / top, line, fontsize=8, va="top", weight=weight
        )


def _words(one: TypicalMap, side: float) -> tuple[list[str], float]:
    size = min(MOST_TYPE, 0.82 * side / len(one.tokens))
    return [fitted(token, size=size, room=TOKENS - 4) for token in one.pieces], size


def _draw_map(axes: Axes, one: TypicalMap, side: float) -> None:
    edges = np.arange(len(one.tokens) + 1, dtype=np.float64) - 0.5
    cells(axes, edges, edges, np.sqrt(one.weights), top=1.0)
    axes.invert_yaxis()
    words, size = _words(one, side)
    set_tokens(axes, (words, words), (one.special, one.special), size=size, pad=2)
    if one.kind:
        sure = percent(one.score)
        axes.set_xlabel(f"{one.title}, {sure} sure", loc="left", color=color("muted"), labelpad=3)


def _draw_strip(figure: Figure, number: RankedNumber, y: float, top: float) -> None:
    value = by_unit(*number.ends, number.metric.unit)
    look: dict[str, Any] = {"fontsize": 7, "va": "center"}
    figure.text(LEFT, y, clipped(number.metric.label, 40), **look)
    figure.text(VALUE, y, value, **look)
    figure.text(RANK, y, f"{number.rank} of {number.of}" if number.rank else "–", **look)
    axes = figure.add_axes((STRIP, y - 0.4 * ROW / top, 1 - STRIP - LEFT, 0.8 * ROW / top))
    _marks(axes, number)


def _marks(axes: Axes, number: RankedNumber) -> None:
    values = number.metric.estimate.value
    there: Sequence[float] = values[np.isfinite(values)].tolist()
    ends = [end for end in number.ends[1:] if np.isfinite(end)]
    low, high = min(*there, *ends), max(*there, *ends)
    axes.set_axis_off()
    axes.set(ylim=(0, 1), xlim=(low, high if high > low else low + 1))
    if number.control:
        axes.hlines(0.04, *number.control, color=color("ink"), lw=1.0, alpha=0.6)
    axes.vlines(there, 0.25, 0.75, color=color("ink"), lw=0.5, alpha=0.3)
    if not number.rank:
        return
    value, start, end = number.ends
    if ends:
        axes.fill_between((start, end), 0.3, 0.7, color=color("vermillion"), alpha=0.35, lw=0)
    axes.vlines(value, 0, 1, color=color("vermillion"), lw=1.6, clip_on=False)
