"""Draw one number of all heads as a grid, layers by heads: from 0 up, or below and above 0."""

from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import to_rgba
from matplotlib.patches import Rectangle
from matplotlib.path import Path

from headscope.claims.caption_words import over
from headscope.claims.control import controls, sample_words
from headscope.claims.dictionary import unit_label
from headscope.claims.head_metrics import HeadMetric, chosen_metrics, control_ranges, head_metrics
from headscope.core.head_names import HeadNames, names_of
from headscope.core.intervals import Estimate
from headscope.core.results import Floats
from headscope.core.wording import plain
from headscope.draw.head_marks import forget_heads, note_cells, without_ends
from headscope.draw.marks import KEY_SIZE, box_path, cell_key, cells, shade_key
from headscope.draw.panel import Panel, Picture
from headscope.draw.style import color

FEW = 4  # up to this number of rows or columns all are numbered
STEPS = 12  # shades of each sign
HUES = {1: "blue", -1: "vermillion"}
ABOVE_AND_BELOW, LEFT = 0.69, 0.6  # inches that title, axes, labels and key take
GAP = 0.08  # empty share between neighbours
MARK_TURNS = 0.6  # of the ramp: from there on a page-coloured mark stands out more


def panels(tree: xr.DataTree) -> list[Panel]:
    """One panel per number that a question has for it (`Question.shown`)."""
    ranges, names = control_ranges(tree), names_of(tree)
    return [
        metric_panel(metric, names, untrained=ranges.get(metric.key))
        for metric in chosen_metrics(head_metrics(tree), "overview")
    ]


def metric_panel(
    metric: HeadMetric, names: HeadNames, *, untrained: tuple[float, float] | None = None
) -> Panel:
    """The grid of one number; `untrained` as of `draw_grid`."""
    title = metric.label[0].upper() + metric.label[1:]
    if unit_label(metric.unit) and metric.unit != "probability":
        title = f"{title} ({unit_label(metric.unit)})"
    title = title.replace("Attention to", "To").replace(", all tokens", "")
    parts = metric.estimate
    look: dict[str, Any] = {"unit": metric.unit, "untrained": untrained, "parts": parts}
    return grid_panel(title, parts.value, names, **look)


def grid_panel(title: str, values: Floats, names: HeadNames, **look: Any) -> Panel:
    """The grid of values [layer, head]; `look` as of `draw_grid`."""
    return Panel(title, partial(draw_grid, values, names, **look), **grid_room(values))


def signed_panel(
    title: str, values: Floats, names: HeadNames, *, height: float | None = None, **look: Any
) -> Panel:
    """The grid of values [layer, head] below and above 0; `look` as of `signed_grid`."""
    draw = partial(signed_grid, values, names, **look)
    return Panel(title, draw, **({"height": height} if height else grid_room(values)))


def caption(tree: xr.DataTree) -> str:
    """How to read the figure."""
    return (
        "Each cell is one head, layers from top to bottom and heads from left to right, numbered "
        f"from {names_of(tree).first}; darker is more, from 0 (page) to the value at the end of "
        f"each key; means over inputs; {over(tree)}; intervals stand in the tables."
        f"{control_words(tree)}"
    )


def control_words(tree: xr.DataTree) -> str:
    """What the line under a key says; '' where the run has no control."""
    if not controls(tree):
        return ""
    read = sample_words(tree)
    return f" Line under a key: all heads of networks without training, on a sample: {read}."


def draw_grid(
    values: Floats,
    names: HeadNames,
    axes: Axes,
    *,
    unit: str = "1",
    top: float | None = None,
    best: tuple[int, int] | None = None,
    top_text: str | None = None,
    untrained: tuple[float, float] | None = None,
    parts: Estimate | None = None,
) -> None:
    """A heat map of values [layer, head]; 0 has the colour of the page.

    top       the value at the end of the ramp; the largest by default
    best      (layer, head) of a cell that gets a frame
    top_text  how the value at the end of the ramp is written
    untrained  the least and the largest value of heads without training: a line under the key
    parts     the values with their intervals, which a page shows of the head pointed at
    """
    layers, heads = values.shape
    top = largest(values) if top is None else top
    paint_grid(axes, values, top=top, best=best)
    note_cells(axes, parts or without_ends(values), unit)
    _head_axes(axes, layers, heads, names, framed=False)
    under = None if untrained is None else (untrained[0] / top, untrained[1] / top)
    cell_key(axes, plain(top, unit) if top_text is None else top_text, under=under)


