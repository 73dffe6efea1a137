"""The table of the questions on kinds of words: the head that gives each kind most."""

from __future__ import annotations

import numpy as np
import xarray as xr

from headscope.analyses.language.tables import scale_of
from headscope.core.dictionary import name
from headscope.core.results import estimate, group, head_name, shape
from headscope.draw.caption_words import INTERVALS, over, quantity, special
from headscope.page.tabulate import (
    Cell,
    Column,
    Rows,
    Table,
)


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
    number, _ = scale_of(dataset)
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


def _quantity(dataset: xr.Dataset) -> str:
    unit = scale_of(dataset)[1]
    return f"{quantity(dataset)}, {unit}" if unit else quantity(dataset)
