"""Columns, cells and notes that the tables of several linguistic questions share.

Layers and heads are 0-based in tables for programs. A head beats a baseline if the interval of its
advantage, held out, lies above 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from headscope.claims.dictionary import name as term_name
from headscope.claims.reading import Reading
from headscope.core.display import printable
from headscope.core.head_names import HeadNames
from headscope.core.intervals import Estimate
from headscope.core.results import LIMITS, Floats, group
from headscope.core.wording import MISSING
from headscope.page.sections import LANGUAGE, SectionPlan
from headscope.page.tabulate import Cell, measured, share


def above_zero(low: Floats) -> pd.Series[bool]:
    """Whether each advantage beats its baseline: its lower end is above 0; missing without one."""
    return pd.Series(low > 0, dtype="boolean").mask(np.isnan(low))


def with_ends(name: str, parts: Estimate) -> dict[str, Any]:
    """Three columns, in the order of the cells."""
    columns = zip(("", *LIMITS), (parts.value, parts.low, parts.high), strict=True)
    return {name + end: values.reshape(-1) for end, values in columns}  # [row]


def with_model(tree: xr.DataTree, columns: dict[str, Any]) -> pd.DataFrame:
    """The columns behind the name of the model, so that tables of several runs can be joined."""
    names = {name: str(tree.attrs.get(name, "")) for name in ("model", "revision")}
    rows = len(next(iter(columns.values())))
    return pd.DataFrame(names | columns, index=range(rows))


def scale_of(dataset: xr.Dataset) -> tuple[Callable[..., Cell], str]:
    """How a value is written, and its unit: attention in per cent, a norm as it is."""
    weighted = dataset.attrs.get("measure") == "weighted_norm"
    return (measured, "") if weighted else (share, "%")


def paper_head(best: xr.Dataset, names: HeadNames) -> str:
    """The best head, of one cell, as Clark et al. name it: `8-10`."""
    layer, head = float(best["best_layer"]), float(best["best_head"])
    if not np.isfinite([layer, head]).all():
        return MISSING
    return f"{layer + names.first:.0f}-{head + names.first:.0f}"


def paper_percent(share: float, low: float = np.nan, high: float = np.nan) -> str:
    """A share in per cent with one decimal, and its interval where there is one."""
    between = f" [{100 * low:.1f}, {100 * high:.1f}]" if np.isfinite([low, high]).all() else ""
    return f"{100 * share:.1f}{between}" if np.isfinite(share) else MISSING


def paper_measure(dataset: xr.Dataset) -> str:
    """What follows a number in a note where it is not by attention."""
    return " by weighted norm" if dataset.attrs.get("measure") == "weighted_norm" else ""


BY_NORM = (
    "Judged by the weighted norm ‖αf(x)‖, by what a head really gathers from a word, not by "
    "attention alone."
)


def language_section(*groups: str, counts: str, **plan: Any) -> tuple[SectionPlan]:
    """The section of some groups in the chapter on language, with notes on their results.

    counts what their numbers count, say "word"
    plan   the rest of the plan
    """

    def notes(run: Reading) -> list[str]:
        there = [dataset for name in groups if (dataset := group(run.tree, name)) is not None]
        left_out = [note for dataset in there for note in _left_out(dataset, counts)]
        return [BY_NORM, *left_out] if any(map(paper_measure, there)) else left_out

    return (SectionPlan(groups=groups, notes=notes, chapter=LANGUAGE, tables_first=True, **plan),)


def _left_out(dataset: xr.Dataset, counts: str) -> list[str]:
    if "left_out" not in dataset:
        return []
    left = dataset["left_out"].to_series().astype(int)
    reasons = [
        f"{count:,} {counts if count == 1 else counts + 's'} {printable(term_name(str(reason)))}"
        for reason, count in left.items()
        if count
    ]
    return [f"Left out: {'; '.join(reasons)}."] if reasons else []
