"""Which heads see frames: from a frame element to the word that evokes the frame?

Kovaleva et al. (2019), §4.2, with the distribution over sentences of the top heads, and what the
same links give elsewhere in their sentences.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from headscope.core.accumulators import Estimate
from headscope.core.results import Floats, estimate, group
from headscope.core.wording import number
from headscope.draw.caption_words import INTERVALS, quantity
from headscope.draw.head_grid import draw_grid, grid_height, largest
from headscope.draw.marks import legend
from headscope.draw.panel import Panel, Picture
from headscope.draw.rows import HEADER, beside, column_start, row_axes, row_point, rows_height
from headscope.draw.style import DOUBLE, color

TOP = 8  # heads
BOX = 0.5  # rows
COLUMNS = {"head": -4.0, "p": 26.0}  # points; see `beside`
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


def panels(tree: xr.DataTree) -> list[Panel]:
    """The top heads over sentences; all heads, from frame element to target and back."""
    frames = group(tree, "frames")
    if frames is None or not np.isfinite(frames["score"].values).any():
        return []
    both = [estimate(frames, name).value for name in ("score", "score_reversed")]
    top = max(map(largest, both))
    unit = str(frames["score"].attrs.get("units", "1"))
    titles = ("Frame element to target", "Target to frame element")
    places = _top_heads(both[0])
    height = rows_height(len(places), width=DOUBLE / 3)
    left = column_start((_name(place) for place in places), COLUMNS["head"])
    return [
        Panel("Top heads", partial(_draw, frames, places, left), height=height, left=left),
        *(
            Panel(title, partial(draw_grid, grid, unit=unit, top=top), height=grid_height(grid))
            for title, grid in zip(titles, both, strict=True)
        ),
    ]


def caption(tree: xr.DataTree) -> str:
    """How to read the figure."""
    frames = group(tree, "frames")
    count = 0 if frames is None else int(frames["sentences"])
    what = "attention" if frames is None else quantity(frames)
    return (
        f"(a) The {TOP} heads of most {what} from a frame element to the word that evokes the "
        "frame, the largest of a sentence’s links: median, quartiles (box) and 5 to 95 % (line) "
        f"of the sentences; dot: mean with {INTERVALS}; diamond: the mean with the links moved "
        "elsewhere in their sentences; p: how often any head then stands as far above its chance; "
        "(b, c) the mean of every head, both ways, from 0 (page) to the value at the end of the "
        f"key; n = {count:,} sentences. After Kovaleva et al. (2019), §4.2."
    )


def _top_heads(score: Floats) -> list[tuple[int, int]]:
    """(layer, head) of the largest scores [layer, head], the largest first."""
    order = np.argsort(-np.nan_to_num(score, nan=-np.inf), axis=None, kind="stable")
    places = [tuple(map(int, np.unravel_index(at, score.shape))) for at in order[:TOP]]
    return [(layer, head) for layer, head in places if np.isfinite(score[layer, head])]


def _name(place: tuple[int, int]) -> str:
    return f"L{place[0] + 1}·H{place[1] + 1}"


def _draw(frames: xr.Dataset, places: list[tuple[int, int]], left: float, axes: Axes) -> None:
    for text, at in COLUMNS.items():
        beside(axes, HEADER, text, at, faint=True, fontsize=6.5)
    for row, place in enumerate(places):
        _row(axes, row, frames, place)
    is_share = str(frames["score"].attrs.get("units", "1")) == "probability"
    row_axes(axes, len(places), quantity(frames), percent=is_share)
    axes.set_xlim(left=0)
    legend(axes, [("all", "mean"), ("chance", "chance")], line=False, start=left)


def _row(axes: Axes, row: int, frames: xr.Dataset, place: tuple[int, int]) -> None:
    here = frames.isel(layer=place[0], head=place[1])
    beside(axes, row, _name(place), COLUMNS["head"])
    beside(axes, row, _p(float(here["p_value"])), COLUMNS["p"])
    low, lower, median, upper, high = (
        float(estimate(here, "score_quantile", quantile=level).value) for level in LEVELS
    )
    axes.hlines(row, low, high, color=color("sky"), lw=0.9, zorder=2)
    box: dict[str, Any] = {"fc": color("page"), "ec": color("sky"), "lw": 0.9}
    axes.add_patch(Rectangle((lower, row - BOX / 2), upper - lower, BOX, zorder=2, **box))
    axes.vlines(median, row - BOX / 2, row + BOX / 2, color=color("sky"), lw=1.6, zorder=3)
    chance = float(here["chance"])
    row_point(axes, row, Estimate(*(np.array(v) for v in (chance, np.nan, np.nan))), "chance")
    row_point(axes, row, estimate(here, "score"), "all")


def _p(value: float) -> str:
    return f"{value:.3f}" if value < 0.01 else number(value, np.nan, np.nan)


PICTURE = Picture("frames", "Heads and frames", ("frames",), panels, caption, columns=3)
FIGURES = (PICTURE,)
