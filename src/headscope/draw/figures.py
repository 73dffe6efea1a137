"""Draw and save the figures of a run; questions announce them."""

from pathlib import Path

import xarray as xr

from headscope.claims.question import questions
from headscope.core.progress import one_by_one
from headscope.core.results import derived_once
from headscope.core.whole_file import write_whole
from headscope.draw.head_grid import OVERVIEW
from headscope.draw.panel import PanelStore, Picture
from headscope.draw.planned import pictures_of
from headscope.draw.saving import ShownFigure, save_picture
from headscope.errors import InputError


def pictures() -> dict[str, Picture]:
    """All figures by name: those of the questions, by their place, and that of all heads."""
    known = {OVERVIEW.name: OVERVIEW}
    for question in questions():
        known |= {one.name: one for one in pictures_of(question) if one.name not in known}
    return known


@derived_once()
def draw(
    tree: xr.DataTree, name: str, *, columns: int | None = None, panels: PanelStore | None = None
) -> ShownFigure:
    """The figure called `name`, at double journal width, or at single width with `columns=1`.

    panels  the run's panels, where they are made already
    raises  KeyError for an unknown name, ValueError if the run lacks what the figure needs
    """
    known, panels = pictures(), panels or PanelStore(tree)
    if name not in known:
        raise KeyError(f"no figure called {name!r}; there are {', '.join(known)}")
    picture = known[name]
    if not panels.of(picture):
        there = ", ".join(map(str, tree.children)) or "nothing"
        raise ValueError(
            f"cannot draw {name}: found the groups {there}; wanted {', '.join(picture.needs)}, "
            "with numbers to draw; run the atlas with these analyses"
        )
    return panels.figure(picture, columns=columns)


@derived_once()
def run_figure(tree: xr.DataTree, name: str, *, columns: int | None = None) -> ShownFigure:
    """The figure called `name` with its caption, as a notebook shows it; options as of `draw`.

    raises  InputError for an unknown name, and where the run lacks what the figure needs
    """
    try:
        figure = draw(tree, name, columns=columns)
    except (KeyError, ValueError) as error:
        raise InputError(str(error.args[0])) from None
    figure.caption = pictures()[name].caption(tree)
    return figure


@derived_once()
def save_figures(
    tree: xr.DataTree, folder: Path, *, panels: PanelStore | None = None
) -> list[Path]:
    """Writes every figure that the run allows as .svg and .png (300 dpi), each whole or not at all.

    The sheets of a picture (`Picture.sheets`) go as .svg into a folder of their own.

    returns  the paths written; the same tree gives the same bytes
    """
    panels, written = panels or PanelStore(tree), []
    there = [picture for picture in pictures().values() if panels.of(picture)]
    for picture in one_by_one(there, "report", "figures", len(there)):
        path = folder / f"{picture.name}.svg"
        svg, png = panels.files(picture)
        written += [write_whole(path, svg), write_whole(path.with_suffix(".png"), png)]
        for name, sheet in picture.sheets(tree):
            written.append(save_picture(sheet, folder / name))
    return written
