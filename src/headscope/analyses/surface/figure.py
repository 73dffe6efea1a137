"""Where does each layer look: at neighbours, at special tokens, at punctuation?

Clark et al. (2019), Figure 2: one mark per head over its layer, a line through the layer means.
"""

from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from headscope.analyses.surface.claims import NO_TOKEN
from headscope.analyses.surface.query_bands import finding as by_place
from headscope.core.caption_words import INTERVALS, over, special
from headscope.core.head_attention import NEIGHBOURS, TARGETS, has_cls
from headscope.core.results import estimate, needed
from headscope.core.wording import percent
from headscope.draw.marks import head_scatter, layer_axis, legend, mean_line, percent_axis
from headscope.draw.panel import Panel, Picture
from headscope.page.sections import SectionPlan


def _panels(tree: xr.DataTree) -> list[Panel]:
    cls, sep = special(tree, "cls"), special(tree, "sep")
    opening = ("cls", cls) if _present(tree, "cls") else ("first", TARGETS["first"].name)
    kinds = [opening, ("sep", sep), ("punctuation", TARGETS["punctuation"].name)]
    wanted = [
        ("To neighbours", [(word, TARGETS[word].name) for word in NEIGHBOURS]),
        ("To special tokens", kinds),
        (
            f"To {sep}, by who attends",
            [("sep_from_sep", f"{sep} itself"), ("sep_from_other", "all other tokens")],
        ),
        ("To no token", [(NO_TOKEN, "a learned sink")]),
    ]
    there = [(title, [s for s in series if _present(tree, s[0])]) for title, series in wanted]
    return [
        Panel(title, partial(_draw, tree, series), height=0.82) for title, series in there if series
    ]


def _caption(tree: xr.DataTree) -> str:
    array, sinks = needed(tree, "surface")["attention"], ""
    if _present(tree, NO_TOKEN):
        rest = estimate(needed(tree, "surface"), "attention", target=NO_TOKEN).value
        sinks = (
            "; to no token: what a row lacks of 100 %, as each head has a learned score of no "
            f"token at all, mean over heads {percent(float(rest.mean()))}"
        )
    return (
        "Each mark is one head: the share of its attention that goes to the named tokens, mean "
        f"over tokens, then inputs; punctuation is full stops and commas{sinks}; lines "
        f"are layer means over heads; whiskers are {INTERVALS}; {over(tree, array)}. "
        "After Clark et al. (2019), Figure 2."
    )


def _present(tree: xr.DataTree, target: str) -> bool:
    surface = needed(tree, "surface")
    return bool(np.isfinite(estimate(surface, "attention", target=target).value).any())


def _draw(tree: xr.DataTree, series: list[tuple[str, str]], axes: Axes) -> None:
    surface = needed(tree, "surface")
    shifts = (np.arange(len(series)) - (len(series) - 1) / 2) * 0.24
    for (target, _), shift in zip(series, shifts, strict=True):
        parts = estimate(surface, "attention", target=target)
        head_scatter(axes, parts, target, shift=shift)
        mean_line(axes, parts.value, target, shift=shift)
    layer_axis(axes, len(parts.value))
    percent_axis(axes, "attention", top=1.0)
    legend(axes, series)


PICTURE = Picture(
    "surface_by_layer", "Where each layer looks", ("surface",), _panels, _caption, columns=3
)
FIGURES = (PICTURE,)


def _finding(tree: xr.DataTree) -> str:
    shares = estimate(needed(tree, "surface"), "attention").value  # [layer, head, target]
    targets = needed(tree, "surface")["target"].values.tolist()
    means = {
        target: float(shares[..., targets.index(target)].mean())
        for target in TARGETS
        if target in targets and not (target == "first" and has_cls(tree))
    }
    most = max(means, key=lambda target: np.nan_to_num(means[target]))
    if not np.isfinite(means[most]):
        return ""
    mean = f"The mean head gives {TARGETS[most].goal} {percent(means[most])} of its attention."
    return f"{mean} {by_place(tree)}".strip()


SECTIONS = (
    SectionPlan(
        finding=_finding,
        id="surface",
        title="Where each layer looks",
        pictures=("surface_by_layer",),
        text="The plainest thing that a head can do is to look at a neighbour or to rest on a "
        "special token. A few heads with high marks do one thing only; a high line means that "
        "the whole layer does it.",
    ),
)
