"""Sections of a page: how a question plans them, and how a plan becomes figures and tables."""

import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headscope.claims.plan import NOT_RUN, Words
from headscope.claims.question import Question
from headscope.claims.reading import Reading, parts_of, run_findings
from headscope.core.display import printable
from headscope.core.results import model_name
from headscope.draw.panel import PanelStore, Picture
from headscope.page.svg import Styles, inline_panels
from headscope.page.tabulate import Table

Manifest = Mapping[str, Any]
FINDINGS, LANGUAGE = "findings", "language"  # chapters; other sections stand by themselves


@dataclass(frozen=True, kw_only=True)
class SectionPlan:
    """What a question puts on the page of a run.

    id, title, text   the place that the page's address names, the heading, what to look for
    pictures          names of figures, in their order
    tables            Reading -> a table, or None where the run has nothing for it
    notes             Reading -> sentences below the text
    chapter           FINDINGS, LANGUAGE, or "" for a section by itself
    groups            the groups it is about, one of which it needs; its question's own by default
    absent            what stands in its place where it has no figure, a sentence
    wanted            in a chapter's list of what is missing: what the corpus must have for it
    tables_first      whether tables stand before figures
    chooses           whether it names best heads: the chapter then explains held-out figures
    map_caption       of a section that holds the interactive map of heads (`Question.places`),
                      a template or Reading -> text
    place             its order on the page; that of its question by default
    finding           what it found, a short sentence beside its heading, likewise; '' for nothing
    opens             whether that sentence also stands among those that open the page
    """

    id: str
    title: str
    text: str
    pictures: tuple[str, ...] = ()
    tables: tuple[str | Callable[[Reading], Table | None], ...] = ()
    notes: Callable[[Reading], list[str]] | None = None
    chapter: str = ""
    groups: tuple[str, ...] = ()
    absent: str = NOT_RUN
    wanted: str = ""
    tables_first: bool = False
    chooses: bool = False
    map_caption: Words = ""
    place: float | None = None
    finding: Words = ""
    opens: bool = False


@dataclass(frozen=True, kw_only=True)
class OpeningPlan:
    """How the page of an experiment opens: its question, what it found, and its first tables.

    id, chapter   of the chapter of findings: its place and its heading
    heading       Reading -> the page's title in pieces, and which of them are names of models
    lede          Reading -> sentences before the findings
    findings      Reading -> sentences with numbers; those of all questions of the run by default
    tables        (Reading, manifest) -> a table, or None
    nothing       what a head is called that is nothing that has a name
    atlas         whether the rest of the page is that of an atlas, whose absent sections are named
    """

    heading: Callable[[Reading], Sequence[tuple[str, bool]]]
    findings: Callable[[Reading], list[str]] = lambda run: run_findings(run.tree)
    id: str = "task"
    chapter: str = "What was found"
    lede: Callable[[Reading], str] = lambda run: ""
    tables: tuple[Callable[[Reading, Manifest], Table | None], ...] = ()
    nothing: str = "unlabelled"
    atlas: bool = False


def heading_of(before: str, after: str = "") -> Callable[[Reading], list[tuple[str, bool]]]:
    """The title of a page about one model: its name between two texts; see `OpeningPlan`."""
    return lambda run: [
        piece
        for piece in ((before, False), (model_name(run.tree), True), (after, False))
        if piece[0]
    ]


@dataclass(frozen=True, slots=True)
class InlinePanel:
    """One panel on the page: `title`, and its markup, which is ours throughout."""

    title: str
    markup: str


@dataclass(frozen=True, slots=True)
class InlineFigure:
    """The panels of a picture, the sentence below them, and how many stand side by side.

    page  whether every panel is as wide as the page
    """

    panels: list[InlinePanel]
    caption: str
    wide: int
    page: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """One section as it stands on the page; without blocks, `absent` says why."""

    id: str
    title: str
    text: str
    blocks: list[InlineFigure | Table]
    notes: list[str] = field(default_factory=list)
    absent: str = NOT_RUN
    map_caption: str = ""
    after_language: bool = False
    finding: str = ""
    opens: bool = False
    place: float = 0.0

    @property
    def figures(self) -> list[InlineFigure]:
        """The figures among the blocks."""
        return [block for block in self.blocks if isinstance(block, InlineFigure)]