def paint_grid(axes: Axes, values: Floats, *, top: float, best: tuple[int, int] | None) -> None:
    """The cells of `draw_grid`, in the place of those that the axes had."""
    for old in (*axes.collections, *axes.patches):
        old.remove()
    forget_heads(axes)
    layers, heads = values.shape
    cells(axes, np.arange(heads + 1) - 0.5, np.arange(layers + 1) - 0.5, values, top=top, gap=GAP)
    if best is not None:
        corner = (best[1] - 0.5, best[0] - 0.5)
        axes.add_patch(Rectangle(corner, 1, 1, fill=False, ec=color("vermillion"), lw=1.1))
    axes.invert_yaxis()


def signed_grid(
    values: Floats,
    names: HeadNames,
    axes: Axes,
    *,
    top: float,
    text: str,
    high_text: str | None = None,
    signs: Floats | None = None,
    parts: Estimate | None = None,
    unit: str = "1",
) -> None:
    """A heat map of values [layer, head], layers downwards, with its key below.

    top        the size of the last shade; larger ones get it too
    text       how that size is written at the ends of the key, with a minus at the lower one; "" no
    high_text  how the upper end is written instead
    signs      [layer, head] marks of `sign_marks`
    parts      the values with their intervals, which a page shows of the head pointed at
    unit       of these
    """
    layers, heads = values.shape
    shade = np.ceil(np.clip(np.abs(np.nan_to_num(values)) / top, 0, 1) * STEPS).astype(int)
    for sign, hue in HUES.items():
        for level in range(1, STEPS + 1):
            there = np.argwhere((shade == level) & (np.sign(values) == sign))
            if len(there):
                corners = ((x - 0.5, x + 0.5, y - 0.5, y + 0.5) for y, x in there)
                path = Path.make_compound_path(*(box_path(*box, GAP) for box in corners))
                shown = PathCollection([path], facecolors=color(hue), linewidths=0.0)
                shown.set_alpha(level / STEPS)
                axes.add_collection(shown)
    axes.set_xlim(-0.5, heads - 0.5)
    axes.set_ylim(layers - 0.5, -0.5)
    _head_axes(axes, layers, heads, names, framed=True)
    note_cells(axes, parts or without_ends(values), unit)
    shades = [
        to_rgba(color(HUES[1 if level > 0 else -1]), abs(level) / STEPS)
        for level in (*range(-STEPS, 0), *range(1, STEPS + 1))
    ]
    ends = f"−{text}" if text else "", text if high_text is None else high_text
    shade_key(axes, shades, ends, width=2 * KEY_SIZE[0])
    if signs is not None:
        sign_marks(axes, signs, values / top)


def sign_marks(axes: Axes, signs: Floats, shares: Floats) -> None:
    """A + or a − on cells; signs [layer, head], 0 for none.

    shares  [layer, head] of the ramp that the cells have: on dark ones the mark is page
    """
    for layer, head in np.argwhere(signs != 0):
        text = "+" if signs[layer, head] > 0 else "−"
        shade = color("page" if abs(shares[layer, head]) > MARK_TURNS else "ink")
        axes.text(head, layer, text, ha="center", va="center_baseline", fontsize=6.5, color=shade)


def signed_top(values: Floats) -> float:
    """Where both ends of a signed ramp may stand: the largest size, or 1 where all are 0."""
    top = float(np.nan_to_num(np.abs(values)).max(initial=0))
    return top or 1.0


def _head_axes(axes: Axes, layers: int, heads: int, names: HeadNames, *, framed: bool) -> None:
    """Square cells; layers and heads by their numbers."""
    axes.set_aspect("equal", anchor="N")  # level with its neighbours
    for setter, count, name in (
        (axes.set_xticks, heads, names.within),
        (axes.set_yticks, layers, names.layer),
    ):
        shown = range(0, count, 1 if count <= FEW else 2 if count <= 2 * FEW else 4)
        setter(shown, [name(at) for at in shown])
    axes.tick_params(length=0)
    axes.spines[:].set(visible=framed, color=color("rule"))
    axes.set_xlabel("head", loc="left")
    axes.set_ylabel("layer")


def grid_room(values: Floats) -> dict[str, Any]:
    """`height` and `beside` of a panel with such a heat map, so that its cells are squares and no
    room is left empty, however wide it is.
    """
    layers, heads = values.shape
    share = layers / heads
    return {"height": share, "beside": ABOVE_AND_BELOW - LEFT * share}


def best_place(values: Floats) -> tuple[int, int]:
    """(layer, head) of the largest of values [layer, head], of which one is not NaN."""
    layer, head = np.unravel_index(np.nanargmax(values), values.shape)
    return int(layer), int(head)


def largest(values: Floats) -> float:
    """The largest value, or 1 where there is none above 0: where a ramp can end."""
    top: float = np.nan_to_num(values).max(initial=0)
    return float(top) or 1.0


OVERVIEW = Picture("head_grid", "All heads at a glance", (), panels, caption, columns=4)
