"""Draws the score without each head and each layer, and the score as heads are removed.

Kovaleva et al. (2019), Figure 8: a cell per head, the change of the task's score when the head
attends evenly; Figure 9: the score without each layer beside that of the whole model. Michel et al.
(2019), Figure 3: the score against the share of heads that are gone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from headscope.core.accumulators import Estimate
from headscope.core.results import Floats, estimate, group
from headscope.core.wording import capital, fixed
from headscope.draw.head_grid import (
    HUES,
    draw_grid,
    grid_height,
    sign_marks,
    signed_grid,
    signed_top,
)
from headscope.draw.marks import faint_grid, layer_axis
from headscope.draw.panel import Panel, Picture
from headscope.draw.style import color
from headscope.experiments.ablation.task_wording import (
    RANDOM,
    best_order,
    chosen_orders,
    in_percent,
    metric_name,
    score_text,
    task_name,
    verdict_counts,
)

WIDTH = 0.72  # of a bar, as a share of its place
INSTEAD = {
    "uniform": "attends to all tokens evenly",
    "zero": "adds nothing",
    "mean": "adds its mean over the data whatever it sees",
}
SIGNS = {"helpful": -1, "harmful": 1}
LOOKS = {"greedy": ("blue", "o"), "alone": ("orange", "s")}  # line and marker of an order
GIVEN = ("green", "^")
WORDS = {"greedy": "greedy", "alone": "least needed alone"}


def panels(tree: xr.DataTree) -> list[Panel]:
    """The heads, and the layers."""
    ablation = group(tree, "ablation")
    if ablation is None:
        return []
    word = metric_name(ablation)
    return [
        _grid(
            f"Change of {word}, by head",
            ablation,
            "difference",
            "verdict",
            unit="points" if in_percent(ablation) else "",
        ),
        Panel(f"{capital(word)} without a layer", partial(_layers, ablation), height=0.72),
    ]


def loss_panels(tree: xr.DataTree) -> list[Panel]:
    """The loss, which is finer than a score: every example counts, not only those that flip."""
    ablation = group(tree, "ablation")
    if ablation is None:
        return []
    unit = "nats" if ablation["loss_difference"].attrs["units"] == "nats" else ""
    title = "Fall of the loss without a head"
    return [
        _grid(title, ablation, "loss_difference", "loss_verdict", unit=unit),
        Panel("Fall of the loss without a layer", partial(_layer_losses, ablation), height=0.72),
    ]


def caption(tree: xr.DataTree) -> str:
    """How to read the figure."""
    ablation = group(tree, "ablation")
    assert ablation is not None
    counts, n = verdict_counts(ablation), ablation.sizes["example"]
    many = ablation["verdict"].size
    return (
        f"(a) Change of {metric_name(ablation)} on {task_name(ablation)} when a head "
        f"{INSTEAD[ablation.attrs['replacement']]}: blue where the score rises without it, "
        f"vermillion where it falls. Marked are heads whose change is more than chance (q < 0.05, "
        f"corrected for {many} heads by Benjamini and Hochberg): {_told(counts)}. (b) The score "
        f"without each whole layer, bars from the score of the whole model "
        f"({score_text(ablation)}); 95 % "
        f"intervals of the difference, paired bootstrap over examples; n = {n:,} examples. After "
        "Kovaleva et al. (2019), Figures 8 and 9."
    )


def loss_caption(tree: xr.DataTree) -> str:
    """How to read the figure."""
    ablation = group(tree, "ablation")
    assert ablation is not None
    counts, n = verdict_counts(ablation, "loss_verdict"), ablation.sizes["example"]
    kind = "squared error" if not ablation.attrs["classes"] else "cross-entropy"
    return (
        f"By how much the loss, the mean {kind}, falls without a head (a) or layer (b): blue where "
        f"the model gets better, vermillion where it gets worse. The loss moves with the certainty "
        f"of every answer, so it may tell more heads from chance than a score: {_told(counts)} "
        f"(q < 0.05, corrected as for the score). Whole model "
        f"{float(ablation['baseline_loss']):.3f}; "
        f"95 % intervals by the normal approximation; n = {n:,} examples."
    )


def score_tick(result: xr.Dataset) -> Callable[[float, object], str]:
    """How a score is written on an axis."""
    if in_percent(result):
        return lambda score, _: f"{100 * score:g} %"
    return lambda score, _: fixed(score, 2)


def _grid(title: str, ablation: xr.Dataset, variable: str, verdict: str, *, unit: str) -> Panel:
    values = np.asarray(ablation[variable].values, np.float64)
    if variable == "loss_difference":
        values = -values  # as in the other figure, up is better
    layers, heads = values.shape
    signs = np.zeros(values.shape)
    for word, sign in SIGNS.items():
        signs[ablation[verdict].values == word] = sign
    draw = partial(_draw_grid, values, signs, unit=unit)
    return Panel(title, draw, height=0.3 + 0.8 * layers / heads)


def _draw_grid(values: Floats, signs: Floats, axes: Axes, *, unit: str) -> None:
    top = signed_top(values)
    scale = 100 if unit == "points" else 1
    shown = fixed(scale * top, 1 if unit == "points" else 2 if top >= 0.1 else 3)
    text = f"{shown} {unit}".strip()
    signed_grid(axes, values, top=top, low_text=f"−{shown}", high_text=text)
    sign_marks(axes, signs, values / top)


def _layers(ablation: xr.Dataset, axes: Axes) -> None:
    """Bars from the baseline up or down, on the scale of the score."""
    base, apart = float(ablation["baseline"]), estimate(ablation, "layer_difference")
    _bars(axes, apart, base)
    axes.axhline(base, color=color("ink"), lw=0.8, zorder=4)
    axes.annotate(
        "whole model", (1, base), (1.02, base), xycoords=("axes fraction", "data"),
        textcoords=("axes fraction", "data"), va="center", fontsize=7, annotation_clip=False,
    )  # fmt: skip
    axes.set_ylabel(metric_name(ablation))
    axes.yaxis.set_major_formatter(FuncFormatter(score_tick(ablation)))


def _layer_losses(ablation: xr.Dataset, axes: Axes) -> None:
    rise = estimate(ablation, "layer_loss_difference")
    _bars(axes, Estimate(-rise.value, -rise.high, -rise.low), 0.0)
    axes.axhline(0, color=color("ink"), lw=0.8, zorder=4)
    axes.set_ylabel("fall of the loss")


def _bars(axes: Axes, apart: Estimate, base: float) -> None:
    """Signed bars [layer] with whiskers; the axis holds what is drawn and the baseline."""
    at = np.arange(len(apart.value))
    for sign, hue in HUES.items():
        some = np.sign(apart.value) == sign
        axes.bar(at[some], apart.value[some], WIDTH, base, color=color(hue), lw=0, zorder=2)
    axes.vlines(at, base + apart.low, base + apart.high, color=color("ink"), lw=0.8, zorder=3)
    layer_axis(axes, len(at))
    ends = np.concatenate([apart.value, apart.low, apart.high, [0.0]])
    low, high = base + np.nanmin(ends), base + np.nanmax(ends)
    room = 0.08 * ((high - low) or 0.1)
    axes.set_ylim(low - room, high + room)
    axes.yaxis.set_major_locator(MaxNLocator(5))
    faint_grid(axes)


def _told(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {word}" for word, count in counts.items())


PICTURE = Picture("ablation", "Scores without heads", ("ablation",), panels, caption)
LOSS = Picture("ablation_loss", "Losses without heads", ("ablation",), loss_panels, loss_caption)


# --- heads removed one after another ----------------------------------------------------------


def pruning_panels(tree: xr.DataTree) -> list[Panel]:
    """A line per order, and when each head goes in the best of them."""
    pruning = group(tree, "pruning")
    if pruning is None:
        return []
    word = metric_name(pruning)
    title = f"{capital(word)} against heads removed"
    turns = pruning["turn"].sel(order=best_order(pruning)).transpose("layer", "head").values + 1.0
    goes = "When each head goes, 1: first"
    return [
        Panel(title, partial(_curves, pruning), height=0.66),
        Panel(goes, partial(draw_grid, turns, top_text=str(turns.size)), height=grid_height(turns)),
    ]


def pruning_caption(tree: xr.DataTree) -> str:
    """How to read the figure."""
    pruning = group(tree, "pruning")
    assert pruning is not None
    chance, best = _random_scores(pruning), best_order(pruning)
    grey = (
        f"; grey, the mean and range of {len(chance)} random orders" if len(chance) > 1
        else "; grey, a random order" if len(chance) else ""
    )  # fmt: skip
    same = (
        "the same examples, so that the score is on the rosy side"
        if pruning.attrs["same_examples"]
        else f"{pruning.attrs['chosen_by_examples']:,} other examples"
    )
    return (
        f"(a) The {metric_name(pruning)} on {task_name(pruning)} as heads are removed, "
        f"least needed first, in orders found on {same}{grey}. Dashed: {_allowed(pruning)} below "
        f"the whole model; a ring marks where each order last reaches it: {_can_go(pruning)} of "
        f"{pruning.attrs['heads']} heads. The coloured band is the 95 % interval of the difference "
        f"({WORDS.get(best, best)}), paired bootstrap; n = {pruning.attrs['examples']:,} examples. "
        "(b) The place of each head in that order: those nearest to the page’s colour go first. "
        "After Michel et al. (2019)."
    )


def _curves(pruning: xr.Dataset, axes: Axes) -> None:
    heads, allowance = int(pruning.attrs["heads"]), float(pruning.attrs["allowance"])
    share = pruning["removed"].values / heads  # [point]
    base = float(pruning["score"].values[0, 0])
    chance = _random_scores(pruning)
    if len(chance):
        axes.fill_between(
            share, chance.min(0), chance.max(0), color=color("grey"), alpha=0.18, lw=0
        )
        axes.plot(share, chance.mean(0), "-", color=color("grey"), lw=1.2, label="random")
    for name in chosen_orders(pruning):
        hue, mark = LOOKS.get(name, GIVEN)
        at = [str(x) for x in pruning["order"].values].index(name)
        score, apart = pruning["score"].values[at], estimate(pruning, "difference", order=name)
        if name == best_order(pruning):  # the bands of several would hide each other
            low, high = base + apart.low, base + apart.high
            axes.fill_between(share, low, high, color=color(hue), alpha=0.16, lw=0)
        axes.plot(share, score, "-", color=color(hue), marker=mark, ms=3, mew=0,
                  label=WORDS.get(name, name), zorder=3)  # fmt: skip
        last = list(pruning["removed"].values).index(int(pruning["can_go"].values[at]))
        axes.plot(share[last], score[last], "o", ms=8, mfc="none", mec=color(hue), mew=1.1,
                  zorder=4)  # fmt: skip
    axes.axhline(base - allowance, color=color("ink"), lw=0.8, ls=(0, (4, 1.6)))
    axes.set_xlim(-0.02, 1.02)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{100 * x:.0f} %"))
    axes.set_xlabel("heads removed")
    axes.yaxis.set_major_formatter(FuncFormatter(score_tick(pruning)))
    axes.set_ylabel(metric_name(pruning))
    faint_grid(axes)
    row = axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4)
    row.set_in_layout(False)  # `compose` leaves it its height


def _random_scores(pruning: xr.Dataset) -> Floats:
    """[draw, point] scores of the random orders."""
    chance = [str(name).startswith(RANDOM) for name in pruning["order"].values]
    return np.asarray(pruning["score"].values[chance], np.float64)


def _can_go(pruning: xr.Dataset) -> str:
    counts = dict(
        zip((str(x) for x in pruning["order"].values), pruning["can_go"].values, strict=True)
    )
    told = [f"{int(counts[name])} ({WORDS.get(name, name)})" for name in chosen_orders(pruning)]
    return ", ".join(told)


def _allowed(pruning: xr.Dataset) -> str:
    allowance = float(pruning.attrs["allowance"])
    return f"{100 * allowance:g} points" if in_percent(pruning) else f"{allowance:g}"


PRUNING = Picture("pruning", "Scores as heads go", ("pruning",), pruning_panels, pruning_caption)
FIGURES = (PICTURE, LOSS)
PRUNING_FIGURES = (PRUNING,)
