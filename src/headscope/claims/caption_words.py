"""Phrases that captions share: numbers of inputs, intervals, names of tokens."""

import numpy as np
import xarray as xr

from headscope.claims.dictionary import name
from headscope.core.display import printable
from headscope.core.results import counted, documents, token_names
from headscope.core.wording import with_ends

INTERVALS = "95 % intervals over documents"


def over(tree: xr.DataTree, array: xr.DataArray | None = None) -> str:
    """`n = 26 documents, 4,658 tokens` of a run or an array of it; of a task's data, examples."""
    own = {} if array is None else array.attrs  # of what reads other inputs than most
    tokens = int(own.get("tokens", tree.attrs.get("tokens", 0)))
    count, many = documents(tree, array), counted(tree)
    words = f"n = {count:,} {many.removesuffix('s') if count == 1 else many}"
    whole = count == documents(tree)  # the tokens are those of all documents
    return f"{words}, {tokens:,} tokens" if tokens and whole else words


def special(tree: xr.DataTree, kind: str) -> str:
    """The name of a token category: the tokenizer's, else that of the papers."""
    papers = {"cls": "[CLS]", "sep": "[SEP]", "first": "first token"}
    return token_names(tree).get(kind) or papers.get(kind, kind)


def with_interval(symbol: str, value: float, low: float, high: float) -> str:
    """`ρ = −0.67 [−0.71, −0.62]`, two `decimals`."""
    return f"{symbol} = {with_ends(value, low, high, 2)}"


def first_sentence(text: str) -> str:
    """The first sentence, up to the colon where its numbers begin; '' of nothing."""
    said = text.partition(": ")[0].partition(". ")[0].removesuffix(".")
    return f"{said}." if said else ""


def quantity(dataset: xr.Dataset) -> str:
    """What a linguistic analysis measured: `attention`, or the name of the weighted norm."""
    measure = str(dataset.attrs.get("measure", "attention"))
    return "attention" if measure == "attention" else name(measure)


def by_measure(dataset: xr.Dataset | None) -> str:
    """` by the weighted norm …` where an accuracy is not by attention; else nothing."""
    if dataset is None or quantity(dataset) == "attention":
        return ""
    return f" by the {quantity(dataset)}"


def clipped(text: object, most: int) -> str:
    """A word or label of the data as text that any file can hold, of limited length."""
    shown = "".join("\ufffd" if c in "\ufffe\uffff" else c for c in printable(text))
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def inputs(dataset: xr.Dataset | None) -> str:
    """`n = 240 to 2,001 inputs`, from the smallest to the largest `count` that is not 0."""
    counts = np.zeros(1) if dataset is None else dataset["count"].values.reshape(-1)  # [kind]
    there = counts[counts > 0].tolist() or [0]
    low, high = f"{min(there):,.0f}", f"{max(there):,.0f}"
    return f"n = {high} inputs" if low == high else f"n = {low} to {high} inputs"
