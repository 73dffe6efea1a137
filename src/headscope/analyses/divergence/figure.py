"""Which heads attend alike?

Clark et al. (2019), section 6: Jensen–Shannon divergence between all pairs of heads, and the map
that multidimensional scaling makes of it, coloured by layer and by what the heads do.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from headscope.analyses.divergence import (
    figure_cluster_number,
    figure_cluster_tree,
    figure_clusters,
    figure_layers,
)
from headscope.core.head_roles import ROLES, head_roles
from headscope.core.results import Floats, group, shape
from headscope.draw.caption_words import over, role_name
from headscope.draw.marks import cell_key, legend
from headscope.draw.panel import Panel, Picture
from headscope.draw.style import color, layer_colors, marker, ramp_map

LN2 = float(np.log(2))  # nats: the largest Jensen–Shannon divergence there can be


def map_panels(tree: xr.DataTree) -> list[Panel]:
    """The map twice: by layer, by role."""
    divergence = group(tree, "divergence")
    if divergence is None or "mds" not in divergence:
        return []
    place = divergence["mds"].transpose("unit", "axis").values
    return [
        Panel("By layer", partial(_by_layer, place, shape(tree)), height=0.95, key_above=True),
        Panel("By what they do", partial(_by_role, tree, place), height=0.95),
    ]


def map_caption(tree: xr.DataTree) -> str:
    """How to read the map."""
    divergence = group(tree, "divergence")
    stress = (
        ""
        if divergence is None or "mds_stress" not in divergence
        else (f", stress {float(divergence['mds_stress']):.2f}")
    )
    return (
        "Each mark is one head; near means that the two distribute attention alike "
        "(multidimensional scaling of the Jensen–Shannon divergence in nats"
        f"{stress}; the axes have no meaning of their own); left by layer, light to dark, right by "
        f"what a head does; {over(tree)}. After Clark et al. (2019), §6."
    )


def matrix_panels(tree: xr.DataTree) -> list[Panel]:
    """The matrix of divergences."""
    divergence = group(tree, "divergence")
    if divergence is None or "js" not in divergence:
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
FIGURES = (
    MAP,
    MATRIX,
    figure_clusters.PICTURE,
    figure_cluster_tree.PICTURE,
    figure_cluster_number.PICTURE,
    figure_layers.PICTURE,
)
