"""Draws how alike the heads of two models are, and what each layer learned.

Kovaleva et al. (2019), Figure 5: the cosine of each head's maps before and after fine-tuning.
Beside the change of each layer stands how much it learned: its gradients, and how far its weights
moved.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from headscope.core.accumulators import Estimate
from headscope.core.results import Floats, estimate, group, title_name
from headscope.core.wording import fixed
from headscope.draw.caption_words import INTERVALS, over, with_interval
from headscope.draw.head_grid import draw_grid, grid_height
from headscope.draw.marks import band_line, faint_grid, head_scatter, layer_axis, percent_axis
from headscope.draw.panel import Panel, Picture
from headscope.draw.style import color, marker
from headscope.experiments.comparison.findings import chance_text, depth_finding, training_finding

HEADROOM = 1.12
MEASURES = (
    ("gradient_norm", "Gradients", "norm of a layer’s gradient"),
    ("relative_change", "Weights", "moved, of their norm"),
)


def panels(tree: xr.DataTree) -> list[Panel]:
    """1 − cosine and divergence of each head, then layer by layer; the padded way where asked."""
    similarity = group(tree, "similarity")
    if similarity is None:
        return []
    cosine = estimate(similarity, "cosine")
    change = _change(cosine)
    js = estimate(similarity, "js").value
    height = grid_height(js)
    found = [
        Panel("Change of maps, 1 − cosine", partial(draw_grid, change.value), height=height),
        Panel("Divergence (nats)", partial(draw_grid, js, unit="nats"), height=height),
        Panel("Layer by layer", partial(_by_layer, similarity), height=height),
    ]
    if "cosine_padded" in similarity:
        padded = _change(estimate(similarity, "cosine_padded")).value
        drawn = partial(draw_grid, padded)
        found.append(Panel("1 − cosine of padded maps", drawn, height=height))
    return found


def caption(tree: xr.DataTree) -> str:
    """How to read the figure, and what held."""
    similarity = group(tree, "similarity")
    padded = similarity is not None and "cosine_padded" in similarity
    more = (
        " (d) The same of maps padded to one length, with the rows of padding, as in the authors’ "
        "notebook."
        if padded
        else ""
    )
    return (
        f"What differs between the maps of {base_name(tree)} and {tuned_name(tree)} on the same "
        "inputs. (a) 1 − the cosine of the flattened maps and (b) their Jensen–Shannon divergence, "
        "mean over queries; each cell is one head, from 0 (page: no change) to the value at the "
        "end of each key. (c) 1 − cosine, heads as marks, their mean as a line."
        f"{more} Whiskers and band are {INTERVALS}; {over(tree)}. {depth_finding(tree)} After "
        "Kovaleva et al. (2019), Figure 5."
    )


def training_panels(tree: xr.DataTree) -> list[Panel]:
    """Change, gradients and moves of the weights, each by layer."""
    similarity = group(tree, "similarity")
    if similarity is None:
        return []
    there = [one for one in MEASURES if one[0] in similarity]
    if not there:
        return []
    first = Panel("Attention", partial(_layer_change, similarity), height=0.8)
    return [
        first,
        *(
            Panel(title, partial(_measure, similarity, name, label), height=0.8)
            for name, title, label in there
        ),
    ]


def training_caption(tree: xr.DataTree) -> str:
    """How to read it, and what held."""
    return (
        "(a) How much attention changed in each layer, 1 − cosine of the maps, mean over heads; "
        f"band, {INTERVALS}. (b, c) What the training did to the layer: the norm of its gradient, "
        "mean over steps, and how far its weights moved, ‖θ′ − θ‖ of ‖θ‖. ρ: Spearman’s rank "
        f"correlation with (a) over layers, p: layers dealt out anew. {over(tree)}. "
        f"{training_finding(tree)} A layer is also given what the layers below it changed, which "
        "none of these numbers takes out."
    )


def base_name(tree: xr.DataTree) -> str:
    """What the first model is called."""
    return title_name(str(tree.attrs.get("base_model", "the first model")))


def tuned_name(tree: xr.DataTree) -> str:
    """What the second model is called."""
    return title_name(str(tree.attrs.get("model", "the second model")))


def _change(cosine: Estimate) -> Estimate:
    """1 − cosine; its interval is turned around."""
    return Estimate(1 - cosine.value, 1 - cosine.high, 1 - cosine.low)


def _layers_top(parts: Estimate) -> float:
    return HEADROOM * float(np.nanmax(np.fmax(parts.high, parts.value), initial=0)) or 1.0


def _by_layer(similarity: xr.Dataset, axes: Axes) -> None:
    heads = _change(estimate(similarity, "cosine"))
    layers = _change(estimate(similarity, "layer_cosine"))
    head_scatter(axes, heads, "other")
    band_line(axes, np.arange(len(layers.value), dtype=np.float64), layers, "all")
    layer_axis(axes, len(layers.value))
    axes.set_ylim(0, _layers_top(heads))
    axes.set_ylabel("1 − cosine")
    faint_grid(axes)


def _layer_change(similarity: xr.Dataset, axes: Axes) -> None:
    layers = _change(estimate(similarity, "layer_cosine"))
    band_line(axes, np.arange(len(layers.value), dtype=np.float64), layers, "all")
    layer_axis(axes, len(layers.value))
    axes.set_ylim(0, _layers_top(layers))
    axes.set_ylabel("1 − cosine")
    faint_grid(axes)


def _measure(similarity: xr.Dataset, name: str, label: str, axes: Axes) -> None:
    values: Floats = similarity[name].values
    axes.plot(values, "-", marker=marker("strongest"), color=color("vermillion"), ms=3.6, mew=0)
    layer_axis(axes, len(values))
    top = HEADROOM**2 * float(values.max()) or 1.0
    if name == "relative_change":
        percent_axis(axes, label, top=top)
        if top < 0.1:
            axes.yaxis.set_major_formatter(lambda share, _: f"{fixed(100 * share, 1)} %")
    else:
        axes.set_ylim(0, top)
        axes.set_ylabel(label)
        faint_grid(axes)
    together = estimate(similarity, f"{name}_correlation")
    low, high = float(together.low), float(together.high)
    low = np.nan if fixed(low, 2) == fixed(high, 2) else low  # ranks that no resample changes
    rho = with_interval("ρ", float(together.value), low, high)
    p = float(similarity[f"{name}_p"].values)
    told = f"{rho}, {chance_text(p)}" if np.isfinite(p) else rho
    axes.annotate(
        told, (0, 1), (2, -1), xycoords="axes fraction", textcoords="offset points", va="top",
        fontsize=6.5, color=color("muted"),
    )  # fmt: skip


PICTURE = Picture(
    "similarity", "How alike the heads of both models are", ("similarity",), panels, caption,
    columns=3,
)  # fmt: skip
TRAINING = Picture(
    "training", "Did the layers change that learned most?", ("similarity",), training_panels,
    training_caption, columns=3,
)  # fmt: skip
FIGURES = (PICTURE, TRAINING)
