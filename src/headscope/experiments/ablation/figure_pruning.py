"""How does the score fall as heads are removed, and does it matter in which order?

As Michel et al. (2019), Figure 3: the score against the share of heads that are gone.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from headscope.core.results import Floats, estimate, group
from headscope.draw.head_grid import draw_grid, grid_height
from headscope.draw.marks import faint_grid
from headscope.draw.panel import Panel, Picture
from headscope.draw.style import color
from headscope.experiments.ablation.figure import score_tick
from headscope.experiments.ablation.readings import (
    RANDOM,
    best_order,
    chosen_orders,
    in_percent,
    metric_name,
    task_name,
)

LOOKS = {"greedy": ("blue", "o"), "alone": ("orange", "s")}  # line and marker of an order
GIVEN = ("green", "^")
WORDS = {"greedy": "greedy", "alone": "least needed alone"}


def panels(tree: xr.DataTree) -> list[Panel]:
    """A line per order, and when each head goes in the best of them."""
    found = group(tree, "pruning")
    if found is None:
        return []
    word = metric_name(found)
    title = f"{word[0].upper() + word[1:]} against heads removed"
    turns = found["turn"].sel(order=best_order(found)).transpose("layer", "head").values + 1.0
    goes = "When each head goes, 1: first"
    return [
        Panel(title, partial(_draw, found), height=0.66),
        Panel(goes, partial(draw_grid, turns, top_text=str(turns.size)), height=grid_height(turns)),
    ]


def caption(tree: xr.DataTree) -> str:
    """How to read the figure."""
    found = group(tree, "pruning")
    assert found is not None
    chance, best = _random(found), best_order(found)
    grey = (
        f"; grey, the mean and range of {len(chance)} random orders" if len(chance) > 1
        else "; grey, a random order" if len(chance) else ""
    )  # fmt: skip
    same = (
        "the same examples, so that the score is on the rosy side"
        if found.attrs["same_examples"] else f"{found.attrs['chosen_by_examples']:,} other examples"
    )  # fmt: skip
    return (
        f"(a) The {metric_name(found)} on {task_name(found)} as heads are removed, "
        f"least needed first, in orders found on {same}{grey}. Dashed: {_allowed(found)} below the "
        f"whole model; a ring marks where each order last reaches it: {_can_go(found)} of "
        f"{found.attrs['heads']} heads. The coloured band is the 95 % interval of the difference "
        f"({WORDS.get(best, best)}), paired bootstrap; n = {found.attrs['examples']:,} examples. "
        "(b) The place of each head in that order: those nearest to the page’s colour go first. "
        "After Michel et al. (2019)."
    )


def _draw(found: xr.Dataset, axes: Axes) -> None:
    heads, allowance = int(found.attrs["heads"]), float(found.attrs["allowance"])
    share = found["removed"].values / heads  # [point]
    base = float(found["score"].values[0, 0])
    chance = _random(found)
    if len(chance):
        axes.fill_between(
            share, chance.min(0), chance.max(0), color=color("grey"), alpha=0.18, lw=0
        )
        axes.plot(share, chance.mean(0), "-", color=color("grey"), lw=1.2, label="random")
    for name in chosen_orders(found):
        hue, mark = LOOKS.get(name, GIVEN)
        at = [str(x) for x in found["order"].values].index(name)
        score, apart = found["score"].values[at], estimate(found, "difference", order=name)
        if name == best_order(found):  # the bands of several would hide each other
            low, high = base + apart.low, base + apart.high
            axes.fill_between(share, low, high, color=color(hue), alpha=0.16, lw=0)
        axes.plot(share, score, "-", color=color(hue), marker=mark, ms=3, mew=0,
                  label=WORDS.get(name, name), zorder=3)  # fmt: skip
        last = list(found["removed"].values).index(int(found["can_go"].values[at]))
        axes.plot(share[last], score[last], "o", ms=8, mfc="none", mec=color(hue), mew=1.1,
                  zorder=4)  # fmt: skip
    axes.axhline(base - allowance, color=color("ink"), lw=0.8, ls=(0, (4, 1.6)))
    axes.set_xlim(-0.02, 1.02)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{100 * x:.0f} %"))
    axes.set_xlabel("heads removed")
    axes.yaxis.set_major_formatter(FuncFormatter(score_tick(found)))
    axes.set_ylabel(metric_name(found))
    faint_grid(axes)
    row = axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4)
    row.set_in_layout(False)  # `compose` leaves it its height


def _random(found: xr.Dataset) -> Floats:
    """[draw, point] scores of the random orders."""
    chance = [str(name).startswith(RANDOM) for name in found["order"].values]
    return np.asarray(found["score"].values[chance], np.float64)


def _can_go(found: xr.Dataset) -> str:
    counts = dict(zip((str(x) for x in found["order"].values), found["can_go"].values, strict=True))
    told = [f"{int(counts[name])} ({WORDS.get(name, name)})" for name in chosen_orders(found)]
    return ", ".join(told)


def _allowed(found: xr.Dataset) -> str:
    allowance = float(found.attrs["allowance"])
    return f"{100 * allowance:g} points" if in_percent(found) else f"{allowance:g}"


PICTURE = Picture("pruning", "Scores as heads go", ("pruning",), panels, caption)
FIGURES = (PICTURE,)
