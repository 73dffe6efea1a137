"""Which heads attend alike, in clusters, and what does each cluster do?

Every head against every other, cluster after cluster, so that alike heads make pale triangles on
the diagonal; the words stand in the half that would only repeat the other.
"""

import textwrap
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.patches import Rectangle

from headscope.analyses.divergence.clustering import average_tree
from headscope.analyses.divergence.clusters import Cluster, averaged, clusters, divergences, most
from headscope.claims.caption_words import clipped
from headscope.claims.reading import Reading
from headscope.core.accumulators import Ints
from headscope.core.results import Floats, shape
from headscope.core.wording import plain
from headscope.draw.head_marks import note_pairs
from headscope.draw.marks import box_path, cells
from headscope.draw.panel import Panel
from headscope.draw.style import color, layer_colors, ramp

HUES = ("blue", "vermillion", "green", "purple", "orange", "sky", "grey")
LEVELS = 12  # shades of the map: finer ones nobody sees, and each makes the file larger
MOST_CELLS = 160  # of a side; of more heads, neighbours in the picture share a cell
STRIP = 0.018  # of the map's width: how wide the strips beside it are
TEXT = 0.8  # of the map's width: room for words on its right
FOOT = 0.055  # of the map's height: room for its key
LINE = 0.029  # of the map's height: a line of text
GAP = 0.012  # of the map's height, at least, between the words of two clusters
WRAP = 56  # characters of a line


def panels(run: Reading) -> list[Panel]:
    """The divergences in the order of clusters; none where the run has no clusters."""
    groups = clusters(run.tree)
    if not groups:
        return []
    height = (1 + STRIP + FOOT) / (1 + TEXT + 3 * STRIP) + 0.02
    return [Panel("", partial(_draw, run, groups), height=height)]


def caption(run: Reading) -> str:
    """How to read it, with the name of each cluster."""
    heads, merged = shape(run.tree)[1], _block(shape(run.tree))
    each = "; ".join(
        f"({one.number + 1}) {one.name}, typical {run.names.unit(one.medoid, heads)}"
        for one in clusters(run.tree)
    )
    one_each = "every head against every other"
    cell = one_each if merged == 1 else f"means of {merged} × {merged} heads"
    return (
        f"Divergence of {cell}, in nats: the nearer to the page’s colour, the more alike. Heads "
        "are ordered by cluster (k-medoids on the root of the Jensen–Shannon divergence), clusters "
        "by depth, within a cluster by likeness; the strip on the left is the layer, the first "
        f"nearest to the page’s colour. {each}. "
        f"{averaged(run).capitalize()}; {run.over()}. After Clark et al. (2019), §6."
    )


def ordered_units(js: Floats, groups: Sequence[Cluster]) -> list[int]:
    """The units cluster after cluster, in each by an average-linkage tree; js [unit, unit]."""
    from scipy.cluster.hierarchy import leaves_list

    order: list[int] = []
    for one in groups:
        units = np.array(one.units)
        if len(units) > 2:
            tree = average_tree(np.sqrt(js[np.ix_(units, units)]), ordered=True)
            units = units[leaves_list(tree)]
            # The tree may be read from either side: begin with the earlier layers.
            half = len(units) // 2
            units = units if units[:half].mean() <= units[half:].mean() else units[::-1]
        order += units.tolist()
    return order


def mark_cluster(
    axes: Axes, number: int, corner: tuple[float, float], size: tuple[float, float]
) -> str:
    """A bar in a cluster's hue, beyond the hues hollow, then half; returns the ink read on it."""
    hue, cue = color(HUES[number % len(HUES)]), number // len(HUES)
    width, height = size
    if cue == 1:
        box = Rectangle(corner, width, height, fc=color("page"), ec=hue, lw=1.0)
    else:
        box = Rectangle(corner, width * (0.4 if cue > 1 else 1.0), height, fc=hue, lw=0)
    box.set(clip_on=False, zorder=4)
    axes.add_patch(box)
    return color("ink" if cue else "page")


