"""Draws how much a loss depends on each head, beside the effect of switching it off.

Clark et al. (2019), Figure 3: the size of the gradients by layer, one line for each kind of key.
Beside it, what nobody shows: each importance against the true effect of switching the head off.
"""

from collections.abc import Mapping
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from headscope.claims.caption_words import with_interval
from headscope.claims.plan import LayerLines, PanelPlan
from headscope.claims.reading import Reading
from headscope.core.head_names import HeadNames
from headscope.core.intervals import Estimate
from headscope.core.results import Floats, shape
from headscope.core.wording import capital
from headscope.draw.head_grid import grid_panel, largest, signed_panel
from headscope.draw.head_marks import note_heads, number_texts
from headscope.draw.marks import faint_grid
from headscope.draw.panel import Panel
from headscope.draw.style import color, layer_colors
from headscope.experiments.importance import section
from headscope.experiments.importance.section import method_name, methods_of, rho_of

KINDS = ("cls", "sep", "punctuation", "other")
DECADES = 1.5  # ours: importances that range farther are drawn on a logarithmic axis
HEADROOM, LINES = 1.12, 0.72  # of an axis; height of a panel of lines, as a share of its width
NAME = np.array([29.0, 8.0])  # points that the name of a head takes
SIDES = tuple(np.array(at) for at in ((19, 0), (-19, 0), (0, 8), (0, -8), (19, 7), (-19, 7)))


def gradient_panels(run: Reading) -> list[PanelPlan | Panel]:
    """Gradients and attention by layer, and both of each head to the separator."""
    label = f"|∂loss/∂α| ({run.data['magnitude'].attrs['units']})".replace(" (1)", "")
    size, attention = (
        partial(LayerLines, needs=f"layer_{name}", order=KINDS, height=LINES)
        for name in ("magnitude", "attention")
    )
    panels: list[PanelPlan | Panel] = [
        size(title="Gradients, |∂loss/∂α|", label=label, room=HEADROOM, percent=False),
        attention(title="Attention", label="attention"),
    ]
    if run.has("layer_magnitude.sep"):
        title = f"{run.special('sep')}: each head"
        panels.append(Panel(title, partial(_heads, run, "sep"), key_above=True))
    return panels


def gradient_caption(run: Reading) -> str:
    """How to read the gradients."""
    heads = " (c) Both for {sep}, one mark per head, the first layer nearest to the page’s colour."
    return run.text(
        "(a) Size of the gradient of each example’s {loss_name} with respect to an attention "
        "weight, mean over the edges to each kind of token; (b) attention to these tokens, mean "
        f"over queries; both over all heads of a layer.{heads * run.has('layer_magnitude.sep')} "
        "Bands are {intervals}; {over}. {finding} After Clark et al. (2019), Figure 3.",
        finding=section.gradient_finding(run),
    )


def _heads(run: Reading, kind: str, axes: Axes) -> None:
    both = {"attention": run(f"attention.{kind}"), "gradient": run(f"magnitude.{kind}")}
    x, y = (parts.value for parts in both.values())
    _by_layer(axes, both, run.names)
    axes.set_xlim(0, 1.02 * float(np.nanmax(x)) or 1.0)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g} %"))
    axes.set_xlabel("attention")
    _wide_axis(axes, y, "y")
    axes.set_ylabel("|∂loss/∂α|")
    faint_grid(axes)


def importance_panels(run: Reading) -> list[Panel]:
    """A grid for each method."""
    return [
        _grid(capital(method_name(name)), run(f"head_importance.{name}"), run.names)
        for name in methods_of(run)
    ]


def importance_caption(run: Reading) -> str:
    """How to read the grids."""
    words = {
        "gradient": "the mean |∂loss/∂α| of an edge",
        "michel": "the mean of |Σ α ∂loss/∂α| (Michel et al. 2019)",
        "michel_normalised": "the same, each layer brought to length 1",
        "slope_zero": "the rise of the loss if it went on as it begins when the head is faded out",
        "slope_uniform": "the same on the way to even attention",
        "attattr": "the mean of the largest attribution of an edge (Hao et al. 2021)",
    }
    methods = methods_of(run)
    methods_text = "; ".join(f"{method_name(name)}: {words[name]}" for name in methods)
    slopes = any(name.startswith("slope") for name in methods)
    signed = ", blue above 0 and vermillion below for slopes" if slopes else ""
    return run.text(
        "How much the {loss_name} depends on each head, by its gradients. {methods}. Each cell is "
        "one head, from 0 (page) to the value at the end of each key{signed}; {over}; intervals "
        "stand in the tables.",
        methods=methods_text,
        signed=signed,
    )


