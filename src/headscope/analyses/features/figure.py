"""Draw and report what kinds of words receive, what [CLS] looks at, and how pairs of words attend.

Kovaleva et al. (2019), §4.4 and §4.5: nouns, verbs, subjects, objects, negation …, and beside them
special tokens; subjects with verbs, and nouns with pronouns, both ways.
"""

import math
from collections.abc import Iterable
from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from headscope.analyses.language.tables import language_section, scale_of
from headscope.claims.caption_words import INTERVALS, inputs, over, quantity, special
from headscope.claims.dictionary import name
from headscope.claims.reading import Reading
from headscope.core.accumulators import Ints, finite_mean
from headscope.core.head_names import names_of
from headscope.core.intervals import Estimate
from headscope.core.results import at, estimate, group, shape
from headscope.core.wording import capital, plain
from headscope.draw import marks
from headscope.draw.head_grid import best_place, grid_panel, largest
from headscope.draw.head_marks import note_heads, number_texts
from headscope.draw.panel import Panel
from headscope.draw.style import SINGLE, color, marker
from headscope.page.tabulate import Cell, Column, Rows, Table


def features_table(run: Reading) -> Table:
    """For every kind of token or pair the head that gives it most, beside the mean head."""
    tree = run.tree
    wanted = [
        ("features", "feature", "From all tokens, to the kind"),
        ("cls_attention", "feature", f"From {special(tree, 'cls')} in the last layer, to the kind"),
        ("pairs", "pair", "Between words of a sentence"),
    ]
    there = [(dataset, dim, title) for key, dim, title in wanted if (dataset := group(tree, key))]
    groups = []
    for dataset, dim, title in there:
        words = ", ".join(filter(None, (quantity(dataset), scale_of(dataset)[1])))
        if rows := _strongest(tree, dataset, dim):
            groups.append(Rows(rows, f"{title}: {words}"))
    columns = [
        Column("Kind"),
        Column("n", "inputs"),
        Column("Strongest head"),
        Column("It gives"),
        Column("Mean head"),
    ]
    caption = (
        "The head that gives a kind of token most, and the mean over heads: the largest value over "
        "the tokens of the kind (from all tokens: mean over those that attend), mean over the "
        "inputs that have one. The strongest head is chosen on the inputs that it is scored on. "
        f"n counts inputs. {INTERVALS}; {over(tree, there[0][0]['attention'])}. "
        "After Kovaleva et al. (2019), §4.4-4.5."
    )
    return Table("Kinds of tokens", columns, groups, caption)


def _strongest(tree: xr.DataTree, dataset: xr.Dataset, dim: str) -> list[list[Cell]]:
    (layers, heads), number = shape(tree), scale_of(dataset)[0]
    last = 0 if "layer" in dataset["attention"].dims else (layers - 1) * heads
    rows = []
    for kind in dataset[dim].values.tolist():
        here = dataset.sel({dim: kind})
        parts = estimate(here, "attention")  # [head], or [layer, head]
        if not np.isfinite(parts.value).any():
            continue
        unit = int(np.nanargmax(parts.value))
        best = at(parts.map(np.ravel), unit)
        rows.append(
            [
                Cell(name_of_kind(tree, kind)),
                Cell(f"{int(here['count']):,}"),
                Cell(names_of(tree).unit(last + unit, heads)),
                number(*best),
                number(float(np.nanmean(parts.value))),
            ]
        )
    return rows


def name_of_kind(tree: xr.DataTree, kind: str) -> str:
    """A kind of tokens, or of pairs, in words."""
    return special(tree, kind) if kind in ("cls", "sep") else name(kind)


MARKS_OF_TEXT = ("punctuation", "cls", "sep")  # on a scale of their own: they draw far more
HEADROOM = 1.18  # of the axis: room for the name above the highest
KOVALEVA_SCALE = 0.5
STRIP = 0.17  # inches
AROUND = 0.75  # inches that axis, label and title take


