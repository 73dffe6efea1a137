"""How sure are the clusters of heads, and does another way to cluster show the same ones?

How many clusters there are, how near heads are to their own, and whether clusters come back in
resampled heads. And the second way to cluster, by average linkage: the tree of all heads, the whole
matrix of divergences in the tree's order, and strips with each head's k-medoids cluster and layer.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from headscope.analyses.divergence.against_control import CLEAR, FAIR, clusters_of_control
from headscope.analyses.divergence.clustering import average_tree, labels_by
from headscope.analyses.divergence.clusters import Cluster, clusters, divergences, most
from headscope.analyses.divergence.figure_clusters import (
    HUES,
    layer_strip,
    mark_cluster,
    runs,
    spread,
)
from headscope.claims.caption_words import first_sentence, with_interval
from headscope.claims.reading import Reading
from headscope.core.accumulators import Ints
from headscope.core.results import Floats, at, estimate, shape
from headscope.core.wording import fixed, p_words, percent, plain
from headscope.draw.head_marks import note_heads, number_texts, without_ends
from headscope.draw.marks import band_line, cell_key, faint_grid
from headscope.draw.panel import Panel
from headscope.draw.style import color, ramp_map

NUMBER_HEIGHT = 0.06  # of a panel's height: a number beside it
STABLE = 0.75  # Hennig (2007): from here a cluster is found again
CHECKED = {"silhouette_by_k", "reference_silhouette", "cluster_count", "silhouette", "stays"}
TREE, STRIP, SPACE = 0.3, 0.022, 0.008  # of the map's width
MOST_NUMBERS = 3  # rows of a cluster, at least, that its number needs


def number_panels(run: Reading) -> list[Panel]:
    """How sure the clusters are; none where the run has no clusters."""
    divergence, groups = run.data, clusters(run.tree)
    if not groups or not set(divergence) >= CHECKED:
        return []
    made = [
        Panel("How many clusters", partial(_curve, divergence), height=0.9),
        Panel("How far apart", partial(_silhouettes, divergence, groups), height=0.9),
    ]
    if np.isfinite(divergence["jaccard"].values).any():
        made.append(Panel("Found again", partial(_stability, divergence, groups), height=0.9))
    return made


def number_caption(run: Reading) -> str:
    """How to read it, and what held."""
    divergence = run.data
    if "cluster_count" not in divergence:
        return ""
    count, draws = int(divergence["cluster_count"]), divergence.sizes["draw"]
    stability = _again(divergence) if np.isfinite(divergence["jaccard"].values).any() else ""
    return (
        "(a) Mean silhouette: how much nearer heads are to their own cluster than to the next, by "
        f"number of clusters; bands are 95 % intervals over heads; grey: {draws} sets of points "
        "that have the heads’ main axes and no clusters, clustered alike; tree: average linkage. "
        "The number chosen (line) is where k-medoids stand farthest above their mean. "
        f"{verdict(run)} "
        "(b) The silhouette of every head, by cluster; below 0 a head is nearer to another cluster."
        f"{stability}"
        f" {run.over()}; {count} clusters. The measures: Rousseeuw (1987), Hennig (2007)."
    )


def finding(run: Reading) -> str:
    """The first sentence of the verdict, without its numbers."""
    return first_sentence(verdict(run))


def verdict(run: Reading) -> str:
    """Whether heads fall into clusters, and how clear these are."""
    if "cluster_p" not in run.data:
        return ""
    p, count = float(run.data["cluster_p"]), int(run.data["cluster_count"])
    value, *ends = at(run("silhouette_by_k", variant="k_medoids", k=count))
    mean = with_interval("silhouette", value, *ends)
    if p > CLEAR:
        return (
            f"Heads without clusters would stand out as much ({p_words(p)}): the {count} clusters "
            f"({mean}) divide what is one cloud."
        )
    if np.isfinite(untrained := clusters_of_control(run.tree)):
        return (
            f"The {count} clusters of heads ({mean}) need not tell of what was learned: heads of a "
            f"network without training fall into clusters, too (silhouette {fixed(untrained, 2)})."
        )
    clear = "clear" if value >= 0.5 else "fuzzy" if value < FAIR else "fair"
    return f"Heads do fall into clusters ({p_words(p)}), {clear} ones ({mean})."


def _again(divergence: xr.Dataset) -> str:
    rand = divergence["stability"].values
    share = float(divergence["k_share"].sel(k=int(divergence["cluster_count"])))
    medoids, linkage = (fixed(float(value), 2) for value in rand)
    return (
        " (c) Mark: how much of a cluster is found again in clusters of heads drawn anew "
        f"(Jaccard overlap, mean; from {STABLE} stable, dashed: Hennig 2007); ticks: of each head, "
        "the share of draws in which it is with the cluster’s medoid. "
        f"Adjusted Rand index with the draws: {medoids} for k-medoids and {linkage} for "
        f"average linkage; {percent(share)} of them choose the same number."
    )


def _curve(divergence: xr.Dataset, axes: Axes) -> None:
    counts = divergence["k"].values.astype(float)
    reference = divergence["reference_silhouette"].transpose("draw", "k").values
    axes.fill_between(
        counts, reference.min(0), reference.max(0), color=color("grey"), alpha=0.25, lw=0
    )
    axes.plot(counts, reference.mean(0), color=color("grey"), lw=0.9, ls=(0, (4, 2)))
    band_line(axes, counts, estimate(divergence, "silhouette_by_k", variant="average"), "mean")
    band_line(axes, counts, estimate(divergence, "silhouette_by_k", variant="k_medoids"), "all")
    axes.axvline(float(divergence["cluster_count"]), color=color("ink"), lw=0.7)
    axes.set(ylim=min(0.0, axes.get_ylim()[0]), xlabel="clusters", ylabel="mean silhouette")
    step = 2 if len(counts) < 12 else 4
    axes.set_xticks([at for at in range(2, int(counts[-1]) + 1) if at % step == 0])
    faint_grid(axes)
    lines = [
        Line2D([], [], color=color(hue), marker="o", ms=3.6, mew=0, label=label)
        for hue, label in (("blue", "k-medoids"), ("grey", "tree"))
    ]
    handles = [*lines, Patch(color=color("grey"), alpha=0.25, lw=0, label="no clusters")]
    key = axes.legend(
        handles=handles, loc="lower left", bbox_to_anchor=(-0.12, 1), ncols=3, handlelength=1.4
    )
    key.set_in_layout(False)  # `compose` leaves it its height


def _silhouettes(divergence: xr.Dataset, groups: Sequence[Cluster], axes: Axes) -> None:
    value: Floats = divergence["silhouette"].values  # [unit]
    gap = max(len(value) / 60, 1.0)
    row, middles = 0.0, []
    for one in groups:
        units = np.array(one.units)
        units = units[np.argsort(-value[units], kind="stable")]
        own = value[units]
        hue, hollow = color(HUES[one.number % len(HUES)]), one.number >= len(HUES)
        rows = row + np.arange(len(own)) + 0.5
        axes.barh(rows, own, height=0.5 if hollow else 1.0, color=hue, lw=0)
        note_heads(axes, own, rows, number_texts(without_ends(own), "1"), units=units.tolist())
        middles.append(row + len(own) / 2)
        row += len(own) + gap
    height = row - gap
    room = min(NUMBER_HEIGHT, 1 / len(groups)) * height
    places = spread(np.array(middles), np.full(len(groups), room), height)
    for one, place in zip(groups, places.tolist(), strict=True):
        axes.text(
            -0.015,
            place,
            str(one.number + 1),
            fontsize=6,
            va="center",
            ha="right",
            transform=axes.get_yaxis_transform(),
        )
    axes.axvline(0, color=color("muted"), lw=0.6)
    axes.set(ylim=(height, 0), yticks=[])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("silhouette of each head")
    axes.set_ylabel("cluster", labelpad=11)


def _stability(divergence: xr.Dataset, groups: Sequence[Cluster], axes: Axes) -> None:
    stays = divergence["stays"].values
    for one in groups:
        others = [unit for unit in one.units if unit != one.medoid]
        level = np.full(len(others), one.number)
        note_heads(axes, stays[others], level, [*map(percent, stays[others])], units=others)
        axes.plot(
            stays[others],
            level,
            "|",
            color=color("muted"),
            ms=6,
            mew=0.6,
            alpha=0.6,
            zorder=2,
        )
        hue = color(HUES[one.number % len(HUES)])
        face = color("page") if one.number >= len(HUES) else hue
        axes.plot(one.jaccard, one.number, "o", color=hue, mfc=face, ms=5, mew=1.0, zorder=4)
    axes.axvline(STABLE, color=color("muted"), lw=0.8, ls=(0, (4, 2)))
    axes.set(xlim=(0, 1.03), ylim=(len(groups) - 0.5, -0.5))
    axes.set_yticks(range(len(groups)), [str(one.number + 1) for one in groups])
    axes.tick_params(axis="y", length=0)
    axes.set(xlabel="overlap, and share of draws", ylabel="cluster")


def tree_panels(run: Reading) -> list[Panel]:
    """The tree and the matrix in its order; none where the run has no clusters."""
    if not clusters(run.tree):
        return []
    height = (1 + 0.06) / (1 + TREE + 3 * STRIP) + 0.02
    return [Panel("", partial(_draw_tree, run), height=height)]


def tree_caption(run: Reading) -> str:
    """How to read them."""
    if "method_agreement" not in run.data:
        return ""
    groups, agreement = clusters(run.tree), float(run.data["method_agreement"])
    sizes = np.bincount(labels_by("average", _distances(run), [len(groups)])[0]).tolist()
    largest, alone = percent(max(sizes) / sum(sizes)), sizes.count(1)
    return (
        "The tree joins heads, and then groups of heads, in the order of their mean distance "
        "(average linkage on the root of the Jensen–Shannon divergence; branches as long as the "
        "distance). Beside it each head’s layer, light to dark, and its k-medoids cluster, then "
        "its divergence from every other head in nats, in the same order, 0 (page) alike. Cut into "
        f"{len(groups)} groups, the tree puts {largest} of the heads into the largest and {alone} "
        f"alone; its agreement with the clusters is {fixed(agreement, 2)} (adjusted Rand index: "
        f"1 the same, 0 chance). {run.over()}. After Clark et al. (2019), §6."
    )


def _distances(run: Reading) -> Floats:
    return np.asarray(np.sqrt(divergences(run.tree).value))


def _draw_tree(run: Reading, axes: Axes) -> None:
    from scipy.cluster.hierarchy import dendrogram

    distances, (layers, heads) = _distances(run), shape(run.tree)
    joined = dendrogram(average_tree(distances, ordered=True), no_plot=True)
    order, count = np.array(joined["leaves"]), len(distances)
    top = most(distances**2)
    axes.imshow(
        distances[np.ix_(order, order)] ** 2,
        cmap=ramp_map(),
        vmin=0,
        vmax=top,
        interpolation="nearest",
        extent=(0, count, count, 0),
    )
    width, space = STRIP * count, SPACE * count
    number = run.data["cluster"].values.astype(int)[order]
    _cluster_strip(axes, number, at=-width - space, width=width)
    layer_strip(axes, order // heads, layers, at=-2 * (width + space), width=width)
    start, room = -2 * (width + space) - space, TREE * count
    along = start - np.array(joined["dcoord"]) / distances.max() * room  # [join, corner]
    joins = np.stack([along, np.array(joined["icoord"]) / 10], -1)  # scipy's leaves are 10 apart
    look: dict[str, Any] = {"colors": color("muted"), "lw": 0.6, "joinstyle": "round"}
    axes.add_collection(LineCollection(list(joins), capstyle="projecting", **look), autolim=False)
    axes.text(start, count + 2 * space, "0", fontsize=6, va="top", ha="center")
    longest = f"distance {distances.max():.2f}"
    axes.text(start - room, count + 2 * space, longest, fontsize=6, va="top", ha="left")
    axes.set(xlim=(start - room, count), ylim=(count, 0), aspect="equal")
    axes.set_axis_off()
    unit = str(run.data["js"].attrs.get("units", "nats"))
    cell_key(axes, f"{plain(top, unit)} {unit}")
    for left, words in ((-1.5 * width - 2 * space, "layer"), (-0.5 * width - space, "cluster")):
        axes.text(left, count + 2 * space, words, fontsize=6, va="top", ha="center", rotation=90)


def _cluster_strip(axes: Axes, number: Ints, *, at: float, width: float) -> None:
    for start, stop in runs(number):
        ink = mark_cluster(axes, int(number[start]), (at, start), (width, stop - start))
        if stop - start >= MOST_NUMBERS * len(number) / 144:
            axes.text(
                at + width / 2,
                (start + stop) / 2,
                str(number[start] + 1),
                fontsize=5,
                va="center",
                ha="center",
                color=ink,
                zorder=6,
            )