def _grid(title: str, parts: Estimate, names: HeadNames) -> Panel:
    values = parts.value
    top = largest(np.abs(values))
    text = f"{top:.2g}"
    if np.nanmin(values) < 0:
        return signed_panel(title, values, names, top=top, text=text, parts=parts)
    return grid_panel(title, values, names, top=top, top_text=text, parts=parts)


def against_panels(run: Reading) -> list[Panel]:
    """Importance against the effect of switching off, by method."""
    return [
        Panel(
            f"{capital(method_name(name))}: {with_interval('ρ', *rho_of(run, name, 'loss'))}",
            partial(_against, run, name),
            height=0.74,
            key_above=True,
        )
        for name in methods_of(run)
        if "rho" in run.data
    ]


def against_caption(run: Reading) -> str:
    """How to read importance against switching off."""
    scores = [
        with_interval(method_name(name), *rho_of(run, name, "score")).replace(" =", "")
        for name in methods_of(run)
    ]
    note = str(run.data.attrs["ablation_note"])
    return (
        "Each mark is one head, the first layer nearest to the page’s colour: its importance by "
        "gradients across, and upwards by how much the loss rises when it "
        f"{section.INSTEAD[str(run.data.attrs['replacement'])]}. ρ: Spearman’s rank correlation "
        f"over the {int(run.data.attrs['heads'])} heads, with its 95 % interval over heads; with "
        f"the {section.effect_name(run, 'score')}: {', '.join(scores)}. Named are the heads "
        f"that change the loss most and those most important; {run.over()}."
        f"{f' {capital(note)}.' if note else ''}"
    )


def _against(run: Reading, method: str, axes: Axes) -> None:
    both = dict(zip(("importance", "effect"), section.scattered(run, method), strict=True))
    x, y = (parts.value.ravel() for parts in both.values())  # [unit]
    _wide_axis(axes, x, "x")
    axes.axhline(0, color=color("rule"), lw=0.8, zorder=1)
    if x.min() < 0:
        axes.axvline(0, color=color("rule"), lw=0.8, zorder=1)
    _by_layer(axes, both, run.names)
    room = 0.12 * float(np.ptp(y) or 1.0)
    axes.set_ylim(float(y.min()) - room, float(y.max()) + room)
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.set_xlabel("importance")
    axes.set_ylabel(section.effect_name(run, "loss"))
    _names(axes, run, section.named_units(run, method), x, y)


def _names(axes: Axes, run: Reading, units: list[int], x: Floats, y: Floats) -> None:
    """Labels of a few heads, each on the side of its mark where it hides least."""
    heads, scale = shape(run.tree)[1], 72 / axes.figure.dpi
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
            run.names.unit(unit, heads),
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


def _by_layer(axes: Axes, both: Mapping[str, Estimate], names: HeadNames) -> None:
    """A mark per head, and the legend of layers above.

    both  what runs across and what upwards, by its name: [layer, head]
    """
    x, y = (parts.value for parts in both.values())
    shades = layer_colors(len(x))
    key = axes.inset_axes((0.16, 1.03, 0.36, 0.03))
    key.set_axis_off()
    for layer, shade in enumerate(shades):
        axes.plot(x[layer], y[layer], "o", color=shade, ms=4, mew=0.4, mec=color("page"), zorder=3)
        key.axvspan(layer, layer + 1, color=shade, lw=0)
    texts = ([f"{name} {text}" for text in number_texts(one, "1")] for name, one in both.items())
    note_heads(axes, x, y, list(map(", ".join, zip(*texts, strict=True))))
    key.set_xlim(0, len(shades))
    ends = (f"layer {names.layer(0)}", names.layer(len(shades) - 1))
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
