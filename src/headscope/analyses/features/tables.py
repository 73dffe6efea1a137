"""The table of the questions on kinds of words: the head that gives each kind most."""

import numpy as np
import xarray as xr

from headscope.analyses.language.tables import scale_of
from headscope.core.dictionary import name
from headscope.core.results import at, estimate, group, head_name, shape
from headscope.draw.caption_words import INTERVALS, over, quantity, special
from headscope.page.tabulate import Cell, Column, Rows, Table


def features_table(tree: xr.DataTree) -> Table:
    """For every kind of token or pair the head that gives it most, beside the mean head."""
    wanted = [
        ("features", "feature", "From all tokens, to the kind"),
        ("cls_attention", "feature", f"From {special(tree, 'cls')} in the last layer, to the kind"),
        ("pairs", "pair", "Between words of a sentence"),
    ]
    there = [(dataset, dim, title) for key, dim, title in wanted if (dataset := group(tree, key))]
    groups = []
    for dataset, dim, title in there:
        words = ", ".join(filter(None, (quantity(dataset), scale_of(dataset)[1])))
        if rows := _strongest(tree, dataset, dim):
            groups.append(Rows(rows, f"{title}: {words}"))
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
    return Table("Kinds of tokens", columns, groups, caption)


def _strongest(tree: xr.DataTree, dataset: xr.Dataset, dim: str) -> list[list[Cell]]:
    (layers, heads), number = shape(tree), scale_of(dataset)[0]
    last = 0 if "layer" in dataset["attention"].dims else (layers - 1) * heads
    rows = []
    for kind in dataset[dim].values.tolist():
        here = dataset.sel({dim: kind})
        parts = estimate(here, "attention")  # [head], or [layer, head]
        if not np.isfinite(parts.value).any():
            continue
        unit = int(np.nanargmax(parts.value))
        best = at(parts.map(np.ravel), unit)
        rows.append(
            [
                Cell(name_of_kind(tree, kind)), Cell(f"{int(here['count']):,}"),
                Cell(head_name(last + unit, heads)), number(*best),
                number(float(np.nanmean(parts.value))),
            ]
        )  # fmt: skip
    return rows


def name_of_kind(tree: xr.DataTree, kind: str) -> str:
    """A kind of tokens, or of pairs, in words."""
    return special(tree, kind) if kind in ("cls", "sep") else name(kind)
