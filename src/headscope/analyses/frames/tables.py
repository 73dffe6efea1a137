"""Tables of the question `frames` beside the tidy one of its group."""

from __future__ import annotations

import pandas as pd
import xarray as xr

from headscope.analyses.language.best_head_tables import top_frame_heads


def tables(tree: xr.DataTree) -> dict[str, pd.DataFrame]:
    """The heads of largest score."""
    return {"top_frame_heads": top_frame_heads(tree)}
