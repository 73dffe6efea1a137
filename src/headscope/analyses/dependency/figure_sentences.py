"""How do the best heads attend within sentences?

After Clark et al. (2019), Figure 5, but with the treebank's arcs above the words and the attention
below, so that a head that is right draws the mirror image of the treebank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from headscope.analyses.language.finders import DIRECTIONS, Finder, chosen_where
from headscope.analyses.language.showcase_figure import (
    WEAKEST,
    Sentence,
    chosen_relations,
    chosen_sentences,
    sentences,
)
from headscope.core.relation_names import NO_SYNTAX
from headscope.core.results import group
from headscope.core.wording import percent
from headscope.draw.arcs import (
    Stroke,
    WordRow,
    draw_strokes,
    mirrored,
    reach,
    right_to_left,
    row_of,
    text_width,
)
from headscope.draw.caption_words import clipped, quantity
from headscope.draw.panel import Panel, Picture
from headscope.draw.style import DOUBLE, color, house_style

HUES = ("blue", "vermillion", "green", "orange", "purple", "sky")
PAGE = 72 * DOUBLE  # points
BREADTH = PAGE - 12.0  # points of it that a sentence and its key can take
SIZE, LEAST = 8.0, 5.5  # points of type: the words, and the smallest that they get
LONGEST_WORD, LONGEST_LABEL = 16, 14
KEY_SIZE, KEY_ROW, KEY_SPACE, SWATCH = 6.5, 10.0, 14.0, 9.0  # points
TITLE = 22.0  # points that the title takes
THIN, THICK = 0.5, 2.8  # points: no attention, and all of it


def panels(tree: xr.DataTree) -> list[Panel]:
    """One panel per sentence."""
    with house_style():  # its typeface gives the widths
        drawings = _drawings(tree)
    return [
        Panel(each.title, partial(_draw, each), height=(np.ptp(each.ends) + TITLE) / PAGE)
        for each in drawings
    ]


def caption(tree: xr.DataTree) -> str:
    """How to read the figure."""
    dependency, examples = group(tree, "dependency"), group(tree, "examples")
    relations = [] if dependency is None else chosen_relations(dependency)
    unit = "attention" if examples is None else quantity(examples)
    numbers = "in percent" if unit == "attention" else "as measured"
    surely = ", beyond the interval" if any(finder.beats for finder in relations) else ""
    return (
        "Above each sentence the relations of the treebank, from head to dependent (arrow), in "
        f"colour those whose best heads are furthest ahead of their offset{surely}; below it the "
        f"{unit} of these heads from (d→h) or to (h→d) the words of the relation, {numbers} and by "
        "width, the arrow at the word attended to, dashed where the treebank has no such arc, left "
        f"out below {100 * WEAKEST:.0f} % of the scale unless it is a word’s largest; a head that "
        "is right mirrors the arc above; finds: the share of words whose head it finds, "
        f"{chosen_where(relations)}; root and punctuation are left out; n = {len(panels(tree))} "
        "sentences, chosen without regard to the attention. After Clark et al. (2019), Figure 5."
    )


@dataclass(frozen=True, slots=True)
class _Drawing:
    """A sentence laid out; `key` has a (hue, text) per head, `key_width` points wide."""

    title: str
    words: list[str]
    row: WordRow
    above: list[Stroke]
    below: list[Stroke]
    key: list[tuple[str, str]]
    key_width: float

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest y, in points from the middle of the words."""
        low, high = -reach(self.below, self.row), reach(self.above, self.row)
        lines = KEY_ROW * len(self.key)
        if not self.key_beside:
            return low - lines, high
        return min(low, -lines / 2), max(high, lines / 2)

    @property
    def key_beside(self) -> bool:
        """Whether there is room for the key right of the sentence; else it is below."""
        return self.row.length + KEY_SPACE + self.key_width <= BREADTH


def _drawings(tree: xr.DataTree) -> list[_Drawing]:
    dependency, examples = group(tree, "dependency"), group(tree, "examples")
    if dependency is None or examples is None:
        return []
    relations = chosen_relations(dependency)
    fitting = [sentence for sentence in sentences(examples) if _row(sentence) is not None]
    chosen = chosen_sentences(fitting, relations)
    looks = [look for s in chosen for finder in relations for look in s.looks(finder, top=0)]
    largest = max((look.weight for look in looks), default=1.0)
    top = None if quantity(examples) == "attention" else largest
    return [_drawing(sentence, relations, top=top) for sentence in chosen]


