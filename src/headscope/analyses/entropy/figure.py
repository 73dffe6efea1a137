"""How widely does each layer spread its attention?

Clark et al. (2019), Figure 4: entropy of every head over its layer, for all tokens and for [CLS],
against what uniform attention would give.
"""

from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from headscope.core.results import estimate, needed
from headscope.draw.caption_words import INTERVALS, over, special
from headscope.draw.marks import head_scatter, layer_axis, mean_line, value_axis
from headscope.draw.panel import Panel, Picture
from headscope.draw.style import color
from headscope.page.sections import SectionPlan


def _panels(tree: xr.DataTree) -> list[Panel]:
    entropy = needed(tree, "entropy")
    wanted = [("all", "From all tokens"), ("cls", f"From {special(tree, 'cls')} only")]
    return [
        Panel(title, partial(_draw, entropy, query), height=0.66)
        for query, title in wanted
        if np.isfinite(estimate(entropy, "entropy", query=query).value).any()
    ]


def _caption(tree: xr.DataTree) -> str:
    array = needed(tree, "entropy")["entropy"]
    return (
        "Each mark is one head: the entropy of its attention in nats, mean over tokens, then "
        "inputs; high is broad, low is focused; the line is the layer mean, the dashed line "
        f"uniform attention; whiskers are {INTERVALS}; {over(tree, array)}. "
        "After Clark et al. (2019), Figure 4."
    )


def _draw(entropy: xr.Dataset, query: str, axes: Axes) -> None:
    parts = estimate(entropy, "entropy", query=query)
    layers = len(parts.value)
    head_scatter(axes, parts, query)
    mean_line(axes, parts.value, query)
    uniform = float(entropy["uniform"])
    axes.axhline(uniform, color=color("muted"), ls=(0, (4, 2)), lw=0.9)
    axes.text(
        layers - 0.5,
        uniform * 1.01,
        f"uniform {uniform:.2f}",
        ha="right",
        va="bottom",
        fontsize=6,
        color=color("muted"),
    )
    layer_axis(axes, layers)
    value_axis(axes, "entropy (nats)", top=uniform * 1.12)


PICTURE = Picture(
    "entropy_by_layer", "How widely each layer looks", ("entropy",), _panels, _caption
)
FIGURES = (PICTURE,)


def _finding(tree: xr.DataTree) -> str:
    entropy = needed(tree, "entropy")
    mean = float(np.nanmean(estimate(entropy, "entropy", query="all").value))
    return f"The entropy of a mean head is {mean:.2f} of {float(entropy['uniform']):.2f} nats."


SECTIONS = (
    SectionPlan(
        finding=_finding,
        id="entropy",
        title="How widely each layer looks",
        pictures=("entropy_by_layer",),
        text="Entropy tells a head that averages over the whole input from one that picks single "
        "tokens. Marks near the dashed line are close to uniform attention.",
    ),
)
