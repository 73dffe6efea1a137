"""What the figures and tables of a paper are: panels in its order, and how each is drawn of a run.

`gallery` draws them; a panel whose run or data are missing becomes a grey frame there.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headscope.draw.figures import pictures
from headscope.draw.panel import Panel
from headscope.papers import checkpoints
from headscope.papers.quantities import PaperRun, PaperRuns, Unmeasured

# The key of a claim; what of it: "number", "detail" the first words beside it, or "both"; and what
# the paper has, "": the published number.
PlateCell = tuple[str, str, str]


@dataclass(frozen=True)
class PlatePanel:
    """One panel of a figure.

    title  as long as it cannot be drawn
    run    the name of the run that it shows
    draw   the panel; raises Unmeasured where the run lacks what it shows
    others  runs of which any will do in its place
    """

    title: str
    run: str
    draw: Callable[[PaperRun], Panel]
    others: tuple[str, ...] = ()

    def run_of(self, runs: PaperRuns) -> str:
        """The name of the run that it shows of these; its own where there is none."""
        return next((name for name in (self.run, *self.others) if name in runs), self.run)


@dataclass(frozen=True)
class Plate:
    """A figure or a table of a paper.

    place    its number there: "Figure 2"; "" where it has none, or none is known
    title    what it is about, in a few words
    shows    what the paper shows in it: panels and axes, or rows and columns
    here     what ours has otherwise, and how it is read
    panels   in the paper's order
    columns  of panels side by side
    height   of a grey panel, as a share of its width
    heads    of a table: the headings of its columns
    rows     of a table: the name of each, and its cells
    answer   a sentence with numbers below the figure
    """

    place: str
    title: str
    shows: str
    here: str = ""
    panels: tuple[PlatePanel, ...] = ()
    columns: int = 1
    height: float = 0.72
    heads: tuple[str, ...] = ()
    rows: tuple[tuple[str, tuple[PlateCell, ...]], ...] = ()
    answer: Callable[[PaperRuns], str] | None = None

    @property
    def id(self) -> str:
        """The name of its files, and its place on the page: `figure-2`."""
        words = (self.place or self.title).lower()
        return "-".join("".join(c if c.isalnum() else " " for c in words).split())


def short(needs: str) -> str:
    """What something needs, without where to get it: what stands before an address or a bracket."""
    return re.split(r":? https?:|;| \(", needs, maxsplit=1)[0]


def shown(run: str, picture: str, *panels: tuple[int, str]) -> tuple[PlatePanel, ...]:
    """Panels of one of our pictures: the number of each in it, from 0, and its title here."""
    return tuple(PlatePanel(title, run, _panel_of(picture, at, title)) for at, title in panels)


def _panel_of(picture: str, at: int, title: str) -> Callable[[PaperRun], Panel]:
    def draw(run: PaperRun) -> Panel:
        return replace(panels_of(run, picture)[at], title=title)

    return draw


def panels_of(run: PaperRun, picture: str) -> list[Panel]:
    """All panels of a picture; raises Unmeasured where the run has not what it shows."""
    known = pictures()[picture]
    there = all(name in run.tree.children for name in known.needs) and known.panels(run.tree)
    if not there:
        lacking = [name for name in known.needs if name not in run.tree.children]
        raise Unmeasured(f"needs {' and '.join(lacking) or 'numbers'} in its run")
    return list(there)


def by_task(
    tasks: Sequence[str],
    names: dict[str, str],
    run: str,
    draw: Callable[[PaperRun, str], Panel],
    title: str = "{}",
) -> tuple[PlatePanel, ...]:
    """A panel for each task, of the runs `run:TASK`; draw gets the run and the panel's title."""

    def panel(task: str) -> PlatePanel:
        words = title.format(names[task])

        def of_task(own: PaperRun) -> Panel:
            chance = ", at chance" * ("not shown" in checkpoints.at_chance(own.beside, task))
            return draw(own, words + chance)

        return PlatePanel(words, f"{run}:{task}", of_task)

    return tuple(map(panel, tasks))


def all_of(run: PaperRun, kind: str, number: Callable[[PaperRun], Any]) -> list[Any]:
    """A number of every run that there is of a kind, `compare` or `ablate`: for one scale."""
    every = (name for name in run.beside.runs if name.partition(":")[0] == kind)
    return [number(run.beside.run(name)) for name in every]
