"""How many clusters of heads are there, how far apart are they, and are they found again?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from headscope.analyses.divergence.clusters import Cluster, clusters
from headscope.analyses.divergence.figure_clusters import HUES, spread
from headscope.analyses.divergence.layer_claim import CLEAR, p_words
from headscope.core.results import Floats, estimate, group
from headscope.core.wording import fixed, percent
from headscope.draw.caption_words import INTERVALS, over, with_interval
from headscope.draw.marks import band_line, faint_grid
from headscope.draw.panel import Panel, Picture
from headscope.draw.style import color

NUMBER = 0.048  # of a panel's height: a number beside it
STABLE = 0.75  # Hennig (2007): from here a cluster is found again
NEEDED = ("silhouette_by_k", "reference_silhouette", "cluster_count", "silhouette", "stays")


def panels(tree: xr.DataTree) -> list[Panel]:
    """The curve, the silhouettes of heads, and the stability of clusters where there is one."""
    divergence, found = group(tree, "divergence"), clusters(tree)
    if divergence is None or not found or not all(name in divergence for name in NEEDED):
        return []
    made = [
        Panel("How many clusters", partial(_curve, divergence), height=0.9),
        Panel("How far apart", partial(_silhouettes, divergence, found), height=0.9),
    ]
    if np.isfinite(divergence["jaccard"].values).any():
        made.append(Panel("Found again", partial(_stability, divergence, found), height=0.9))
    return made


def caption(tree: xr.DataTree) -> str:
    """How to read the figure, what was chosen, and how sure it is."""
    divergence = group(tree, "divergence")
    if divergence is None or "cluster_count" not in divergence:
        return ""
    count = int(divergence["cluster_count"])
    draws = divergence.sizes["draw"]
    stability = (
        " (c) Mark: how much of a cluster is found again in clusters of resampled documents "
        f"(Jaccard overlap, mean; from {STABLE} stable, dashed: Hennig 2007); ticks: of each head, "
        "the share of resamples in which it is with the cluster’s medoid. "
        f"{_again(divergence)}"
        if np.isfinite(divergence["jaccard"].values).any()
        else ""
    )
    return (
        "(a) Mean silhouette: how much nearer heads are to their own cluster than to the next, by "
        f"number of clusters; bands are {INTERVALS}; grey: {draws} sets of points that have the "
        "heads’ main axes and no clusters, clustered alike; tree: average linkage. The number "
        f"chosen (line) is where k-medoids stand farthest above their mean. {verdict(tree)} "
        "(b) The silhouette of every head, by cluster; below 0 a head is nearer to another cluster."
        f"{stability}"
        f" {over(tree)}; {count} clusters. The measures: Rousseeuw (1987), Hennig (2007)."
    )


def verdict(tree: xr.DataTree) -> str:
    """Whether heads fall into clusters, and how clear these are; whatever the run says."""
    divergence = group(tree, "divergence")
    if divergence is None or "cluster_p" not in divergence:
        return ""
    p, count = float(divergence["cluster_p"]), int(divergence["cluster_count"])
    parts = estimate(divergence, "silhouette_by_k", method="k_medoids", k=count)
    mean = with_interval("silhouette", float(parts.value), float(parts.low), float(parts.high))
    if p > CLEAR:
        return (
            f"Heads without clusters would stand out as much ({p_words(p)}): the {count} clusters "
            f"({mean}) divide what is one cloud."
        )
    clear = (
        "clear" if float(parts.value) >= 0.5 else "fuzzy" if float(parts.value) < 0.25 else "fair"
    )
    return f"Heads do fall into clusters ({p_words(p)}), {clear} ones ({mean})."


def _again(divergence: xr.Dataset) -> str:
    """How stable the clusters of both methods are."""
    found = estimate(divergence, "stability")
    share = float(divergence["k_share"].sel(k=int(divergence["cluster_count"])))
    both = [
        f"{fixed(float(found.value[at]), 2)} for {name}"
        for at, name in enumerate(("k-medoids", "average linkage"))
    ]
    return (
        f"Adjusted Rand index with the resamples: {' and '.join(both)}; "
        f"{percent(share, np.nan, np.nan)} of them choose the same number."
    )


def _curve(divergence: xr.Dataset, axes: Axes) -> None:
    counts = divergence["k"].values.astype(float)
    reference = divergence["reference_silhouette"].transpose("draw", "k").values
    axes.fill_between(
        counts, reference.min(0), reference.max(0), color=color("grey"), alpha=0.25, lw=0
    )
    axes.plot(counts, reference.mean(0), color=color("grey"), lw=0.9, ls=(0, (4, 2)))
    band_line(axes, counts, estimate(divergence, "silhouette_by_k", method="average"), "mean")
    band_line(axes, counts, estimate(divergence, "silhouette_by_k", method="k_medoids"), "all")
    axes.axvline(float(divergence["cluster_count"]), color=color("ink"), lw=0.7)
    axes.set_ylim(min(0.0, axes.get_ylim()[0]))
    axes.set_xlabel("clusters")
    axes.set_ylabel("mean silhouette")
    step = 2 if len(counts) < 12 else 4
    axes.set_xticks([at for at in range(2, int(counts[-1]) + 1) if at % step == 0])
    faint_grid(axes)
    handles = [
        Line2D([], [], color=color("blue"), marker="o", ms=3.6, mew=0, label="k-medoids"),
        Line2D([], [], color=color("grey"), marker="o", ms=3.6, mew=0, label="tree"),
        Patch(color=color("grey"), alpha=0.25, lw=0, label="no clusters"),
    ]
    key = axes.legend(
        handles=handles, loc="lower left", bbox_to_anchor=(-0.12, 1), ncols=3, handlelength=1.4
    )
    key.set_in_layout(False)  # `compose` leaves it its height


def _silhouettes(divergence: xr.Dataset, found: Sequence[Cluster], axes: Axes) -> None:
    """Every head a bar, the longest first in its cluster."""
    value: Floats = divergence["silhouette"].values  # [unit]
    gap = max(len(value) / 60, 1.0)
    row, middles = 0.0, []
    for one in found:
        own = np.sort(value[list(one.units)])[::-1]
        hue, hollow = color(HUES[one.number % len(HUES)]), one.number >= len(HUES)
        rows = row + np.arange(len(own)) + 0.5
        axes.barh(rows, own, height=0.5 if hollow else 1.0, color=hue, lw=0)
        middles.append(row + len(own) / 2)
        row += len(own) + gap
    height = row - gap
    places = spread(np.array(middles), np.full(len(found), NUMBER * height), height)
    for one, place in zip(found, places.tolist(), strict=True):
        axes.text(
            -0.015, place, str(one.number + 1), fontsize=6, va="center", ha="right",
            transform=axes.get_yaxis_transform(),
        )  # fmt: skip
    axes.axvline(0, color=color("muted"), lw=0.6)
    axes.set_ylim(height, 0)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("silhouette of each head")
    axes.set_ylabel("cluster", labelpad=11)


def _stability(divergence: xr.Dataset, found: Sequence[Cluster], axes: Axes) -> None:
    stays = divergence["stays"].values
    for one in found:
        others = [unit for unit in one.units if unit != one.medoid]
        axes.plot(
            stays[others], np.full(len(others), one.number), "|", color=color("muted"), ms=6,
            mew=0.6, alpha=0.6, zorder=2,
        )  # fmt: skip
        hue = color(HUES[one.number % len(HUES)])
        face = color("page") if one.number >= len(HUES) else hue
        axes.plot(one.jaccard, one.number, "o", color=hue, mfc=face, ms=5, mew=1.0, zorder=4)
    axes.axvline(STABLE, color=color("muted"), lw=0.8, ls=(0, (4, 2)))
    axes.set_xlim(0, 1.03)
    axes.set_ylim(len(found) - 0.5, -0.5)
    axes.set_yticks(range(len(found)), [str(one.number + 1) for one in found])
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("overlap, and share of resamples")
    axes.set_ylabel("cluster")


PICTURE = Picture(
    "cluster_number", "How many clusters, and how sure", ("divergence",), panels, caption,
    columns=3,
)  # fmt: skip
