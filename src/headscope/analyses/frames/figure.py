"""Which heads see frames: from a frame element to the word that evokes the frame?

Kovaleva et al. (2019), §4.2, with the distribution over sentences of the top heads, and what the
same links give elsewhere in their sentences; the top heads as a table too.
"""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from headscope.analyses.language.tables import language_section, scale_of, with_ends, with_model
from headscope.claims.caption_words import INTERVALS, quantity
from headscope.claims.reading import Reading
from headscope.core.intervals import Estimate
from headscope.core.results import estimate, largest_first
from headscope.core.wording import by_unit, number
from headscope.draw.head_grid import grid_panel, largest
from headscope.draw.head_marks import note_heads
from headscope.draw.panel import Panel
from headscope.draw.rows import beside, row_panel, row_point, rows_height
from headscope.draw.style import DOUBLE, color
from headscope.page.tabulate import Cell, Column, Rows, Table, ends, head_of, probability, records

TOP = 8  # heads
BOX = 0.5  # rows
COLUMNS = {"head": -4.0, "p": 26.0}  # points; see `beside`
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


def panels(run: Reading) -> list[Panel]:
    """The top heads, then all heads in both directions."""
    both = [run(name) for name in ("score", "score_reversed")]
    places = largest_first(both[0].value)[:TOP]
    if not places:
        return []
    unit = str(run.data["score"].attrs.get("units", "1"))
    look = {"unit": unit, "top": max(largest(parts.value) for parts in both)}
    titles = "Frame element to target", "Target to frame element"
    return [
        row_panel(
            "Top heads",
            COLUMNS,
            (run.names.head(*place) for place in places),
            partial(_draw, run, places),
            count=len(places),
            height=rows_height(len(places), width=DOUBLE / 3),
            label=quantity(run.data),
            entries=[("all", "mean"), ("chance", "chance")],
            percent=unit == "probability",
        ),
        *(
            grid_panel(title, parts.value, run.names, parts=parts, **look)
            for title, parts in zip(titles, both, strict=True)
        ),
    ]


def caption(run: Reading) -> str:
    """How to read them."""
    return (
        f"(a) The {TOP} heads of most {quantity(run.data)} from a frame element to the word that "
        "evokes the frame, the largest of a sentence’s links: median, quartiles (box) and 5 to "
        f"95 % (line) of the sentences; dot: mean with {INTERVALS}; diamond: the mean with the "
        "links moved elsewhere in their sentences; p: how often any head then stands as far above "
        "its chance; (b, c) the mean of every head, both ways, from 0 (page) to the value at the "
        f"end of the key; n = {int(run.data['sentences']):,} sentences. "
        "After Kovaleva et al. (2019), §4.2."
    )


def _draw(run: Reading, places: list[tuple[int, int]], axes: Axes) -> None:
    unit = str(run.data["score"].attrs.get("units", "1"))
    for row, place in enumerate(places):
        here = run.data.isel(layer=place[0], head=place[1])
        p, chance = float(here["p_value"]), float(here["chance"])
        beside(axes, row, run.names.head(*place), COLUMNS["head"])
        written = f"{p:.3f}" if p < 0.01 else number(p)
        beside(axes, row, written, COLUMNS["p"])
        low, lower, median, upper, high = (
            float(estimate(here, "score_quantile", quantile=level).value) for level in LEVELS
        )
        axes.hlines(row, low, high, color=color("sky"), lw=0.9, zorder=2)
        box: dict[str, Any] = {"fc": color("page"), "ec": color("sky"), "lw": 0.9}
        axes.add_patch(Rectangle((lower, row - BOX / 2), upper - lower, BOX, zorder=2, **box))
        axes.vlines(median, row - BOX / 2, row + BOX / 2, color=color("sky"), lw=1.6, zorder=3)
        row_point(axes, row, Estimate(*map(np.array, (chance, np.nan, np.nan))), "chance")
        score = estimate(here, "score")
        row_point(axes, row, score, "all")
        value, end, other = map(float, (score.value, score.low, score.high))
        text = by_unit(value, end, other, unit)
        number_of_head = place[0] * run.data.sizes["head"] + place[1]
        note_heads(axes, score.value, row, [text], units=[number_of_head])


def frames_table(run: Reading) -> Table:
    """The heads of largest score, with how it spreads over sentences and what chance gives."""
    dataset, table = run.data, top_frame_heads(run)
    number, unit = scale_of(dataset)
    levels = [column for column in table.columns if column.startswith("quantile_")]
    rows = [
        [
            Cell(head_of(run.tree, row)),
            number(*ends(row, "score")),
            number(row["chance"]),
            probability(row["p_value"]),
            *(number(row[level]) for level in levels),
            number(*ends(row, "score_reversed")),
            probability(row["p_value_reversed"]),
        ]
        for row in records(table)
    ]
    columns = [
        Column("Head"),
        Column("Score", unit, "score"),
        Column("Chance", unit, "chance"),
        Column("p", "", "p_value"),
        *(Column(_percentile(level), unit) for level in levels),
        Column("Reversed", unit),
        Column("p", "reversed"),
    ]
    caption = (
        f"The {len(rows)} heads of largest score: {quantity(dataset)} from a frame element to the "
        "word that evokes the frame, the largest over a sentence’s pairs, mean over sentences, "
        "and the percentiles of the sentences; chance: random pairs at the same distances; "
        "p: how often, in such draws, any head stands out as much, so that it allows "
        "for looking at all of them; reversed: from the evoking word to the element. "
        f"n = {int(dataset['sentences']):,} sentences; {INTERVALS}. "
        "After Kovaleva et al. (2019), §4.2."
    )
    return Table("Frame heads", columns, [Rows(rows)], caption)


def _percentile(column: str) -> str:
    level = float(column.partition("_")[2])
    return "Median" if level == 0.5 else f"{100 * level:g}th"


def top_frame_heads(run: Reading, *, count: int | None = 10) -> pd.DataFrame:
    """The heads of largest score, the largest first.

    count    rows at most; None for all heads
    returns  layer, head; score (from frame element to target) and score_reversed, with _ci_low and
             _ci_high; chance and p_value of both; quantile_0.05 … of the sentences' scores
    """
    dataset = run.data
    layers, heads = dataset["score"].shape
    units = np.arange(layers * heads)  # [layer*head]
    numbers = dataset["layer"].values  # [layer]
    columns: dict[str, Any] = {"layer": numbers[units // heads], "head": units % heads}
    for end in ("", "_reversed"):
        columns |= with_ends(f"score{end}", run(f"score{end}"))
        for name in (f"chance{end}", f"p_value{end}"):
            columns[name] = dataset[name].values.reshape(-1)  # [layer*head]
    spread = dataset["score_quantile"].transpose("quantile", "layer", "head")
    for level, values in zip(spread["quantile"].values, spread.values, strict=True):
        columns[f"quantile_{level:g}"] = values.reshape(-1)  # [layer*head]
    table = with_model(run.tree, columns).sort_values("score", ascending=False, kind="stable")
    return table[table["score"].notna()].head(count or len(table)).reset_index(drop=True)


def tables(run: Reading) -> dict[str, pd.DataFrame]:
    """The heads of largest score."""
    return {"top_frame_heads": top_frame_heads(run)}


SECTIONS = language_section(
    "frames",
    counts="frames",
    id="frames",
    title="Frames: who links an element to what evokes the frame?",
    text="In “She was agitated”, “agitated” evokes a frame in which “she” has a role. A head "
    "scores by its attention between the two, in sentences where they stand apart.",
    pictures=("frames",),
    tables=(frames_table,),
    wanted="frames (FrameNet: --frames)",
)
