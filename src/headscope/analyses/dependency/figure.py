"""Which heads find which relation, and how good is the best of them beside a fixed offset?

The best heads: Clark et al. (2019), Table 1, as a picture, with the head chosen on other documents
than it is scored on. The heat maps: every head's accuracy at a relation (§4.2 gives only the best),
in the better of its two directions.
"""

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headscope.analyses.dependency.relation_heads import (
    DIRECTIONS,
    RelationHead,
    any_interval,
    frequent_relation_heads,
    relation_heads,
)
from headscope.analyses.dependency.tables import syntax_table
from headscope.analyses.language.held_out import chosen_where
from headscope.analyses.language.tables import language_section
from headscope.claims.caption_words import INTERVALS, by_measure, clipped
from headscope.claims.reading import Reading
from headscope.claims.relation_names import LEAST_WORDS, TOTALS, frequent_relations
from headscope.core.intervals import Estimate
from headscope.core.results import estimate, shape
from headscope.core.wording import percent
from headscope.draw.head_grid import grid_panel, paint_grid
from headscope.draw.head_marks import note_heads
from headscope.draw.panel import Panel, compose
from headscope.draw.rows import beside, row_panel, row_point, rows_height
from headscope.draw.style import color, house_style

MOST_ROWS = 30
LONGEST_LABEL = 16
TOTAL_NAMES = dict(zip(TOTALS, ("all words", "all but root, punct"), strict=True))
COLUMNS = {"relation": -62.0, "head": -27.0, "dir.": -5.0, "offset": 24.0}  # points; see `beside`
MOST_MAPS = 12
LONGEST_NAME = 40  # characters of a file's name
LONGEST_TITLE = 18  # characters beside the letter of a panel


def best_head_panels(run: Reading) -> list[Panel]:
    """The best heads, a row for each relation; none without one that is frequent."""
    over_all, single = _rows(run)
    if not single:
        return []
    rows = over_all + single
    return [
        row_panel(
            "Best heads by relation",
            COLUMNS,
            map(_label, rows),
            partial(_draw, run, over_all, single),
            count=len(rows) + 0.6 * bool(over_all),
            height=rows_height(len(rows) + 1),
            label="words whose head is found",
            entries=[("best_head", "best head"), ("offset", "best fixed offset")],
            right=1,
        )
    ]


def best_head_caption(run: Reading) -> str:
    """How to read them."""
    over_all, single = _rows(run)
    ink = (
        "; faint where the head does not beat the offset beyond the interval of the difference; "
        f"whiskers are {INTERVALS}"
    )
    return (
        "Share of words whose syntactic head the best head finds"
        f"{by_measure(run.data)}, {chosen_where(best.score for best in single)}, "
        "beside the best fixed offset (+1: the next word); the head that is best on all data is "
        "named, d→h: the dependent attends to its head, h→d: the head to its dependent"
        f"{ink if any_interval(single) else ''}; totals first, then "
        f"relations of at least {LEAST_WORDS} words by how far the head is ahead, root and "
        f"punctuation left out; n = {max(best.count for best in over_all + single):,} words. "
        "After Clark et al. (2019), Table 1."
    )


def _rows(run: Reading) -> tuple[list[RelationHead], list[RelationHead]]:
    single = sorted(frequent_relation_heads(run.data)[:MOST_ROWS], key=lambda best: -best.ahead)
    return [best for best in relation_heads(run.data) if best.relation in TOTALS], single


def _draw(
    run: Reading, over_all: list[RelationHead], single: list[RelationHead], axes: Axes
) -> None:
    places = [*range(len(over_all)), *(len(over_all) + 0.6 + at for at in range(len(single)))]
    judged, names, heads = any_interval(single), run.names, shape(run.tree)[1]
    every = over_all + single
    numbers = [best.accuracy for best in every]
    note_heads(
        axes,
        [best.accuracy.value for best in every],
        places,
        [percent(float(one.value), float(one.low), float(one.high)) for one in numbers],
        units=[best.place[0] * heads + best.place[1] for best in every],
    )
    ends = zip(*((best.baseline.value, best.accuracy.value) for best in every), strict=True)
    axes.hlines(places, *ends, color=color("rule"), lw=2.2, zorder=2)
    for row, best in zip(places, every, strict=True):
        faint = judged and not best.beats
        offset = f"{best.offset:+d}".replace("-", "−")
        texts = (_label(best), names.head(*best.place), DIRECTIONS[best.direction], offset)
        for text, at in zip(texts, COLUMNS.values(), strict=True):
            beside(axes, row, text, at, faint=faint)
        row_point(axes, row, best.baseline, "offset", faint=faint)
        hollow = not np.isfinite(best.score.value)
        row_point(axes, row, best.accuracy, "best_head", faint=faint, hollow=hollow)
    if over_all:
        axes.axhline(len(over_all) - 0.2, color=color("rule"), lw=0.6)


