"""The section of a linguistic question on the page, with notes on how it was measured."""

from typing import Any

import xarray as xr

from headscope.analyses.language.tables import paper_measure
from headscope.core.dictionary import name as term_name
from headscope.core.results import group, printable
from headscope.page.sections import LANGUAGE, SectionPlan

BY_NORM = (
    "Judged by the weighted norm ‖αf(x)‖, by what a head really gathers from a word, not by "
    "attention alone."
)


def language_section(*groups: str, asked: str, **plan: Any) -> tuple[SectionPlan]:
    """The section of some groups in the chapter on language, with notes on their results.

    asked  what their numbers count, say "word"
    plan   the rest of the plan
    """

    def notes(tree: xr.DataTree) -> list[str]:
        there = [dataset for name in groups if (dataset := group(tree, name)) is not None]
        left_out = [note for dataset in there for note in _left_out(dataset, asked)]
        return [BY_NORM, *left_out] if any(map(paper_measure, there)) else left_out

    return (SectionPlan(groups=groups, notes=notes, chapter=LANGUAGE, tables_first=True, **plan),)


def _left_out(dataset: xr.Dataset, asked: str) -> list[str]:
    if "left_out" not in dataset:
        return []
    counts = dataset["left_out"].to_series().astype(int)
    reasons = [
        f"{count:,} {asked if count == 1 else asked + 's'} {printable(term_name(str(reason)))}"
        for reason, count in counts.items()
        if count
    ]
    return [f"Left out: {'; '.join(reasons)}."] if reasons else []
