"""Tables of the question `coreference` beside the tidy one of its group."""

from __future__ import annotations

import pandas as pd
import xarray as xr

from headscope.analyses.language.best_head_tables import coreference_heads
from headscope.analyses.language.paper_tables import clark_table_2, note_2


def tables(tree: xr.DataTree) -> dict[str, pd.DataFrame | tuple[pd.DataFrame, str]]:
    """The best head of each kind of mention; the same in the layout of the paper, with its note."""
    return {
        "best_coreference_heads": coreference_heads(tree),
        "clark_table_2": (clark_table_2(tree), note_2(tree)),
    }
