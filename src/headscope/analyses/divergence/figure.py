"""Which heads attend alike?

Clark et al. (2019), section 6: Jensen–Shannon divergence between all pairs of heads; the map that
multidimensional scaling makes of it, coloured by layer and by what the heads do.
"""

from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from headscope.analyses.divergence.clusters import averaged, most
from headscope.claims.reading import Reading
from headscope.core.results import Floats, shape
from headscope.draw.head_marks import note_heads
from headscope.draw.label_kinds import KIND_COLUMNS, plot_kinds
from headscope.draw.marks import cell_key, named_places
from headscope.draw.panel import Panel
from headscope.draw.style import color, layer_colors, ramp_map
from headscope.page.sections import SectionPlan


def map_panels(run: Reading) -> list[Panel]:
    """The map of heads, by layer and by label; none where the run has no map."""
    place = places(run)
    if place is None:
        return []
    return [
        Panel("By layer", partial(_by_layer, run, place), height=0.95, key_above=True),
        Panel("By label", partial(_by_kind, run, place), height=0.95, legend=KIND_COLUMNS),
    ]


def map_caption(run: Reading) -> str:
    """How to read it."""
    known = "mds_stress" in run.data
    stress = f", stress {float(run.data['mds_stress']):.2f}" if known else ""
    return (
        "Each mark is one head; near means that the two distribute attention alike "
        "(multidimensional scaling of the Jensen–Shannon divergence in nats"
        f"{stress}; the axes have no meaning of their own); coloured by layer, light to dark, or "
        f"by the most telling label of a head; {run.over()}. After Clark et al. (2019), §6."
    )


def matrix_panels(run: Reading) -> list[Panel]:
    """The divergence of every two heads; none of a run of an older version."""
    if "js" not in run.data:
        return []
    return [Panel("Divergence between heads", partial(_matrix, run), height=1.0)]


def matrix_caption(run: Reading) -> str:
    """How to read it."""
    return (
        "Every head against every other, layer by layer (rules between layers, numbered from "
        f"{run.names.first}): "
        "Jensen–Shannon divergence of their attention in nats, from 0 (page, alike) to the value "
        f"at the end of the key; {averaged(run)}; {run.over()}. "
        "After Clark et al. (2019), §6."
    )


def _by_layer(run: Reading, place: Floats, axes: Axes) -> None:
    (layers, heads), names = shape(run.tree), run.names
    for layer, shade in enumerate(layer_colors(layers)):
        here = place[layer * heads : (layer + 1) * heads]
        axes.plot(*here.T, "o", color=shade, ms=4.4, mew=0.4, mec=color("page"))
    across, up = place.T
    note_heads(axes, across, up, [""] * len(place))
    key = axes.inset_axes((0.12, 1.02, 0.4, 0.03))
    key.set_axis_off()
    for layer, shade in enumerate(layer_colors(layers)):
        key.axvspan(layer, layer + 1, color=shade, lw=0)
    key.set_xlim(0, layers)
    text: dict[str, Any] = {"va": "center", "fontsize": 7, "transform": key.transAxes}
    key.text(-0.02, 0.5, f"layer {names.layer(0)}", ha="right", **text)
    key.text(1.02, 0.5, names.layer(layers - 1), ha="left", **text)
    _bare(axes)


def _by_kind(run: Reading, place: Floats, axes: Axes) -> None:
    plot_kinds(axes, run.tree, *place.T, start=0.0)
    _bare(axes)


def _bare(axes: Axes) -> None:
    axes.set_aspect("equal", adjustable="datalim")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)


def _matrix(run: Reading, axes: Axes) -> None:
    layers, heads = shape(run.tree)
    values = run.data["js"].transpose("unit", "unit_other").values
    top = most(values)
    axes.imshow(values, cmap=ramp_map(), vmin=0, vmax=top, interpolation="nearest")
    for border in range(1, layers):
        axes.axhline(border * heads - 0.5, color=color("page"), lw=0.5)
        axes.axvline(border * heads - 0.5, color=color("page"), lw=0.5)
    named = named_places(layers)
    middles = np.array(named) * heads + (heads - 1) / 2
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks(middles, [*map(run.names.layer, named)])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("layer", loc="left")
    axes.set_ylabel("layer")
    cell_key(axes, f"{top:.2f} nats")


def places(run: Reading) -> Floats | None:
    """[unit, axis] where heads lie on the map; None where the run has no map."""
    if "mds" not in run.data:
        return None
    return np.asarray(run.data["mds"].transpose("unit", "axis").values)


MAP_SECTION = SectionPlan(
    id="map",
    title="The map of heads",
    map_caption=map_caption,
    place=180,
    text="Heads that distribute their attention alike lie close together, whatever their layer.",
)
