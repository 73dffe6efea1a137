"""Write a run for a paper: figures as PDF in two widths of a column, tables in LaTeX's booktabs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from headscope.claims.caption_words import over
from headscope.core.progress import one_by_one
from headscope.core.results import derived_once, model_name
from headscope.core.whole_file import write_whole
from headscope.core.wording import capital
from headscope.draw.figures import pictures
from headscope.draw.panel import PanelStore, compose
from headscope.draw.saving import save_picture
from headscope.draw.style import DOUBLE
from headscope.heads.tables import all_tables, in_print, latex
from headscope.run.store import Run

PAGE = 9.5  # inches: what is higher fits on no page
MOST_ROWS = 120  # of a table; a longer one is for programs


@derived_once()
def write_for_paper(run: Run, folder: str | Path) -> list[Path]:
    """Writes figures/NAME-single.pdf and -double.pdf, and tables/NAME.tex, below a folder.

    Widths are 3.3 and 6.9 inches, fonts are embedded. Left out is a width in which a picture is
    higher than a page, or too narrow for what it shows, and a table of more than MOST_ROWS rows:
    its .csv is in the run's tables/.

    returns  the paths written, each whole or not at all
    raises   UnwrittenError if the folder cannot be written
    """
    return [*_figures(run, Path(folder) / "figures"), *_tables(run, Path(folder) / "tables")]


def _figures(run: Run, folder: Path) -> Iterator[Path]:
    store = PanelStore(run.tree)
    there = [picture for picture in pictures().values() if store.of(picture)]
    for picture in one_by_one(there, "report", "figures", len(there)):
        panels, columns = store.of(picture), 1 if picture.wide else picture.columns
        figures = {"double": compose(panels, columns=columns, width=DOUBLE)}
        if not picture.wide:
            figures["single"] = compose(panels, columns=1)
        fit = {width: one for width, one in figures.items() if one.get_figheight() <= PAGE}
        for width, figure in (fit or figures).items():
            yield save_picture(figure, folder / f"{picture.name}-{width}.pdf")


def _tables(run: Run, folder: Path) -> Iterator[Path]:
    of = f"{model_name(run.tree)}, {over(run.tree)}; 95 % intervals in brackets"
    for name, (table, note) in all_tables(run.tree).items():
        if len(table) <= MOST_ROWS:
            shown, caption = table, note
            if note is None:
                shown, caption = in_print(table), f"{capital(name.replace('_', ' '))} of {of}."
            yield write_whole(folder / f"{name}.tex", latex(shown, caption or "").encode())
