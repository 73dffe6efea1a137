"""What does a report say of two models: which figures, tables and examples, and what was found?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.accumulators import Estimate
from headscope.core.dictionary import unit_label
from headscope.core.results import estimate, group, printable, shape
from headscope.draw.panel import Picture
from headscope.draw.wording import INTERVALS, over
from headscope.experiments.comparison.figure import PICTURE as SIMILARITY
from headscope.experiments.comparison.figure import TRAINING, base_name, tuned_name
from headscope.experiments.comparison.figure_change import PICTURE as GRIDS
from headscope.experiments.comparison.figure_change import WORDS
from headscope.experiments.comparison.findings import findings, points
from headscope.experiments.task_section import scores_table
from headscope.page.sections import Figure, figure
from headscope.page.svg import Styles
from headscope.page.tabulate import Cell, Column, Rows, Table, capital, measured, share

# Groups whose numbers stand in the page; all others are in the folder `tables`.
SHOWN = {
    "surface": "Where heads attend",
    "entropy": "How widely they attend",
    "patterns": "Classes of maps",
    "features": "Attention to kinds of words",
    "norms": "Norms",
}
# Said by other rows, or of the classifier.
UNSHOWN = ("norms.attention.", "patterns.confidence")
LISTED = 10  # examples
NO_TRAINING = (
    "How the second model was trained is not known: it has no finetuned.json, which headscope "
    "finetune writes."
)
NO_WORDS = "This needs tags: --treebank, or --annotate with --text."


@dataclass(frozen=True)
class Part:
    """One part of the section; without a figure, `absent` says why."""

    id: str
    title: str
    text: str
    figure: Figure | None
    absent: str = ""


@dataclass(frozen=True)
class Comparison:
    """The section on two models.

    base, tuned  what they are called
    findings     sentences with numbers
    scores       of the second before and after it was taught; None where nobody knows
    numbers      both models, number by number
    examples     those whose maps changed most; None where none did
    """

    base: str
    tuned: str
    findings: list[str]
    scores: Table | None
    parts: list[Part]
    numbers: Table | None
    examples: Table | None


def comparison(tree: xr.DataTree, manifest: Mapping[str, Any], styles: Styles) -> Comparison | None:
    """The section; None for a run of one model."""
    similarity = group(tree, "similarity")
    if similarity is None:
        return None
    parts = [
        _part(tree, styles, SIMILARITY, "similarity", "Which heads changed?",
              "A map is a vector of weights: the cosine says how much of its direction is left. "
              "What changes is the model, as both see the same inputs."),
        _part(tree, styles, TRAINING, "training", "Did those layers change that learned most?",
              "If the last layers changed most only because they got larger gradients, gradients "
              "and change should rise together.", NO_TRAINING),
        _part(tree, styles, GRIDS, "change", "What do heads do otherwise?",
              "The numbers of an atlas, for both models on the same documents."),
        _part(tree, styles, WORDS, "words-change", "Do heads look at other words?",
              "Fine-tuning for a task that asks about language might make heads look at what "
              "matters for it: at nouns, verbs, subjects, negation.", NO_WORDS),
    ]  # fmt: skip
    return Comparison(
        base_name(tree), tuned_name(tree), findings(tree), scores_table(tree, manifest), parts,
        numbers_table(tree), examples_table(tree),
    )  # fmt: skip


def numbers_table(tree: xr.DataTree) -> Table | None:
    """Every number of SHOWN: means over heads of both models, and how many heads changed."""
    change = group(tree, "change")
    if change is None:
        return None
    keys = change["quantity"].values.tolist()
    first = ("surface.attention.first",) if "surface.attention.cls" in keys else ()
    wanted = np.array([not key.startswith((*UNSHOWN, *first)) for key in keys])
    groups = [
        Rows(_rows(change.isel(quantity=there)), title)
        for name, title in SHOWN.items()
        if (there := wanted & (change["analysis"].values == name)).any()
    ]
    columns = [
        Column("Number"), Column("Before"), Column("After"),
        Column("Difference", term="model_difference"),
        Column("Rose", "heads", "sure"), Column("Fell", "heads", "sure"),
    ]  # fmt: skip
    caption = (
        f"Means over all {shape(tree)[0] * shape(tree)[1]} heads: attention and classes in per "
        "cent, their differences in percentage points; and how many heads rose or fell for sure "
        f"(simultaneous intervals over the heads of a row, not over rows). {INTERVALS}, paired; "
        f"{over(tree)}. All numbers of all heads: tables/change."
    )
    return Table("Both models", columns, groups, caption) if groups else None


def examples_table(tree: xr.DataTree) -> Table | None:
    """The inputs whose maps changed most."""
    similarity = group(tree, "similarity")
    if similarity is None or not similarity.sizes.get("rank", 0):
        return None
    few = similarity.isel(rank=slice(LISTED))
    rows = [
        [Cell(printable(text)), Cell(str(int(tokens))), measured(float(change))]
        for text, tokens, change in zip(
            few["example_text"].values.tolist(),
            few["example_tokens"].values.tolist(),
            few["example_change"].values.tolist(),
            strict=True,
        )
    ]
    caption = (
        "1 − cosine, mean over all heads, of the inputs with the largest; of at least 8 tokens. "
        "The first are opened under Heads at work, both models side by side."
    )
    columns = [Column("Input"), Column("Tokens"), Column("1 − cosine")]
    return Table("Inputs and their change", columns, [Rows(rows)], caption)


def _part(  # noqa: PLR0917  (a table of parts reads best in rows)
    tree: xr.DataTree,
    styles: Styles,
    picture: Picture,
    place: str,
    title: str,
    text: str,
    absent: str = "",
) -> Part:
    drawn = figure(tree, picture, styles, place=f"compare-{place}-")
    return Part(place, title, text, drawn, "" if drawn else absent)


def _rows(change: xr.Dataset) -> list[list[Cell]]:
    rows = []
    for key in change["quantity"].values.tolist():
        row = change.sel(quantity=key)
        before, after, difference = (
            estimate(change, f"model_{side}", quantity=key)
            for side in ("before", "after", "difference")
        )
        if not np.isfinite(difference.value):
            continue
        unit, label = str(row["unit"].values), printable(row["label"].values)
        is_share = unit == "probability"
        name = label if is_share or not unit_label(unit) else f"{label} ({unit_label(unit)})"
        write = share if is_share else measured
        rows.append([
            Cell(capital(name)), write(*_ends(before)), write(*_ends(after)),
            _in_points(difference) if is_share else measured(*_ends(difference)),
            Cell(str(int(row["rose"]))), Cell(str(int(row["fell"]))),
        ])  # fmt: skip
    return rows


def _in_points(parts: Estimate) -> Cell:
    text, _, interval = points(parts).partition(" ")
    return Cell(text, interval)


def _ends(parts: Estimate) -> tuple[float, float, float]:
    return float(parts.value), float(parts.low), float(parts.high)