def panels(run: Reading) -> list[Panel]:
    """A panel for each kind of words."""
    kinds = _by_kind(run.data, "feature")
    tops = {
        of_text: _top(parts for kind, parts in kinds.items() if (kind in MARKS_OF_TEXT) == of_text)
        for of_text in (False, True)
    }
    shown = []
    for kind, parts in kinds.items():
        draw = partial(_draw, run, parts, top=tops[kind in MARKS_OF_TEXT])
        shown.append(Panel(f"To {name_of_kind(run.tree, kind)}", draw, height=0.8))
    return shown


def caption(run: Reading) -> str:
    """How to read them."""
    return (
        f"The {quantity(run.data)} that a token of each kind receives from all tokens of the "
        "input, mean over them, the largest of its kind, mean over the inputs that contain the "
        "kind: the mean of each layer’s heads (line) and its strongest head (diamonds; the "
        f"strongest of all is named), whiskers are {INTERVALS}; punctuation and special tokens on "
        f"a scale of their own; {inputs(run.data)}. After Kovaleva et al. (2019), §4.4."
    )


def cls_panels(run: Reading, top: float | None = None) -> list[Panel]:
    """What [CLS] gives each kind of words in the last layer, as one map.

    top  the end of its scale, by default that of `cls_top`
    """
    kinds = _by_kind(run.data, "feature")
    if not kinds:
        return []
    height = (AROUND + STRIP * len(kinds)) / SINGLE
    strips = {name_of_kind(run.tree, kind): parts for kind, parts in kinds.items()}
    title = f"From {run.special('cls')} in the last layer"
    return [Panel(title, partial(_draw_strips, run, strips, top), height=height)]


def cls_caption(run: Reading) -> str:
    """How to read it."""
    dataset = run.data
    return (
        f"Each cell is one head of the last layer, numbered from {run.names.first}: its "
        f"{quantity(dataset)} from {run.special('cls')} to tokens of each kind, the largest of "
        "an input, mean over the inputs that contain the kind, from 0 (page) to "
        f"{plain(cls_top(dataset), _unit(dataset))}; {inputs(dataset)}; "
        "intervals stand in the tables. After Kovaleva et al. (2019), §4.5."
    )


def pair_panels(run: Reading) -> list[Panel]:
    """All heads, a panel for each kind of pairs."""
    kinds = _by_kind(run.data, "pair")
    top = max((largest(parts.value) for parts in kinds.values()), default=1.0)
    look = {"unit": _unit(run.data), "top": top}
    return [
        grid_panel(
            capital(name(kind)),
            parts.value,
            run.names,
            best=best_place(parts.value),
            parts=parts,
            **look,
        )
        for kind, parts in kinds.items()
    ]


def pair_caption(run: Reading) -> str:
    """How to read them."""
    return (
        "Each cell is one head, layers from top to bottom and heads from left to right, numbered "
        f"from {run.names.first}: its largest {quantity(run.data)} from a token of the one kind "
        "to one of the other, mean over the inputs that have such a pair; subjects with their own "
        "verbs, nouns with any pronoun; all panels from 0 (page) to the value at the end of "
        f"the key; the frame marks the largest; {inputs(run.data)}; intervals stand in the tables. "
        "After Kovaleva et al. (2019), §4.5."
    )


def _by_kind(dataset: xr.Dataset, dim: str) -> dict[str, Estimate]:
    kinds = map(str, dataset[dim].values)
    measured = {kind: estimate(dataset, "attention", **{dim: kind}) for kind in kinds}
    return {kind: parts for kind, parts in measured.items() if np.isfinite(parts.value).any()}


def _unit(dataset: xr.Dataset) -> str:
    return str(dataset["attention"].attrs.get("units", "1"))


def _top(kinds: Iterable[Estimate]) -> float:
    ends = (np.fmax(first.high, first.value) for first in map(strongest, kinds))
    return HEADROOM * max(map(largest, ends), default=1.0)


