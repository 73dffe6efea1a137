"""Pictures of a study: small multiples, one per task, on one scale."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from headscope.claims.reading import Reading
from headscope.core.intervals import Estimate
from headscope.core.results import Floats
from headscope.core.wording import fixed
from headscope.draw import marks
from headscope.draw.head_grid import grid_panel, signed_panel, signed_top
from headscope.draw.panel import Panel
from headscope.draw.style import color, marker
from headscope.experiments.ablation.terms import metric_name
from headscope.experiments.study.terms import (
    learned_seeds,
    task_attrs,
    task_title,
    tasks_of,
    variants_of,
)
from headscope.experiments.study.trainings import PLAIN

HEADROOM = 1.12
SPREAD = 0.5  # of the width that a variant has, over which its seeds stand
LAYERS = (
    ("layer_map_change", "maps", "1 − cosine"),
    ("gradient_norm", "gradients", "norm"),
    ("relative_change", "weights", "moved, of their norm"),
)


# --- scores -----------------------------------------------------------------------------------


def score_panels(run: Reading) -> list[Panel]:
    """One panel per task: scores of each seed before and after training, by variant."""
    data = run.data
    return [
        Panel(
            f"{task_title(data, task)}: {metric_name(task_attrs(data, task))}",
            partial(_scores, run, task),
            height=0.8,
        )
        for task in tasks_of(data)
    ]


def _scores(run: Reading, task: str, axes: Axes) -> None:
    data, variants = run.data, variants_of(run.data)
    seeds = data.sizes["seed"]
    for at, variant in enumerate(variants):
        over = at + SPREAD * (np.arange(seeds) + 0.5 - seeds / 2) / max(seeds, 1)
        for name, word, filled in (("score_before", "before", False), ("score_after", "", True)):
            parts = run(name, variant=variant, task=task)
            shade = color(word or variant)
            axes.vlines(over, parts.low, parts.high, color=shade, lw=0.8, zorder=2)
            axes.plot(
                over,
                parts.value,
                marker(word or variant),
                color=shade,
                ms=4,
                mfc=shade if filled else color("page"),
                mew=0 if filled else 0.9,
                zorder=3,
            )
    axes.axhline(float(data["chance"].sel(task=task)), color=color("ink"), lw=0.8, ls=(0, (4, 1.6)))
    axes.set_xticks(range(len(variants)), [one.replace("-", "\n") for one in variants])
    axes.set_xlim(-0.6, len(variants) - 0.4)
    axes.yaxis.set_major_locator(MaxNLocator(5))
    if metric_name(task_attrs(data, task)) == "accuracy":
        axes.yaxis.set_major_formatter(marks.share_tick)
    marks.faint_grid(axes)
    entries = [("before", "before"), (PLAIN, "after")]
    marks.legend(axes, entries, line=False)


def score_caption(run: Reading) -> str:
    """How to read the scores."""
    return (
        "The score of each training, one mark a seed: hollow, with an untrained head; filled, "
        "after training. Dashed: the best constant answer. A training whose interval reaches it "
        "is at chance, and says nothing of heads. Whiskers: 95 % intervals over examples; "
        f"{run.over()}."
    )


# --- heads ------------------------------------------------------------------------------------


def head_panels(run: Reading) -> list[Panel]:
    """The mean effect of each head, beside its replication rate, by task, on one scale."""
    data, panels = run.data, list[Panel]()
    tasks = [task for task in tasks_of(data) if learned_seeds(data, task)]
    effects = {task: run("mean_effect", task=task) for task in tasks}
    top = max((signed_top(one.value) for one in effects.values()), default=1.0)
    for task, parts in effects.items():
        harmful, needed = (
            run(f"{name}_share", task=task).value == 1 for name in ("harmful", "needed")
        )
        panels.append(
            signed_panel(
                f"{task_title(data, task)}: effect",
                parts.value,
                run.names,
                top=top,
                text=fixed(top, 3),
                signs=1.0 * harmful - needed,
                parts=parts,
            )
        )
        share, count = run("loss_needed_share", task=task), len(learned_seeds(data, task))
        top_text = "the one seed" if count == 1 else f"all {count} seeds"
        look: dict[str, Any] = {"top": 1.0, "top_text": top_text, "parts": share}
        title = f"{task_title(data, task)}: needed by the loss"
        panels.append(grid_panel(title, share.value, run.names, **look))
    return panels


def head_caption(run: Reading) -> str:
    """How to read the grids of heads."""
    return (
        f"{_at_chance(run)}Effect: the score without a head less that of the whole checkpoint, "
        "mean over the seeds that learned the task, on one scale: vermillion falls, blue rises. − "
        "marks heads that every seed needs, + heads whose absence helps in every seed (q < 0.05 in "
        "each, corrected for all heads). Needed: the share of seeds in which the loss needs "
        f"the head. Intervals stand in the table; {run.over()}."
    )


def _at_chance(run: Reading) -> str:
    data = run.data
    none = [task_title(data, task) for task in tasks_of(data) if not learned_seeds(data, task)]
    return f"Not shown, as every seed is at chance: {', '.join(none)}. " if none else ""


# --- change -----------------------------------------------------------------------------------


def change_panels(run: Reading) -> list[Panel]:
    """The change of each head's maps, mean over seeds, a panel per task, on one scale."""
    data = run.data
    parts = {task: run("mean_map_change", task=task) for task in tasks_of(data)}
    top = max(float(np.nan_to_num(one.value).max()) for one in parts.values()) or 1.0
    return [
        grid_panel(task_title(data, task), one.value, run.names, top=top, parts=one)
        for task, one in parts.items()
    ]


