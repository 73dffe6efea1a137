"""Sheets of maps, to be labelled away from a screen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headscope.analyses.patterns.classes import CLASSES
from headscope.draw.saving import save_picture
from headscope.draw.style import color, house_style, ramp_map
from headscope.experiments.map_classifier.annotation_session import Map, Session

ROWS, COLUMNS = 4, 5
PER_SHEET = ROWS * COLUMNS


def write_sheets(session: Session) -> list[Path]:
    """All maps of a session as SESSION/sheets/NNNN.png, each named after its first map."""
    files: list[Path] = []
    for first in range(0, len(session), PER_SHEET):
        numbers = range(first, min(first + PER_SHEET, len(session)))
        figure = sheet(
            [session.map(n) for n in numbers], [session.boundary(n) for n in numbers], first=first
        )
        files.append(save_picture(figure, session.folder / "sheets" / f"{first:04d}.png"))
    return files


def sheet(maps: Sequence[Map], boundaries: Sequence[int], *, first: int) -> Figure:
    """At most PER_SHEET numbered maps, by the square root of each map's own largest weight.

    Nothing says which model, layer or head it is. Ticks mark where a second segment begins.

    boundaries  the first token of the second segment; -1 for none
    first       the number of the first map
    """
    with house_style():
        figure = Figure(figsize=(10, 8.8), layout="constrained")
        grid = figure.subplots(ROWS, COLUMNS)
        for place, axes in enumerate(grid.flat):
            if place < len(maps):
                _show(axes, maps[place], boundaries[place], str(first + place))
            else:
                axes.axis("off")
        key = "     ".join(f"{c.key}  {c.title}" for c in CLASSES)
        figure.supxlabel(key, fontsize=9, color=color("muted"))
    return figure


def _show(axes: Axes, kept: Map, boundary: int, name: str) -> None:
    weights = kept.astype(np.float32)
    shares = weights / (float(weights.max()) or 1.0)
    axes.imshow(np.sqrt(shares), cmap=ramp_map(), vmin=0, vmax=1, interpolation="none")
    axes.set_title(name, fontsize=11, loc="left")
    for side in axes.spines.values():
        side.set(visible=True, linewidth=0.4, color=color("grey"))
    edge = [boundary - 0.5] if boundary > 0 else []
    axes.set_xticks(edge, [""] * len(edge))
    axes.set_yticks(edge, [""] * len(edge))
    axes.tick_params(length=5, width=1, color=color("ink"), top=True, right=True)
