"""Which heads does the probe on attention lean on?"""

from __future__ import annotations

from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from headscope.core.results import Floats, group
from headscope.core.wording import fixed
from headscope.draw.panel import Panel, Picture
from headscope.draw.signed import signed_grid, signed_top
from headscope.experiments.probes.findings import sentences_text

TITLES = {"dependent_to_head": "Word to its head", "head_to_dependent": "Head to its word"}


def panels(tree: xr.DataTree) -> list[Panel]:
    """A grid of heads for each direction, on one scale."""
    found = group(tree, "probes")
    if found is None or "head_influence" not in found:
        return []
    values = found["head_influence"].transpose("direction", "layer", "head").values
    top = signed_top(values)
    layers, heads = values.shape[1:]
    return [
        Panel(TITLES[str(way)], partial(_grid, one, top), height=0.3 + 0.8 * layers / heads)
        for way, one in zip(found["direction"].values, values, strict=True)
    ]


def caption(tree: xr.DataTree) -> str:
    """How to read the figure."""
    found = group(tree, "probes")
    assert found is not None
    return (
        "How far each head moves the scores of the probe on attention alone: its weight times the "
        "spread of its attention between the candidates of a word. Blue: what it attends to is "
        "taken for the head; vermillion: it speaks against it. (a) Attention from a word to the "
        f"candidate, (b) from the candidate to the word; {sentences_text(found)}. Heads that "
        "attend alike share their weight, so a pale head may still know syntax."
    )


def _grid(values: Floats, top: float, axes: Axes) -> None:
    text = fixed(top, 2)
    signed_grid(axes, np.asarray(values), top=top, low_text=f"−{text}", high_text=text)


PICTURE = Picture("probe_heads", "Heads that the probe leans on", ("probes",), panels, caption)