def strongest(parts: Estimate) -> Estimate:
    """[layer] the head with the largest value in each layer; parts [layer, head]."""
    at = _strongest_heads(parts)
    layers = np.arange(len(at))
    return Estimate(*(end[layers, at] for end in (parts.value, parts.low, parts.high)))


def _strongest_heads(parts: Estimate) -> Ints:
    return np.asarray(np.nan_to_num(parts.value, nan=-np.inf).argmax(axis=1))  # [layer]


def _draw(run: Reading, parts: Estimate, axes: Axes, *, top: float) -> None:
    first = strongest(parts)
    over = np.arange(len(parts.value))
    shade = color("strongest")
    axes.vlines(over, first.low, first.high, color=shade, lw=0.8, alpha=0.6, zorder=2)
    axes.plot(over, first.value, marker("strongest"), color=shade, ms=3.2, mew=0, zorder=3)
    heads = parts.value.shape[1]
    units = [layer * heads + head for layer, head in enumerate(_strongest_heads(parts))]
    note_heads(axes, over, first.value, number_texts(first, _unit(run.data)), units=units)
    mean = finite_mean(parts.value)
    axes.plot(over, mean, "-", marker=marker("mean"), color=color("mean"), ms=2.8, mew=0, zorder=4)
    marks.layer_axis(axes, len(over), run.names)
    axis = marks.percent_axis if _unit(run.data) == "probability" else marks.value_axis
    axis(axes, quantity(run.data), top=top)
    # the strongest of all heads is named above its whisker, within the axes
    layer, head = place = best_place(parts.value)
    align = "left" if layer == 0 else "right" if layer == over[-1] else "center"
    axes.annotate(
        run.names.head(layer, head),
        (layer, float(np.fmax(parts.value[place], parts.high[place]))),
        (0, 2.5),
        textcoords="offset points",
        ha=align,
        fontsize=6,
        color=color("ink"),
    )
    marks.legend(axes, [("mean", "mean of heads"), ("strongest", "strongest head")], line=False)


def cls_top(dataset: xr.Dataset) -> float:
    """Kovaleva's scale where it holds all values."""
    top = largest(estimate(dataset, "attention").value)
    return KOVALEVA_SCALE if _unit(dataset) == "probability" and top <= KOVALEVA_SCALE else top


def _draw_strips(run: Reading, strips: dict[str, Estimate], top: float | None, axes: Axes) -> None:
    values = np.stack([parts.value for parts in strips.values()])  # [feature, head]
    top = cls_top(run.data) if top is None else top
    y, x = (np.arange(size + 1) - 0.5 for size in values.shape)
    marks.cells(axes, x, y, values, top=top, gap=0.08)
    axes.invert_yaxis()
    axes.set_yticks(range(len(strips)), list(strips))
    count = values.shape[1]
    last = math.prod(shape(run.tree)) - count + np.arange(count)  # [head] of the last layer
    for row, (kind, parts) in enumerate(strips.items()):
        texts = number_texts(parts, _unit(run.data))
        look = {"units": last.tolist(), "series": kind, "cells": True}
        note_heads(axes, np.arange(count), np.full(count, row), texts, **look)
    shown = marks.named_places(count)
    axes.set_xticks(shown, [run.names.within(head) for head in shown])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("head", loc="left")
    marks.cell_key(axes, plain(top, _unit(run.data)))


SECTIONS = language_section(
    "features",
    "cls_attention",
    "pairs",
    counts="word",
    id="features",
    title="Kinds of words: who looks at nouns, subjects, negation?",
    text="How much attention the most attended word of a kind receives, beside what "
    "punctuation and special tokens draw; from [CLS] in the last layer, which classifiers "
    "read; and between words that belong together.",
    pictures=("features_by_layer", "cls_attention", "pairs"),
    tables=(features_table,),
    wanted="kinds of words (tags: --treebank, or --annotate with --text)",
)
