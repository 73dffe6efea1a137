"""Draws how much a loss depends on each head, beside the effect of switching it off.

Clark et al. (2019), Figure 3: the size of the gradients by layer, one line for each kind of key.
Beside it, what nobody shows: each importance against the true effect of switching the head off.
"""

from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from headscope.claims.caption_words import INTERVALS, over, special, with_interval
from headscope.core.results import Floats, estimate, head_name, layer_name, needed
from headscope.core.wording import capital
from headscope.draw.head_grid import grid_panel, largest, signed_panel
from headscope.draw.marks import band_line, faint_grid, layer_axis, legend, percent_axis, value_axis
from headscope.draw.panel import Panel, Picture
from headscope.draw.style import color, layer_colors
from headscope.experiments.importance import section
from headscope.experiments.importance.section import method_name, methods_of, rho_of

KINDS = ("cls", "sep", "punctuation", "other")
DECADES = 1.5  # ours: importances that range farther are drawn on a logarithmic axis
HEADROOM = 1.12
NAME = np.array([29.0, 8.0])  # points that the name of a head takes
SIDES = tuple(np.array(at) for at in ((19, 0), (-19, 0), (0, 8), (0, -8), (19, 7), (-19, 7)))


def _gradient_panels(tree: xr.DataTree) -> list[Panel]:
    gradients = needed(tree, "gradients")
    there = [kind for kind in KINDS if _there(gradients, kind)]
    panels = [
        Panel("Gradients, |∂loss/∂α|", partial(_lines, tree, gradients, "layer_magnitude", there)),
        Panel("Attention", partial(_lines, tree, gradients, "layer_attention", there)),
    ]
    if "sep" in there:
        title = f"{special(tree, 'sep')}: each head"
        panels.append(Panel(title, partial(_heads, gradients, "sep"), key_above=True))
    return panels


def _gradient_caption(tree: xr.DataTree) -> str:
    gradients = needed(tree, "gradients")
    heads = (
        f" (c) Both for {special(tree, 'sep')}, one mark per head, the first layer nearest to the "
        "page’s colour."
    )
    return (
        f"(a) Size of the gradient of each example’s {gradients.attrs['loss_name']} with respect "
        "to an attention weight, mean over the edges to each kind of token; (b) attention to these "
        f"tokens, mean over queries; both over all heads of a layer."
        f"{heads if _there(gradients, 'sep') else ''} Bands are {INTERVALS}; {over(tree)}. "
        f"{section.gradient_finding(tree)} After Clark et al. (2019), Figure 3."
    )


def _there(gradients: xr.Dataset, kind: str) -> bool:
    return bool(np.isfinite(estimate(gradients, "layer_magnitude", category=kind).value).any())


def _lines(
    tree: xr.DataTree, gradients: xr.Dataset, variable: str, kinds: list[str], axes: Axes
) -> None:
    top = 0.0
    for kind in kinds:
        parts = estimate(gradients, variable, category=kind)
        band_line(axes, np.arange(len(parts.value), dtype=np.float64), parts, kind)
        top = max(top, float(np.nanmax(np.fmax(parts.high, parts.value))))
    layer_axis(axes, gradients.sizes["layer"])
    if variable == "layer_attention":
        percent_axis(axes, "attention", top=1.0)
    else:
        label = f"|∂loss/∂α| ({gradients['magnitude'].attrs['units']})".replace(" (1)", "")
        value_axis(axes, label, top=HEADROOM * top or 1.0)
        axes.yaxis.set_major_locator(MaxNLocator(5))
    legend(axes, [(kind, special(tree, kind)) for kind in kinds])


def _heads(gradients: xr.Dataset, kind: str, axes: Axes) -> None:
    names = ("attention", "magnitude")
    x, y = (estimate(gradients, name, category=kind).value for name in names)
    _by_layer(axes, x, y)
    axes.set_xlim(0, 1.02 * float(np.nanmax(x)) or 1.0)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g} %"))
    axes.set_xlabel("attention")
    _wide_axis(axes, y, "y")
    axes.set_ylabel("|∂loss/∂α|")
    faint_grid(axes)


def _importance_panels(tree: xr.DataTree) -> list[Panel]:
    importance = needed(tree, "importance")
    values = {m: estimate(importance, "head_importance", variant=m) for m in methods_of(importance)}
    return [_grid(capital(method_name(name)), parts.value) for name, parts in values.items()]


def _importance_caption(tree: xr.DataTree) -> str:
    importance = needed(tree, "importance")
    words = {
        "gradient": "the mean |∂loss/∂α| of an edge",
        "michel": "the mean of |Σ α ∂loss/∂α| (Michel et al. 2019)",
        "michel_normalised": "the same, each layer brought to length 1",
        "slope_zero": "the rise of the loss if it went on as it begins when the head is faded out",
        "slope_uniform": "the same on the way to even attention",
        "attattr": "the mean of the largest attribution of an edge (Hao et al. 2021)",
    }
    methods = methods_of(importance)
    methods_text = "; ".join(f"{method_name(name)}: {words[name]}" for name in methods)
    slopes = any(name.startswith("slope") for name in methods)
    signed = ", blue above 0 and vermillion below for slopes" if slopes else ""
    return (
        f"How much the {importance.attrs['loss_name']} depends on each head, by its gradients. "
        f"{methods_text}. Each cell is one head, from 0 (page) to the value at the end of "
        f"each key{signed}; {over(tree)}; intervals stand in the tables."
    )


def _grid(title: str, values: Floats) -> Panel:
    top = largest(np.abs(values))
    text = f"{top:.2g}"
    if np.nanmin(values) < 0:
        return signed_panel(title, values, top=top, low_text=f"−{text}", high_text=text)
    return grid_panel(title, values, top=top, top_text=text)