def _label(best: RelationHead) -> str:
    return TOTAL_NAMES.get(best.relation) or clipped(best.relation, LONGEST_LABEL)


def heat_maps(run: Reading) -> list[Panel]:
    """All heads at each of the most frequent relations."""
    return [relation_panel(run, best) for best in frequent_relation_heads(run.data)[:MOST_MAPS]]


def heat_map_caption(run: Reading) -> str:
    """How to read them."""
    shown = frequent_relation_heads(run.data)[:MOST_MAPS]
    number = "The one relation" if len(shown) == 1 else f"The {len(shown)} most frequent relations"
    return (
        f"{number} of at least {LEAST_WORDS} words, root and punctuation left out: each cell is "
        "one head, layers from top to bottom and heads from left to right, numbered from "
        f"{run.names.first}; the "
        f"share of words whose syntactic head it finds{by_measure(run.data)}, in the better of "
        "the two directions, from 0 (page) to 100 %; the frame marks the best head; "
        f"n = {shown[0].count:,} (a) to {shown[-1].count:,} words; intervals stand in the tables. "
        "After Clark et al. (2019), §4.2."
    )


def sheets(run: Reading) -> Iterator[tuple[str, Figure]]:
    """Every relation's heat map by its path in the folder of figures: totals, then by frequency.

    The figure is one and the same, with other cells and another title each time: save it before the
    next. The name has a number and what letters and digits of ASCII the relation has: each its own,
    and safe on every system.
    """
    figure = None
    for at, best in enumerate(relation_heads(run.data), start=1):
        if figure is None:
            figure = compose([relation_panel(run, best)], columns=1)
        else:  # half the time of composing again
            with house_style():
                paint_grid(
                    figure.axes[0], _accuracy(run.data, best).value, top=1.0, best=best.place
                )
                figure.axes[0].set_title(_title(best))
        plain = re.sub(r"[^a-z0-9]+", "-", best.relation.lower())[:LONGEST_NAME].strip("-")
        yield f"dependency/{f'{at:02d}-{plain}'.strip('-')}.svg", figure


def relation_panel(run: Reading, best: RelationHead) -> Panel:
    """The heat map of one relation, all heads in the better of the two directions."""
    parts = _accuracy(run.data, best)
    look: dict[str, Any] = {"unit": "probability", "top": 1.0, "best": best.place, "parts": parts}
    return grid_panel(_title(best), parts.value, run.names, **look)


def _accuracy(dependency: xr.Dataset, best: RelationHead) -> Estimate:
    """[layer, head] in the better of the two directions."""
    both = estimate(dependency, "accuracy", relation=best.relation)  # [layer, head, direction]
    way = np.nan_to_num(both.value, nan=-1.0).argmax(-1)[..., None]
    return both.map(lambda part: np.take_along_axis(part, way, -1)[..., 0])


def _title(best: RelationHead) -> str:
    return clipped(best.relation, LONGEST_TITLE)


def _finding(run: Reading) -> str:
    if not (frequent := frequent_relations(run.data)):
        return ""
    ahead = int((run("advantage").low[frequent] > 0).sum())
    return (
        f"Of {len(frequent)} syntactic relations, {ahead} {'is' if ahead == 1 else 'are'} surely "
        "found by a head more often than by the best fixed offset."
    )


SECTIONS = language_section(
    "dependency",
    counts="word",
    finding=_finding,
    opens=True,
    id="syntax",
    title="Syntax: who finds a word’s syntactic head?",
    text="Of all other words of the sentence, the one that a word attends to most is taken for "
    "its syntactic head (direct object → verb), or the one that attends most to it (verb → its "
    "direct object). The baseline needs no model: the best fixed offset, say, the next word.",
    pictures=("best_heads", "dependency_heads", "example_sentences"),
    tables=(syntax_table,),
    wanted="syntax (trees: --treebank, or --annotate with --text)",
    chooses=True,
)
