"""Make pictures of plans (`core.plan`): panels of usual kinds, and those that a question draws."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from headscope.core.accumulators import finite_mean
from headscope.core.dictionary import name
from headscope.core.intervals import Estimate
from headscope.core.plan import Drawn, Grid, LayerLines, LayerMarks, PanelPlan, PicturePlan
from headscope.core.question import Question
from headscope.core.reading import Reading
from headscope.draw import marks
from headscope.draw.head_grid import draw_grid, grid_height
from headscope.draw.panel import Panel, Picture
from headscope.draw.style import DASHES, color, marker

HEIGHT = 0.82  # of panels, as a share of their width
APART = 0.24  # layers between the marks of two series


def pictures_of(question: Question) -> list[Picture]:
    """The pictures of a question, in their order; those of plans are made."""
    return [
        _picture(one, question) if isinstance(one, PicturePlan) else one
        for one in question.part("figures", ())
    ]


def _picture(plan: PicturePlan, question: Question) -> Picture:
    def panels(tree: xr.DataTree) -> list[Panel]:
        run = Reading(tree, question)
        wanted = run.part(plan.panels)
        return [
            one if isinstance(one, Panel) else _panel(one, run)
            for one in (wanted(run) if callable(wanted) else wanted)
            if isinstance(one, Panel) or _is_there(one, run)
        ]

    def caption(tree: xr.DataTree) -> str:
        return Reading(tree, question).words(plan.caption)

    return Picture(plan.name, plan.title, (question.name,), panels, caption, columns=plan.columns)


def _is_there(plan: PanelPlan, run: Reading) -> bool:
    series = plan.series if isinstance(plan, LayerMarks) else {}
    return any(run.has(f"{plan.needs}.{choice}") for choice in series) or (
        not series and run.has(plan.needs)
    )


def _panel(plan: PanelPlan, run: Reading) -> Panel:
    title, height = run.words(plan.title), plan.height or HEIGHT
    if isinstance(plan, Grid):
        values = run(plan.needs).value
        draw = partial(draw_grid, values, unit=plan.unit, top=plan.top)
        return Panel(title, draw, height=grid_height(values))
    if isinstance(plan, Drawn):
        draw_own, arguments = run.part(plan.by), plan.arguments
        return Panel(
            title,
            lambda axes: draw_own(run, axes, *arguments),
            height=height,
            key_above=plan.key_above,
        )
    if isinstance(plan, LayerMarks):
        return Panel(title, partial(_marks, plan, run), height=height)
    assert isinstance(plan, LayerLines)
    return Panel(title, partial(_lines, plan, run), height=height)


def _marks(plan: LayerMarks, run: Reading, axes: Axes) -> None:
    series = {one: text for one, text in plan.series.items() if run.has(f"{plan.needs}.{one}")}
    shifts = (np.arange(len(series)) - (len(series) - 1) / 2) * APART
    for choice, shift in zip(series, shifts, strict=True):
        parts = run(f"{plan.needs}.{choice}")
        marks.head_scatter(axes, parts, choice, shift=shift)
        marks.mean_line(axes, parts.value, choice, shift=shift)
    layers = len(parts.value)
    if plan.even:
        even, muted = run.mean(plan.even), color("muted")
        axes.axhline(even, color=muted, ls=(0, (4, 2)), lw=0.9)
        look: dict[str, Any] = {"ha": "right", "va": "bottom", "fontsize": 6, "color": muted}
        axes.text(layers - 0.5, even * 1.01, f"uniform {even:.2f}", **look)
    marks.layer_axis(axes, layers)
    if plan.even:
        marks.value_axis(axes, plan.label, top=even * 1.12)
    else:
        marks.percent_axis(axes, plan.label, top=1.0)
        marks.legend(axes, [(choice, run.words(text)) for choice, text in series.items()])


def _lines(plan: LayerLines, run: Reading, axes: Axes) -> None:
    ends, entries = [], []
    for choice, parts in _series(plan, run):
        text = plan.names.get(choice) or (name(choice) if plan.dashes else run.special(choice))
        layers = np.arange(len(parts.value), dtype=np.float64)
        if plan.dashes:
            look: dict[str, Any] = {
                "ls": DASHES[plan.dashes.get(choice, 0)],
                "marker": marker(choice),
            }
            axes.fill_between(layers, parts.low, parts.high, color=color(choice), alpha=0.18, lw=0)
            axes.plot(layers, parts.value, color=color(choice), ms=3.2, mew=0, **look)
            last = float(parts.value[np.isfinite(parts.value)][-1])
            ends.append(marks.LineEnd(last, text, choice, marker(choice)))
        else:
            marks.band_line(axes, layers, parts, choice)
            entries.append((choice, text))
    marks.layer_axis(axes, run.data.sizes["layer"])
    (marks.percent_axis if plan.percent else marks.value_axis)(axes, plan.label, top=plan.top)
    if plan.dashes:
        marks.end_labels(axes, ends, top=plan.top or 1.0)
    else:
        marks.legend(axes, entries)


def _series(plan: LayerLines, run: Reading) -> Iterator[tuple[str, Estimate]]:
    """The choices that have numbers, and these by layer, of heads their mean."""
    (dim,) = set(run.data[plan.needs].dims) - {"layer", "head", *plan.choice}
    there = run.data[dim].values.tolist()
    first = [one for one in plan.order if one in there]
    for choice in (*first, *(one for one in there if one not in first)):
        parts = run(plan.needs, **plan.choice, **{str(dim): choice})
        if np.isfinite(parts.value).any():
            # the mean of the heads' limits bounds the interval of their mean
            yield choice, parts.map(finite_mean) if parts.value.ndim > 1 else parts