def _against_panels(tree: xr.DataTree) -> list[Panel]:
    importance = needed(tree, "importance")
    if "rho" not in importance:
        return []
    rho = {name: rho_of(importance, name, "loss") for name in methods_of(importance)}
    return [
        Panel(
            f"{capital(method_name(name))}: {with_interval('ρ', *parts)}",
            partial(_against, importance, name),
            height=0.74,
            key_above=True,
        )
        for name, parts in rho.items()
    ]


def _against_caption(tree: xr.DataTree) -> str:
    importance = needed(tree, "importance")
    scores = [
        with_interval(method_name(name), *rho_of(importance, name, "score")).replace(" =", "")
        for name in methods_of(importance)
    ]
    note = str(importance.attrs["ablation_note"])
    return (
        "Each mark is one head, the first layer nearest to the page’s colour: its importance by "
        "gradients across, and upwards by how much the loss rises when it "
        f"{section.INSTEAD[str(importance.attrs['replacement'])]}. ρ: Spearman’s rank correlation "
        f"over the {int(importance.attrs['heads'])} heads, with its 95 % interval over heads; with "
        f"the {section.effect_name(importance, 'score')}: {', '.join(scores)}. Named are the heads "
        f"that change the loss most and those most important; {over(tree)}."
        f"{f' {capital(note)}.' if note else ''}"
    )


def _against(importance: xr.Dataset, method: str, axes: Axes) -> None:
    x, y = section.scattered(importance, method)
    shape = importance.sizes["layer"], importance.sizes["head"]
    _wide_axis(axes, x, "x")
    axes.axhline(0, color=color("rule"), lw=0.8, zorder=1)
    if x.min() < 0:
        axes.axvline(0, color=color("rule"), lw=0.8, zorder=1)
    _by_layer(axes, x.reshape(shape), y.reshape(shape))
    room = 0.12 * float(np.ptp(y) or 1.0)
    axes.set_ylim(float(y.min()) - room, float(y.max()) + room)
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.set_xlabel("importance")
    axes.set_ylabel(section.effect_name(importance, "loss"))
    _names(axes, importance, section.named_units(importance, method), x, y)


def _names(axes: Axes, importance: xr.Dataset, units: list[int], x: Floats, y: Floats) -> None:
    """Labels of a few heads, each on the side of its mark where it hides least."""
    scale = 72 / axes.figure.dpi
    axes.get_xlim()  # else limits that nobody has asked for are not set yet
    marks = axes.transData.transform(np.stack([x, y], -1)) * scale  # [unit, (x, y)] points
    border = axes.bbox.get_points() * scale
    boxes: list[Floats] = []
    for unit in units:
        sides = [(marks[unit] + shift, shift) for shift in SIDES]
        cost = [
            _covered(place, marks)
            + 3 * _covered(place, np.array(boxes).reshape(-1, 2))
            + 9 * bool(((place - NAME / 2 < border[0]) | (place + NAME / 2 > border[1])).any())
            for place, _ in sides
        ]
        place, shift = sides[int(np.argmin(cost))]
        boxes += [place - NAME / 4, place, place + NAME / 4]
        axes.annotate(
            head_name(unit, importance.sizes["head"]),
            (x[unit], y[unit]),
            tuple(shift),
            ha="center",
            va="center",
            textcoords="offset points",
            fontsize=6,
            zorder=4,
        )


def _covered(place: Floats, points: Floats) -> int:
    return int((np.abs(points - place) < NAME / 2 + 1).all(-1).sum())


def _by_layer(axes: Axes, x: Floats, y: Floats) -> None:
    """A mark per head of [layer, head], and the legend of layers above."""
    shades = layer_colors(len(x))
    key = axes.inset_axes((0.16, 1.03, 0.36, 0.03))
    key.set_axis_off()
    for layer, shade in enumerate(shades):
        axes.plot(x[layer], y[layer], "o", color=shade, ms=4, mew=0.4, mec=color("page"), zorder=3)
        key.axvspan(layer, layer + 1, color=shade, lw=0)
    key.set_xlim(0, len(shades))
    ends = (f"layer {layer_name(0)}", layer_name(len(shades) - 1))
    for at, text, side in ((-0.03, ends[0], "right"), (1.03, ends[1], "left")):
        key.text(at, 0.5, text, ha=side, va="center", fontsize=6, transform=key.transAxes)


def _wide_axis(axes: Axes, values: Floats, which: str) -> None:
    """Logarithmic where positive values span decades, else linear."""
    there = values[np.isfinite(values)]
    axis = axes.xaxis if which == "x" else axes.yaxis
    if len(there) and there.min() > 0 and np.log10(there.max() / there.min()) > DECADES:
        (axes.set_xscale if which == "x" else axes.set_yscale)("log")
        axis.set_major_locator(LogLocator(base=10, numticks=5))
        axis.set_major_formatter(FuncFormatter(_power))
        axis.set_minor_formatter(NullFormatter())
    else:
        axis.set_major_locator(MaxNLocator(4))


def _power(value: float, _: object) -> str:
    exponent = round(np.log10(value))
    if -3 <= exponent <= 3:
        return f"{value:g}"
    return "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


GRADIENT_FIGURES = (
    Picture(
        "gradients",
        "Where gradients go",
        ("gradients",),
        _gradient_panels,
        _gradient_caption,
        columns=3,
    ),
)
FIGURES = (
    Picture(
        "importance",
        "Importance of heads",
        ("importance",),
        _importance_panels,
        _importance_caption,
        columns=3,
    ),
    Picture(
        "importance_against_ablation",
        "Importance against switching off",
        ("importance",),
        _against_panels,
        _against_caption,
    ),
)
