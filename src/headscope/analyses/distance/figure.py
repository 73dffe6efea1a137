"""Draw how much attention stays within a distance, layer by layer."""

import numpy as np
from matplotlib.axes import Axes

from headscope.claims.reading import Reading
from headscope.core.accumulators import finite_mean
from headscope.draw.marks import percent_axis
from headscope.draw.style import color, layer_colors


def draw_profiles(run: Reading, axes: Axes) -> None:
    """A line for each layer, and one of uniform attention."""
    even = run("uniform_profile").value
    there = np.isfinite(even)
    within = finite_mean(run("profile").value[..., there], 1).cumsum(-1)  # [layer, distance]
    at = np.arange(there.sum())
    for line, shade in zip(within, layer_colors(len(within)), strict=True):
        axes.plot(at, line, color=shade, lw=1.0)
    axes.plot(at, even[there].cumsum(), color=color("vermillion"), ls=(0, (4, 2)), lw=1.4, zorder=3)
    last = run.data["distance"].values[1:][there[:-1]] - 1
    step = 1 if len(at) <= 7 else 2
    axes.set_xticks(at[::step], [f"{name:,}" for name in last[::step]])
    axes.set_xlabel("distance (tokens)")
    percent_axis(axes, "attention within", top=1.0)
    axes.set_xlim(0, max(at[-1], 1))
