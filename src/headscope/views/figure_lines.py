"""Draw the attention of some heads in one example as lines between its tokens.

The head view of Vig (2019), for paper: full strength is a weight of 1, not 1 over the number of
heads; lines of several heads run side by side instead of one over the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from headscope.claims.caption_words import clipped
from headscope.core.head_names import HeadNames
from headscope.draw import token_axes
from headscope.draw.style import DASHES, color, house_style
from headscope.draw.token_axes import EDGE, SIZE, TYPE, Floats, Sides, fitted, shown_value, width_of
from headscope.errors import InputError
from headscope.views import figure_page
from headscope.views.figure_page import Head

HUES = ("blue", "vermillion", "green", "orange", "purple", "sky")
LOOKS = [(hue, dash) for dash in DASHES[:2] for hue in HUES]  # one per head
MOST_TOKENS = 96  # that a page holds
PITCH, LEAST_PITCH = 11.0, 6.4  # points from row to row; the least is that of MOST_TOKENS
COLUMN = 0.3  # of the width that the tokens of one side take at most
GAP = 4.0  # points between a token and its lines
FAN = 1.9  # points between the lines of two heads from one token to the other
LABEL_ROOM = 0.4  # of the width that the name of the weights takes in the last row
THIN, THICK = 0.35, 2.4  # points: no weight, and all of it
FAINT, FADED = 0.12, 0.3  # opacity of no weight; the part left to lines of special tokens
KEY_SIZE, KEY_ROW, KEY_SPACE, SWATCH = 6.5, 11.0, 12.0, 11.0  # points
HEADING, FOOT = 11.0, 13.0  # points: the row above the tokens, the row below
SAMPLES = (0.1, 0.5, 1.0)  # of the scale, in its key
LONGEST_LABEL = 40


def attention_lines(
    sides: Sides,
    maps: Floats,
    names: HeadNames,
    *,
    heads: Sequence[Head],
    labels: Sequence[Sequence[str]] | None = None,
    label: str = "attention",
    unit: str = "probability",
    threshold: float = 0.05,
    columns: int = 1,
) -> Figure:
    """The tokens left and right, a line from each to those that it attends to.

    Opacity and width grow with the weight, up to 1 for probabilities, else to the largest drawn.
    Special tokens are set back, with their lines.

    maps       [layer, head, query, key] at least 0
    names      of the heads
    heads      (layer, head) from 0, at most 12
    labels     [layer][head] texts that the key gives beside the names, as `head_labels` returns
    label      what the weights are, for the key
    unit       "probability", else "1"
    threshold  share of the scale below which no line is drawn, 0 to 1
    columns    1 or 2 columns of a journal wide
    raises     InputError for more than MOST_TOKENS tokens or 12 heads, and for what does not fit
    """
    width = figure_page.page_width(columns)
    _check(sides, maps, heads, names, unit=unit, threshold=threshold)
    written = [_named(names, place, labels) for place in heads]
    with house_style():
        layout = _layout(sides, written, width)
        figure, axes = figure_page.page_of(width, layout.height)
        top = 1.0
        if unit != "probability":
            top = max(token_axes.largest(maps[place]) for place in heads)
        for name, (x, y), (hue, dash) in zip(written, layout.places, LOOKS, strict=False):
            ends, butt = [x, x + SWATCH], "butt"
            axes.plot(ends, [y, y], color=color(hue), ls=dash, lw=2, dash_capstyle=butt)
            axes.text(x + SWATCH + 3, y, name, fontsize=KEY_SIZE, va="center_baseline")
        _draw_tokens(axes, layout, sides)
        chosen = np.stack([maps[place] for place in heads])  # [chosen head, query, key]
        axes.add_collection(_lines(chosen / top, layout, sides, threshold=threshold))
        _draw_scale(axes, layout, [shown_value(share * top, unit) for share in SAMPLES], label)
    return figure


@dataclass(frozen=True, slots=True)
class _LinesLayout:
    """Positions in points from the upper left corner.

    words   [from or to][token] as they are set, in `size` points
    left    where the lines begin; right: where they end
    first   the y of the first token; the next ones follow at `pitch`
    places  of the entries of the key
    """

    words: tuple[list[str], list[str]]
    size: float
    pitch: float
    left: float
    right: float
    first: float
    height: float
    places: list[tuple[float, float]]


def _layout(sides: Sides, names: Sequence[str], width: float) -> _LinesLayout:
    count = max(len(sides.queries), len(sides.keys))
    pitch = min(PITCH, LEAST_PITCH * MOST_TOKENS / count)
    size = min(SIZE, TYPE * pitch)
    room = COLUMN * width - EDGE
    queries, keys = figure_page.set_words(sides, size=size, room=room)
    places = _key_places(names, width)
    first = places[-1][1] + KEY_ROW / 2 + HEADING + pitch / 2
    height = first + pitch * (count - 0.5) + FOOT
    left, right = (
        max([width_of(word, size) for word in words] + [width_of(heading, KEY_SIZE)]) + EDGE + GAP
        for words, heading in ((queries, "from"), (keys, "to"))
    )
    return _LinesLayout((queries, keys), size, pitch, left, width - right, first, height, places)


def _key_places(names: Sequence[str], width: float) -> list[tuple[float, float]]:
    places, x, y = [], EDGE, KEY_ROW / 2
    for name in names:
        wide = SWATCH + 3 + width_of(name, KEY_SIZE)
        if x > EDGE and x + wide > width - EDGE:
            x, y = EDGE, y + KEY_ROW
        places.append((x, y))
        x += wide + KEY_SPACE
    return places


def _draw_tokens(axes: Axes, layout: _LinesLayout, sides: Sides) -> None:
    above = layout.first - layout.pitch / 2 - HEADING / 2
    both = zip(
        (layout.left - GAP, layout.right + GAP),
        ("right", "left"),
        ("from", "to"),
        layout.words,
        (token_axes.shades(sides.query_special), token_axes.shades(sides.key_special)),
        strict=True,
    )
    for x, side, heading, words, hues in both:
        axes.text(
            x,
            above,
            heading,
            ha=side,
            va="center_baseline",
            fontsize=KEY_SIZE,
            color=color("muted"),
            style="italic",
        )
        for at, (word, hue) in enumerate(zip(words, hues, strict=True)):
            y = layout.first + at * layout.pitch
            axes.text(x, y, word, ha=side, va="center_baseline", fontsize=layout.size, color=hue)


def _lines(
    shares: Floats, layout: _LinesLayout, sides: Sides, *, threshold: float
) -> LineCollection:
    """All lines, the weakest first; shares [chosen head, query, key] of the scale."""
    places = np.argwhere((shares >= threshold) & (shares > 0))
    drawn = shares[tuple(places.T)].astype(np.float64)
    order = np.argsort(drawn, kind="stable")
    places, drawn = places[order], np.minimum(drawn[order], 1.0)
    fan = min(FAN, 0.7 * layout.pitch / len(shares))
    y = layout.first + layout.pitch * places[:, 1:] + fan * (places[:, :1] - (len(shares) - 1) / 2)
    x = np.broadcast_to([layout.left, layout.right], y.shape)
    opacity = FAINT + (1 - FAINT) * drawn
    aside = sides.query_special[places[:, 1]] | sides.key_special[places[:, 2]]  # [line]
    opacity = np.where(aside, FADED * opacity, opacity)
    looks = [LOOKS[head] for head in places[:, 0].tolist()]
    hues = [color(hue) for hue, _ in looks]
    return LineCollection(
        list(np.stack([x, y], axis=-1)),  # [line][end, axis]
        colors=[to_rgba(hue, seen) for hue, seen in zip(hues, opacity.tolist(), strict=True)],
        linestyles=[dash for _, dash in looks] or "-",
        linewidths=_width(drawn),
        capstyle="butt",
        zorder=2,
    )


def _draw_scale(axes: Axes, layout: _LinesLayout, values: Sequence[str], label: str) -> None:
    x, y = EDGE, layout.height - FOOT / 2 + 1.5
    word = fitted(label, size=KEY_SIZE, room=LABEL_ROOM * (layout.left + layout.right))
    axes.text(x, y, word, fontsize=KEY_SIZE, va="center_baseline", color=color("muted"))
    x += width_of(word, KEY_SIZE) + KEY_SPACE / 2
    for share, value in zip(SAMPLES, values, strict=True):
        shade = to_rgba(color("ink"), FAINT + (1 - FAINT) * share)
        axes.plot([x, x + SWATCH], [y, y], color=shade, lw=_width(share), solid_capstyle="butt")
        axes.text(x + SWATCH + 3, y, value, fontsize=KEY_SIZE, va="center_baseline")
        x += SWATCH + 3 + width_of(value, KEY_SIZE) + KEY_SPACE / 2


def _width(share: Floats | float) -> Floats | float:
    return THIN + (THICK - THIN) * share


def _named(names: HeadNames, place: Head, labels: Sequence[Sequence[str]] | None) -> str:
    says = labels[place[0]][place[1]] if labels else ""
    return f"{names.head(*place)}  {clipped(says, LONGEST_LABEL)}".rstrip()


def _check(
    sides: Sides,
    maps: Floats,
    heads: Sequence[Head],
    names: HeadNames,
    *,
    unit: str,
    threshold: float,
) -> None:
    if maps.ndim != 4:
        raise InputError(
            f"maps has the shape {maps.shape}; wanted [layer, head, query, key] of one example"
        )
    if not 0 < len(heads) <= len(LOOKS):
        raise InputError(f"found {len(heads)} heads to draw; wanted 1 to {len(LOOKS)}")
    figure_page.check_heads(maps, heads, names)
    chosen = np.stack([maps[place] for place in heads])  # [chosen head, query, key]
    token_axes.check_weights(sides, chosen, unit=unit)
    count = max(len(sides.queries), len(sides.keys))
    if count > MOST_TOKENS:
        raise InputError(
            f"found {count} tokens; a page holds {MOST_TOKENS}: shorten the text, or "
            "draw a map of the head"
        )
    if not 0 <= threshold <= 1:
        raise InputError(f"threshold is {threshold!r}; wanted a share of the scale, 0 to 1")
