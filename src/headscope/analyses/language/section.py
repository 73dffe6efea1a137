"""What does a report say about language: which tables and pictures, and what is missing?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import xarray as xr

from headscope.analyses.language.accuracy_tables import coreference_table, syntax_table
from headscope.analyses.language.attention_tables import features_table, frames_table
from headscope.core.dictionary import name as term_name
from headscope.core.results import group, printable
from headscope.page.sections import Figure, figure
from headscope.page.svg import Styles
from headscope.page.tabulate import Table
from headscope.report.figures import PICTURES

BY_NORM = (
    "Judged by the weighted norm ‖αf(x)‖, by what a head really gathers from a word, not by "
    "attention alone."
)
CHOOSING = ("dependency", "coreference")  # they name best heads
LEFT_OUT = {"dependency": "word", "coreference": "mention"}  # some are not asked about


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the section.

    groups    without any of them the part is not in the run
    wanted    what a corpus must have for it, and the option that gives it
    tables    group → its table
    pictures  names in the registry
    """

    id: str
    title: str
    text: str
    groups: tuple[str, ...]
    wanted: str
    table: Callable[[xr.DataTree], Table]
    pictures: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shown:
    """A part as it stands on the page."""

    id: str
    title: str
    text: str
    table: Table
    figures: list[Figure]
    notes: list[str]


@dataclass(frozen=True, slots=True)
class Language:
    """The section.

    absent   what is not in the run, and the options that give it
    chooses  whether best heads are held against baselines
    """

    parts: list[Shown]
    absent: str
    chooses: bool
    notes: list[str] = field(default_factory=list)


PARTS = (
    Part(
        "syntax",
        "Syntax: who finds a word’s syntactic head?",
        "Of all other words of the sentence, the one that a word attends to most is taken for its "
        "syntactic head (direct object → verb), or the one that attends most to it (verb → its "
        "direct object). The baseline needs no model: the best fixed offset, say, the next word.",
        ("dependency",),
        "syntax (trees: --treebank, or --annotate with --text)",
        syntax_table,
        ("best_heads", "dependency_heads", "example_sentences"),
    ),
    Part(
        "coreference",
        "Coreference: who finds the antecedent?",
        "Of the mentions before it, the one whose head word a mention’s head word attends to most "
        "is taken for its antecedent, and is right if it is of the same entity, however far back.",
        ("coreference",),
        "coreference (mentions: --coref)",
        coreference_table,
        ("coreference",),
    ),
    Part(
        "frames",
        "Frames: who links an element to what evokes the frame?",
        "In “She was agitated”, “agitated” evokes a frame in which “she” has a role. A head scores "
        "by its attention between the two, in sentences where they stand apart.",
        ("frames",),
        "frames (FrameNet: --frames)",
        frames_table,
        ("frames",),
    ),
    Part(
        "features",
        "Kinds of words: who looks at nouns, subjects, negation?",
        "How much attention the most attended word of a kind receives, beside what punctuation and "
        "special tokens draw; from [CLS] in the last layer, which classifiers read; and between "
        "words that belong together.",
        ("features", "cls_attention", "pairs"),
        "kinds of words (tags: --treebank, or --annotate with --text)",
        features_table,
        ("features_by_layer", "cls_attention", "pairs"),
    ),
)


def language(tree: xr.DataTree, manifest: Mapping[str, Any], styles: Styles) -> Language:
    """The part on language; `styles` collects the classes that its pictures use."""
    there = [part for part in PARTS if any(name in tree.children for name in part.groups)]
    absent = [part.wanted for part in PARTS if part not in there]
    shown = [_shown(tree, part, styles) for part in there]
    chooses = any(name in tree.children for name in CHOOSING)
    return Language(shown, "; ".join(absent), chooses, _malformed(manifest) if there else [])


def _shown(tree: xr.DataTree, part: Part, styles: Styles) -> Shown:
    drawn = [
        figure(tree, PICTURES[name], styles, place=f"language-{name}-")
        for name in part.pictures
        if name in PICTURES
    ]
    notes = [
        *_measure(tree, part),
        *(note for name in part.groups for note in _left_out(tree, name)),
    ]
    figures = [found for found in drawn if found is not None]
    return Shown(part.id, part.title, part.text, part.table(tree), figures, notes)


def _measure(tree: xr.DataTree, part: Part) -> list[str]:
    groups = [dataset for name in part.groups if (dataset := group(tree, name)) is not None]
    normed = any(dataset.attrs.get("measure") == "weighted_norm" for dataset in groups)
    return [BY_NORM] if normed else []


def _left_out(tree: xr.DataTree, name: str) -> list[str]:
    """`Left out: 14 mentions cut by …; 3 mentions …`; nothing where all was used."""
    dataset = group(tree, name)
    if dataset is None or "left_out" not in dataset:
        return []
    found = [
        f"{int(count):,} {_many(LEFT_OUT.get(name, name), count)} {printable(term_name(reason))}"
        for reason, count in zip(
            dataset["reason"].values.tolist(), dataset["left_out"].values.tolist(), strict=True
        )
        if count
    ]
    return [f"Left out: {'; '.join(found)}."] if found else []


def _malformed(manifest: Mapping[str, Any]) -> list[str]:
    """What of the corpus could not be read, and where the first faults are."""
    counts = manifest.get("counts")
    reasons = counts.get("reasons") if isinstance(counts, Mapping) else None
    entry = reasons.get("malformed") if isinstance(reasons, Mapping) else None
    if not isinstance(entry, Mapping) or not entry.get("total"):
        return []
    first = [printable(place) for place in list(entry.get("first", []))[:3]]
    where = f", first: {'; '.join(first)}" if first else ""
    number = int(entry["total"])
    were = "was" if number == 1 else "were"
    return [
        f"Of the corpus, {number:,} malformed {_many('passage', number)} {were} skipped{where}."
    ]


def _many(word: str, number: int) -> str:
    return word if number == 1 else f"{word}s"
