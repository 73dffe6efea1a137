"""Draws what labels change where they apply, against what they are compared with."""

from __future__ import annotations

from functools import partial

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from headscope.claims.plan import CHANGES
from headscope.claims.reading import Reading
from headscope.core.results import at, estimate, shape
from headscope.core.wording import number, percent
from headscope.draw.head_marks import note_heads
from headscope.draw.marks import faint_grid, legend_of, share_tick
from headscope.draw.panel import Panel
from headscope.draw.style import color
from headscope.experiments.trial.terms import MOVES, VECTORS
from headscope.experiments.trial.verdicts import (
    CONFIRMED,
    NOT_CONFIRMED,
    TriedLabel,
    tried_labels,
    weakest,
)

LOOKS = {CONFIRMED: ("blue", "o"), NOT_CONFIRMED: ("vermillion", "x")}
ROOM = 1.08


def panels(run: Reading) -> list[Panel]:
    """One panel: each label's effect, and the largest of what it is compared with."""
    title = "Effect of each label, and elsewhere"
    return [Panel(title, partial(_draw, run), height=0.9)] if _shown(run) else []


def _shown(run: Reading) -> list[tuple[int, TriedLabel]]:
    """Labels of single heads that say that what is taken matters, with their rows."""
    changes = run.data["expects"].values == CHANGES
    return [
        (row, one)
        for row, one in enumerate(tried_labels(run.data))
        if one.alone and one.outcome in LOOKS and changes[row]
    ]


def caption(run: Reading) -> str:
    """How to read it."""
    moves = MOVES[run.data.attrs["score"]].partition(";")[0]
    return (
        f"Each mark is a label of a head: {moves}, where its rule applies and the head’s weight "
        "there is moved away; against the largest such change by other queries, at other tokens or "
        "in other heads of the layer. Above the line the label matters more there than elsewhere; "
        "confirmed: surely so, for all labels at once."
    )


def _draw(run: Reading, axes: Axes) -> None:
    effect, beyond = estimate(run.data, "effect"), estimate(run.data, "beyond")
    low, top, vectors = 0.0, 0.0, run.data.attrs["score"] == VECTORS
    shown = percent if vectors else number
    for row, one in _shown(run):
        hue, mark = LOOKS[one.outcome]
        value = float(effect.value[row])
        elsewhere = value - weakest(beyond, row)
        low, top = min(low, value, elsewhere), max(top, value, elsewhere)
        ((layer, head),) = one.heads
        note_heads(
            axes,
            elsewhere,
            value,
            [f"{one.outcome}: {shown(*map(float, at(effect, row)))}"],
            units=[layer * shape(run.tree)[1] + head],
        )
        axes.plot(elsewhere, value, mark, color=color(hue), ms=4, mew=0 if mark == "o" else 1)
    ends = low * ROOM, top * ROOM
    axes.plot(ends, ends, color=color("ink"), lw=0.6)
    axes.set_xlim(*ends)
    axes.set_ylim(*ends)
    unit = "" if vectors else " (nats)"
    axes.set_xlabel(f"largest effect elsewhere{unit}")
    axes.set_ylabel(f"effect where it applies{unit}")
    for axis in (axes.xaxis, axes.yaxis) if vectors else ():
        axis.set_major_formatter(FuncFormatter(share_tick))
    faint_grid(axes)
    handles = [
        Line2D([], [], ls="", color=color(hue), marker=mark, ms=4, label=name)
        for name, (hue, mark) in LOOKS.items()
    ]
    legend_of(axes, handles, columns=2)
