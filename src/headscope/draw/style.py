"""The style of all figures: colours, type, widths and marks, and their meaning.

A colour has one meaning in every figure and in the report. Hues are Okabe and Ito's colour-blind
safe set, orange and sky darkened to 3:1 against the page; each comes with a marker as second cue.
The ramp begins at the page's own colour, so that 0 looks empty. Its lightness falls evenly through
the colours of viridis. Every colour has a counterpart for a dark page.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from zlib import crc32

import matplotlib as mpl
import numpy as np
from matplotlib.colors import Colormap, ListedColormap, to_hex, to_rgb

from headscope.claims.head_attention import NEXT, PREVIOUS, SELF
from headscope.claims.question import parts, questions, rules_of

SINGLE, DOUBLE = 3.3, 6.9  # inches, one and two columns of a journal page
RAMP_STEPS = 24
TYPEFACE = "DejaVu Sans"  # matplotlib brings it, so that figures are the same on every machine

# name → (on a light page, on a dark page)
COLORS = {
    "page": ("#ffffff", "#14161a"),
    "ink": ("#1b1e23", "#e4e6ea"),
    "muted": ("#5c626b", "#a0a6b0"),
    "rule": ("#d5d8dd", "#3a3f48"),
    "blue": ("#0072b2", "#4fa8e0"),
    "vermillion": ("#d55e00", "#f5813f"),
    "green": ("#009e73", "#33c79c"),
    "orange": ("#bd8100", "#f0b840"),
    "sky": ("#3b96cf", "#9ad3f4"),
    "purple": ("#b5629a", "#e0a0c8"),
    "grey": ("#868c95", "#8d939d"),
}
LIGHT = {name: pair[0] for name, pair in COLORS.items()}

# word of the data → (colour, matplotlib marker); questions have further ones (`Question.marks`)
MARKS = {
    PREVIOUS: ("orange", "<"),
    NEXT: ("sky", ">"),
    "broad": ("purple", "D"),
    "cls": ("blue", "s"),
    "first": ("blue", "s"),
    "sep": ("vermillion", "^"),
    "punctuation": ("green", "v"),
    SELF: ("purple", "D"),
    "other": ("grey", "o"),
    "all": ("blue", "o"),
    "best_head": ("blue", "o"),
    "offset": ("grey", "D"),
    "chance": ("grey", "D"),
    "mean": ("grey", "o"),
    "strongest": ("blue", "D"),
    "before": ("grey", "o"),
    "after": ("blue", "D"),
}
SPARE = ("*", "P", "X", "d")  # markers of words without a mark of their own
SPARE_HUES = ("blue", "vermillion", "green", "orange", "sky", "purple")
SALT = "headscope"  # of identifiers in SVG; tells that the style is set
DASHES = ("-", (0, (4, 1.6)), (0, (1.2, 1.4)), (0, (5, 1.4, 1.2, 1.4)), (0, (7, 1.6)))

_RAMP_LIGHT = ("#ffffff", "#bfe6d2", "#5fc3a2", "#21918c", "#31688e", "#443983", "#2c0145")
_RAMP_DARK = ("#14161a", "#3b2a6b", "#3d4e8a", "#2a788e", "#22a884", "#7ad151", "#f4f3ae")


def color(word: str) -> str:
    """The light-page hex colour of a colour's name or of a word of the data."""
    return LIGHT[word if word in LIGHT else mark_of(word)[0]]


def marker(word: str) -> str:
    """The marker of a word of the data."""
    return mark_of(word)[1]


def mark_of(word: str) -> tuple[str, str]:
    """The colour's name and the marker of a word of the data; a spare one where it has none.

    Which one is spare follows from the place among the words that questions explain.
    """
    if word in (known := marks()):
        return known[word]
    words = [w for one in questions() for w in (*one.part("terms", {}), *rules_of(one))]
    words = [other for other in dict.fromkeys(words) if other not in known]
    at = words.index(word) if word in words else crc32(word.encode())
    hues, kinds = len(SPARE_HUES), len(SPARE)
    turn = at // math.lcm(hues, kinds)  # else the pairs would begin again
    return SPARE_HUES[at % hues], SPARE[(at + turn) % kinds]


def marks() -> dict[str, tuple[str, str]]:
    """The marks of all words that have one: of attention at large, else of the first question."""
    known = dict(MARKS)
    for own in parts("marks"):
        known |= {w: mark for w, mark in own.items() if w not in known and mark[0] in LIGHT}
    return known


