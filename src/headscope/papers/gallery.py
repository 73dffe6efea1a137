"""Draw the figures and tables of a paper in its layout, of our runs: for the page and for files.

What cannot be drawn is a grey frame that says what it needs, in the words of the lines.
"""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from headscope.core.display import printable
from headscope.core.whole_file import write_whole
from headscope.draw.panel import Panel, compose
from headscope.draw.saving import Vector, vector
from headscope.draw.style import DOUBLE, SINGLE, color
from headscope.page.svg import Styles, inline_panels
from headscope.papers.claim_engine import FAILED, ClaimOutcome
from headscope.papers.plates import Plate, short
from headscope.papers.quantities import PaperRuns, Unmeasured

TYPE = 6.0  # points of what a grey frame says
LETTER = 0.62  # of them that a letter takes
ROOM = 0.52  # of a panel's width, at least, that a frame beside others has for words
MANY, WIDE = 5, 9.3  # panels side by side from which on a figure is that wide, in inches


@dataclass(frozen=True)
class DrawnPlate:
    """A figure with its panels; those that could not be drawn are frames.

    needs  what they need, each reason once
    runs   names of the runs that the others show
    """

    plate: Plate
    titles: Sequence[str] = ()
    drawn: Vector | None = None
    png: bytes = b""
    needs: Sequence[str] = ()
    runs: Sequence[str] = ()
    answer: str = ""


def drawn_plates(plates: Sequence[Plate], runs: PaperRuns) -> list[DrawnPlate]:
    """All figures of a paper in its order; of a table, the plate alone."""
    return [_drawn(plate, runs) if plate.panels else DrawnPlate(plate) for plate in plates]


def _drawn(plate: Plate, runs: PaperRuns) -> DrawnPlate:
    made, needs, there = list[Panel](), dict[int, str](), list[str]()
    for at, one in enumerate(plate.panels):
        try:
            made.append(one.draw(runs.run(one.run_of(runs))))
            there += [name for name in (one.run, *one.others) if name in runs]
        except Unmeasured as error:
            needs[at] = " ".join(str(error).split()).removeprefix(FAILED)
            made.append(missing_panel(one.title, needs[at], plate))
    columns = min(plate.columns, len(made))
    figure = compose(made, columns=columns, width=_width(plate))
    drawn, png = vector(figure, len(made), dots=True)
    return DrawnPlate(
        plate,
        [panel.title for panel in made],
        replace(drawn, heads=[]),  # this page has no script that would name them
        png,
        list(dict.fromkeys(needs.values())),
        list(dict.fromkeys(there)),
        _answer(plate, runs),
    )


def _width(plate: Plate) -> float:
    """In inches: a column of a journal, two, or a page where panels are many."""
    return SINGLE if plate.columns == 1 else WIDE if plate.columns >= MANY else DOUBLE


def _answer(plate: Plate, runs: PaperRuns) -> str:
    try:
        return plate.answer(runs) if plate.answer else ""
    except Unmeasured:
        return ""


def missing_panel(title: str, needs: str, plate: Plate) -> Panel:
    """A grey frame with what it needs, in short: what stands before the address of the data."""
    width = ROOM * 72 * _width(plate) / plate.columns
    letters = max(8, int(width / (LETTER * TYPE)))
    rows = max(2, int(width * plate.height / (1.3 * TYPE)) - 2)
    text = textwrap.shorten(printable(short(needs)), letters * rows, placeholder=" …")
    return Panel(title, partial(_frame, textwrap.fill(text, letters)), height=plate.height)


def _frame(text: str, axes: Axes) -> None:
    axes.set(xticks=[], yticks=[], xlim=(0, 1), ylim=(0, 1))
    axes.spines[:].set_visible(False)
    axes.add_patch(Rectangle((0, 0), 1, 1, fc=color("rule"), lw=0, alpha=0.5))
    look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": TYPE}
    axes.text(0.5, 0.5, text, color=color("muted"), **look)


def save_plates(drawn: Sequence[DrawnPlate], folder: Path) -> None:
    """Writes every figure as .svg and .png, by its number: `figure-2.svg`."""
    for one in drawn:
        if one.drawn is not None:
            write_whole(folder / f"{one.plate.id}.svg", one.drawn.svg)
            write_whole(folder / f"{one.plate.id}.png", one.png)


# --- on the page ----------------------------------------------------------------------------


def page_plate(
    one: DrawnPlate,
    styles: Styles,
    cells: Mapping[str, ClaimOutcome],
    text: Callable[[ClaimOutcome], str],
) -> dict[str, Any]:
    """What the page shows of a figure or table.

    cells  the outcomes by the keys of their claims
    text   (outcome) -> our number in words
    """
    markup = [] if one.drawn is None else inline_panels(one.drawn, styles, prefix=one.plate.id)
    letters = "abcdefghijklmnopqrstuvwxyz" if len(markup) > 1 else " " * len(markup)
    titles = [f"({x}) {t}".replace("( ) ", "") for x, t in zip(letters, one.titles, strict=False)]
    keys = [key for _, row in one.plate.rows for key, *_ in row]
    unasked = [cells[key] for key in keys if cells[key].measured is None]
    needs = dict.fromkeys([*one.needs, *(outcome.verdict.needs for outcome in unasked)])
    rows = [
        (name, [_cell(cells[key], what, published, text) for key, what, published in row])
        for name, row in one.plate.rows
    ]
    return {
        "plate": one.plate,
        "panels": list(zip(titles, markup, strict=False)),
        "columns": one.plate.columns,
        "rows": rows,
        "needs": [printable(reason) for reason in needs],
        "answer": one.answer,
    }


def _cell(
    outcome: ClaimOutcome, what: str, published: str, text: Callable[[ClaimOutcome], str]
) -> tuple[str, str]:
    """Ours and the published one."""
    detail = outcome.measured.detail.partition(",")[0] if outcome.measured else ""
    detail = detail.removeprefix("offset ")
    ours = {"number": text(outcome), "detail": detail, "both": f"{text(outcome)} ({detail})"}
    return printable(ours[what]) if detail or text(outcome) else "", (
        published or outcome.claim.published_text
    )
