"""Figures of a zoo: a small panel for each model, all with the same axes, over depth.

Depth runs from the first layer, 0, to the last, 1, so that models of 3 and of 30 layers compare.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator

from headscope.analyses.dependency.relation_heads import RelationHead
from headscope.claims.caption_words import INTERVALS, clipped
from headscope.core.head_names import HeadNames, names_of
from headscope.core.intervals import Estimate
from headscope.core.results import shape
from headscope.draw.depth_pairs import draw_depth_pairs
from headscope.draw.marks import faint_grid, share_tick
from headscope.draw.panel import LEGEND_COLUMNS, Panel, compose
from headscope.draw.rows import beside, rows_height
from headscope.draw.saving import save_picture
from headscope.draw.style import RAMP_STEPS, color, layer_step, ramp
from headscope.papers.quantities import Unmeasured
from headscope.papers.zoo.claims import RELATIONS
from headscope.papers.zoo.counterparts import Counterparts
from headscope.papers.zoo.measures import MIDDLE, best_relation_head, depths
from headscope.papers.zoo.outcome import ZooOutcome

COLUMNS = 3
MOST_PANELS = 24  # of one figure: they are lettered from a
LONGEST_TITLE = 30
WIDTH = 2.3  # inches, a third of two columns
HEIGHT = 0.62
SQUARE = 0.85
MARKED = 16  # layers; of more, the marks are smaller


@dataclass(frozen=True, slots=True)
class Series:
    """One curve: its names in `depth_curves` (the first that a model has counts), and its look."""

    keys: tuple[str, ...]
    text: str
    hue: str
    mark: str
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Multiple:
    """One figure: a panel for every model that has any of its series; middle: mark that depth."""

    name: str
    title: str
    series: tuple[Series, ...]
    text: str
    caption: str
    middle: bool = True


MULTIPLES = (
    Multiple(
        "attention",
        "Where attention goes",
        (
            Series(("sep",), "separator", "vermillion", "^"),
            Series(("cls", "first"), "[CLS], or first token", "blue", "s"),
            Series(("punctuation",), "full stops and commas", "green", "v"),
            Series(("other",), "all other tokens", "grey", "o"),
        ),
        "Early layers of BERT look at words and at [CLS], the middle ones rest on [SEP], the last "
        "on punctuation (Clark et al. 2019). A line that rises above the dashed half is a resting "
        "place of its layer.",
        "Share of attention by what is attended to, mean over inputs and heads, against depth "
        "(0 first layer, 1 last); the shaded depth is that of BERT’s {middle}, the dashed line "
        "one half",
    ),
    Multiple(
        "entropy",
        "How widely attention spreads",
        (
            Series(("entropy",), "all tokens", "ink", "o"),
            Series(("entropy_cls",), "[CLS] only", "blue", "s", dashed=True),
        ),
        "At 100 % attention is uniform. In BERT the lower layers attend broadly, and so does [CLS] "
        "in the last layer, where it gathers the whole input (Clark et al. 2019).",
        "Entropy of attention as a share of that of uniform attention, mean over inputs and "
        "heads, against depth (0 first layer, 1 last); in decoders uniform means over the "
        "tokens so far",
        middle=False,
    ),
    Multiple(
        "norms",
        "Weight against norm",
        (
            Series(("weight_sep",), "separator, weight", "vermillion", "^"),
            Series(("norm_sep",), "separator, norm", "vermillion", "^", dashed=True),
            Series(("weight_other",), "other tokens, weight", "grey", "o"),
            Series(("norm_other",), "other tokens, norm", "grey", "o", dashed=True),
        ),
        "What a token contributes is its weight times the length of its vector. Where the dashed "
        "line of the separator lies far below the solid one, heads look there in order to do "
        "little (Kobayashi et al. 2020).",
        "Share of the attention weight α (solid) and of the weighted norm ‖αf(x)‖ (dashed) that "
        "separators and other tokens have, all heads of a layer together, against depth (0 first "
        "layer, 1 last); [CLS], or the first token of decoders without it, and punctuation make up "
        "the rest",
    ),
)
BEST_HEADS = Multiple(
    "best_heads",
    "The best heads",
    (Series((), "best fixed offset", "grey", "D"),),
    "A head that finds the head of a word better than any fixed offset has learned more than "
    "position. In BERT such heads are found in the middle layers (Clark et al. 2019, Table 1).",
    "Share of words whose syntactic head the best head finds, chosen on one half of the documents "
    "and scored on the other; the more a dot stands out from the page, the deeper its layer; grey "
    "diamonds: the best fixed offset; faint where the advantage is not beyond its interval",
)


COUNTERPARTS = Multiple(
    "counterparts",
    "Heads that do the same",
    (
        Series((), "alike", "blue", "o"),
        Series((), "paired, not shown to be alike", "grey", "o", dashed=True),
    ),
    "Training from another seed puts the heads of a layer in another order. Here the heads of two "
    "models are paired by where they attend. If both learn the same things at the same depth, blue "
    "lies along the diagonal.",
    "Heads of two models, paired one to one so that the divergence of their attention is least; "
    "the depth of one against that of the other (0 first layer, 1 last). The area of a circle is "
    "the number of pairs. Blue: both are surely less than half as far from each other as from the "
    "nearest head of untrained networks; grey: the other pairs",
)


def all_panels(zoo: ZooOutcome, *, key: bool) -> list[tuple[Multiple, list[Panel]]]:
    """The figures that any model has something for; key: whether the first panel has a legend."""
    figures = [(multiple, _panels(zoo, multiple, key=key)) for multiple in MULTIPLES]
    figures += [(BEST_HEADS, _heads(zoo)), (COUNTERPARTS, _pairs(zoo, key=key))]
    return [(figure, every) for figure, every in figures if every]


def _panels(zoo: ZooOutcome, multiple: Multiple, *, key: bool) -> list[Panel]:
    made: list[Panel] = []
    for label, curves in zoo.curves.items():
        keys = ((s, next((k for k in s.keys if k in curves), "")) for s in multiple.series)
        there = [(series, curves[name]) for series, name in keys if name]
        if there:
            entries = multiple.series if key and not made else ()
            draw = partial(_draw_curves, there, entries, middle=multiple.middle)
            made.append(Panel(clipped(label, LONGEST_TITLE), draw, height=HEIGHT))
    return made


def _heads(zoo: ZooOutcome) -> list[Panel]:
    """One panel per model that was asked for relations; rows are the relations of any model."""
    by_model: dict[str, dict[str, RelationHead]] = {label: {} for label in zoo.runs}
    for label, run in zoo.asked.items():
        for relation in RELATIONS:
            with suppress(Unmeasured):
                by_model[label][relation.name] = best_relation_head(run, relation.labels)
    rows = [r.name for r in RELATIONS if any(r.name in heads for heads in by_model.values())]
    height = rows_height(len(rows), width=WIDTH)
    return [
        Panel(
            clipped(label, LONGEST_TITLE),
            partial(_draw_heads, rows, best_heads, zoo.runs[label].tree),
            height=height,
        )
        for label, best_heads in by_model.items()
        if best_heads
    ]


def _pairs(zoo: ZooOutcome, *, key: bool) -> list[Panel]:
    """One panel for every two models."""
    return [
        Panel(
            clipped(" and ".join(pair.names), LONGEST_TITLE),
            partial(_draw_pairs, pair, COUNTERPARTS.series if key and not at else ()),
            height=SQUARE,
        )
        for at, pair in enumerate(zoo.counterparts)
    ]


def caption(zoo: ZooOutcome, multiple: Multiple, drawn: Sequence[Panel]) -> str:
    """How to read it, in which unit, over how many, and which models are not in it."""
    text = multiple.caption
    if multiple is COUNTERPARTS:
        counts = sorted({f"{pair.inputs} inputs by {pair.unit}" for pair in zoo.counterparts})
        return f"{text}; compared on {' or '.join(counts)}."
    trees = [run.tree for run in zoo.runs.values()]
    documents = max(int(tree.attrs["documents"]) for tree in trees)
    tokens = sorted(int(tree.attrs["tokens"]) for tree in trees)
    span = f"{tokens[0]:,}" + (f" to {tokens[-1]:,}" if tokens[-1] > tokens[0] else "")
    titles = {panel.title for panel in drawn}
    left = [label for label in zoo.runs if clipped(label, LONGEST_TITLE) not in titles]
    without = f" Nothing to draw for {', '.join(left)}." if left else ""
    first = HeadNames(()).first
    text = text.format(middle=f"layers {5 + first}–{9 + first}")
    return (
        f"{text}; bands and whiskers are {INTERVALS}; n = {documents:,} documents, {span} tokens "
        f"by tokenizer.{without}"
    )


def save_figures(zoo: ZooOutcome) -> list[Path]:
    """Writes every figure as .svg and .png into `figures`; more than MOST_PANELS go on in -2."""
    written = []
    for multiple, every in all_panels(zoo, key=True):
        for start in range(0, len(every), MOST_PANELS):
            number = f"-{start // MOST_PANELS + 1}" if start else ""
            figure = compose(every[start : start + MOST_PANELS], columns=COLUMNS)
            for kind in ("svg", "png"):
                path = zoo.path / "figures" / f"{multiple.name}{number}.{kind}"
                written.append(save_picture(figure, path))
    return written


def _draw_curves(
    there: list[tuple[Series, Estimate]], entries: Sequence[Series], axes: Axes, *, middle: bool
) -> None:
    if middle:
        axes.axvspan(*MIDDLE, color=color("rule"), alpha=0.35, lw=0, zorder=0)
        axes.axhline(0.5, color=color("muted"), lw=0.6, ls=(0, (3, 2)), zorder=1)
    for series, curve in there:
        x, shade = depths(len(curve.value)), color(series.hue)
        if np.isfinite(curve.low).any():
            axes.fill_between(x, curve.low, curve.high, color=shade, alpha=0.18, lw=0, zorder=2)
        axes.plot(
            x,
            curve.value,
            ls=(0, (3, 1.4)) if series.dashed else "-",
            color=shade,
            lw=1.2,
            marker=series.mark,
            ms=3.0 if len(x) <= MARKED else 2.0,
            mec=shade,
            mew=0.7,
            mfc=color("page") if series.dashed else shade,
            clip_on=False,
            zorder=3,
        )
    axes.set_xlim(-0.03, 1.03)
    axes.set_ylim(0, 1)
    for axis, text in ((axes.xaxis, lambda depth, _: f"{depth:g}"), (axes.yaxis, share_tick)):
        axis.set_major_locator(FixedLocator([0, 0.25, 0.5, 0.75, 1]))
        axis.set_major_formatter(text)
    axes.set_xlabel("depth")
    faint_grid(axes)
    if entries:
        _key(axes, entries)


def _key(axes: Axes, entries: Sequence[Series]) -> None:
    handles = [
        Line2D(
            [],
            [],
            color=color(one.hue),
            marker=one.mark,
            ms=4,
            mew=0.7,
            ls="" if not one.keys else "--" if one.dashed else "-",
            label=one.text,
            mfc=color("page" if one.dashed else one.hue),
        )
        for one in entries
    ]
    row = axes.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=min(len(handles), LEGEND_COLUMNS),
    )
    row.set_in_layout(False)  # it is wider than its panel: the others have room above


def _draw_pairs(pair: Counterparts, entries: Sequence[Series], axes: Axes) -> None:
    alike = np.array([verdict.holds for verdict in pair.verdicts])
    draw_depth_pairs(axes, pair.places[..., 0], pair.layers, alike, pair.names)
    if entries:
        _key(axes, entries)


def _draw_heads(
    rows: Sequence[str], best_heads: Mapping[str, RelationHead], tree: xr.DataTree, axes: Axes
) -> None:
    steps, layers, names = ramp(), shape(tree)[0], names_of(tree)
    for row, name in enumerate(rows):
        best = best_heads.get(name)
        if best is None:
            beside(axes, row, "—", 4.0, align="left", faint=True)
            continue
        score, opacity = best.score, 1.0 if best.beats else 0.45
        axes.plot(
            [best.baseline.value],
            [row],
            "D",
            color=color("page"),
            mec=color("grey"),
            mew=0.9,
            ms=3.4,
            zorder=3,
        )
        if np.isfinite(score.low):
            shade = color("muted")
            axes.hlines(row, score.low, score.high, color=shade, lw=0.9, alpha=opacity, zorder=2)
        axes.plot(
            [score.value],
            [row],
            "o",
            color=steps[layer_step(best.place[0], layers)],
            mec=color("ink"),
            mew=0.5,
            ms=4.8,
            alpha=opacity,
            zorder=4,
        )
        beside(
            axes, row, names.head(*best.place), 4.0, align="left", faint=not best.beats, fontsize=6
        )
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_yticks(range(len(rows)), list(rows))
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_locator(FixedLocator([0, 0.5, 1]))
    axes.xaxis.set_major_formatter(share_tick)
    axes.set_xlabel("words whose head is found")
    axes.grid(axis="x")
    axes.set_axisbelow(True)


def depth_shades() -> list[int]:
    """The steps of the ramp from the first layer to the last."""
    return list(range(layer_step(0, 2), RAMP_STEPS))
