"""Which heads attend alike?

Clark et al. (2019), section 6: Jensen–Shannon divergence between all pairs of heads; the map that
multidimensional scaling makes of it, coloured by layer and by what the heads do; and whether the
heads of one layer attend alike, more than heads of different layers.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from headscope.analyses.divergence import figure_cluster_checks, figure_clusters
from headscope.analyses.divergence.layers_alike import PERMUTATIONS, has_layers, layers_verdict
from headscope.core.head_roles import ROLES, head_roles
from headscope.core.results import Floats, estimate, group, needed, shape
from headscope.draw.caption_words import INTERVALS, over, role_name
from headscope.draw.marks import band_line, cell_key, faint_grid, legend
from headscope.draw.panel import Panel, Picture
from headscope.draw.style import color, layer_colors, marker, ramp_map

LN2 = float(np.log(2))  # nats: the largest Jensen–Shannon divergence there can be


def map_panels(tree: xr.DataTree) -> list[Panel]:
    """The map twice: by layer, by role."""
    divergence = needed(tree, "divergence")
    if "mds" not in divergence:
        return []
    place = divergence["mds"].transpose("unit", "axis").values
    return [
        Panel("By layer", partial(_by_layer, place, shape(tree)), height=0.95, key_above=True),
        Panel("By what they do", partial(_by_role, tree, place), height=0.95),
    ]


def map_caption(tree: xr.DataTree) -> str:
    """How to read the map."""
    divergence = needed(tree, "divergence")
    stress = ""
    if "mds_stress" in divergence:
        stress = f", stress {float(divergence['mds_stress']):.2f}"
    return (
        "Each mark is one head; near means that the two distribute attention alike "
        "(multidimensional scaling of the Jensen–Shannon divergence in nats"
        f"{stress}; the axes have no meaning of their own); left by layer, light to dark, right by "
        f"what a head does; {over(tree)}. After Clark et al. (2019), §6."
    )


def matrix_panels(tree: xr.DataTree) -> list[Panel]:
    """The matrix of divergences."""
    divergence = needed(tree, "divergence")
    if "js" not in divergence:
        return []
    return [Panel("Divergence between heads", partial(_matrix, tree, divergence["js"]), height=1.0)]


def matrix_caption(tree: xr.DataTree) -> str:
    """How to read the matrix."""
    return (
        "Every head against every other, layer by layer (rules between layers, numbered from 1): "
        "Jensen–Shannon divergence of their attention in nats, from 0 (page, alike) to the value "
        f"at the end of the key; mean over tokens and documents; {over(tree)}. "
        "After Clark et al. (2019), §6."
    )


def _by_layer(place: Floats, size: tuple[int, int], axes: Axes) -> None:
    layers, heads = size
    for layer, shade in enumerate(layer_colors(layers)):
        here = place[layer * heads : (layer + 1) * heads]
        axes.plot(*here.T, "o", color=shade, ms=4.4, mew=0.4, mec=color("page"))
    key = axes.inset_axes((0.12, 1.02, 0.4, 0.03))
    key.set_axis_off()
    for layer, shade in enumerate(layer_colors(layers)):
        key.axvspan(layer, layer + 1, color=shade, lw=0)
    key.set_xlim(0, layers)
    text: dict[str, Any] = {"va": "center", "fontsize": 7, "transform": key.transAxes}
    key.text(-0.02, 0.5, "layer 1", ha="right", **text)
    key.text(1.02, 0.5, str(layers), ha="left", **text)
    _bare(axes)


def _by_role(tree: xr.DataTree, place: Floats, axes: Axes) -> None:
    roles = head_roles(tree).reshape(-1)  # [unit]
    there = [role for role in reversed(ROLES) if (roles == role).any()]
    for role in there:
        here = place[roles == role]
        axes.plot(
            *here.T, marker(role), color=color(role), ms=4.6, mew=0.4, mec=color("page"),
            alpha=0.7 if role == "other" else 1.0,
        )  # fmt: skip
    legend(axes, [(role, role_name(tree, role)) for role in reversed(there)], line=False)
    _bare(axes)


def _bare(axes: Axes) -> None:
    """No axes: only distances mean something."""
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)


def _matrix(tree: xr.DataTree, js: xr.DataArray, axes: Axes) -> None:
    layers, heads = shape(tree)
    values = js.transpose("unit", "unit_other").values
    top = min(float(np.nanmax(values)), LN2) or LN2
    axes.imshow(values, cmap=ramp_map(), vmin=0, vmax=top, interpolation="nearest")
    for border in range(1, layers):
        axes.axhline(border * heads - 0.5, color=color("page"), lw=0.5)
        axes.axvline(border * heads - 0.5, color=color("page"), lw=0.5)
    middles = np.arange(layers) * heads + (heads - 1) / 2
    names = [str(layer + 1) for layer in range(layers)]
    axes.set_xticks(middles, names)
    axes.set_yticks(middles, names)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xlabel("layer", loc="left")
    axes.set_ylabel("layer")
    cell_key(axes, f"{top:.2f} nats")


def places(tree: xr.DataTree) -> Floats | None:
    """[unit, axis] where heads lie on the map; None where the run has no map."""
    divergence = group(tree, "divergence")
    if divergence is None or "mds" not in divergence:
        return None
    return np.asarray(divergence["mds"].transpose("unit", "axis").values)


MAP = Picture(
    "divergence_map", "The map of heads", ("divergence",), map_panels, map_caption, columns=2
)
MATRIX = Picture(
    "divergence_matrix", "How far heads differ", ("divergence",), matrix_panels, matrix_caption,
    columns=1,
)  # fmt: skip


ROWS = ("same layer", "neighbouring layer", "farther layer")


def layer_panels(tree: xr.DataTree) -> list[Panel]:
    """Divergence by distance of layers, and where the most alike head is."""
    divergence = needed(tree, "divergence")
    if not has_layers(tree):
        return []
    return [
        Panel("Farther layers, less alike?", partial(_draw_gaps, divergence), height=0.7),
        Panel("Where the most alike head is", partial(_draw_nearest, divergence), height=0.7),
    ]


def layer_caption(tree: xr.DataTree) -> str:
    """How to read the figure, and what held."""
    return (
        "(a) Mean divergence of two heads by the distance of their layers, 0 in the same layer; "
        "dashed, what it is over all pairs, whatever their layers. (b) Share of heads whose most "
        "alike head is in the same, a neighbouring or a farther layer, and what chance gives. "
        f"Bands and whiskers are {INTERVALS}; p: layers dealt out anew among the heads, "
        f"{PERMUTATIONS} times. {layers_verdict(tree)} {over(tree)}. Clark et al. (2019), §6, saw "
        "heads of a layer near each other on the map of BERT."
    )


def _draw_gaps(divergence: xr.Dataset, axes: Axes) -> None:
    gaps = estimate(divergence, "js_by_layer_gap")
    js = divergence["js"].values
    mean = float(js[np.triu_indices(len(js), 1)].mean())
    axes.axhline(mean, color=color("muted"), lw=0.8, ls=(0, (4, 2)))
    band_line(axes, np.arange(len(gaps.value), dtype=np.float64), gaps, "all")
    axes.set_ylim(0)
    axes.set_xticks(range(0, len(gaps.value), 1 if len(gaps.value) <= 12 else 4))
    axes.set_xlabel("layers apart")
    axes.set_ylabel(f"divergence ({divergence['js'].attrs.get('units', 'nats')})")
    faint_grid(axes)


def _draw_nearest(divergence: xr.Dataset, axes: Axes) -> None:
    shares = estimate(divergence, "nearest_layer")
    chance = divergence["nearest_chance"].values
    rows = np.arange(len(ROWS))
    axes.hlines(rows, shares.low, shares.high, color=color("all"), lw=2.2, alpha=0.35)
    axes.plot(shares.value, rows, "o", color=color("all"), ms=5, mew=0, zorder=4)
    axes.plot(chance, rows, "D", color=color("chance"), ms=4, mew=0, zorder=3)
    axes.set_yticks(rows, ROWS)
    axes.set_ylim(len(ROWS) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0, 1.1 * float(max(np.nanmax(shares.value), np.nanmax(chance))))
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    axes.set_xlabel("of all heads")
    legend(axes, [("all", "found"), ("chance", "by chance")], line=False, start=0.0)


LAYERS = Picture(
    "layers_alike",
    "Are the heads of a layer alike?",
    ("divergence",),
    layer_panels,
    layer_caption,
    columns=2,
)
FIGURES = (
    MAP,
    MATRIX,
    figure_clusters.PICTURE,
    figure_cluster_checks.TREE_PICTURE,
    figure_cluster_checks.NUMBER_PICTURE,
    LAYERS,
)