def _block(size: tuple[int, int]) -> int:
    return -(-size[0] * size[1] // MOST_CELLS)


def _draw(run: Reading, groups: Sequence[Cluster], axes: Axes) -> None:
    (layers, heads), pairs = shape(run.tree), divergences(run.tree)
    js, unit = pairs.value, str(run.data["js"].attrs.get("units", "nats"))
    order = ordered_units(js, groups)
    count = len(order)
    top = most(js)
    block = _block((layers, heads))
    _map(axes, js[np.ix_(order, order)], block, top)
    if block == 1:  # else a cell is the mean of several heads
        note_pairs(axes, order, pairs, f"divergence ({unit})")
    _strips(axes, groups, np.array(order) // heads, layers)
    _words(axes, groups, count)
    axes.set(
        xlim=(-3 * STRIP * count, count * (1 + TEXT)), ylim=(count * (1 + FOOT), -STRIP * count)
    )
    axes.set_aspect("equal", anchor="W")
    axes.set_axis_off()
    _key(axes, f"{plain(top, unit)} {unit}", count)


def _map(axes: Axes, js: Floats, block: int, top: float) -> None:
    """The half below the diagonal; js [unit, unit] in the order of the picture."""
    count = len(js)
    starts = np.arange(0, count, block)
    edges = np.append(starts, count).astype(np.float64)
    sums = np.add.reduceat(np.add.reduceat(js, starts, 0), starts, 1)  # [cell, cell]
    sizes = np.diff(edges)
    means = sums / np.outer(sizes, sizes)
    lower = np.tril(means, 0 if block > 1 else -1)
    steps = np.ceil(lower / top * (LEVELS - 1)) / (LEVELS - 1)
    cells(axes, edges, edges, steps * top, top=top)


def _strips(axes: Axes, groups: Sequence[Cluster], layer: Ints, layers: int) -> None:
    width = STRIP * len(layer)
    layer_strip(axes, layer, layers, at=-2 * width, width=width)
    start = 0
    for one in groups:
        stop = start + len(one.units)
        outline = [(start, start), (start, stop), (stop, stop), (start, start)]
        axes.plot(*zip(*outline, strict=True), color=color("ink"), lw=0.7, zorder=5)
        mark_cluster(axes, one.number, (stop + 0.4 * width, start), (0.8 * width, stop - start))
        start = stop


def layer_strip(axes: Axes, layer: Ints, layers: int, *, at: float, width: float) -> None:
    """The layers of rows from the top, light to dark; layer [row] of `layers`."""
    shades, ends = layer_colors(layers), runs(layer)
    boxes = [box_path(at, at + width, *rows, 0.0) for rows in ends]
    hues = [shades[int(layer[start])] for start, _ in ends]
    strip = PathCollection(boxes, facecolors=hues, linewidths=0.0, clip_on=False)
    axes.add_collection(strip, autolim=False)


def runs(numbers: Ints) -> list[tuple[int, int]]:
    """The first and the last row + 1 of each stretch of equal numbers."""
    starts = np.flatnonzero(np.diff(numbers, prepend=-1)).tolist()
    return list(pairwise([*starts, len(numbers)]))


def _key(axes: Axes, top: str, count: int) -> None:
    small: dict[str, Any] = {"fontsize": 6.5, "va": "center"}
    level = count * (1 + 0.62 * FOOT)
    axes.text(-1.5 * STRIP * count, level, "layer", ha="center", **small)
    width, right = 0.12 * count, count - 0.15 * count
    shades = ramp()
    edges, thick = np.linspace(right - width, right, len(shades) + 1), 0.008 * count
    boxes = [box_path(*pair, level - thick, level + thick, 0.0) for pair in pairwise(edges)]
    axes.add_collection(PathCollection(boxes, facecolors=shades, linewidths=0.0), autolim=False)
    axes.text(right - width - 0.01 * count, level, "0", ha="right", **small)
    axes.text(right + 0.01 * count, level, top, ha="left", **small)


def _words(axes: Axes, groups: Sequence[Cluster], count: int) -> None:
    sizes = np.array([len(one.units) for one in groups])
    ends = np.cumsum(sizes)
    texts = [[f"{one.name.partition(':')[0]}", *textwrap.wrap(one.what, WRAP)] for one in groups]
    heights = np.array([len(lines) * LINE + GAP for lines in texts]) * count
    if heights.sum() > count:  # one line each, then
        texts = [[clipped(one.name, WRAP + 4)] for one in groups]
        heights = np.full(len(texts), (LINE + GAP) * count)
    line = LINE * count
    wanted = ends - sizes / 2 + (heights - line) / 2  # the first line level with the cluster
    left = count * (1 + 2.8 * STRIP)
    for at, place in enumerate(spread(wanted, heights, count)):
        level, middle = place - (heights[at] - line) / 2, ends[at] - sizes[at] / 2
        start = ends[at] + 1.5 * STRIP * count
        bend = max(start, left - 0.08 * count)
        axes.plot(
            [start, bend, left - 0.012 * count],
            [middle, middle, level],
            color=color("rule"),
            lw=0.6,
            zorder=1,
        )
        axes.text(left, level, str(at + 1), fontsize=6.5, fontweight="bold", va="center")
        for row, words in enumerate(texts[at]):
            axes.text(
                left + 0.045 * count,
                level + row * line,
                words,
                va="center",
                fontsize=6 if row else 6.5,
                color=color("muted" if row else "ink"),
            )


def spread(wanted: Floats, heights: Floats, room: float) -> Floats:
    """Middles as near to the wanted ones as boxes allow that may not overlap, inside 0 to room.

    wanted, heights  [box] from top to bottom; if they do not fit, they run over at the bottom
    """
    places = np.array(wanted, np.float64)
    for _ in range(len(places)):
        moved = places.copy()
        places[0] = max(places[0], heights[0] / 2)
        for at in range(1, len(places)):
            gap = (heights[at - 1] + heights[at]) / 2
            places[at] = max(places[at], places[at - 1] + gap)
        if heights.sum() <= room:
            places[-1] = min(places[-1], room - heights[-1] / 2)
            for at in range(len(places) - 2, -1, -1):
                gap = (heights[at] + heights[at + 1]) / 2
                places[at] = min(places[at], places[at + 1] - gap)
        if np.allclose(moved, places):
            break
    return places
