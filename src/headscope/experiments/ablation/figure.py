"""Draws the score without each head and each layer, and the score as heads are removed.

Kovaleva et al. (2019), Figure 8: a cell per head, the change of the task's score when the head
attends evenly; Figure 9: the score without each layer beside that of the whole model. Michel et al.
(2019), Figure 3: the score against the share of heads that are gone.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from headscope.claims.reading import Reading
from headscope.core.head_names import HeadNames
from headscope.core.intervals import Estimate
from headscope.core.results import Floats, estimate
from headscope.core.wording import capital, fixed
from headscope.draw import head_grid
from headscope.draw.marks import faint_grid, layer_axis, share_tick
from headscope.draw.panel import Panel
from headscope.draw.style import color
from headscope.experiments.ablation import terms

WIDTH = 0.72  # of a bar, as a share of its place
INSTEAD = {
    "uniform": "attends to all tokens evenly",
    "zero": "adds nothing",
    "mean": "adds its mean over the data whatever it sees",
}
LOOKS = {"greedy": ("blue", "o"), "alone": ("orange", "s")}  # line and marker of an order
GIVEN = ("green", "^")


def panels(run: Reading) -> list[Panel]:
    """Heads by the score, and layers."""
    ablation = run.data
    word, unit = terms.metric_name(ablation), terms.score_unit(ablation)
    title, change = f"Change of {word}, by head", run("difference")
    return [
        _grid(title, change, run.names, ablation["verdict"], unit=unit),
        Panel(f"{capital(word)} without a layer", partial(_layers, run), height=0.72),
    ]


def loss_panels(run: Reading) -> list[Panel]:
    """The loss, finer than a score, as every example counts; up is better here too."""
    ablation = run.data
    unit = "nats" if ablation["loss_difference"].attrs["units"] == "nats" else ""
    rise = run("loss_difference")
    fall = Estimate(-rise.value, -rise.high, -rise.low)
    title = "Fall of the loss without a head"
    return [
        _grid(title, fall, run.names, ablation["loss_verdict"], unit=unit),
        Panel("Fall of the loss without a layer", partial(_layer_losses, run), height=0.72),
    ]


def caption(run: Reading) -> str:
    """How to read the scores."""
    ablation = run.data
    many, n = ablation["verdict"].size, ablation.sizes["example"]
    return (
        f"(a) Change of {terms.metric_name(ablation)} on {terms.task_name(ablation)} when a head "
        f"{INSTEAD[ablation.attrs['replacement']]}: blue where the score rises without it, "
        f"vermillion where it falls. Marked are heads whose change is more than chance (q < 0.05, "
        f"corrected for {many} heads by Benjamini and Hochberg): {terms.verdict_text(ablation)}. "
        "(b) The score without each whole layer, bars from the score of the whole model "
        f"({terms.score_text(ablation)}); 95 % intervals of the difference, paired over "
        f"examples; n = {n:,} examples. After Kovaleva et al. (2019), Figures 8 and 9."
    )


def loss_caption(run: Reading) -> str:
    """How to read the losses."""
    ablation = run.data
    words, n = terms.verdict_text(ablation, "loss_verdict"), ablation.sizes["example"]
    kind = "cross-entropy" if ablation.attrs["classes"] else "squared error"
    return (
        f"By how much the loss, the mean {kind}, falls without a head (a) or layer (b): blue where "
        f"the model gets better, vermillion where it gets worse. The loss moves with the certainty "
        f"of every answer, so it may tell more heads from chance than a score: {words} "
        f"(q < 0.05, corrected as for the score). Whole model "
        f"{float(ablation['baseline_loss']):.3f}; "
        f"95 % intervals, paired over examples; n = {n:,} examples."
    )


def _score_tick(result: xr.Dataset) -> Callable[[float, object], str]:
    if terms.in_percent(result):
        return lambda score, _: f"{100 * score:g} %"
    return lambda score, _: fixed(score, 2)


def _grid(
    title: str, parts: Estimate, names: HeadNames, verdicts: xr.DataArray, *, unit: str
) -> Panel:
    values = parts.value
    layers, heads = values.shape
    signs = 1.0 * (verdicts.values == "harmful") - (verdicts.values == "helpful")
    top = head_grid.signed_top(values)
    shown = f"{100 * top:.1f}" if unit == "points" else fixed(top, 2 if top >= 0.1 else 3)

    return head_grid.signed_panel(
        title,
        values,
        names,
        height=0.3 + 0.8 * layers / heads,
        top=top,
        text=shown,
        high_text=f"{shown} {unit}".strip(),
        signs=signs,
        parts=parts.map(lambda shares: 100 * shares) if unit == "points" else parts,
        unit=unit,
    )


def _layers(run: Reading, axes: Axes) -> None:
    ablation, base = run.data, float(run.data["baseline"])
    _bars(axes, _possible(ablation, run("layer_difference"), base), base, run.names)
    axes.annotate(
        "whole model",
        (1, base),
        (1.02, base),
        xycoords=("axes fraction", "data"),
        textcoords=("axes fraction", "data"),
        va="center",
        fontsize=6.5,
        annotation_clip=False,
    )
    axes.set_ylabel(terms.metric_name(ablation))
    axes.yaxis.set_major_formatter(_score_tick(ablation))


def _possible(result: xr.Dataset, apart: Estimate, base: float) -> Estimate:
    """Differences from a score without what would lead beyond any: above 100 %, below 0 or −1."""
    least = 0.0 if terms.in_percent(result) else -1.0
    return apart.map(lambda ends: ends.clip(least - base, 1.0 - base))


def _layer_losses(run: Reading, axes: Axes) -> None:
    rise = run("layer_loss_difference").map(np.negative)
    _bars(axes, Estimate(rise.value, rise.high, rise.low), 0.0, run.names)
    axes.set_ylabel("fall of the loss")


def _bars(axes: Axes, apart: Estimate, base: float, names: HeadNames) -> None:
    """Signed bars [layer] with whiskers; the axis holds what is drawn and the baseline."""
    at = np.arange(len(apart.value))
    for sign, hue in head_grid.HUES.items():
        some = np.sign(apart.value) == sign
        axes.bar(at[some], apart.value[some], WIDTH, base, color=color(hue), lw=0, zorder=2)
    axes.vlines(at, base + apart.low, base + apart.high, color=color("ink"), lw=0.8, zorder=3)
    layer_axis(axes, len(at), names)
    ends = np.concatenate([apart.value, apart.low, apart.high, [0.0]])
    low, high = base + np.nanmin(ends), base + np.nanmax(ends)
    room = 0.08 * ((high - low) or 0.1)
    axes.set_ylim(low - room, high + room)
    axes.yaxis.set_major_locator(MaxNLocator(5))
    faint_grid(axes)
    axes.axhline(base, color=color("ink"), lw=0.8, zorder=4)


def pruning_panels(run: Reading) -> list[Panel]:
    """The curves, and when each head goes."""
    pruning = run.data
    title = f"{capital(terms.metric_name(pruning))} against heads removed"
    turn = pruning["turn"].sel(order=terms.best_order(pruning))
    turns = turn.transpose("layer", "head").values + 1.0
    return [
        Panel(title, partial(_curves, pruning), height=0.66),
        head_grid.grid_panel(
            "When each head goes, 1: first", turns, run.names, top_text=str(turns.size)
        ),
    ]


def pruning_caption(run: Reading) -> str:
    """How to read the curves."""
    pruning = run.data
    chance, best = _random_scores(pruning), terms.best_order(pruning)
    allowance = float(pruning.attrs["allowance"])
    allowed = f"{100 * allowance:g} points" if terms.in_percent(pruning) else f"{allowance:g}"
    can_go = ", ".join(
        f"{int(pruning['can_go'].sel(order=name))} ({terms.ORDERS.get(name, name)})"
        for name in terms.chosen_orders(pruning)
    )
    grey = "; grey, a random order" if len(chance) else ""
    if len(chance) > 1:
        grey = f"; grey, the mean and range of {len(chance)} random orders"
    on = f"{pruning.attrs['chosen_by_examples']:,} other examples"
    if pruning.attrs["same_examples"]:
        on = "the same examples, so that the score is on the rosy side"
    return (
        f"(a) The {terms.metric_name(pruning)} on {terms.task_name(pruning)} as heads are removed, "
        f"least needed first, in orders found on {on}{grey}. Dashed: {allowed} below the whole "
        f"model; a ring marks where each order last reaches it: {can_go} of "
        f"{pruning.attrs['heads']} heads. The coloured band is the 95 % interval of the difference "
        f"({terms.ORDERS.get(best, best)}), paired; n = {pruning.attrs['examples']:,} "
        "examples. (b) The place of each head in that order: those nearest to the page’s colour go "
        "first. After Michel et al. (2019)."
    )


def _curves(pruning: xr.Dataset, axes: Axes) -> None:
    share = pruning["removed"].values / int(pruning.attrs["heads"])  # [point]
    base, chance = float(pruning["score"].values[0, 0]), _random_scores(pruning)
    if len(chance):
        axes.fill_between(
            share, chance.min(0), chance.max(0), color=color("grey"), alpha=0.18, lw=0
        )
        axes.plot(share, chance.mean(0), "-", color=color("grey"), lw=1.2, label="random")
    for name in terms.chosen_orders(pruning):
        hue, mark = LOOKS.get(name, GIVEN)
        score = pruning["score"].sel(order=name).values  # [point]
        if name == terms.best_order(pruning):  # the bands of several would hide each other
            apart = _possible(pruning, estimate(pruning, "difference", order=name), base)
            band = apart.map(lambda ends: base + ends)
            axes.fill_between(share, band.low, band.high, color=color(hue), alpha=0.16, lw=0)
        axes.plot(
            share,
            score,
            "-",
            color=color(hue),
            marker=mark,
            ms=3,
            mew=0,
            label=terms.ORDERS.get(name, name),
            zorder=3,
        )
        last = list(pruning["removed"].values).index(int(pruning["can_go"].sel(order=name)))
        axes.plot(
            share[last], score[last], "o", ms=8, mfc="none", mec=color(hue), mew=1.1, zorder=4
        )
    axes.axhline(
        base - float(pruning.attrs["allowance"]), color=color("ink"), lw=0.8, ls=(0, (4, 1.6))
    )
    axes.set_xlim(-0.02, 1.02)
    axes.xaxis.set_major_formatter(share_tick)
    axes.set_xlabel("heads removed")
    axes.yaxis.set_major_formatter(_score_tick(pruning))
    axes.set_ylabel(terms.metric_name(pruning))
    faint_grid(axes)
    row = axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4)
    row.set_in_layout(False)  # `compose` leaves it its height


def _random_scores(pruning: xr.Dataset) -> Floats:
    """[draw, point] scores of the random orders."""
    return np.asarray(pruning["score"].values[terms.by_chance(pruning)], np.float64)
