"""Which heads have sinks, do the sinks add anything, and where is the stream massive?"""

from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from headscope.analyses.sinks.claims import KINDS, counted, goal_of
from headscope.core.accumulators import finite_mean
from headscope.core.head_attention import attention_to, norm_share
from headscope.core.results import estimate, layer_name, needed, printable
from headscope.core.wording import capital, percent
from headscope.draw.caption_words import over, special
from headscope.draw.head_grid import grid_panel
from headscope.draw.marks import (
    faint_grid,
    layer_axis,
    legend,
    percent_axis,
    share_tick,
)
from headscope.draw.panel import Panel, Picture
from headscope.draw.style import color, marker
from headscope.page.sections import SectionPlan
from headscope.page.tabulate import Cell, Column, Rows, Table

SHOWN = KINDS[:-1]
LEAST = 0.005  # ours: of a mean head's inputs; a kind of token with less is not drawn


def _kinds(tree: xr.DataTree) -> list[str]:
    """Kinds of tokens that are sinks often enough to be drawn."""
    dataset = needed(tree, "sinks")
    shares = {kind: estimate(dataset, "sink_share_of", kind=kind).value for kind in SHOWN}
    return [kind for kind, share in shares.items() if (finite_mean(share.ravel()) > LEAST)]


def _weighed(tree: xr.DataTree) -> list[str]:
    """Those of them of which weight and norm are known."""
    return [kind for kind in _kinds(tree) if norm_share(tree, kind) and attention_to(tree, kind)]


def _panels(tree: xr.DataTree) -> list[Panel]:
    panels, share = [], estimate(needed(tree, "sinks"), "sink_share").value
    if np.isfinite(share).any():
        panels.append(grid_panel("Inputs with a sink", share, unit="probability", top=1.0))
    if _weighed(tree):
        panels.append(Panel("What a sink adds", partial(_draw_norms, tree), height=0.82))
    if np.isfinite(needed(tree, "sinks")["largest"].values).any():
        panels.append(Panel("Largest activations", partial(_draw_massive, tree), height=0.82))
    return panels


def _caption(tree: xr.DataTree) -> str:
    titles = [panel.title for panel in _panels(tree)]
    said = {
        "Inputs with a sink": "one cell a head: the share of inputs in which some token gets more "
        "than 0.3 of the attention, mean over the tokens that see it (Gu et al. 2025)",
        "What a sink adds": "attention to the tokens of a kind, and their share in the norms "
        "‖αf(x)‖ that all tokens add: below the dashed line a head looks there for little",
        "Largest activations": "the largest |x| of the residual stream that a layer reads, and the "
        "median, mean over inputs; above both 100 and 1,000 times the median (dashed) one is "
        "massive (Sun et al. 2024)",
    }
    letters = "abc" if len(titles) > 1 else " "
    parts = [
        f"({at}) {said[t]}".removeprefix("( ) ") for at, t in zip(letters, titles, strict=False)
    ]
    array = needed(tree, "sinks")["sink_share"]
    return f"{capital('; '.join(parts))}; intervals stand in the tables; {over(tree, array)}."


def _draw_norms(tree: xr.DataTree, axes: Axes) -> None:
    kinds = _weighed(tree)
    axes.plot([0, 1], [0, 1], color=color("muted"), ls=(0, (4, 2)), lw=0.9)
    for kind in kinds:
        weight, norm = attention_to(tree, kind), norm_share(tree, kind)
        assert weight is not None
        assert norm is not None
        axes.plot(
            weight.value.ravel(),
            norm.value.ravel(),
            marker(kind),
            color=color(kind),
            ms=3.2,
            mew=0,
            alpha=0.65,
        )
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(share_tick)
    axes.set_xlabel("attention")
    percent_axis(axes, "share of norms", top=1.0)
    legend(axes, [(kind, special(tree, kind)) for kind in kinds], line=False)


