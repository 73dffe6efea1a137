"""Tables of the question `frames`: on the page and in files."""

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from headscope.analyses.language.tables import scale_of, with_ends, with_model
from headscope.core.results import estimate, group, needed
from headscope.draw.caption_words import INTERVALS, quantity
from headscope.page.tabulate import Cell, Column, Rows, Table, ends, head_of, probability, records


def frames_table(tree: xr.DataTree) -> Table:
    """The heads of largest score, with how it spreads over sentences and what chance gives."""
    dataset, table = needed(tree, "frames"), top_frame_heads(tree)
    number, unit = scale_of(dataset)
    levels = [column for column in table.columns if column.startswith("quantile_")]
    rows = [
        [
            Cell(head_of(tree, row)), number(*ends(row, "score")), number(row["chance"]),
            probability(row["p_value"]), *(number(row[level]) for level in levels),
            number(*ends(row, "score_reversed")), probability(row["p_value_reversed"]),
        ]
        for row in records(table)
    ]  # fmt: skip
    columns = [
        Column("Head"), Column("Score", unit, "score"), Column("Chance", unit, "chance"),
        Column("p", "", "p_value"), *(Column(_percentile(level), unit) for level in levels),
        Column("Reversed", unit), Column("p", "reversed"),
    ]  # fmt: skip
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


def top_frame_heads(tree: xr.DataTree, *, count: int | None = 10) -> pd.DataFrame:
    """The heads of largest score, the largest first; empty without `frames`.

    count    rows at most; None for all heads
    returns  layer, head; score (from frame element to target) and score_reversed, with _ci_low and
             _ci_high; chance and p_value of both; quantile_0.05 … of the sentences' scores
    """
    dataset = group(tree, "frames")
    if dataset is None:
        return pd.DataFrame()
    layers, heads = dataset["score"].shape
    units = np.arange(layers * heads)  # [layer*head]
    numbers = dataset["layer"].values  # [layer]
    columns: dict[str, Any] = {"layer": numbers[units // heads], "head": units % heads}
    for end in ("", "_reversed"):
        columns |= with_ends(f"score{end}", estimate(dataset, f"score{end}"))
        for name in (f"chance{end}", f"p_value{end}"):
            columns[name] = dataset[name].values.reshape(-1)  # [layer*head]
    spread = dataset["score_quantile"].transpose("quantile", "layer", "head")
    for level, values in zip(spread["quantile"].values, spread.values, strict=True):
        columns[f"quantile_{level:g}"] = values.reshape(-1)  # [layer*head]
    table = with_model(tree, columns).sort_values("score", ascending=False, kind="stable")
    return table[table["score"].notna()].head(count or len(table)).reset_index(drop=True)


def tables(tree: xr.DataTree) -> dict[str, pd.DataFrame]:
    """The heads of largest score."""
    return {"top_frame_heads": top_frame_heads(tree)}
