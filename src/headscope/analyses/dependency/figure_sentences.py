"""How do the best heads attend within sentences?

After Clark et al. (2019), Figure 5, but with the treebank's arcs above the words and the attention
below, so that a head that is right draws the mirror image of the treebank.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from headscope.analyses.dependency.relation_heads import (
    DIRECTIONS,
    WEAKEST,
    ParsedSentence,
    RelationHead,
    chosen_relations,
    chosen_sentences,
    parsed_sentences,
)
from headscope.analyses.language.held_out import chosen_where
from headscope.claims.caption_words import clipped, quantity
from headscope.claims.reading import Reading
from headscope.claims.relation_names import NO_SYNTAX
from headscope.core.head_names import HeadNames
from headscope.core.results import at, needed
from headscope.core.wording import percent
from headscope.draw import arcs
from headscope.draw.arcs import Stroke, WordRow
from headscope.draw.panel import Panel
from headscope.draw.style import DOUBLE, color, house_style

HUES = ("blue", "vermillion", "green", "orange", "purple", "sky")
PAGE = 72 * DOUBLE  # points
BREADTH = PAGE - 12.0  # points of it that a sentence and its key can take
SIZE, LEAST = 8.0, 5.5  # points of type: the words, and the smallest that they get
LONGEST_WORD, LONGEST_LABEL = 16, 14
KEY_SIZE, KEY_ROW, KEY_SPACE, SWATCH = 6.0, 10.0, 14.0, 9.0  # points
TITLE = 22.0  # points that the title takes
THIN, THICK = 0.5, 2.8  # points: no attention, and all of it


def panels(run: Reading) -> list[Panel]:
    """The sentences, each with the best heads at its relations."""
    examples, relations = needed(run.tree, "examples"), chosen_relations(run.data)
    fitting = [each for each in parsed_sentences(examples) if _row(each) is not None]
    chosen, top = chosen_sentences(fitting, relations), None
    if quantity(examples) != "attention":
        drawn = (a for s in chosen for best in relations for a in s.attention_arcs(best, top=0))
        top = max((arc.weight for arc in drawn), default=1.0)
    return [_panel(sentence, relations, run.names, top=top) for sentence in chosen]


def caption(run: Reading) -> str:
    """How to read them."""
    relations = chosen_relations(run.data)
    unit = quantity(needed(run.tree, "examples"))
    numbers = "in percent" if unit == "attention" else "as measured"
    surely = ", beyond the interval" if any(best.beats for best in relations) else ""
    return (
        "Above each sentence the relations of the treebank, from head to dependent (arrow), in "
        f"colour those whose best heads are furthest ahead of their offset{surely}; below it the "
        f"{unit} of these heads from (d→h) or to (h→d) the words of the relation, {numbers} and by "
        "width, the arrow at the word attended to, dashed where the treebank has no such arc, left "
        f"out below {100 * WEAKEST:.0f} % of the scale unless it is a word’s largest; a head that "
        "is right mirrors the arc above; finds: the share of words whose head it finds, "
        f"{chosen_where(best.score for best in relations)}; root and punctuation are left out; "
        f"n = {len(panels(run))} sentences, chosen without regard to the attention. "
        "After Clark et al. (2019), Figure 5."
    )


def _words(sentence: ParsedSentence) -> list[str]:
    return [clipped(word, LONGEST_WORD) for word in sentence.words]


def _row(sentence: ParsedSentence) -> WordRow | None:
    """None where the words do not fit a page."""
    words = _words(sentence)
    with house_style():  # its typeface gives the widths
        row = arcs.row_of(words, width=BREADTH, size=SIZE, least=LEAST)
    return arcs.mirrored(row) if row is not None and arcs.right_to_left(words) else row


def _panel(
    sentence: ParsedSentence,
    relations: Sequence[RelationHead],
    names: HeadNames,
    *,
    top: float | None,
) -> Panel:
    hues = {best.relation: hue for best, hue in zip(relations, HUES, strict=False)}
    here = [f for f in relations if any(arc.relation == f.relation for arc in sentence.arcs)]
    row = _row(sentence)
    assert row is not None
    above = _above(sentence, hues)
    below = [stroke for best in here for stroke in _below(sentence, best, hues, top=top)]
    texts = {best.relation: _key_text(best, names) for best in relations}
    key = [(hues[best.relation], texts[best.relation]) for best in here]
    with house_style():
        width = SWATCH + 3 + max(arcs.text_width(text, KEY_SIZE) for text in texts.values())
    lines, aside = KEY_ROW * len(key), row.length + KEY_SPACE + width <= BREADTH

    def ends() -> tuple[float, float]:
        low, high = -arcs.reach(below, row), arcs.reach(above, row)
        return (min(low, -lines / 2), max(high, lines / 2)) if aside else (low - lines, high)

    def draw(axes: Axes) -> None:
        low, high = ends()
        for word, centre in zip(_words(sentence), row.centres, strict=True):
            axes.text(centre, 0, word, ha="center", va="center_baseline", fontsize=row.size)
        arcs.draw_strokes(axes, above, row, side=1)
        arcs.draw_strokes(axes, below, row, side=-1)
        _draw_key(axes, key, *((BREADTH - width, lines / 2) if aside else (0.0, low + lines)))
        axes.set_xlim(0, BREADTH)
        axes.set_ylim(low, high)
        axes.set_axis_off()

    title = ", ".join(clipped(best.relation, LONGEST_LABEL) for best in here)
    return Panel(title, draw, height=(float(np.ptp(ends())) + TITLE) / PAGE)


def _above(sentence: ParsedSentence, hues: dict[str, str]) -> list[Stroke]:
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
        share = f"{100 * arc.weight:.0f}" if arc.weight >= 0.005 else "<1"
        label = share if top is None else f"{arc.weight:.2g}"
        width = THIN + (THICK - THIN) * min(arc.weight / (top or 1.0), 1)
        strokes.append(
            Stroke(
                arc.source,
                arc.target,
                label,
                hues[best.relation],
                width,
                dashed=not arc.right,
                plain=not arc.largest,
            )
        )
    return strokes


def _key_text(best: RelationHead, names: HeadNames) -> str:
    name, score = clipped(best.relation, LONGEST_LABEL), percent(*at(best.accuracy))
    return f"{name}: {names.head(*best.place)} {DIRECTIONS[best.direction]}, finds {score}"


def _draw_key(axes: Axes, key: list[tuple[str, str]], x: float, y: float) -> None:
    for hue, text in key:
        y -= KEY_ROW
        axes.plot([x, x + SWATCH], [y + KEY_ROW / 2] * 2, color=color(hue), lw=2)
        axes.text(x + SWATCH + 3, y + KEY_ROW / 2, text, va="center_baseline", fontsize=KEY_SIZE)