def _draw_massive(tree: xr.DataTree, axes: Axes) -> None:
    dataset = needed(tree, "sinks")
    largest, median = (estimate(dataset, name).value for name in ("largest", "median"))
    at = np.arange(len(largest))
    for values, kind in ((largest, "first"), (median, "other")):
        axes.plot(at, values, "-", marker=marker(kind), color=color(kind), ms=3.6, mew=0)
    limit = np.maximum(100, 1000 * median)
    axes.plot(at, limit, color=color("muted"), ls=(0, (4, 2)), lw=0.9)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda size, _: f"{size:,g}")
    axes.yaxis.set_minor_locator(NullLocator())
    faint_grid(axes)
    layer_axis(axes, len(largest))
    axes.set_ylabel("|x| of the stream")
    legend(axes, [("first", "largest"), ("other", "median")])


TITLE = "Sinks and massive activations"
FIGURES = (Picture("sinks", TITLE, ("sinks",), _panels, _caption, columns=3),)


def _finding(tree: xr.DataTree) -> str:
    dataset = needed(tree, "sinks")
    shares = {kind: estimate(dataset, "sink_share_of", kind=kind).value for kind in KINDS}
    means = {kind: float(finite_mean(share.ravel())) for kind, share in shares.items()}
    if not np.isfinite(list(means.values())).any():
        return ""
    most = max(means, key=lambda kind: np.nan_to_num(means[kind]))
    inputs = f"inputs{counted(dataset)}"
    said = f"A mean head has a sink on {goal_of(tree, most)} in {percent(means[most])} of {inputs}"
    size = np.nan_to_num(dataset["massive"].values)
    if not size.any():
        return f"{said}."
    layer, rank = np.unravel_index(size.argmax(), size.shape)
    dimension = int(dataset["massive_dimension"].values[layer, rank])
    return f"{said}; the stream reaches {size.max():,.0f} in dimension {dimension:,}."


def massive_table(tree: xr.DataTree) -> Table | None:
    """Where massive activations are: by dimension and token, over which layers; None for none."""
    dataset = needed(tree, "sinks")
    if not np.isfinite(dataset["massive"].values).any():
        return None
    found: dict[tuple[int, int, str], list[tuple[float, float, int]]] = {}
    names = ("massive", "massive_times", "massive_dimension", "massive_position", "massive_token")
    values = [dataset[name].values for name in names]
    for layer, rank in np.argwhere(np.isfinite(values[0])).tolist():
        size, times, dimension, position, token = (array[layer, rank] for array in values)
        where = int(dimension), int(position), printable(token)
        found.setdefault(where, []).append((float(size), float(times), layer))
    rows = []
    for (dimension, position, token), ones in sorted(
        found.items(), key=lambda one: -max(one[1])[0]
    ):
        size, times, layer = max(ones)
        rows.append(
            [
                Cell(f"{dimension:,}"),
                Cell(token, code=True),
                Cell(f"{position:,}"),
                Cell(_layers(sorted(one[2] for one in ones))),
                Cell(f"{size:,.0f}"),
                Cell(f"{times:,.0f}"),
                Cell(layer_name(layer)),
            ]
        )
    columns = [
        Column("dimension"),
        Column("token"),
        Column("position"),
        Column("layers"),
        Column("largest |x|"),
        Column("× median"),
        Column("in layer"),
    ]
    caption = (
        "Massive activations of the residual stream that layers read: above 100 and above 1,000 "
        "times the median of the input (Sun et al. 2024); of each layer the three largest "
        "dimensions of the input with the largest number; positions from 0."
    )
    return Table("Massive activations", columns, [Rows(rows)], caption)


def _layers(numbers: list[int]) -> str:
    """`2, 4–7`: layers in their order, consecutive ones as a range."""
    runs = np.split(np.array(numbers), np.flatnonzero(np.diff(numbers) > 1) + 1)
    ends = [dict.fromkeys(map(layer_name, (int(run[0]), int(run[-1])))) for run in runs]
    return ", ".join("–".join(names) for names in ends)


SECTIONS = (
    SectionPlan(
        finding=_finding,
        id="sinks",
        title=TITLE,
        pictures=("sinks",),
        tables=(massive_table,),
        text="A sink is a token that nearly all others attend to. It lets a head do nothing: where "
        "its share of the norms is far below its attention, hardly anything is gathered there. In "
        "decoders sinks come with massive activations of the same tokens.",
    ),
)
