"""How much attention do words of each kind receive, layer by layer, and from [CLS] in the last?

Kovaleva et al. (2019), §4.4 and §4.5: nouns, verbs, subjects, objects, negation …, and beside them
special tokens.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from headscope.core.accumulators import Estimate
from headscope.core.results import Floats, estimate, group
from headscope.core.wording import plain
from headscope.draw.caption_words import INTERVALS, inputs, quantity, special
from headscope.draw.head_grid import best_place, largest
from headscope.draw.marks import (
    MANY_LAYERS,
    cell_key,
    cells,
    faint_grid,
    layer_axis,
    legend,
    over_heads,
    percent_axis,
)
from headscope.draw.panel import Panel, Picture
from headscope.draw.style import SINGLE, color, marker

NAMES = {
    "noun": "nouns", "verb": "verbs", "pronoun": "pronouns", "subject": "subjects",
    "object": "objects", "negation": "negation", "punctuation": "punctuation",
}  # fmt: skip
MARKS_OF_TEXT = ("punctuation", "cls", "sep")  # on a scale of their own: they draw far more
HEADROOM = 1.18  # of the axis: room for the name above the highest
KOVALEVA_SCALE = 0.5
STRIP = 0.17  # inches
AROUND = 0.75  # inches that axis, label and title take


def panels(tree: xr.DataTree) -> list[Panel]:
    """One panel per feature, those of words on one scale, the others on another."""
    features = group(tree, "features")
    if features is None:
        return []
    tops = {marks: _top(features, marks=marks) for marks in (False, True)}
    return [
        Panel(
            f"To {_name(tree, kind)}",
            partial(_draw, features, kind, top=tops[kind in MARKS_OF_TEXT]),
            height=0.8,
        )
        for kind in _there(features)
    ]


def caption(tree: xr.DataTree) -> str:
    """How to read the figure."""
    features = group(tree, "features")
    what = "attention" if features is None else quantity(features)
    return (
        f"The {what} that a token of each kind receives from all tokens of the input, mean over "
        "them, the largest of its kind, mean over the inputs that contain the kind: the mean of "
        "each layer’s heads (line) and its strongest head (diamonds; the strongest of all is "
        f"named), whiskers are {INTERVALS}; punctuation and special tokens on a scale of their "
        f"own; {inputs(features)}. After Kovaleva et al. (2019), §4.4."
    )


def cls_panels(tree: xr.DataTree) -> list[Panel]:
    """One panel: a strip of heads per feature."""
    dataset = group(tree, "cls_attention")
    if dataset is None:
        return []
    kinds = _there(dataset)
    if not kinds:
        return []
    height = (AROUND + STRIP * len(kinds)) / SINGLE
    names = [_name(tree, kind) for kind in kinds]
    draw = partial(_draw_strips, dataset, kinds, names)
    title = f"From {special(tree, 'cls')} in the last layer"
    return [Panel(title, draw, height=height)]


def cls_caption(tree: xr.DataTree) -> str:
    """How to read the strips."""
    dataset = group(tree, "cls_attention")
    what = "attention" if dataset is None else quantity(dataset)
    scale = "" if dataset is None else plain(_cls_top(dataset), _unit(dataset))
    return (
        f"Each cell is one head of the last layer, numbered from 1: its {what} from "
        f"{special(tree, 'cls')} to tokens of each kind, the largest of an input, mean over the "
        f"inputs that contain the kind, from 0 (page) to {scale}; {inputs(dataset)}; "
        "intervals stand in the tables. After Kovaleva et al. (2019), §4.5."
    )


def _there(dataset: xr.Dataset) -> list[str]:
    kinds = [str(kind) for kind in dataset["feature"].values]
    return [
        kind
        for kind in kinds
        if np.isfinite(estimate(dataset, "attention", feature=kind).value).any()
    ]


def _name(tree: xr.DataTree, kind: str) -> str:
    return NAMES.get(kind) or special(tree, kind)


def _unit(dataset: xr.Dataset) -> str:
    return str(dataset["attention"].attrs.get("units", "1"))


def _top(features: xr.Dataset, *, marks: bool) -> float:
    """Where the axis of a group of features ends."""
    kinds = [kind for kind in _there(features) if (kind in MARKS_OF_TEXT) == marks]
    parts = [estimate(features, "attention", feature=kind) for kind in kinds]
    ends = [np.fmax(strongest(part).high, strongest(part).value) for part in parts]
    return HEADROOM * max((largest(end) for end in ends), default=1.0)


def strongest(parts: Estimate) -> Estimate:
    """[layer] the head with the largest value in each layer; parts [layer, head]."""
    at = np.nan_to_num(parts.value, nan=-np.inf).argmax(axis=1)[:, None]  # [layer, 1]
    ends = (np.take_along_axis(end, at, 1)[:, 0] for end in (parts.value, parts.low, parts.high))
    return Estimate(*ends)


def _draw(features: xr.Dataset, kind: str, axes: Axes, *, top: float) -> None:
    parts = estimate(features, "attention", feature=kind)
    first = strongest(parts)
    over = np.arange(len(parts.value))
    shade = color("strongest")
    axes.vlines(over, first.low, first.high, color=shade, lw=0.8, alpha=0.6, zorder=2)
    axes.plot(over, first.value, marker("strongest"), color=shade, ms=3.2, mew=0, zorder=3)
    mean: Floats = over_heads(parts.value)
    axes.plot(over, mean, "-", marker=marker("mean"), color=color("mean"), ms=2.8, mew=0, zorder=4)
    layer_axis(axes, len(over))
    if _unit(features) == "probability":
        percent_axis(axes, quantity(features), top=top)
    else:
        axes.set_ylim(0, top)
        axes.set_ylabel(quantity(features))
        faint_grid(axes)
    _name_strongest(axes, parts)
    legend(axes, [("mean", "mean of heads"), ("strongest", "strongest head")], line=False)


def _name_strongest(axes: Axes, parts: Estimate) -> None:
    """The name of the strongest of all heads above its whisker, within the axes."""
    layer, head = place = best_place(parts.value)
    last = len(parts.value) - 1
    align = "left" if layer == 0 else "right" if layer == last else "center"
    axes.annotate(
        f"L{layer + 1}·H{head + 1}",
        (layer, float(np.fmax(parts.value[place], parts.high[place]))), (0, 2.5),
        textcoords="offset points", ha=align, fontsize=6.5, color=color("ink"),
    )  # fmt: skip


def _cls_top(dataset: xr.Dataset) -> float:
    """Kovaleva's scale where it holds all values."""
    top = largest(estimate(dataset, "attention").value)
    return KOVALEVA_SCALE if _unit(dataset) == "probability" and top <= KOVALEVA_SCALE else top


def _draw_strips(dataset: xr.Dataset, kinds: list[str], names: list[str], axes: Axes) -> None:
    rows = [estimate(dataset, "attention", feature=kind).value for kind in kinds]
    values: Floats = np.array(rows, dtype=np.float64)  # [feature, head]
    top = _cls_top(dataset)
    count = values.shape[1]
    x, y = (np.arange(-0.5, size, dtype=np.float64) for size in (count, len(kinds)))
    cells(axes, x, y, values, top=top, gap=0.08)
    axes.invert_yaxis()
    axes.set_yticks(range(len(kinds)), names)
    shown = range(0, count, 1 if count <= MANY_LAYERS else 4)
    axes.set_xticks(shown, [str(head + 1) for head in shown])
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xlabel("head", loc="left")
    cell_key(axes, plain(top, _unit(dataset)))


BY_LAYER = Picture(
    "features_by_layer", "What kinds of words receive", ("features",), panels, caption, columns=3
)
CLS = Picture(
    "cls_attention", "What the last [CLS] looks at", ("cls_attention",), cls_panels, cls_caption,
    columns=1,
)  # fmt: skip
FIGURES = (BY_LAYER,)
CLS_FIGURES = (CLS,)
