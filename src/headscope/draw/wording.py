"""Which phrases do captions share?"""

from __future__ import annotations

import numpy as np
import xarray as xr

from headscope.derived.reading import documents, token_names

INTERVALS = "95 % intervals, bootstrap over documents"


def over(tree: xr.DataTree, array: xr.DataArray | None = None) -> str:
    """`n = 26 documents, 4,658 tokens`."""
    tokens = int(tree.attrs.get("tokens", 0))
    count = documents(tree, array)
    words = f"n = {count:,} {'document' if count == 1 else 'documents'}"
    return f"{words}, {tokens:,} tokens" if tokens else words


def special(tree: xr.DataTree, kind: str) -> str:
    """What to call the tokens of a category: as the tokenizer does, else in the papers' words."""
    return token_names(tree).get(kind) or {"cls": "[CLS]", "sep": "[SEP]"}.get(kind, kind)


def with_interval(symbol: str, value: float, low: float, high: float) -> str:
    """`ρ = −0.67 [−0.71, −0.62]`, two decimals."""
    if not np.isfinite(value):
        return f"{symbol} = –"
    ends = f" [{low:.2f}, {high:.2f}]" if np.isfinite(low) and np.isfinite(high) else ""
    return f"{symbol} = {value:.2f}{ends}".replace("-", "−")
