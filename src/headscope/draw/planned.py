"""Make pictures of plans (`claims.plan`): usual kinds of panels, and those a question draws."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from headscope.claims.dictionary import name
from headscope.claims.plan import DrawnPanel, Grid, LayerMarks, PanelPlan, PicturePlan
from headscope.claims.question import Question, made_or_left_out
from headscope.claims.reading import Reading
from headscope.core.accumulators import finite_mean
from headscope.core.intervals import Estimate
from headscope.draw import marks
from headscope.draw.head_grid import draw_grid, grid_room
from headscope.draw.panel import Panel, Picture
from headscope.draw.style import DASHES, color, marker

HEIGHT = 0.82  # of panels, as a share of their width
APART = 0.24  # layers between the marks of two series


def pictures_of(question: Question) -> list[Picture]:
    """The pictures of a question, in their order."""
    return [_picture(one, question) for one in question.part("figures", ()) if one.panels]


def _picture(plan: PicturePlan, question: Question) -> Picture:
    def panels(tree: xr.DataTree) -> list[Panel]:
        return made_or_left_out(question, f"the picture {plan.name!r}", lambda: made(tree), [])

    def made(tree: xr.DataTree) -> list[Panel]:
        run = Reading(tree, question)
        planned = plan.panels if isinstance(plan.panels, tuple) else run.words(plan.panels)
        drawn = (one if isinstance(one, Panel) else _panel(one, run) for one in planned)
        return [panel for panel in drawn if panel is not None]

    def sheets(tree: xr.DataTree) -> Iterable[tuple[str, Figure]]:
        return Reading(tree, question).said(plan.sheets) if plan.sheets else ()

    return Picture(
        plan.name,
        plan.title,
        (question.name, *plan.beside),
        panels,
        lambda tree: Reading(tree, question).said(plan.caption),
        columns=plan.columns,
        wide=plan.wide,
        sheets=sheets,
    )


def _panel(plan: PanelPlan, run: Reading) -> Panel | None:
    """None where the run has none of its numbers."""
    if not run.has(plan.needs):
        return None
    draw: Callable[[Axes], None]
    room: dict[str, Any] = {"height": plan.height or HEIGHT}
    if isinstance(plan, Grid):
        parts = run(plan.needs)
        values = parts.value
        draw = partial(draw_grid, values, run.names, unit=plan.unit, top=plan.top, parts=parts)
        room = grid_room(values)
    elif isinstance(plan, DrawnPanel):
        draw = partial(_drawn, plan, run.part(plan.by), run)
    elif isinstance(plan, LayerMarks):
        draw = partial(_marks, plan, run)
    else:
        draw = partial(_lines, plan, run)
    return Panel(run.words(plan.title), draw, **room)


def _drawn(plan: DrawnPanel, by: Callable[..., None], run: Reading, axes: Axes) -> None:
    made_or_left_out(run.question, f"the panel by {plan.by!r}", lambda: by(run, axes), None)


def _marks(plan: LayerMarks, run: Reading, axes: Axes) -> None:
    variable, last = plan.needs.partition(".")[0], (len(plan.series) - 1) / 2
    for at, choice in enumerate(plan.series):
        parts = run(f"{variable}.{choice}")
        unit = "1" if plan.even else "probability"
        shown = {
            "shift": (at - last) * APART,
            "unit": unit,
            "series": run.words(plan.series[choice]),
        }
        marks.head_scatter(axes, parts, choice, **shown)
        marks.mean_line(axes, parts.value, choice, shift=(at - last) * APART)
    layers = len(parts.value)
    marks.layer_axis(axes, layers, run.names)
    if not plan.even:
        marks.percent_axis(axes, plan.label, top=1.0)
        marks.legend(axes, [(choice, run.words(text)) for choice, text in plan.series.items()])
        return
    even, muted = run.mean(plan.even), color("muted")
    axes.axhline(even, color=muted, ls=(0, (4, 2)), lw=0.9)
    look: dict[str, Any] = {"ha": "right", "va": "bottom", "fontsize": 6, "color": muted}
    axes.text(layers - 0.5, even * 1.01, f"uniform {even:.2f}", **look)
    marks.value_axis(axes, plan.label, top=even * 1.12)


def _lines(plan: Any, run: Reading, axes: Axes) -> None:
    ends, entries, highest = [], [], 0.0
    for choice, parts in _series(plan, run):
        highest = max(highest, float(np.nanmax(np.fmax(parts.high, parts.value))))
        layers = np.arange(len(parts.value), dtype=np.float64)
        if not plan.dashes:
            marks.band_line(axes, layers, parts, choice)
            entries.append((choice, plan.names.get(choice) or run.special(choice)))
            continue
        hue, mark, dash = color(choice), marker(choice), DASHES[plan.dashes.get(choice, 0)]
        axes.fill_between(layers, parts.low, parts.high, color=hue, alpha=0.18, lw=0)
        axes.plot(layers, parts.value, ls=dash, color=hue, marker=mark, ms=3.2, mew=0)
        last = float(parts.value[np.isfinite(parts.value)][-1])
        ends.append(marks.LineEnd(last, plan.names.get(choice) or name(choice), choice, mark))
    marks.layer_axis(axes, run.data.sizes["layer"], run.names)
    top = plan.room * highest or 1.0 if plan.room else plan.top
    (marks.percent_axis if plan.percent else marks.value_axis)(axes, plan.label, top=top)
    if plan.room:
        axes.yaxis.set_major_locator(MaxNLocator(5))
    if plan.dashes:
        marks.end_labels(axes, ends, top=plan.top)
    else:
        marks.legend(axes, entries)


def _series(plan: Any, run: Reading) -> Iterator[tuple[str, Estimate]]:
    """The choices that have numbers, and these by layer, of heads their mean."""
    (dim,) = set(run.data[plan.needs].dims) - {"layer", "head", *plan.choice}
    there = run.data[dim].values.tolist()
    for choice in dict.fromkeys(one for one in (*plan.order, *there) if one in there):
        parts = run(plan.needs, **plan.choice, **{str(dim): choice})
        if np.isfinite(parts.value).any():
            # the mean of the heads' limits bounds the interval of their mean
            yield choice, parts.map(finite_mean) if parts.value.ndim > 1 else parts
