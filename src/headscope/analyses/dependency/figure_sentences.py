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

from headscope.analyses.dependency.relation_heads import (
    DIRECTIONS,
    WEAKEST,
    ParsedSentence,
    RelationHead,
    chosen_relations,
    chosen_sentences,
    chosen_where,
    parsed_sentences,
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
    surely = ", beyond the interval" if any(best.beats for best in relations) else ""
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
    fitting = [sentence for sentence in parsed_sentences(examples) if _row(sentence) is not None]
    chosen = chosen_sentences(fitting, relations)
    drawn_arcs = [
        arc for s in chosen for best in relations for arc in s.attention_arcs(best, top=0)
    ]
    largest = max((arc.weight for arc in drawn_arcs), default=1.0)
    top = None if quantity(examples) == "attention" else largest
    return [_drawing(sentence, relations, top=top) for sentence in chosen]


def _words(sentence: ParsedSentence) -> list[str]:
    return [clipped(word, LONGEST_WORD) for word in sentence.words]


def _row(sentence: ParsedSentence) -> WordRow | None:
    """None where the words do not fit a page."""
    words = _words(sentence)
    row = row_of(words, width=BREADTH, size=SIZE, least=LEAST)
    return mirrored(row) if row is not None and right_to_left(words) else row


def _drawing(
    sentence: ParsedSentence, relations: Sequence[RelationHead], *, top: float | None
) -> _Drawing:
    hues = {best.relation: hue for best, hue in zip(relations, HUES, strict=False)}
    here = [f for f in relations if any(arc.relation == f.relation for arc in sentence.arcs)]
    row = _row(sentence)
    assert row is not None
    return _Drawing(
        ", ".join(clipped(best.relation, LONGEST_LABEL) for best in here),
        _words(sentence),
        row,
        _above(sentence, hues),
        [stroke for best in here for stroke in _below(sentence, best, hues, top=top)],
        [(hues[best.relation], _key_text(best)) for best in here],
        SWATCH + 3 + max(text_width(_key_text(best), KEY_SIZE) for best in relations),
    )


def _above(sentence: ParsedSentence, hues: dict[str, str]) -> list[Stroke]:
    """The treebank's arcs."""
    strokes = []
    for arc in sentence.arcs:
        if arc.relation.partition(":")[0] not in NO_SYNTAX:
            label, marked = clipped(arc.relation, LONGEST_LABEL), arc.relation in hues
            look = {"hue": hues[arc.relation], "width": 1.2} if marked else {"hue": "rule"}
            strokes.append(Stroke(arc.head, arc.dependent, label, plain=not marked, **look))
    return strokes


def _below(
    sentence: ParsedSentence, best: RelationHead, hues: dict[str, str], *, top: float | None
) -> list[Stroke]:
    """The attention of one head; top: the weight that is drawn thickest, None for all of a word."""
    strokes = []
    for arc in sentence.attention_arcs(best, top=top or 1.0):
        label = _percent(arc.weight) if top is None else f"{arc.weight:.2g}"
        width = THIN + (THICK - THIN) * min(arc.weight / (top or 1.0), 1)
        strokes.append(
            Stroke(
                arc.source, arc.target, label, hues[best.relation], width,
                dashed=not arc.right, plain=not arc.largest,
            )
        )  # fmt: skip
    return strokes


def _percent(weight: float) -> str:
    return f"{100 * weight:.0f}" if weight >= 0.005 else "<1"


def _key_text(best: RelationHead) -> str:
    """Which head a colour stands for."""
    accuracy = best.accuracy
    score = percent(float(accuracy.value), float(accuracy.low), float(accuracy.high))
    name = clipped(best.relation, LONGEST_LABEL)
    return f"{name}: {best.head_name} {DIRECTIONS[best.direction]}, finds {score}"


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
