"""Draw why a token attends as it does: query times key, neuron by neuron, down to the weight.

The neuron view of Vig (2019), for paper: the score is the one that the model used (scaled, capped,
with its position bias), and the key of colours says which number a colour is.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.path import Path

from headscope.claims.caption_words import clipped
from headscope.draw.style import color, house_style
from headscope.draw.token_axes import EDGE, SIZE, Floats, Sides, fitted, width_of
from headscope.views import figure_page
from headscope.views.figure_neuron_row import NeuronRow, neuron_row, scaling_words
from headscope.views.figure_page import NAME, NAME_SIZE

PITCH = 11.0  # points from row to row
HEADING, QUERY, SPACE = 12.0, 12.0, 8.0  # points: headings, the query's vector, what is below it
FOOT = 25.0  # points: the keys of colours
SMALL = 6.5  # points of type
NAMES = 0.16  # of the width that tokens take at most
BOLD = 1.1  # times as wide as ordinary type, about
NUMBER, BAR, WEIGHT = 34.0, 30.0, 24.0  # points: a column of numbers, the bar, the weight itself
GAP = 6.0  # points between columns
SHADES = 24  # on both sides of 0
FULL = 0.98  # of the numbers shown are within the scale; those beyond have its last colours
KEY_SIZE = (60.0, 4.5)  # points of a key of colours


def attention_neurons(
    sides: Sides,
    queries: Floats,
    keys: Floats,
    weights: Floats,
    *,
    query: int,
    scaling: float,
    softcap: float | None = None,
    bias: Floats | None = None,
    name: str = "",
    columns: int = 2,
) -> Figure:
    """One head, one token that looks: its vector, and a row for every key that it sees.

    A row has the key's vector, query times key for every neuron, their scaled sum with what is
    done to it (cap, position bias), and the softmax weight. Keys without weight that the scores
    alone do not explain were masked by the model, and are left out.

    queries  [token, neuron] as the scores are made of them, say with rotary positions
    keys     [key token, neuron]
    weights  [token, key token] after softmax
    query    place of the token that looks, from 0
    scaling  of q·k; softcap: c in c·tanh(s / c); bias: [token, key token] what is added then
    name     stands above, such as `L3·H5`
    columns  1 or 2 columns of a journal wide; in one, of the parts of a score only their sum
    raises   InputError for more than MOST_KEYS keys that are seen or MOST_NEURONS neurons, for
             weights that are not the softmax of the scores, and for what does not fit
    """
    width = figure_page.page_width(columns)
    row = neuron_row(
        sides, queries, keys, weights, query=query, scaling=scaling, softcap=softcap, bias=bias
    )
    with house_style():
        layout = _layout(row, width, columns, named=bool(name))
        figure, axes = figure_page.page_of(width, layout.height)
        if name:
            shown = clipped(name, figure_page.LONGEST_NAME)
            axes.text(EDGE, NAME / 2, shown, fontsize=NAME_SIZE, weight="bold", va="center")
        _draw_headings(axes, layout, row)
        _draw_vectors(axes, layout, row)
        _draw_rows(axes, layout, row)
    return figure


@dataclass(frozen=True, slots=True)
class _NeuronLayout:
    """Where things stand, in points from the upper left corner.

    words      [key] the tokens as they are set, and at the end the query
    names      the right end of the tokens; numbers: of each column of numbers
    strips     the left ends of the key vectors and of the products, each `strip` wide
    query      the upper edge of the query's vector; first: of the first key's row
    """

    words: list[str]
    names: float
    strips: tuple[float, float]
    strip: float
    numbers: dict[str, float]
    query: float
    first: float
    width: float
    height: float


def _layout(row: NeuronRow, width: float, columns: int, *, named: bool) -> _NeuronLayout:
    words = [fitted(token, size=SIZE, room=NAMES * width) for token in row.keys]
    words.append(fitted(f"q of {row.token}", size=BOLD * SIZE, room=NAMES * width))
    names = EDGE + max(width_of(word, SIZE) for word in words[:-1])
    names = max(names, EDGE + width_of(words[-1], BOLD * SIZE))
    parts = row.parts if columns == 2 else ["score"]
    right = width - EDGE - WEIGHT - BAR - GAP
    numbers = {
        part: right - NUMBER * (len(parts) - 1 - place) for place, part in enumerate(parts)
    }  # a column of numbers: its right end
    room = right - NUMBER * len(parts) - names - 2 * GAP
    strip = (room - GAP) / 2
    above = (NAME if named else 0.0) + HEADING
    first = above + QUERY + SPACE
    height = first + PITCH * len(row.keys) + FOOT
    strips = (names + GAP, names + 2 * GAP + strip)
    return _NeuronLayout(words, names, strips, strip, numbers, above, first, width, height)


def _draw_headings(axes: Axes, layout: _NeuronLayout, row: NeuronRow) -> None:
    y = layout.query - HEADING / 2
    look: dict[str, Any] = {"fontsize": SMALL, "color": color("muted"), "va": "center_baseline"}
    axes.text(layout.names, y, "key", ha="right", **look)
    axes.text(layout.strips[0], y, "key vector k", **look)
    axes.text(layout.strips[1], y, "q × k", **look)
    for part, x in layout.numbers.items():
        words = f"q·k{scaling_words(row.scaling)}" if part == "dot" else part
        axes.text(x, y, words, ha="right", **look)
    axes.text(layout.width - EDGE, y, "weight", ha="right", **look)
    rule = layout.first - SPACE / 2
    axes.plot([EDGE, layout.width - EDGE], [rule, rule], color=color("rule"), lw=0.6)


def _draw_vectors(axes: Axes, layout: _NeuronLayout, row: NeuronRow) -> None:
    tops = layout.first + PITCH * np.arange(len(row.keys)) + 0.5
    vectors = np.concatenate([row.query[None], row.vectors])  # [query or key, neuron]
    where = np.concatenate([[layout.query], tops])
    high = np.concatenate([[QUERY], np.full(len(tops), PITCH - 1)])
    foot = layout.height - FOOT + 8
    for x, values, top, tall, words in (
        (layout.strips[0], vectors, where, high, "q, k"),
        (layout.strips[1], row.products, tops, high[1:], "q × k"),
    ):
        scale = color_scale(values)
        _strips(axes, values, scale, x=x, top=top, high=tall, width=layout.strip)
        _color_key(axes, x, foot, scale, words, room=layout.strip)


def color_scale(values: Floats) -> float:
    """The size from which on colours are full: FULL of the numbers are below, as one digit."""
    near = (
        float(np.quantile(np.abs(values), FULL, method="higher"))
        or float(np.abs(values).max(initial=0))
        or 1.0
    )
    order = 10.0 ** np.floor(np.log10(near))
    return float(np.ceil(near / order - 1e-9) * order)


def sign_shades() -> dict[int, str]:
    """The colour of every shade: from the page to blue above 0, and to vermillion below."""
    shares = np.arange(1, SHADES + 1)[:, None] / SHADES
    page, *ends = (np.array(to_rgb(color(hue))) for hue in ("page", "vermillion", "blue"))
    below, above = (page + shares * (end - page) for end in ends)  # [step, channel]
    colors = [*below[::-1], page, *above]
    return {step: to_hex(one) for step, one in zip(range(-SHADES, SHADES + 1), colors, strict=True)}


def _strips(
    axes: Axes, values: Floats, scale: float, *, x: float, top: Floats, high: Floats, width: float
) -> None:
    """A box for every number, one path per shade; values [row, neuron], top and high [row]."""
    steps = np.rint(np.clip(values / scale, -1, 1) * SHADES)  # from -SHADES over 0 to SHADES
    cell = width / values.shape[1]
    for step, shade in sign_shades().items():
        rows, neurons = np.nonzero(steps == step)
        if step == 0 or len(rows) == 0:
            continue
        left, upper = x + cell * neurons, top[rows]
        right, lower = left + cell, upper + high[rows]
        corners = np.stack(
            [np.stack([left, right, right, left], 1), np.stack([upper, upper, lower, lower], 1)], 2
        )  # [box, corner, axis]
        path = Path.make_compound_path_from_polys(corners)
        axes.add_collection(
            PathCollection([path], facecolors=shade, edgecolors=shade, linewidths=0.15)
        )


def _color_key(axes: Axes, x: float, y: float, scale: float, words: str, *, room: float) -> None:
    wide = min(KEY_SIZE[0], room)
    step = wide / (2 * SHADES + 1)
    for place, shade in enumerate(sign_shades().values()):
        axes.add_patch(Rectangle((x + place * step, y), step, KEY_SIZE[1], color=shade, lw=0))
    axes.add_patch(
        Rectangle((x, y), wide, KEY_SIZE[1], fill=False, edgecolor=color("rule"), lw=0.4)
    )
    look: dict[str, Any] = {"fontsize": SMALL, "color": color("muted"), "va": "center_baseline"}
    end = f"{scale:g}"
    for share, text, side in ((0, f"−{end}", "left"), (0.5, "0", "center"), (1, end, "right")):
        axes.text(x + share * wide, y + KEY_SIZE[1] + 6, text, ha=side, **look)
    if wide + GAP + width_of(words, SMALL) <= room:
        axes.text(x + wide + GAP, y + KEY_SIZE[1] / 2, words, **look)


def _draw_rows(axes: Axes, layout: _NeuronLayout, row: NeuronRow) -> None:
    """Tokens and numbers; the weight as a bar, as long as BAR for 1."""
    ink, grey, muted = color("ink"), color("grey"), color("muted")
    look: dict[str, Any] = {"fontsize": SIZE, "va": "center_baseline", "ha": "right"}
    axes.text(layout.names, layout.query + QUERY / 2, layout.words[-1], weight="bold", **look)
    parts = {**row.parts, "score": row.score}
    for place, (word, back) in enumerate(zip(layout.words[:-1], row.special, strict=True)):
        y = layout.first + PITCH * (place + 0.5)
        axes.text(layout.names, y, word, color=grey if back else ink, **look)
        for part, x in layout.numbers.items():
            axes.text(x, y, f"{parts[part][place]:.2f}".replace("-", "−"), **look)
        weight = float(row.weight[place])
        axes.text(layout.width - EDGE, y, f"{weight:.3f}", **look)
        right = layout.width - EDGE - WEIGHT
        bar = (right - BAR * min(weight, 1.0), y - PITCH / 5)
        axes.add_patch(Rectangle(bar, BAR * min(weight, 1.0), PITCH / 2.5, color=muted, lw=0))
