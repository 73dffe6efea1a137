"""Which heads attend alike?

Clark et al. (2019), section 6: Jensen–Shannon divergence between all pairs of heads; the map that
multidimensional scaling makes of it, coloured by layer and by what the heads do.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from headscope.analyses.divergence import figure_cluster_checks, figure_clusters, figure_layers
from headscope.analyses.divergence.clusters import clusters, most
from headscope.claims.caption_words import over
from headscope.core.head_names import HeadNames, names_of
from headscope.core.results import Floats, group, needed, shape
from headscope.draw.label_kinds import KIND_COLUMNS, plot_kinds
from headscope.draw.marks import cell_key, named_places
from headscope.draw.panel import Panel, Picture
from headscope.draw.style import color, layer_colors, ramp_map
from headscope.page.sections import SectionPlan


def _map_panels(tree: xr.DataTree) -> list[Panel]:
    place = places(tree)
    if place is None:
        return []
    return [
        Panel(
            "By layer",
            partial(_by_layer, place, shape(tree), names_of(tree)),
            height=0.95,
            key_above=True,
        ),
        Panel("By label", partial(_by_kind, tree, place), height=0.95, legend=KIND_COLUMNS),
    ]


def _map_caption(tree: xr.DataTree) -> str:
    divergence = needed(tree, "divergence")
    known = "mds_stress" in divergence
    stress = f", stress {float(divergence['mds_stress']):.2f}" if known else ""
    return (
        "Each mark is one head; near means that the two distribute attention alike "
        "(multidimensional scaling of the Jensen–Shannon divergence in nats"
        f"{stress}; the axes have no meaning of their own); coloured by layer, light to dark, or "
        f"by the most telling label of a head; {over(tree)}. After Clark et al. (2019), §6."
    )


def _matrix_panels(tree: xr.DataTree) -> list[Panel]:
    divergence = needed(tree, "divergence")
    if "js" not in divergence:
        return []
    return [Panel("Divergence between heads", partial(_matrix, tree, divergence["js"]), height=1.0)]


def _matrix_caption(tree: xr.DataTree) -> str:
    return (
        "Every head against every other, layer by layer (rules between layers, numbered from "
        f"{names_of(tree).first}): "
        "Jensen–Shannon divergence of their attention in nats, from 0 (page, alike) to the value "
        f"at the end of the key; mean over tokens, then inputs; {over(tree)}. "
        "After Clark et al. (2019), §6."
    )


def _by_layer(place: Floats, size: tuple[int, int], names: HeadNames, axes: Axes) -> None:
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
    key.text(-0.02, 0.5, f"layer {names.layer(0)}", ha="right", **text)
    key.text(1.02, 0.5, names.layer(layers - 1), ha="left", **text)
    _bare(axes)


def _by_kind(tree: xr.DataTree, place: Floats, axes: Axes) -> None:
    plot_kinds(axes, tree, *place.T, start=0.0)
    _bare(axes)


def _bare(axes: Axes) -> None:
    axes.set_aspect("equal", adjustable="datalim")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)


def _matrix(tree: xr.DataTree, js: xr.DataArray, axes: Axes) -> None:
    (layers, heads), names = shape(tree), names_of(tree)
    values = js.transpose("unit", "unit_other").values
    top = most(values)
    axes.imshow(values, cmap=ramp_map(), vmin=0, vmax=top, interpolation="nearest")
    for border in range(1, layers):
        axes.axhline(border * heads - 0.5, color=color("page"), lw=0.5)
        axes.axvline(border * heads - 0.5, color=color("page"), lw=0.5)
    named = named_places(layers)
    middles = np.array(named) * heads + (heads - 1) / 2
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks(middles, [*map(names.layer, named)])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("layer", loc="left")
    axes.set_ylabel("layer")
    cell_key(axes, f"{top:.2f} nats")


def places(tree: xr.DataTree) -> Floats | None:
    """[unit, axis] where heads lie on the map; None where the run has no map."""
    divergence = group(tree, "divergence")
    if divergence is None or "mds" not in divergence:
        return None
    return np.asarray(divergence["mds"].transpose("unit", "axis").values)


MAP = Picture("divergence_map", "The map of heads", ("divergence",), _map_panels, _map_caption)
MATRIX = Picture(
    "divergence_matrix",
    "How far heads differ",
    ("divergence",),
    _matrix_panels,
    _matrix_caption,
    columns=1,
)
FIGURES = (
    MAP,
    MATRIX,
    figure_clusters.PICTURE,
    figure_cluster_checks.TREE_PICTURE,
    figure_cluster_checks.NUMBER_PICTURE,
    figure_layers.PICTURE,
)


def _finding(tree: xr.DataTree) -> str:
    groups = clusters(tree)
    largest = max((len(one.units) for one in groups), default=0)
    return f"{len(groups)} clusters, the largest of {largest} heads." if groups else ""


def _sentence_of(verdict: Callable[[xr.DataTree], str]) -> Callable[[xr.DataTree], str]:
    """The first sentence of what held, up to where its numbers begin."""

    def finding(tree: xr.DataTree) -> str:
        said = verdict(tree).partition(": ")[0].partition(". ")[0]
        return f"{said.removesuffix('.')}." if said else ""

    return finding


SECTIONS = (
    SectionPlan(
        finding=_finding,
        id="clusters",
        title="Heads that attend alike",
        pictures=("clusters",),
        text="Which heads do the same thing, whatever it is? Clusters are made from attention "
        "alone, and named afterwards by what their heads do; a cluster that no label fits is "
        "mixed.",
    ),
    SectionPlan(
        finding=_sentence_of(figure_cluster_checks.verdict),
        id="cluster-number",
        title="How sure are the clusters?",
        pictures=("cluster_number",),
        text="Clusters can be made of anything. These are worth their names as far as heads are "
        "nearer to their own cluster than to the next, more so than in a cloud without "
        "clusters, and as far as other heads drawn from these give the same.",
    ),
    SectionPlan(
        finding=_sentence_of(figure_layers.layers_verdict),
        id="layers-alike",
        title="Are the heads of a layer alike?",
        pictures=("layers_alike",),
        text="On the map of BERT, Clark et al. (2019) saw heads of a layer near each other. If "
        "that holds, divergence is least within a layer and grows with the distance of layers.",
    ),
    SectionPlan(
        id="map",
        title="The map of heads",
        map_caption=_map_caption,
        place=180,
        text="Heads that distribute their attention alike lie close together, whatever their "
        "layer.",
    ),
)