def _words(sentence: Sentence) -> list[str]:
    return [clipped(word, LONGEST_WORD) for word in sentence.words]


def _row(sentence: Sentence) -> WordRow | None:
    """None where the words do not fit a page."""
    words = _words(sentence)
    row = row_of(words, width=BREADTH, size=SIZE, least=LEAST)
    return mirrored(row) if row is not None and right_to_left(words) else row


def _drawing(sentence: Sentence, relations: Sequence[Finder], *, top: float | None) -> _Drawing:
    hues = {finder.relation: hue for finder, hue in zip(relations, HUES, strict=False)}
    here = [f for f in relations if any(gold.relation == f.relation for gold in sentence.gold)]
    row = _row(sentence)
    assert row is not None
    return _Drawing(
        ", ".join(clipped(finder.relation, LONGEST_LABEL) for finder in here),
        _words(sentence),
        row,
        _above(sentence, hues),
        [stroke for finder in here for stroke in _below(sentence, finder, hues, top=top)],
        [(hues[finder.relation], _key_text(finder)) for finder in here],
        SWATCH + 3 + max(text_width(_key_text(finder), KEY_SIZE) for finder in relations),
    )


def _above(sentence: Sentence, hues: dict[str, str]) -> list[Stroke]:
    """The treebank's arcs."""
    found = []
    for gold in sentence.gold:
        if gold.relation.partition(":")[0] not in NO_SYNTAX:
            label, marked = clipped(gold.relation, LONGEST_LABEL), gold.relation in hues
            look = {"hue": hues[gold.relation], "width": 1.2} if marked else {"hue": "rule"}
            found.append(Stroke(gold.head, gold.dependent, label, plain=not marked, **look))
    return found


def _below(
    sentence: Sentence, finder: Finder, hues: dict[str, str], *, top: float | None
) -> list[Stroke]:
    """The attention of one head; top: the weight that is drawn thickest, None for all of a word."""
    found = []
    for look in sentence.looks(finder, top=top or 1.0):
        label = _percent(look.weight) if top is None else f"{look.weight:.2g}"
        width = THIN + (THICK - THIN) * min(look.weight / (top or 1.0), 1)
        found.append(
            Stroke(
                look.source, look.target, label, hues[finder.relation], width,
                dashed=not look.right, plain=not look.largest,
            )
        )  # fmt: skip
    return found


def _percent(weight: float) -> str:
    return f"{100 * weight:.0f}" if weight >= 0.005 else "<1"


def _key_text(finder: Finder) -> str:
    """Which head a colour stands for."""
    shown = finder.shown
    score = percent(float(shown.value), float(shown.low), float(shown.high))
    name = clipped(finder.relation, LONGEST_LABEL)
    return f"{name}: {finder.head} {DIRECTIONS[finder.direction]}, finds {score}"


def _draw(drawing: _Drawing, axes: Axes) -> None:
    row = drawing.row
    for word, centre in zip(drawing.words, row.centres, strict=True):
        axes.text(centre, 0, word, ha="center", va="center_baseline", fontsize=row.size)
    draw_strokes(axes, drawing.above, row, side=1)
    draw_strokes(axes, drawing.below, row, side=-1)
    low, high = drawing.ends
    x, y = 0.0, low + KEY_ROW * len(drawing.key)
    if drawing.key_beside:
        x, y = BREADTH - drawing.key_width, KEY_ROW * len(drawing.key) / 2
    for hue, text in drawing.key:
        y -= KEY_ROW
        axes.plot([x, x + SWATCH], [y + KEY_ROW / 2] * 2, color=color(hue), lw=2)
        look: dict[str, Any] = {"va": "center_baseline", "fontsize": KEY_SIZE}
        axes.text(x + SWATCH + 3, y + KEY_ROW / 2, text, **look)
    axes.set_xlim(0, BREADTH)
    axes.set_ylim(low, high)
    axes.set_axis_off()


PICTURE = Picture(
    "example_sentences", "The best heads at work", ("dependency", "examples"), panels, caption,
    columns=1, wide=True,
)  # fmt: skip
