"""Build the page of a run from its results and manifest: one file that works offline."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from html import unescape
from pathlib import Path
from typing import Any

import xarray as xr

from headscope.claims.bibliography import SOURCES
from headscope.claims.caption_words import INTERVALS, over
from headscope.claims.dictionary import terms, unit_label
from headscope.claims.head_metrics import head_metrics
from headscope.claims.headline import headline
from headscope.claims.question import Question, questions
from headscope.claims.reading import Reading, parts_of
from headscope.claims.terms import Term
from headscope.core.display import printable
from headscope.core.head_names import names_of
from headscope.core.progress import begin
from headscope.core.results import LIMITS, counted, derived_once, group, model_name, shape
from headscope.draw.figures import pictures, save_figures
from headscope.draw.panel import PanelStore
from headscope.draw.style import house_style
from headscope.errors import RunFolderError
from headscope.heads.tables import write_tables
from headscope.page import sections
from headscope.page.sections import (
    AFTER_LANGUAGE,
    FINDINGS,
    OpeningPlan,
    Section,
    SectionPlan,
    after_language,
    place_of,
    sections_of,
)
from headscope.page.shell import island, render_page, script_of, style_of, template, write_page
from headscope.page.svg import Styles
from headscope.page.tabulate import Table
from headscope.report import heads, run_facts
from headscope.report.card_page import cards
from headscope.report.example_views import example_views
from headscope.report.findings import Finding, findings, in_tree, opening_words
from headscope.report.menu import LANGUAGE_GROUP, MenuGroup, by_place, group_at, menu_groups
from headscope.report.run_facts import Manifest
from headscope.run.store import Run, RunFolder

# The files make one script: each may use only what stands before it.
SCRIPTS = (
    "page.js",
    "fold.js",
    "grid.js",
    "map.js",
    "table.js",
    "look.js",
    "card_maps.js",
    "card_rules.js",
    "charts.js",
    "card.js",
)
Beside = Sequence[tuple[str, str]]
_TAG = re.compile(r"<[^>]*>")
STYLES = ("report.css", "card.css")


@dataclass(frozen=True)
class Opening:
    """The opening of the page of an experiment; see `OpeningPlan`."""

    plan: OpeningPlan
    heading: list[tuple[str, bool]]
    tables: list[Table]
    sections: list[Section]


@dataclass(frozen=True)
class LanguageChapter:
    """The sections on language.

    absent   what the run lacks, and the options that give it
    chooses  whether best heads are compared with baselines
    """

    sections: list[Section]
    absent: str
    chooses: bool
    notes: list[str]


def write_report(run: Run, path: str | Path) -> Path:
    """Writes the report of a run, whether it has a folder or is in memory; returns the page.

    path    ends in .html: the page alone, which holds its figures; or a folder, that gets tables/
            and figures/ beside report.html: the run's own, or one without a run
    raises  RunFolderError for a folder of another run, UnwrittenError where nothing can be written
    """
    folder, panels = Path(path), PanelStore(run.tree)
    alone = folder.suffix.lower() in (".html", ".htm")
    if not alone and run.path != folder and RunFolder(folder).manifest() is not None:
        raise RunFolderError(
            f"{folder} holds another run; wanted a name like page.html, or a folder"
        )
    begin("report")
    with derived_once(), ExitStack() as stack:
        if not alone:
            stack.enter_context(RunFolder(folder).listing())
            write_tables(run.tree, folder / "tables")
        for picture in pictures().values():  # some measure text as it is outside the style
            panels.of(picture)
        with house_style():
            if alone:
                return write_page(folder, render(run.tree, run.manifest, panels=panels))
            save_figures(run.tree, folder / "figures", panels=panels)
            return build_report(run.tree, run.manifest, folder, panels=panels)


def build_report(
    tree: xr.DataTree, manifest: Manifest, folder: Path, *, panels: PanelStore | None = None
) -> Path:
    """Writes report.html into `folder`; the file is whole or as it was.

    tree      a result; of a group that it lacks, the section is one line that says so
    manifest  as in the run folder; every key may be missing
    panels    the run's panels, where they are made already
    returns   the path of the page: self-contained, no request leaves it
    raises    UnwrittenError if the folder cannot be written
    """
    beside = [page for written in parts_of(tree, "pages", folder) for page in written]
    page = render(tree, manifest, panels=panels, beside=beside)
    return write_page(folder / "report.html", page)


@derived_once()
def render(
    tree: xr.DataTree, manifest: Manifest, *, panels: PanelStore | None = None, beside: Beside = ()
) -> str:
    """The page as text; `beside` are further pages in its folder, file name and title."""
    panels = panels or PanelStore(tree)
    styles, known, plans = Styles(), pictures(), _plans()
    made = {
        plan.id: sections.section(plan, Reading(tree, question), known, panels, styles)
        for question, plan in plans
        if in_tree(tree, question, plan)
    }
    opening = _opening(tree, manifest, plans, made)
    examples = example_views(tree, model=model_name(tree))
    whole = opening is None or opening.plan.atlas
    alone, language = _by_themselves(plans, made, whole=whole), _language(plans, made, manifest)
    content = _content(tree, manifest)
    return render_page(
        template("report.html.j2"),
        style="\n".join([style_of(*STYLES), size_style(tree), styles.css()]),
        script=script_of(SCRIPTS),
        framed=examples.framed,
        **content,
        menu=_menu(
            opening,
            beside,
            alone,
            telling=bool(content["telling"] or whole),
            examples=bool(examples.texts or whole),
            language=bool(language.sections or whole),
        ),
        names=names_of(tree),
        opening=opening,
        whole=whole,
        findings=first_findings(tree, manifest),
        beside=beside,
        sections=alone,
        language=language,
        examples=examples,
        island=island({**heads.data(tree), "cards": cards(tree)}),
        views=island(examples.data),
    )


def first_findings(tree: xr.DataTree, manifest: Manifest) -> list[Finding]:
    """The sentences that open the page of a run, made without the rest of it."""
    opening = heads.opening_of(tree)
    said = (
        findings(tree, opening_words(tree, _plans()))
        if opening is None
        else [Finding("", words) for words in opening[0].findings(opening[1])]
    )
    notes = [*run_facts.notes(manifest), *run_facts.stopped_note(manifest)]
    return [*(Finding("", note) for note in notes), *said]


def first_words(tree: xr.DataTree) -> str:
    """The sentence before the findings."""
    opening = heads.opening_of(tree)
    return headline(tree) if opening is None else opening[0].lede(opening[1])


def size_style(tree: xr.DataTree) -> str:
    """The rule that says how many layers and heads the grid has."""
    layers, per_layer = shape(tree)
    return f":root{{--layers:{layers};--heads:{per_layer}}}"


# --- sections, in their order -----------------------------------------------------------------

Plans = list[tuple[Question, SectionPlan]]


def _plans() -> Plans:
    """The section plans of all questions in the order of the page."""
    every = [(one, plan) for one in questions() for plan in sections_of(one)]
    return sorted(every, key=lambda pair: place_of(pair[1], pair[0]))


def _by_themselves(plans: Plans, made: dict[str, Section], *, whole: bool) -> list[Section]:
    """Sections outside chapters; only the page of an atlas (`whole`) names those the run lacks."""
    alone = [made.get(plan.id) or _absent(plan, one) for one, plan in plans if not plan.chapter]
    return [one for one in alone if one.blocks or one.map_caption or whole]


def _absent(plan: SectionPlan, question: Question) -> Section:
    return Section(
        plan.id,
        plan.title,
        plan.text,
        [],
        absent=plan.absent,
        after_language=after_language(plan),
        place=place_of(plan, question),
    )


def _language(plans: Plans, made: dict[str, Section], manifest: Manifest) -> LanguageChapter:
    ours = [plan for _, plan in plans if plan.chapter == sections.LANGUAGE]
    there = [plan for plan in ours if plan.id in made]
    absent = "; ".join(plan.wanted for plan in ours if plan not in there)
    notes = sections.malformed_notes(manifest) if there else []
    chooses = any(plan.chooses for plan in there)
    return LanguageChapter([made[plan.id] for plan in there], absent, chooses, notes)


def _opening(
    tree: xr.DataTree, manifest: Manifest, plans: Plans, made: dict[str, Section]
) -> Opening | None:
    opening = heads.opening_of(tree)
    if opening is None:
        return None
    plan, run = opening
    parts = [made[one.id] for _, one in plans if one.chapter == FINDINGS and one.id in made]
    tables = [table for make in plan.tables if (table := make(run, manifest)) is not None]
    return Opening(
        plan,
        list(plan.heading(run)),
        tables,
        [one for one in parts if one.blocks or (plan.atlas and one.absent)],
    )


def _menu(
    opening: Opening | None,
    beside: Beside,
    alone: list[Section],
    *,
    telling: bool,
    examples: bool,
    language: bool,
) -> list[MenuGroup]:
    """The entries of the menu in groups; the flags say which parts the page has."""
    first = [("#answer", "Findings"), ("#grid", "All heads"), *beside]
    chapter = [] if opening is None else [(f"#{one.id}", one.title) for one in opening.sections]
    if opening is not None and (opening.tables or opening.sections):
        chapter.insert(0, (f"#{opening.plan.id}", opening.plan.chapter))
    return menu_groups(
        [
            ("What heads do", first),
            ("The experiment", chapter),
            ("What heads do", [("#telling", "Telling heads")] * telling),
            ("What heads do", [("#examples", "Heads at work")] * examples),
            *by_place(one for one in alone if not one.after_language),
            (LANGUAGE_GROUP, [("#language", "Language")] * language),
            *by_place(one for one in alone if one.after_language),
            (group_at(AFTER_LANGUAGE), [("#table", "Table of heads")]),
            ("This run", [("#terms", "Terms and sources"), ("#run", "What was run")]),
        ]
    )


def _used_terms(tree: xr.DataTree, body: str) -> dict[str, Term]:
    """The terms that a page uses, by its markup: those that it links to; and those of its own
    questions whose names it says, as another's may mean something else by the same word.
    """
    text, change = unescape(_TAG.sub(" ", body)).lower(), group(tree, "change")
    own = {*tree.children, *([] if change is None else change["analysis"].values.tolist())}
    near = terms(question for question in questions() if question.name in own)
    return {
        word: term
        for word, term in (terms() | near).items()
        if f'href="#term-{word}"' in body or (word in near and _says(text, term.name.lower()))
    }


def _says(text: str, name: str) -> bool:
    """Whether a name stands in a text as a word of its own, be it for several."""
    return bool(re.search(rf"(?<![\w-]){re.escape(name)}s?(?!\w)", text))


def _some_interval(tree: xr.DataTree) -> bool:
    variables = (pair for group in tree.children.values() for pair in group.data_vars.items())
    return any(bool(one.notnull().any()) for name, one in variables if str(name).endswith(LIMITS))


def _content(tree: xr.DataTree, manifest: Manifest) -> dict[str, Any]:
    layers, per_layer = shape(tree)
    return {
        "model": model_name(tree),
        "title": printable(tree.attrs.get("title", "headscope atlas")),
        "counted": counted(tree),
        "layers": layers,
        "heads": per_layer,
        "facts": run_facts.facts(tree, manifest),
        **run_facts.details(manifest),
        "telling": heads.telling(tree),
        "kinds": heads.data_kinds(tree),
        "cells": heads.cells(tree),
        "nothing": heads.nothing(tree),
        "shown": heads.shown(tree),
        "intervals": heads.intervals(head_metrics(tree)),
        "of_words": heads.of_words(tree),
        "unheld": "" if _some_interval(tree) else INTERVALS,
        "columns": heads.columns(tree),
        "bracketed": heads.intervals(heads.columns(tree)),
        "rows": heads.rows(tree),
        "n": over(tree),
        "ids": heads.card_ids(tree),
        "lede": first_words(tree),
        "terms": terms(),
        "used_terms": partial(_used_terms, tree),
        "sources": SOURCES,
        "unit_label": unit_label,
        "version": printable(tree.attrs.get("headscope_version", "")),
    }
