"""Draw which heads have sinks, whether the sinks add anything, and where the stream is massive."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from headscope.analyses.sinks.claims import KINDS, counted, goal_of
from headscope.claims.head_attention import attention_to, norm_share
from headscope.claims.plan import DrawnPanel, Grid, PanelPlan
from headscope.claims.reading import Reading
from headscope.core.display import printable
from headscope.core.head_names import HeadNames
from headscope.core.intervals import Estimate
from headscope.core.wording import capital, percent
from headscope.draw.head_marks import note_heads, number_texts
from headscope.draw.marks import faint_grid, layer_axis, legend, percent_axis, share_tick
from headscope.draw.style import color, marker
from headscope.page.tabulate import Cell, Column, Rows, Table

LEAST = 0.005  # ours: of a mean head's inputs; a kind of token with less is not drawn
CAPTIONS = {
    "Inputs with a sink": "one cell a head: the share of inputs in which some token gets more "
    "than 0.3 of the attention, mean over the tokens that see it (Gu et al. 2025)",
    "What a sink adds": "attention to the tokens of a kind, and their share in the norms "
    "‖αf(x)‖ that all tokens add: below the dashed line a head looks there for little",
    "Largest activations": "the largest |x| of the residual stream that a layer reads, and the "
    "median, mean over inputs; above both 100 and 1,000 times the median (dashed) one is "
    "massive (Sun et al. 2024)",
}


def panels(run: Reading) -> list[PanelPlan]:
    """The panels that the run has numbers for."""
    shares, adds, largest = CAPTIONS
    made = [
        Grid(title=shares, needs="sink_share", unit="probability", top=1.0),
        DrawnPanel(title=adds, needs="sink_share_of", by="figure:draw_norms"),
        DrawnPanel(title=largest, needs="largest", by="figure:draw_massive"),
    ]
    return [one for one in made if run.has(one.needs) and (one.title != adds or _weighed(run))]


def caption(run: Reading) -> str:
    """How to read them."""
    words = [CAPTIONS[one.title] for one in panels(run)]
    if len(words) > 1:
        words = [f"({at}) {one}" for at, one in zip("abc", words, strict=False)]
    return f"{capital('; '.join(words))}; intervals stand in the tables; {run.over('sink_share')}."


def _weighed(run: Reading) -> dict[str, tuple[Estimate, Estimate]]:
    """Kinds that are sinks often enough to be drawn: their attention, and share of the norms."""
    often = (kind for kind in KINDS[:-1] if run.mean("sink_share_of", kind=kind) > LEAST)
    both = {kind: (attention_to(run.tree, kind), norm_share(run.tree, kind)) for kind in often}
    return {kind: (one, other) for kind, (one, other) in both.items() if one and other}


def draw_norms(run: Reading, axes: Axes) -> None:
    """A mark per head and kind of token: its attention, and its share of the norms."""
    kinds = _weighed(run)
    axes.plot([0, 1], [0, 1], color=color("muted"), ls=(0, (4, 2)), lw=0.9)
    for kind, (weight, norm) in kinds.items():
        look: dict[str, Any] = {"color": color(kind), "ms": 3.2, "mew": 0, "alpha": 0.65}
        axes.plot(weight.value.ravel(), norm.value.ravel(), marker(kind), **look)
        both = zip(*(number_texts(one, "probability") for one in (weight, norm)), strict=True)
        texts = [f"attention {alpha}, norms {norms}" for alpha, norms in both]
        note_heads(axes, weight.value, norm.value, texts, series=run.special(kind))
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(share_tick)
    axes.set_xlabel("attention")
    percent_axis(axes, "share of norms", top=1.0)
    legend(axes, [(kind, run.special(kind)) for kind in kinds], line=False)


def draw_massive(run: Reading, axes: Axes) -> None:
    """The largest number of the stream and the median, layer by layer."""
    largest, median = (run(name).value for name in ("largest", "median"))
    at = np.arange(len(largest))
    for values, kind in ((largest, "first"), (median, "other")):
        axes.plot(at, values, "-", marker=marker(kind), color=color(kind), ms=3.6, mew=0)
    limit = np.maximum(100, 1000 * median)
    axes.plot(at, limit, color=color("muted"), ls=(0, (4, 2)), lw=0.9)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda size, _: f"{size:,g}")
    axes.yaxis.set_minor_locator(NullLocator())
    faint_grid(axes)
    layer_axis(axes, len(largest), run.names)
    axes.set_ylabel("|x| of the stream")
    legend(axes, [("first", "largest"), ("other", "median")])


def finding(run: Reading) -> str:
    """The token on which the mean head most often has sinks, and the range of the stream."""
    means = {kind: run.mean("sink_share_of", kind=kind) for kind in KINDS}
    if not np.isfinite(list(means.values())).any():
        return ""
    most = max(means, key=lambda kind: np.nan_to_num(means[kind]))
    inputs = f"{percent(means[most])} of inputs{counted(run)}"
    words = f"A mean head has a sink on {goal_of(run, most)} in {inputs}"
    size = np.nan_to_num(run("massive").value)
    if not size.any():
        return f"{words}."
    layer, rank = np.unravel_index(size.argmax(), size.shape)
    dimension = int(run.data["massive_dimension"].values[layer, rank])
    return f"{words}; the stream reaches {size.max():,.0f} in dimension {dimension:,}."


def massive_table(run: Reading) -> Table | None:
    """Where massive activations are: by dimension and token, over which layers; None for none."""
    if not run.has("massive"):
        return None
    places: dict[tuple[int, int, str], list[tuple[float, float, int]]] = {}
    names = ("massive", "massive_times", "massive_dimension", "massive_position", "massive_token")
    values = [run.data[name].values for name in names]
    for layer, rank in np.argwhere(np.isfinite(values[0])).tolist():
        size, times, dimension, position, token = (array[layer, rank] for array in values)
        where = int(dimension), int(position), printable(token)
        places.setdefault(where, []).append((float(size), float(times), layer))
    rows = []
    for (dimension, position, token), ones in sorted(
        places.items(), key=lambda one: -max(one[1])[0]
    ):
        size, times, layer = max(ones)
        rows.append(
            [
                Cell(f"{dimension:,}"),
                Cell(token, code=True),
                Cell(f"{position:,}"),
                Cell(_layers(sorted(one[2] for one in ones), run.names)),
                Cell(f"{size:,.0f}"),
                Cell(f"{times:,.0f}"),
                Cell(run.names.layer(layer)),
            ]
        )
    heads = ("dimension", "token", "position", "layers", "largest |x|", "× median", "in layer")
    caption = (
        "Massive activations of the residual stream that layers read: above 100 and above 1,000 "
        "times the median of the input (Sun et al. 2024); of each layer the three largest "
        "dimensions of the input with the largest number; positions from 0."
    )
    return Table("Massive activations", list(map(Column, heads)), [Rows(rows)], caption)


def _layers(places: list[int], names: HeadNames) -> str:
    """`2, 4–7`: layers in their order, consecutive ones as a range."""
    runs = np.split(np.array(places), np.flatnonzero(np.diff(places) > 1) + 1)
    ends = [dict.fromkeys(map(names.layer, (int(run[0]), int(run[-1])))) for run in runs]
    return ", ".join("–".join(both) for both in ends)
