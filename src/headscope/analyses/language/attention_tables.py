"""Which tables show how much heads attend: within frames, to kinds of words, between words?"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr

from headscope.analyses.language.best_head_tables import top_frame_heads
from headscope.core.dictionary import name
from headscope.core.results import estimate, group, head_name, shape
from headscope.draw.caption_words import INTERVALS, over, quantity, special
from headscope.page.tabulate import (
    Cell,
    Column,
    Rows,
    Table,
    ends,
    head_of,
    measured,
    probability,
    records,
    share,
)

Number = Callable[..., Cell]


def frames_table(tree: xr.DataTree) -> Table:
    """The heads of largest score, with how it spreads over sentences and what chance gives."""
    dataset = group(tree, "frames")
    assert dataset is not None
    table = top_frame_heads(tree)
    number, unit = _scale(dataset)
    levels = [column for column in table.columns if column.startswith("quantile_")]
    rows = [
        [
            Cell(head_of(tree, row)),
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


def features_table(tree: xr.DataTree) -> Table:
    """For every kind of token or pair the head that gives it most, beside the mean head."""
    found = [
        ("features", "feature", "From all tokens, to the kind"),
        ("cls_attention", "feature", f"From {special(tree, 'cls')} in the last layer, to the kind"),
        ("pairs", "pair", "Between words of a sentence"),
    ]
    there = [(dataset, dim, title) for key, dim, title in found if (dataset := group(tree, key))]
    groups = [
        Rows(_strongest(tree, dataset, dim), f"{title}: {_quantity(dataset)}")
        for dataset, dim, title in there
    ]
    columns = [
        Column("Kind"), Column("n", "inputs"), Column("Strongest head"), Column("It gives"),
        Column("Mean head"),
    ]  # fmt: skip
    caption = (
        "The head that gives a kind of token most, and the mean over heads: the largest value over "
        "the tokens of the kind (from all tokens: mean over those that attend), mean over the "
        "inputs that have one. The strongest head is chosen on the inputs that it is scored on. "
        f"n counts inputs. {INTERVALS}; {over(tree, there[0][0]['attention'])}. "
        "After Kovaleva et al. (2019), §4.4-4.5."
    )
    return Table("Kinds of tokens", columns, [g for g in groups if g.rows], caption)


def _strongest(tree: xr.DataTree, dataset: xr.Dataset, dim: str) -> list[list[Cell]]:
    """A row per kind: the strongest head with its value, and the mean over heads."""
    attention = dataset["attention"]
    order = [d for d in ("layer", "head") if d in attention.dims]
    parts = estimate(dataset.transpose(*order, dim), "attention")
    heads = shape(tree)[1]
    last = (shape(tree)[0] - 1) * heads if order == ["head"] else 0
    number, _ = _scale(dataset)
    rows = []
    for at, kind in enumerate(dataset[dim].values.tolist()):
        value, low, high = (p[..., at].reshape(-1) for p in (parts.value, parts.low, parts.high))
        if not np.isfinite(value).any():
            continue
        unit = int(np.nanargmax(value))
        text = special(tree, kind) if kind in ("cls", "sep") else name(kind)
        best = number(float(value[unit]), float(low[unit]), float(high[unit]))
        cells = [Cell(text), Cell(f"{int(dataset['count'].values[at]):,}")]
        cells += [Cell(head_name(last + unit, heads)), best, number(float(np.nanmean(value)))]
        rows.append(cells)
    return rows


def _scale(dataset: xr.Dataset) -> tuple[Number, str]:
    """How a value is written, and its unit: attention in per cent, a norm as it is."""
    weighted = dataset.attrs.get("measure") == "weighted_norm"
    return (measured, "") if weighted else (share, "%")


def _quantity(dataset: xr.Dataset) -> str:
    unit = _scale(dataset)[1]
    return f"{quantity(dataset)}, {unit}" if unit else quantity(dataset)


def _percentile(column: str) -> str:
    level = float(column.partition("_")[2])
    return "Median" if level == 0.5 else f"{100 * level:g}th"