@cache
def ramp(*, dark: bool = False) -> tuple[str, ...]:
    """RAMP_STEPS hex colours, from the page (0) to the far end (1), even in lightness."""
    stops = np.array([to_rgb(stop) for stop in (_RAMP_DARK if dark else _RAMP_LIGHT)])
    at = np.linspace(0, 1, len(stops))
    fine = np.linspace(0, 1, 1024)
    curve = np.stack([np.interp(fine, at, stops[:, channel]) for channel in range(3)], axis=-1)
    travel = np.abs(_lightness(curve) - _lightness(curve[:1]))
    even = np.interp(np.linspace(0, travel[-1], RAMP_STEPS), np.maximum.accumulate(travel), fine)
    red, green, blue = (np.interp(even, at, stops[:, channel]) for channel in range(3))
    return tuple(map(to_hex, zip(red.tolist(), green.tolist(), blue.tolist(), strict=True)))


def ramp_map() -> Colormap:
    """The light ramp as a matplotlib colour map; missing values stay empty."""
    return ListedColormap(ramp(), name="headscope").with_extremes(bad=(0, 0, 0, 0))


def layer_colors(layers: int) -> list[str]:
    """One ramp colour per layer, light to dark; begins away from the page so that all show."""
    steps = ramp()
    return [steps[layer_step(layer, layers)] for layer in range(layers)]


def layer_step(layer: int, layers: int) -> int:
    """The index in the ramp that stands for a layer."""
    start = RAMP_STEPS // 4
    return start + round(layer / max(layers - 1, 1) * (RAMP_STEPS - 1 - start))


@contextmanager
def house_style() -> Iterator[None]:
    """Everything drawn inside looks like headscope; the caller's own settings come back after.

    The caller's typeface stays where matplotlib's `font.family` is not its default.
    Who draws much opens it once around all of it: what is opened inside costs nothing.
    """
    if mpl.rcParams["svg.hashsalt"] == SALT:
        yield
        return
    chosen = mpl.rcParams["font.family"]
    faces = [TYPEFACE] if chosen == mpl.rcParamsDefault["font.family"] else chosen
    with mpl.rc_context({**_settings(), "font.family": faces}):
        yield


@cache
def _settings() -> dict[Any, Any]:
    ink, muted, rule = LIGHT["ink"], LIGHT["muted"], LIGHT["rule"]
    return {
        "text.parse_math": False,  # names come from tokenizers; a $ in them is no formula
        "font.size": 7,
        "axes.titlesize": 7.5,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.titlepad": 6,
        "axes.labelsize": 7,
        "axes.labelcolor": ink,
        "axes.edgecolor": muted,
        "axes.linewidth": 0.6,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.facecolor": "none",
        "axes.unicode_minus": True,
        "figure.facecolor": "none",
        "text.color": ink,
        "xtick.labelsize": 6.5,
        "ytick.labelsize": 6.5,
        "xtick.color": muted,
        "ytick.color": muted,
        "xtick.labelcolor": ink,
        "ytick.labelcolor": ink,
        "xtick.major.width": 0.6,
        "ytick.major.width": 0.6,
        "xtick.major.size": 2.5,
        "ytick.major.size": 2.5,
        "xtick.minor.size": 0,
        "ytick.minor.size": 0,
        "grid.color": rule,
        "grid.linewidth": 0.5,
        "lines.linewidth": 1.3,
        "lines.markersize": 3.5,
        "legend.frameon": False,
        "legend.fontsize": 6.5,
        "legend.handlelength": 1.3,
        "legend.handletextpad": 0.4,
        "legend.columnspacing": 0.7,
        "legend.borderaxespad": 0.2,
        "svg.fonttype": "none",
        "svg.hashsalt": SALT,
        "pdf.fonttype": 42,
        "figure.dpi": 100,
        "figure.autolayout": False,  # figures are laid out by `saving`, once
        "figure.constrained_layout.use": False,
    }


def _lightness(rgb: np.ndarray) -> np.ndarray:
    """CIE L* of sRGB colours [..., 3]."""
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    luminance = linear @ np.array([0.2126, 0.7152, 0.0722])
    return np.asarray(
        np.where(luminance > 0.008856, 116 * np.cbrt(luminance) - 16, 903.3 * luminance)
    )
