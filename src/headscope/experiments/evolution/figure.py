"""Draws numbers of heads over training steps, and the lives of labels."""

from __future__ import annotations

from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from headscope.claims.reading import Reading
from headscope.core.intervals import Estimate
from headscope.core.results import Floats
from headscope.core.wording import capital
from headscope.draw.head_marks import note_heads, number_texts
from headscope.draw.marks import LineEnd, end_labels, faint_grid, legend_of, percent_axis
from headscope.draw.panel import Panel
from headscope.draw.style import SPARE_HUES, color
from headscope.experiments.evolution.spells import Spell, is_behind, lasting_spells

MOST_MARKED = 4  # heads that a panel names
MOST_LIVES = 24  # rows of the picture of lives
EARLY = 0.1  # of the training: with most steps before it the axis is logarithmic
ROW, LIVES_BESIDE = 0.15, 0.75  # inches of a row, and of all else
CONTROL = "untrained, at most"


def panels(run: Reading) -> list[Panel]:
    """One panel for each number that is followed."""
    return [
        Panel(capital(str(name)), partial(_lines, run, at), height=0.95, legend=2)
        for at, name in enumerate(run.data["measure_name"].values)
    ]


def caption(run: Reading) -> str:
    """How to read the lines."""
    data = run.data
    inputs = sorted(set(data["measured_over"].values.tolist()))
    over = " or ".join(map(str, inputs))
    dashed = np.isfinite(data["control_most"].values).any()
    return (
        f"A line per head over {data.sizes['step']} measured steps. Coloured: heads with the label "
        "of the panel, with 95 % intervals over documents or made inputs "
        f"(n = {over}); the stripe in a head’s colour spans the two steps between which its label "
        "is born. " + "Dashed: the largest head of networks without training." * bool(dashed)
    )


def _lines(run: Reading, at: int, axes: Axes) -> None:
    data = run.data
    steps, unit = data["step"].values.astype(float), str(data["unit"].values[at])
    values, low, high = (
        data["value" + end].values[:, at] for end in ("", "_ci_low", "_ci_high")
    )  # [step, layer, head]
    marked = _marked(run, str(data["measure"].values[at]), values)
    axes.plot(steps, values.reshape(len(steps), -1), color=color("grey"), lw=0.6, alpha=0.55)
    if np.isfinite(most := data["control_most"].values[:, at]).any():
        axes.plot(steps, most, color=color("ink"), lw=0.9, ls=(0, (4, 1.6)))
    top = 1.0 if unit == "probability" else 1.05 * float(np.nanmax(values, initial=0.01))
    now = Estimate(values[-1], low[-1], high[-1])
    last, texts = np.full(now.value.shape, steps[-1]), number_texts(now, unit)
    note_heads(axes, last, now.value, texts, series=f"at step {steps[-1]:,.0f}")
    ends = []
    for number, spell in enumerate(marked):
        hue, place = SPARE_HUES[number], (slice(None), spell.layer, spell.head)
        axes.fill_between(steps, low[place], high[place], color=color(hue), alpha=0.2, lw=0)
        axes.plot(steps, values[place], color=color(hue), lw=1.4, marker="o", ms=2, mew=0)
        if spell.born_after is not None:
            axes.axvspan(spell.born_after, spell.born_by, color=color(hue), alpha=0.14, lw=0)
        name = run.names.head(spell.layer, spell.head)
        ends.append(LineEnd(float(values[place][-1]), name, hue, "_"))
    _step_axis(axes, steps)
    if unit == "probability":
        percent_axis(axes, "", top=1.0)
    else:
        axes.set_ylim(0, top)
        faint_grid(axes)
    end_labels(axes, ends, top=top)
    handles = [Line2D([], [], color=color("grey"), lw=0.8, label="each head")]
    if np.isfinite(most).any():
        handles.append(Line2D([], [], color=color("ink"), lw=0.9, ls=(0, (4, 1.6)), label=CONTROL))
    legend_of(axes, handles, columns=2)


def _marked(run: Reading, measure: str, values: Floats) -> list[Spell]:
    """The first lasting spell of each head with the panel's label, those of the largest numbers."""
    first = dict[tuple[int, int], Spell]()
    for one in lasting_spells(run.data):
        if is_behind(measure, one.kind):
            first.setdefault((one.layer, one.head), one)
    largest = sorted(
        first.values(), key=lambda one: -float(np.nanmax(values[:, one.layer, one.head]))
    )
    return largest[:MOST_MARKED]


def _step_axis(axes: Axes, steps: Floats) -> None:
    """Steps; by powers where most of them lie in the first part of the training."""
    early = np.mean(steps <= steps[0] + EARLY * (steps[-1] - steps[0]))
    if len(steps) > 2 and early > 0.5:
        axes.set_xscale("symlog", linthresh=max(1.0, float(steps[steps > 0][0])))
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda step, _: f"{step:,.0f}"))
    if len(steps) > 1:
        axes.set_xlim(steps[0], steps[-1])
    axes.set_xlabel("training step")


def life_panels(run: Reading) -> list[Panel]:
    """One panel: a bar for each label of a head, from its birth to its end."""
    shown = _lives(run)
    if not shown:
        return []
    beside = LIVES_BESIDE + ROW * min(len(shown), MOST_LIVES)
    return [Panel("Lives of labels", partial(_draw_lives, run), height=0.0, beside=beside)]


def _lives(run: Reading) -> list[list[Spell]]:
    """The lasting spells of each label of a head, in the order of their births."""
    lives = dict[tuple[str, int, int], list[Spell]]()
    for one in lasting_spells(run.data):
        lives.setdefault((one.label, one.layer, one.head), []).append(one)
    return list(lives.values())


def life_caption(run: Reading) -> str:
    """How to read the bars."""
    left = len(_lives(run)) - MOST_LIVES
    return (
        "A bar spans the steps at which a head has a label; its pale ends are the steps between "
        "which it is born, and goes. In the order of births; labels of a single step are left out."
        + f" The first {MOST_LIVES}; {left} more in tables/label_spells."
        * (left > 0)
    )


def _draw_lives(run: Reading, axes: Axes) -> None:
    shown, steps = _lives(run)[:MOST_LIVES], run.data["step"].values.astype(float)
    kinds = list(dict.fromkeys(life[0].kind for life in shown))
    for row, life in enumerate(shown):
        shade = color(SPARE_HUES[kinds.index(life[0].kind) % len(SPARE_HUES)])
        for one in life:
            born = one.born_by if one.born_after is None else one.born_after
            gone = one.last if one.gone_by is None else one.gone_by
            axes.barh(row, gone - born, left=born, height=0.62, color=shade, alpha=0.3, lw=0)
            width = one.last - one.born_by
            axes.barh(row, width, left=one.born_by, height=0.62, color=shade, lw=0)
    firsts, heads = [one for one, *_ in shown], run.data.sizes["head"]
    note_heads(
        axes,
        [one.born_by for one in firsts],
        range(len(firsts)),
        [f"{one.label}, born {one.born}" for one in firsts],
        units=[one.layer * heads + one.head for one in firsts],
    )
    names = [f"{run.names.head(one.layer, one.head)}  {one.label}" for one in firsts]
    axes.set_yticks(range(len(shown)), names)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    _step_axis(axes, steps)
