"""Columns, cells and notes that the tables of several linguistic questions share.

Layers and heads are 0-based in tables for programs. A head beats a baseline if the interval of its
advantage, held out, lies above 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from headscope.core.accumulators import Estimate
from headscope.core.dictionary import name as term_name
from headscope.core.results import Floats, group, printable
from headscope.core.wording import MISSING
from headscope.page.tabulate import (
    Cell,
    ends,
    measured,
    share,
)

BY_NORM = (
    "Judged by the weighted norm ‖αf(x)‖, by what a head really gathers from a word, not by "
    "attention alone."
)


def whole_numbers(values: Sequence[float] | Floats) -> pd.Series[int]:
    """Whole numbers, missing where the value is NaN."""
    return pd.Series([None if np.isnan(v) else int(v) for v in values], dtype="Int64")


def above_zero(low: Floats) -> pd.Series[bool]:
    """Whether each advantage beats its baseline: its lower end is above 0; missing without one."""
    return pd.Series([None if np.isnan(v) else bool(v > 0) for v in low], dtype="boolean")


def with_ends(name: str, parts: Estimate) -> dict[str, Any]:
    """Three columns, in the order of the cells."""
    return {
        name: parts.value.reshape(-1),  # [row]
        f"{name}_ci_low": parts.low.reshape(-1),  # [row]
        f"{name}_ci_high": parts.high.reshape(-1),  # [row]
    }


def with_model(tree: xr.DataTree, columns: dict[str, Any]) -> pd.DataFrame:
    """The columns behind the name of the model, so that tables of several runs can be joined."""
    names = {name: str(tree.attrs.get(name, "")) for name in ("model", "revision")}
    rows = len(next(iter(columns.values())))
    return pd.DataFrame(names | columns, index=range(rows))


def share_of(row: dict[str, Any], key: str) -> Cell:
    """The cell of a share of a row, with its interval."""
    return share(*ends(row, key))


def is_true(verdict: Any) -> bool:
    """False where there is no verdict."""
    return not pd.isna(verdict) and bool(verdict)


def scale_of(dataset: xr.Dataset) -> tuple[Callable[..., Cell], str]:
    """How a value is written, and its unit: attention in per cent, a norm as it is."""
    weighted = dataset.attrs.get("measure") == "weighted_norm"
    return (measured, "") if weighted else (share, "%")


def paper_head(layer: float, head: float) -> str:
    """A head as Clark et al. name it, `8-10`, counted from 1; 0-based layer and head, or NaN."""
    there = np.isfinite(layer) and np.isfinite(head)
    return f"{int(layer) + 1}-{int(head) + 1}" if there else MISSING


def paper_percent(share: float) -> str:
    """A share in per cent with one decimal."""
    return f"{100 * share:.1f}" if np.isfinite(share) else MISSING


def paper_measure(dataset: xr.Dataset) -> str:
    """What follows a number in a note where it is not by attention."""
    return " by weighted norm" if dataset.attrs.get("measure") == "weighted_norm" else ""


def notes(groups: tuple[str, ...], asked: str) -> Callable[[xr.DataTree], list[str]]:
    """The notes on some groups of results; `asked` is what their numbers count, say "word"."""

    def about(tree: xr.DataTree) -> list[str]:
        there = [dataset for name in groups if (dataset := group(tree, name)) is not None]
        normed = any(dataset.attrs.get("measure") == "weighted_norm" for dataset in there)
        left_out = [note for dataset in there for note in _left_out(dataset, asked)]
        return [*([BY_NORM] if normed else []), *left_out]

    return about


def _left_out(dataset: xr.Dataset, asked: str) -> list[str]:
    """`Left out: 14 mentions cut by …; 3 mentions …`; nothing where all was used."""
    if "left_out" not in dataset:
        return []
    reasons = [
        f"{int(count):,} {asked if count == 1 else asked + 's'} {printable(term_name(reason))}"
        for reason, count in zip(
            dataset["reason"].values.tolist(), dataset["left_out"].values.tolist(), strict=True
        )
        if count
    ]
    return [f"Left out: {'; '.join(reasons)}."] if reasons else []
