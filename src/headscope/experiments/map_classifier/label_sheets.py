"""Writes the maps of a labelling session as contact sheets, to be labelled away from a screen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headscope.analyses.patterns import CLASSES
from headscope.analyses.patterns.classes import PUNCTUATION, SPECIAL, Kinds
from headscope.core.whole_file import clear_drafts, held
from headscope.draw.saving import save_picture
from headscope.draw.style import color, house_style, ramp_map
from headscope.experiments.map_classifier.annotation_session import Map, Session

ROWS, COLUMNS = 4, 5
MARKED = {SPECIAL: "vermillion", PUNCTUATION: "blue"}
MARKS_TOLD = "red: special tokens     blue: punctuation     black: the second sentence begins"
PER_SHEET = ROWS * COLUMNS


def shades(weights: Map) -> npt.NDArray[np.float32]:
    """[query, key] square root of the share of the largest weight."""
    wide = weights.astype(np.float32)
    roots: npt.NDArray[np.float32] = np.sqrt(wide.clip(0) / (float(wide.max()) or 1.0))
    return roots


def write_sheets(session: Session) -> list[Path]:
    """All maps of a session as SESSION/sheets/NNNN.png, each named after its first map."""
    files: list[Path] = []
    folder = session.folder / "sheets"
    with held(folder):
        clear_drafts(folder)
        for first in range(0, len(session), PER_SHEET):
            numbers = range(len(session))[first : first + PER_SHEET]
            boundaries = [session.boundary(number) for number in numbers]
            kinds = [session.kinds(number) for number in numbers]
            maps = [session.map(number) for number in numbers]
            figure = sheet(maps, boundaries, first=first, kinds=kinds)
            files.append(save_picture(figure, folder / f"{first:04d}.png"))
    return files


def sheet(
    maps: Sequence[Map],
    boundaries: Sequence[int],
    *,
    first: int,
    kinds: Sequence[Kinds | None] | None = None,
) -> Figure:
    """At most PER_SHEET numbered maps, by the square root of each map's own largest weight.

    Nothing says which model, layer or head it is. Ticks mark where a second segment begins,
    coloured ones the rows and columns of special tokens and of punctuation.

    boundaries  the first token of the second segment; -1 for none
    first       the number of the first map
    kinds       [map] of each token, see `map_features`; None where it is not known
    """
    with house_style():
        figure = Figure(figsize=(10, 8.8), layout="constrained")
        grid = figure.subplots(ROWS, COLUMNS)
        for number, axes in enumerate(grid.flat):
            if number < len(maps):
                _show(axes, maps[number], boundaries[number], str(first + number))
                _mark(axes, kinds[number] if kinds else None)
            else:
                axes.axis("off")
        key = "     ".join(f"{c.key}  {c.title}" for c in CLASSES)
        if kinds:
            key += f"\n{MARKS_TOLD}"
        figure.supxlabel(key, fontsize=9, color=color("muted"))
    return figure


def _show(axes: Axes, kept: Map, boundary: int, name: str) -> None:
    axes.imshow(shades(kept), cmap=ramp_map(), vmin=0, vmax=1, interpolation="none")
    axes.set_title(name, fontsize=11, loc="left")
    for side in axes.spines.values():
        side.set(visible=True, linewidth=0.4, color=color("grey"))
    edge = [boundary - 0.5] if boundary > 0 else []
    axes.set_xticks(edge, [""] * len(edge))
    axes.set_yticks(edge, [""] * len(edge))
    axes.tick_params(length=5, width=1, color=color("ink"), top=True, right=True)


def _mark(axes: Axes, kinds: Kinds | None) -> None:
    """Coloured ticks outside the frame, above and to the left, at marked tokens."""
    for kind, name in MARKED.items():
        for place in np.flatnonzero(kinds == kind) if kinds is not None else ():
            edges, beyond = (place - 0.5, place + 0.5), -0.5 - 0.025 * axes.get_xlim()[1]
            for x, y in ((edges, (beyond, beyond)), ((beyond, beyond), edges)):
                axes.plot(
                    x,
                    y,
                    color=color(name),
                    lw=2.5,
                    clip_on=False,
                    solid_capstyle="butt",
                    scalex=False,
                    scaley=False,
                )
