"""What figures of one example share: checked input, scales, and the setting of tokens."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from headscope.claims.caption_words import clipped
from headscope.core.accumulators import Bools
from headscope.core.wording import plain
from headscope.draw.arcs import text_width
from headscope.draw.style import color
from headscope.errors import InputError

Floats = npt.NDArray[np.floating]
SIZE = 7.0  # points of type where there is room
TYPE = 0.8  # of the room of a row or column that type takes; the rest keeps rows apart
LONGEST = 24  # characters of a token or label, which is also no wider than its room
SLACK = 1.03
EDGE = 2.0  # points that nothing reaches, at both sides of a page
TURNS = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")  # of Unicode
ROUNDING = 1e-3  # a row of probabilities in half precision may sum to a little more than 1


@dataclass(frozen=True, slots=True)
class Sides:
    """The tokens that look and those that are looked at, each with the flags of special ones."""

    queries: Sequence[str]
    keys: Sequence[str]
    query_special: Bools
    key_special: Bools


def check_weights(sides: Sides, weights: Floats, *, unit: str) -> None:
    """Refuses what no picture can show, with an InputError; weights [..., query, key]."""
    rows, columns = len(sides.queries), len(sides.keys)
    if weights.shape[-2:] != (rows, columns):
        count = f"{rows} tokens" if sides.keys is sides.queries else f"{rows} and {columns} tokens"
        raise InputError(
            f"found {count} and weights of the shape {weights.shape}; wanted "
            f"[..., {rows}, {columns}]: a row for each attending token, a column for each "
            "attended one"
        )
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise InputError("the weights hold NaN, infinite or negative numbers; wanted 0 or more")
    if unit == "probability" and weights.size and weights.max() > 1 + ROUNDING:
        raise InputError(
            f"found the weight {weights.max():.3g} in the unit probability; wanted at most 1, or "
            'the unit "1" for a norm'
        )


def largest(weights: Floats) -> float:
    """The largest weight; 1 where all are 0, so that it can end a scale."""
    return float(weights.max(initial=0)) or 1.0


def fitted(text: object, *, size: float, room: float) -> str:
    """A token or label as text that any file can hold, cut to `room` points.

    Signs that turn the direction of text are shown as �, an empty token as ␣.
    """
    plainly = "".join("\ufffd" if unicodedata.bidirectional(c) in TURNS else c for c in str(text))
    if not plainly.strip():
        return "␣"
    for most in range(LONGEST, 1, -1):
        shown = clipped(plainly, most)
        if width_of(shown, size) <= room:
            return shown
    return "…"


def width_of(text: str, size: float) -> float:
    """In points, with some slack: small type is set a little wider on a grid of pixels.

    Signs of East Asia may be boxes, where no typeface has them, a fifth wider than a square.
    """
    squares = sum(unicodedata.east_asian_width(sign) in "WF" for sign in text)
    return SLACK * text_width(text, size) + squares * size / 5


def shades(special: Bools) -> list[str]:
    """[token] the colours that the tokens are set in: special ones stand back."""
    return [color("grey" if flag else "ink") for flag in special]


def set_tokens(
    axes: Axes,
    words: tuple[Sequence[str], Sequence[str]],
    special: tuple[Bools, Bools],
    *,
    size: float,
    pad: float,
) -> None:
    """The tokens of a map beside its rows and above its columns, in a frame.

    words    of the rows, of the columns; `size` points of type, `pad` points from the map
    special  [token] likewise, the tokens that stand back
    """
    rows, columns = words
    axes.xaxis.tick_top()
    axes.tick_params(length=0, pad=pad)
    axes.set_xticks(range(len(columns)), columns, fontsize=size, rotation=90, va="bottom")
    axes.set_yticks(range(len(rows)), rows, fontsize=size, va="center_baseline")
    both = zip((axes.get_yticklabels(), axes.get_xticklabels()), special, strict=True)
    for text, hue in (
        (t, h) for texts, flags in both for t, h in zip(texts, shades(flags), strict=True)
    ):
        text.set_color(hue)
    axes.spines[:].set(visible=True, color=color("rule"))


def shown_value(value: float, unit: str) -> str:
    """`5 %`, `0.4 %` or `3.21`."""
    if unit == "probability" and 0 < value < 0.1:
        return f"{100 * value:.2g} %"
    return plain(value, unit)
