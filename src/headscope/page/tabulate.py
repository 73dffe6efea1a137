"""Tables of a page: columns, groups of rows, and cells with their intervals."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
import xarray as xr

from headscope.core.head_names import names_of
from headscope.core.wording import MISSING, decimals, fixed


@dataclass(frozen=True, slots=True)
class Cell:
    """`text`, with something small beside or below it, an interval for instance.

    code  whether the text is a name from the data
    mark  what a sign before the text stands for, in words; '' for no sign
    """

    text: str
    small: str = ""
    code: bool = False
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """`text`, the unit in small, and the word of the dictionary that explains it, if any."""

    text: str
    unit: str = ""
    term: str = ""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows under a common title; '' for none."""

    rows: list[list[Cell]]
    title: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """One table; the first cell of a row names it.

    name     for readers who do not see it
    inline   whether intervals stand beside their numbers, not below
    caption  how to read it, in which unit, over how many
    """

    name: str
    columns: list[Column]
    groups: list[Rows]
    caption: str = ""
    inline: bool = True


def rows_table(
    name: str,
    columns: Iterable[object],
    rows: Iterable[Iterable[object]],
    caption: str = "",
) -> Table | None:
    """A table of one group of rows; None without any.

    columns, rows  made already, or anything else by its text
    """
    cells = [[one if isinstance(one, Cell) else Cell(str(one)) for one in row] for row in rows]
    heads = [one if isinstance(one, Column) else Column(str(one)) for one in columns]
    return Table(name, heads, [Rows(cells)], caption) if cells else None


def share(value: float, low: float = math.nan, high: float = math.nan) -> Cell:
    """A share in per cent, one decimal: `86.8`, small `[85.1, 88.2]`."""
    return _cell(100 * value, 100 * low, 100 * high, digits=1)


def points(value: float, low: float, high: float, *, mark: str = "") -> Cell:
    """A difference of shares in percentage points, with its sign."""
    return _cell(100 * value, 100 * low, 100 * high, digits=1, signed=True, mark=mark)


def measured(
    value: float, low: float = math.nan, high: float = math.nan, *, digits: int = 3
) -> Cell:
    """A number in the model's own unit, with its decimals."""
    return _cell(value, low, high, digits=digits)


def probability(p: float) -> Cell:
    """A p-value, three decimals."""
    return Cell(MISSING if math.isnan(p) else "< 0.001" if p < 0.0005 else fixed(p, 3))


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows, by column."""
    return [{str(key): value for key, value in row.items()} for row in table.to_dict("records")]


def ends(row: Mapping[str, Any], key: str) -> tuple[float, float, float]:
    """A number of a row with its interval."""
    value, low, high = (float(row[part]) for part in (key, f"{key}_ci_low", f"{key}_ci_high"))
    return value, low, high


def head_of(tree: xr.DataTree, row: Mapping[str, Any]) -> str:
    """The head that a row is about, as papers name it."""
    if pd.isna(row["layer"]) or pd.isna(row["head"]):
        return MISSING
    return names_of(tree).own(int(row["layer"]), int(row["head"]))


def _cell(
    value: float, low: float, high: float, *, digits: int, signed: bool = False, mark: str = ""
) -> Cell:
    if not math.isfinite(value):
        return Cell(MISSING)

    digits = decimals(digits, value, low, high)

    def written(number: float) -> str:
        text = fixed(number, digits)
        return f"+{text}" if signed and float(text.replace("−", "-")) > 0 else text

    there = math.isfinite(low) and math.isfinite(high)
    return Cell(written(value), f"[{written(low)}, {written(high)}]" if there else "", mark=mark)