def change_caption(run: Reading) -> str:
    """How to read the change of maps."""
    return (
        "1 − the cosine of each head’s maps before and after training, mean over "
        f"{run.data.sizes['seed']} seeds, all tasks on one scale. {run.over()}. After Kovaleva et "
        "al. (2019), Figure 5."
    )


def layer_panels(run: Reading) -> list[Panel]:
    """By layer the change of maps, the gradients, and how far weights moved; a row per task."""
    data, panels = run.data, list[Panel]()
    for name, title, label in LAYERS:
        if not run.has(f"mean_{name}"):
            continue
        parts = run(f"mean_{name}")
        top = HEADROOM * _highest(parts)
        for task in tasks_of(data):
            draw: Callable[[Axes], None] = partial(_layers, run, name, task, label=label, top=top)
            panels.append(Panel(f"{task_title(data, task)}: {title}", draw, height=0.8, legend=3))
    return panels


def _highest(parts: Estimate) -> float:
    """The largest value; whiskers of few seeds may lead far beyond it, and are cut."""
    return 1.25 * float(np.nan_to_num(parts.value).max(initial=0)) or 1.0


def _layers(run: Reading, name: str, task: str, axes: Axes, *, label: str, top: float) -> None:
    layers, variants = run.data.sizes["layer"], variants_of(run.data)
    over: Floats = np.arange(layers, dtype=np.float64)
    for variant in variants:
        marks.band_line(axes, over, run(f"mean_{name}", variant=variant, task=task), variant)
        if variant == PLAIN:
            for seed in run.data["seed"].values.tolist():
                one = run(name, variant=variant, task=task, seed=seed).value
                axes.plot(over, one, "-", color=color(variant), lw=0.5, alpha=0.6, zorder=2)
    marks.layer_axis(axes, layers, run.names)
    marks.value_axis(axes, label, top=top)
    if len(variants) > 1:
        marks.legend(axes, [(variant, variant) for variant in variants])


def layer_caption(run: Reading) -> str:
    """How to read the layers."""
    several = len(variants_of(run.data)) > 1
    return (
        "By layer: the change of maps, mean over heads; the norm of the layer’s gradients, mean "
        "over steps; how far its weights moved, of their own norm. Thick: mean over seeds; thin: "
        f"each seed{' of plain trainings' if several else ''}. Bands: 95 % intervals over seeds, "
        f"of maps over seeds and examples; {run.over()}."
    )
