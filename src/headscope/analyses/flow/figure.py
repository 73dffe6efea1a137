"""From which input tokens do representations come, and from how many?

Rollouts (Abnar and Zuidema 2020) of several ways to count what a layer mixes: one panel for each,
the share of every kind of input token over the layers; and how many tokens each amounts to.
"""

from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from headscope.analyses.flow import LABELS
from headscope.core.caption_words import INTERVALS, over, special
from headscope.core.dictionary import name
from headscope.core.head_attention import SELF
from headscope.core.results import estimate, needed
from headscope.core.wording import capital, percent
from headscope.draw import marks
from headscope.draw.panel import Panel, Picture
from headscope.draw.style import DASHES, color
from headscope.page.sections import SectionPlan

LINES = {
    "rollout": ("grey", "o", DASHES[0]),
    "weighted_norm": ("sky", "s", DASHES[1]),
    "weighted_norm_residual": ("orange", "^", DASHES[2]),
    "globenc": ("blue", "D", DASHES[0]),
    "alti": ("vermillion", "v", DASHES[3]),
    "value_zeroing": ("green", "P", DASHES[4]),
}
HEIGHT = 0.72


def _panels(tree: xr.DataTree) -> list[Panel]:
    flow = needed(tree, "flow")
    if not (methods := _present(flow)):
        return []
    made = [
        Panel(_name(method), partial(_draw_shares, tree, flow, method), height=HEIGHT)
        for method in methods
    ]
    return [*made, Panel("How many tokens", partial(_draw_number, flow, methods), height=HEIGHT)]


def _caption(tree: xr.DataTree) -> str:
    several = len(_present(needed(tree, "flow"))) > 1
    return (
        "How much of a token’s representation at the output of each layer comes from which tokens "
        "of the input, each counted once, mean over tokens, then inputs"
        f"{', by each method' if several else ''}; the last panel: the effective number of input "
        f"tokens, 1 / Σ share². Bands are {INTERVALS}; {over(tree)}. Products of layers after "
        "Abnar and Zuidema (2020)."
    )


def _present(flow: xr.Dataset) -> list[str]:
    """The methods that have any number, in the order of LINES; unknown ones last."""
    there = [
        str(method)
        for method in flow["variant"].values
        if np.isfinite(estimate(flow, "share", variant=method).value).any()
    ]
    return sorted(there, key=lambda m: list(LINES).index(m) if m in LINES else len(LINES))


def _name(method: str) -> str:
    return capital(LABELS.get(method, name(method)))


def _draw_shares(tree: xr.DataTree, flow: xr.Dataset, method: str, axes: Axes) -> None:
    entries = []
    for target in flow["target"].values.tolist():
        parts = estimate(flow, "share", variant=method, target=target)
        if not np.isfinite(parts.value).any():
            continue
        layers = np.arange(len(parts.value), dtype=float)
        marks.band_line(axes, layers, parts, target)
        entries.append((target, "itself" if target == SELF else special(tree, target)))
    marks.layer_axis(axes, flow.sizes["layer"])
    # One scale for all methods.
    marks.percent_axis(axes, "share", top=min(1.0, 1.05 * float(np.nanmax(flow["share"].values))))
    marks.legend(axes, entries)


def _draw_number(flow: xr.Dataset, methods: list[str], axes: Axes) -> None:
    ends = []
    for method in methods:
        hue, mark, dash = LINES.get(method, ("purple", "X", DASHES[0]))
        parts = estimate(flow, "effective_tokens", variant=method)
        layers = np.arange(len(parts.value))
        axes.fill_between(layers, parts.low, parts.high, color=color(hue), alpha=0.18, lw=0)
        axes.plot(layers, parts.value, ls=dash, color=color(hue), marker=mark, ms=3.2, mew=0)
        last = float(parts.value[np.isfinite(parts.value)][-1])
        ends.append(marks.LineEnd(last, _name(method).replace(" rollout", ""), hue, mark))
    marks.layer_axis(axes, flow.sizes["layer"])
    top = 1.05 * float(np.nanmax(flow["effective_tokens"].values))
    marks.value_axis(axes, "tokens", top=top)
    marks.end_labels(axes, ends, top=top)


FIGURES = (Picture("flow", "Where representations come from", ("flow",), _panels, _caption),)


def _finding(tree: xr.DataTree) -> str:
    flow = needed(tree, "flow")
    variant = _present(flow)[-1:]
    own = estimate(flow, "share", variant=variant[0], target="self").value[-1] if variant else 0
    if not own:
        return ""
    said = f"{percent(float(own))} of a token in the last layer is its own"
    return f"By {_name(variant[0])}, {said}; the rest came from other tokens."


SECTIONS = (
    SectionPlan(
        finding=_finding,
        id="flow",
        title="Where representations come from",
        text="Layer by layer tokens take from each other, so that a vector high up need not say "
        "much about its own word. Following every path back to the input tells what is left of "
        "it; attention alone makes the resting places look like sources, the norms of what is "
        "passed on do not.",
        pictures=("flow",),
    ),
)