AFTER_LANGUAGE = 160.0  # a plan's own place from which on it stands below the chapter on language


def after_language(plan: SectionPlan) -> bool:
    """Whether a section by itself stands below the chapter on language."""
    return plan.place is not None and plan.place >= AFTER_LANGUAGE


def place_of(plan: SectionPlan, question: Question) -> float:
    """The order of a section on the page: its own, else that of its question."""
    return question.place if plan.place is None else plan.place


def sections_of(question: Question) -> list[SectionPlan]:
    """The sections of a question: one for each planned picture with a text, then further ones."""
    planned = [
        SectionPlan(
            id=one.id or question.name,
            title=one.heading or one.title,
            text=one.text,
            pictures=(one.name,) * bool(one.panels),
            tables=one.tables,
            chapter=FINDINGS if question.opening else "",
            absent=one.absent,
            finding=one.finding,
        )
        for one in question.part("figures", ())
        if one.text or not one.panels
    ]
    plans = question.part("section", ())
    return [*planned, *(plans if isinstance(plans, Sequence) else (plans,))]


def section(
    plan: SectionPlan,
    run: Reading,
    pictures: Mapping[str, Picture],
    panels: PanelStore,
    styles: Styles,
) -> Section:
    """A plan carried out on a run, as its question reads it.

    pictures  all figures by name
    panels    the run's panels, each made once
    styles    collects the classes that the markup uses
    """
    prefix = f"{plan.chapter}-{{}}-" if plan.chapter else plan.id
    figures = [
        inline_figure(pictures[name], panels, styles, prefix=prefix.format(name))
        for name in plan.pictures
        if name in pictures
    ]
    tables = [table for make in plan.tables if (table := run.said(make))]
    drawn = [figure for figure in figures if figure is not None]
    blocks: list[InlineFigure | Table] = [*drawn, *tables]
    if plan.tables_first:
        blocks = [*tables, *drawn]
    notes = [] if plan.notes is None else plan.notes(run)
    has_map = plan.map_caption and parts_of(run.tree, "places")
    return Section(
        plan.id,
        plan.title,
        plan.text,
        blocks,
        notes,
        plan.absent,
        run.said(plan.map_caption) if has_map else "",
        after_language(plan),
        run.said(plan.finding),
        plan.opens,
        place_of(plan, run.question),
    )


def inline_figure(
    picture: Picture, panels: PanelStore, styles: Styles, *, prefix: str
) -> InlineFigure | None:
    """A picture as markup; None where the run lacks what it needs. `prefix` starts its ids."""
    wanted = panels.of(picture)
    if not wanted:
        return None
    markup = inline_panels(panels.vector(picture), styles, prefix=prefix)
    titles = [_lettered(panel.title, at, len(wanted)) for at, panel in enumerate(wanted)]
    inline = [InlinePanel(title, one) for title, one in zip(titles, markup, strict=True)]
    beside = min(len(wanted), picture.columns, 4)
    return InlineFigure(inline, picture.caption(panels.tree), beside, picture.wide)


def malformed_notes(manifest: Manifest) -> list[str]:
    """What of the corpus could not be read, and where the first faults are."""
    counts = manifest.get("counts")
    reasons = counts.get("reasons") if isinstance(counts, Mapping) else None
    entry = reasons.get("malformed") if isinstance(reasons, Mapping) else None
    if not isinstance(entry, Mapping) or not entry.get("total"):
        return []
    first = [printable(place) for place in list(entry.get("first", []))[:3]]
    where = f", first: {'; '.join(first)}" if first else ""
    number = int(entry["total"])
    passages = "malformed passage was" if number == 1 else "malformed passages were"
    return [f"Of the corpus, {number:,} {passages} skipped{where}."]


def _lettered(title: str, at: int, count: int) -> str:
    letter = f"({string.ascii_lowercase[at]}) " if 1 < count <= len(string.ascii_lowercase) else ""
    return f"{letter}{title}".strip()
