"""Notes below linguistic sections: by which measure, and what was left out."""

from __future__ import annotations

from collections.abc import Callable

import xarray as xr

from headscope.core.dictionary import name as term_name
from headscope.core.results import group, printable

BY_NORM = (
    "Judged by the weighted norm ‖αf(x)‖, by what a head really gathers from a word, not by "
    "attention alone."
)


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
