"""Which classes of maps does a model have: in each layer, and on each corpus?

Kovaleva et al. (2019), Figure 2: one bar per corpus, cut into the shares of the five classes.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend

from headscope.analyses.patterns import CLASSES
from headscope.analyses.patterns.classes import NAMES
from headscope.claims.caption_words import clipped
from headscope.claims.reading import Reading
from headscope.core.accumulators import Ints
from headscope.core.results import Floats
from headscope.draw.marks import layer_axis, percent_axis
from headscope.draw.panel import Panel, compose
from headscope.draw.style import DOUBLE, SINGLE, color, ramp_map

WIDTH = 0.78  # of a bar, as a share of its place
GAP = 0.5  # between the bars of two models
MOST_LETTERS = 24  # of a name below a bar
LEAST_TOLD = 0.08  # smaller parts have no room for a number
UNSURE = "unsure"
LEAST_UNSURE = 1e-9  # what sums of shares leave
TITLES = {one.name: one.title for one in CLASSES} | {UNSURE: "Unsure"}


def bars_of_runs(runs: Sequence[tuple[str, str]], shares: Floats) -> Figure:
    """One bar for each model and corpus, models apart.

    runs    [bar] (model, corpus), the bars of a model one after the other
    shares  [bar, pattern] in the order of the classes; what rows lack of 1 is unsure
    """
    width = SINGLE if len(runs) <= 3 else DOUBLE
    height = 0.85 if width == SINGLE else 0.48
    draw = partial(draw_bars, list(runs), shares)
    panel = Panel("Classes of maps", draw, height=height, key_above=True)  # the models' names
    return compose([panel], columns=1, width=width)


def confusion_figure(confusions: Sequence[tuple[str, Ints]]) -> Figure:
    """Predicted classes of the maps of each class; [label, predicted] counts, one panel each, with
    its title."""
    made = [
        Panel(title, partial(_draw_confusion, counts, first=at == 0), height=1.0)
        for at, (title, counts) in enumerate(confusions)
    ]
    return compose(made, columns=len(made), width=DOUBLE if len(made) > 1 else SINGLE)


def draw_bars(runs: list[tuple[str, str]], shares: Floats, axes: Axes) -> None:
    """One bar for each (model, corpus), see `bars_of_runs`, on given axes."""
    models = [model for model, _ in runs]
    groups = np.cumsum([at > 0 and models[at] != models[at - 1] for at in range(len(models))])
    places = np.arange(len(runs)) + GAP * groups
    _bars(axes, places, shares, written=len(runs) <= 16)
    corpora = [clipped(corpus, MOST_LETTERS) for _, corpus in runs]
    axes.set_xticks(places, corpora, rotation=35, ha="right", rotation_mode="anchor")
    axes.set_xlim(-0.6, places[-1] + 0.6)
    for number in range(groups[-1] + 1):
        at = groups == number
        name = clipped(models[int(np.argmax(at))], MOST_LETTERS)
        axes.text(places[at].mean(), 1.02, name, ha="center", va="bottom", fontsize=6.5)
    _key(axes)


def draw_layers(run: Reading, axes: Axes) -> None:
    """A bar for each layer, and one of all heads."""
    by_layer, whole = run("layer_share").value, run("model_share").value
    layers = len(by_layer)
    places = np.array([*range(layers), layers + 0.6])
    _bars(axes, places, np.concatenate([by_layer, whole[None]]), written=layers <= 16)
    layer_axis(axes, layers, run.names)
    axes.set_xlim(-0.6, layers + 1.1)
    ticks = axes.get_xticks().tolist()
    axes.set_xticks([*ticks, layers + 0.6], [*(run.names.layer(int(at)) for at in ticks), "all"])
    _key(axes)


def _bars(axes: Axes, places: Floats, shares: Floats, *, written: bool) -> None:
    start = np.zeros(len(places))
    for at, word in enumerate(NAMES):
        part = np.nan_to_num(shares[:, at])
        axes.bar(
            places, part, WIDTH, start, color=color(word), ec=color("page"), lw=0.5, label=word
        )
        for x, low, height in zip(places, start, part, strict=True):
            if written and height >= LEAST_TOLD:
                axes.text(
                    x,
                    low + height / 2,
                    f"{100 * height:.0f}",
                    ha="center",
                    va="center",
                    color="black",
                    fontsize=6,
                )
        start = start + part
    rest = np.where(np.isfinite(shares).any(1), 1 - start, 0)
    if rest.max(initial=0) > LEAST_UNSURE:
        axes.bar(
            places,
            rest,
            WIDTH,
            start,
            color=color("page"),
            ec=color("grey"),
            lw=0.5,
            hatch="////",
            label=UNSURE,
        )
    percent_axis(axes, "maps", top=1.0)
    axes.grid(visible=False)


def _key(axes: Axes) -> None:
    """The classes beside the last bar, in its order. No legend of the axes: those stand above."""
    handles, words = axes.get_legend_handles_labels()
    titles = [TITLES[word].replace(" + ", "\n+ ") for word in words]
    key = Legend(
        axes,
        handles[::-1],
        titles[::-1],
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        handlelength=0.9,
        labelspacing=0.7,
    )
    axes.add_artist(key).set_clip_on(False)


def _draw_confusion(counts: Ints, axes: Axes, *, first: bool) -> None:
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)  # of each label
    axes.imshow(shares, cmap=ramp_map(), vmin=0, vmax=1)
    for (row, column), count in np.ndenumerate(counts):
        shade = "white" if shares[row, column] > 0.45 else color("ink")
        axes.text(column, row, str(count), ha="center", va="center", color=shade, fontsize=6.5)
    short = [TITLES[word].replace(" + ", " +\n") for word in NAMES]
    axes.set_xticks(range(len(NAMES)), short, rotation=40, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(NAMES)), short if first else [""] * len(NAMES))
    axes.tick_params(length=0)
    axes.set_xlabel("told by the classifier")
    if first:
        axes.set_ylabel("labelled by eye")
    axes.spines[:].set_visible(False)
