"""Tables of the question `dependency` beside the tidy one of its group."""

from __future__ import annotations

import pandas as pd
import xarray as xr

from headscope.analyses.language.best_head_tables import best_heads
from headscope.analyses.language.paper_tables import clark_table_1, note_1


def tables(tree: xr.DataTree) -> dict[str, pd.DataFrame | tuple[pd.DataFrame, str]]:
    """The best head of each relation; the same in the layout of the paper, with its note."""
    return {"best_heads": best_heads(tree), "clark_table_1": (clark_table_1(tree), note_1(tree))}
