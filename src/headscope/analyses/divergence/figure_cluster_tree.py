"""In what tree do heads join, the most alike first, and does it show the same clusters?

The second way to cluster, by average linkage, beside the first: the tree of all heads, the whole
matrix of divergences in the tree's order, and strips with each head's k-medoids cluster and layer.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from headscope.analyses.divergence.clustering import average_tree
from headscope.analyses.divergence.clusters import FOUND, clusters
from headscope.analyses.divergence.figure_clusters import LN2, layer_strip, mark_cluster
from headscope.core.results import estimate, group, shape
from headscope.core.wording import fixed, percent, plain
from headscope.draw.caption_words import over
from headscope.draw.marks import cell_key
from headscope.draw.panel import Panel, Picture
from headscope.draw.style import color, ramp_map

TREE, STRIP, SPACE = 0.3, 0.022, 0.008  # of the map's width
MOST_NUMBERS = 3  # rows of a cluster, at least, that its number needs


def panels(tree: xr.DataTree) -> list[Panel]:
    """One panel; none where the run has no clusters."""
    divergence = group(tree, "divergence")
    if divergence is None or not all(name in divergence for name in FOUND):
        return []
    height = (1 + 0.06) / (1 + TREE + 3 * STRIP) + 0.02
    return [Panel("", partial(_draw, tree, divergence), height=height)]


def caption(tree: xr.DataTree) -> str:
    """How to read the figure, and how far the two ways to cluster agree."""
    divergence = group(tree, "divergence")
    if divergence is None or "method_agreement" not in divergence:
        return ""
    found, agreement = clusters(tree), float(divergence["method_agreement"])
    sizes = _cut_sizes(divergence, len(found))
    largest = percent(max(sizes) / sum(sizes), np.nan, np.nan)
    alone = sum(size == 1 for size in sizes)
    return (
        "The tree joins heads, and then groups of heads, in the order of their mean distance "
        "(average linkage on the root of the Jensen–Shannon divergence; branches as long as the "
        "distance). Beside it each head’s layer, light to dark, and its k-medoids cluster, then "
        "its divergence from every other head in nats, in the same order, 0 (page) alike. Cut into "
        f"{len(found)} groups, the tree puts {largest} of the heads into the largest and {alone} "
        f"alone; its agreement with the clusters is {fixed(agreement, 2)} (adjusted Rand index: "
        f"1 the same, 0 chance). {over(tree)}. After Clark et al. (2019), §6."
    )


def _cut_sizes(divergence: xr.Dataset, count: int) -> list[int]:
    """Heads in each group of the tree, cut into `count`."""
    from headscope.analyses.divergence.clustering import labels_by

    labels = labels_by("average", _distances(divergence), [count])[0]
    return [int(size) for size in np.bincount(labels)]


def _distances(divergence: xr.Dataset) -> np.ndarray:
    js = estimate(divergence.transpose("unit", "unit_other", ...), "js").value
    return np.asarray(np.sqrt(js))


def _draw(tree: xr.DataTree, divergence: xr.Dataset, axes: Axes) -> None:
    from scipy.cluster.hierarchy import dendrogram

    distances = _distances(divergence)
    joined = dendrogram(average_tree(distances, ordered=True), no_plot=True)
    order, count = np.array(joined["leaves"]), len(distances)
    top = min(float(distances.max()) ** 2, LN2) or LN2
    axes.imshow(
        distances[np.ix_(order, order)] ** 2, cmap=ramp_map(), vmin=0, vmax=top,
        interpolation="nearest", extent=(0, count, count, 0),
    )  # fmt: skip
    width, space = STRIP * count, SPACE * count
    number = divergence["cluster"].values.astype(int)[order]
    _cluster_strip(axes, number, at=-width - space, width=width)
    layer_strip(axes, order // shape(tree)[1], shape(tree)[0], at=-2 * (width + space), width=width)
    start, room = -2 * (width + space) - space, TREE * count
    for rows, heights in zip(joined["icoord"], joined["dcoord"], strict=True):
        # scipy spaces leaves by 10, from 5.
        along = start - np.array(heights) / distances.max() * room
        axes.plot(along, np.array(rows) / 10, color=color("muted"), lw=0.6)
    for at, words in ((start, "0"), (start - room, f"distance {distances.max():.2f}")):
        axes.text(
            at, count + 2 * space, words, fontsize=6.5, va="top",
            ha="left" if at < start else "center",
        )  # fmt: skip
    axes.set_xlim(start - room, count)
    axes.set_ylim(count, 0)
    axes.set_aspect("equal")
    axes.set_axis_off()
    unit = str(divergence["js"].attrs.get("units", "nats"))
    cell_key(axes, f"{plain(top, unit)} {unit}")
    for at, words in ((-1.5 * width - 2 * space, "layer"), (-0.5 * width - space, "cluster")):
        axes.text(at, count + 2 * space, words, fontsize=6.5, va="top", ha="center", rotation=90)


def _cluster_strip(axes: Axes, number: np.ndarray, *, at: float, width: float) -> None:
    """The cluster of every row, in its colour, with its number where there is room."""
    starts = np.flatnonzero(np.diff(number, prepend=-1)).tolist()
    for start, stop in zip(starts, [*starts[1:], len(number)], strict=True):
        ink = mark_cluster(axes, int(number[start]), (at, start), (width, stop - start))
        if stop - start >= MOST_NUMBERS * len(number) / 144:
            axes.text(
                at + width / 2, (start + stop) / 2, str(number[start] + 1), fontsize=5,
                va="center", ha="center", color=ink, zorder=6,
            )  # fmt: skip


PICTURE = Picture(
    "cluster_tree", "The tree of heads", ("divergence",), panels, caption, columns=1, wide=True
)
