"""Draws what the output loses as more heads are replaced."""

from __future__ import annotations

from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator, SymmetricalLogLocator

from headscope.claims.reading import Reading
from headscope.core.intervals import Estimate
from headscope.core.results import Floats, at
from headscope.draw.marks import faint_grid, legend_of, share_tick
from headscope.draw.panel import Panel
from headscope.draw.style import DASHES, color
from headscope.experiments.replay import terms

LOOKS = {
    "rules": ("blue", "o"),
    "your_rules": ("purple", "D"),
    "rest": ("green", "v"),
    "mean_map": ("orange", "s"),
    "even": ("grey", "^"),
    "another_head": ("vermillion", "P"),
}
SHORT = {
    "rules": "rules",
    "your_rules": "your rules",
    "rest": "rest alone",
    "mean_map": "mean map",
    "even": "even",
    "another_head": "another head’s",
}
STRAIGHT = 0.1  # below such a change the axis is not logarithmic
SOLID = {"explained": 0, "chosen": 0, "random": 1}
EVEN_AXIS = 1.5  # of a change: up to it the axis is linear
ROOM = 1.15  # of the axis above the highest mark
COLUMNS = 3


def panels(run: Reading) -> list[Panel]:
    """One panel: the curves; of two measures of vectors, one each."""
    own = [_panel(run, "change", terms.compared(run.data).title)]
    pooled = "pooled_change" in run.data
    return own + [_panel(run, "pooled_change", "Distance of the pooled vector")] * pooled


def caption(run: Reading) -> str:
    """How to read the curves."""
    replay = run.data
    what = terms.compared(replay).what.format(
        score=replay.attrs["score"], baseline=run.text("{baseline}")
    )
    over = (
        f"95 % intervals, paired, over {replay.attrs['units']} documents "
        f"({replay.attrs['inputs']} inputs)."
    )
    if "chosen" in replay["order"].values:
        heads = terms.some_heads(terms.heads_in(replay, run.names, 0))
        parts = (
            f"when the attention of {heads} is replaced.",
            terms.weights_from(replay),
            "Whiskers:",
        )
        return f"{what}{' '.join(filter(None, parts))} {over}"
    axis = f"Below {100 * STRAIGHT:g} % the axis is linear, above logarithmic. "
    axis *= most(run, "change") > EVEN_AXIS
    drawn = int(replay.attrs["draws"])
    dashed = f" Dashed: {_orders(drawn)}." if drawn else ""
    return (
        f"{what}when the attention of a share of all heads is replaced, first "
        f"{terms.order_name(replay, 'explained')}. {terms.rules_from(replay)}{dashed} {axis}Bands: "
        f"{over}"
    )


def _orders(drawn: int) -> str:
    return "a random order" if drawn == 1 else f"the mean of {drawn} random orders"


def _panel(run: Reading, variable: str, title: str) -> Panel:
    if "chosen" in run.data["order"].values:
        return Panel(title, partial(_of_one_set, run, variable), height=0.5)
    return Panel(title, partial(_curves, run, variable), height=0.86, legend=COLUMNS)


def _curves(run: Reading, variable: str, axes: Axes) -> None:
    replay = run.data
    shares = replay["share"].values.astype(float)
    names = [str(name) for name in replay["replacement"].values]
    top, least = most(run, variable), 0.0
    for name in names:
        for order in map(str, replay["order"].values):
            parts = run(variable, replacement=name, order=order)  # [share]
            _curve(axes, shares, parts, name, order)
            least = min(least, float(np.nanmin(parts.value, initial=0.0)))
    axes.axhline(0, color=color("ink"), lw=0.6)
    if top > EVEN_AXIS:
        axes.set_yscale("symlog", linthresh=STRAIGHT, linscale=0.6)
        axes.yaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=STRAIGHT))
        axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylim(min(-0.02 * top, least * 1.1) if top <= EVEN_AXIS else -0.02, top * ROOM)
    axes.yaxis.set_major_formatter(FuncFormatter(percent_tick))
    axes.set_xlim(0, 1.03)
    axes.xaxis.set_major_formatter(FuncFormatter(share_tick))
    axes.set_xlabel("heads replaced")
    axes.set_ylabel(_unit(run))
    faint_grid(axes)
    handles = [
        Line2D(
            [],
            [],
            color=color(LOOKS[name][0]),
            marker=LOOKS[name][1],
            ms=4,
            mew=0,
            label=SHORT.get(name, name),
        )
        for name in names
    ]
    legend_of(axes, handles, columns=COLUMNS)


def most(run: Reading, variable: str) -> float:
    """The largest change that is drawn."""
    values = run.data[variable].values
    return max(STRAIGHT * 0.2, float(values[np.isfinite(values)].max(initial=0.0)))


def _of_one_set(run: Reading, variable: str, axes: Axes) -> None:
    names = [str(name) for name in run.data["replacement"].values]
    for row, name in enumerate(names):
        hue, mark = LOOKS[name]
        value, low, high = at(run(variable, replacement=name, order="chosen"), 0)
        axes.hlines(row, low, high, color=color(hue), lw=1)
        axes.plot(value, row, mark, color=color(hue), ms=4, mew=0)
    if most(run, variable) > EVEN_AXIS:
        axes.set_xscale("symlog", linthresh=STRAIGHT, linscale=0.6)
        axes.xaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=STRAIGHT))
    else:
        axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(FuncFormatter(percent_tick))
    axes.axvline(0, color=color("ink"), lw=0.6)
    axes.set_yticks(range(len(names)), [SHORT.get(name, name) for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlabel(_unit(run))


def _unit(run: Reading) -> str:
    return terms.compared(run.data).unit


def _curve(axes: Axes, shares: Floats, parts: Estimate, name: str, order: str) -> None:
    hue, mark = LOOKS[name]
    there = np.isfinite(parts.value)
    x = np.concatenate([[0.0], shares[there]])  # no heads, no change
    y, low, high = (
        np.concatenate([[0.0], end[there]]) for end in (parts.value, parts.low, parts.high)
    )
    if order != "random" and np.isfinite(low[1:]).any():
        axes.fill_between(x, low, high, color=color(hue), alpha=0.15, lw=0)
    axes.plot(
        x,
        y,
        ls=DASHES[SOLID[order]],
        color=color(hue),
        marker=mark,
        ms=3.4 if order != "random" else 2.4,
        mew=0,
        lw=1.3 if order != "random" else 0.9,
        zorder=4 if name == "rules" else 3,
    )


def percent_tick(share: float, _: object) -> str:
    """How the axis writes a change: `10 %`, `1,000 %`, `10⁶ %`."""
    percent = 100 * share
    if abs(percent) < 10:
        return f"{percent:.2g} %"
    if abs(percent) >= 1e5:
        power = "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in str(round(np.log10(percent))))
        return f"10{power} %"
    return f"{percent:,.0f} %"
