"""Which embeddings tell [SEP], the same segment and the next token from the rest?

The first layer's scores, split by what the key's word, position and segment embeddings bring.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from headscope.core.results import Floats, group
from headscope.core.wording import fixed
from headscope.draw.caption_words import over, special
from headscope.draw.panel import Panel, Picture
from headscope.draw.style import color

SOURCES = ("word", "position", "segment")
_SPREAD = 0.28  # of a row: heads side by side, so that all show


def panels(tree: xr.DataTree) -> list[Panel]:
    """One panel per contrast that the run has."""
    return [
        Panel(_title(tree, contrast), partial(_draw, values), height=0.62)
        for contrast, values in _by_key(tree).items()
    ]


def caption(tree: xr.DataTree) -> str:
    """How to read the figure, and which part brings most."""
    parts = []
    for contrast, values in _by_key(tree).items():
        size = np.abs(values).sum(axis=0)
        if size.sum() > 0:
            words = ", ".join(
                f"{name} {fixed(100 * share, 0)} %"
                for name, share in zip(SOURCES, size / size.sum(), strict=True)
            )
            parts.append(f"{_title(tree, contrast)}: {words}")
    return (
        "First layer, a mark per head: how much more score keys of the kind get than the other "
        "keys of the input, split by the part of the key’s embedding that it comes from (the three "
        "add up exactly; the biases are the same for every key). Shares of all heads’ absolute "
        f"contributions: {'; '.join(parts)}. {over(tree)}. After Vig (2019)."
    )


def _by_key(tree: xr.DataTree) -> dict[str, Floats]:
    """Contrast → [head, source], summed over the parts of the query."""
    neurons = group(tree, "neurons")
    if neurons is None:
        return {}
    whole = neurons["embedding_separation"].sum("part", skipna=False)
    found = {
        str(contrast): whole.sel(contrast=contrast, part_other=list(SOURCES))
        .transpose("head", "part_other")
        .values
        for contrast in neurons["contrast"].values
    }
    return {name: values for name, values in found.items() if np.isfinite(values).all()}


def _title(tree: xr.DataTree, contrast: str) -> str:
    return {
        "sep": f"{special(tree, 'sep')} from the rest",
        "same_segment": "Same segment from the other",
        "next": "Next token from the rest",
    }[contrast]


def _draw(values: Floats, axes: Axes) -> None:
    heads = len(values)
    shifts = np.linspace(-_SPREAD, _SPREAD, heads) if heads > 1 else np.zeros(1)
    axes.axvline(0, color=color("rule"), lw=0.8, zorder=1)
    for at in range(len(SOURCES)):
        axes.plot(
            values[:, at],
            at + shifts,
            "o",
            color=color("blue"),
            ms=3.4,
            mew=0,
            alpha=0.75,
            zorder=3,
        )
    axes.set_yticks(range(len(SOURCES)), SOURCES)
    axes.set_ylim(len(SOURCES) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("difference of scores")


PICTURE = Picture(
    "neuron_sources", "Where first-layer scores come from", ("neurons",), panels, caption,
    columns=3,
)  # fmt: skip
