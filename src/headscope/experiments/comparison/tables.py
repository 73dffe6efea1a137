"""Makes tables of what changes between two models: by head, by number, by example.

Layers and heads are 0-based, as in the data; `name` counts from 1, as papers do.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from headscope.core.results import group, head_name, shape

SIDES = ("before", "after", "difference")
ENDS = ("", "_ci_low", "_ci_high")


def comparison_tables(tree: xr.DataTree) -> dict[str, pd.DataFrame]:
    """`change`, `change_by_layer`, `change_summary` and `changed_examples`; none for other runs."""
    change, similarity = group(tree, "change"), group(tree, "similarity")
    found: dict[str, pd.DataFrame] = {}
    if change is not None:
        found["change"] = _of_heads(tree, change)
        found["change_by_layer"] = _with_sides(tree, change, "layer_", ("quantity", "layer"))
        summary = _with_sides(tree, change, "model_", ("quantity",))
        found["change_summary"] = summary.assign(
            heads_rose=change["rose"].values, heads_fell=change["fell"].values
        )
    if similarity is not None and similarity.sizes.get("rank", 0):
        found["changed_examples"] = _of_examples(tree, similarity)
    return found


def _of_heads(tree: xr.DataTree, change: xr.Dataset) -> pd.DataFrame:
    """One row per number and head: both models, the difference, and whether it is sure."""
    table = _with_sides(tree, change, "", ("quantity", "layer", "head"))
    heads = shape(tree)[1]
    units = (table["layer"] * heads + table["head"]).tolist()
    place = table.columns.to_list().index("head") + 1
    table.insert(place, "name", [head_name(u, heads) for u in units])
    dims = ("quantity", "layer", "head")
    for column in ("simultaneous_low", "simultaneous_high"):
        table[column] = change[column].transpose(*dims).values.reshape(-1)  # [row]
    sure = change["sure"].transpose(*dims).values.reshape(-1)  # [row]
    words = np.select([np.isnan(sure), sure > 0, sure < 0], ["unknown", "rose", "fell"], "unsure")
    return table.assign(sure=words)


def _with_sides(
    tree: xr.DataTree, change: xr.Dataset, start: str, dims: tuple[str, ...]
) -> pd.DataFrame:
    """Rows of every number at `dims`, with both models, the difference and their intervals."""
    sizes = tuple(change.sizes[dim] for dim in dims)
    places = np.indices(sizes).reshape(len(dims), -1)  # [dim, row]
    quantity = places[0]
    columns: dict[str, object] = {
        name: [str(tree.attrs.get(attr, ""))] * places.shape[1]
        for name, attr in (("base", "base_model"), ("model", "model"), ("revision", "revision"))
    }
    for name in ("analysis", "quantity", "label", "unit", "n"):
        columns[name] = change[name].values[quantity]
    for dim, at in zip(dims[1:], places[1:], strict=True):
        columns[dim] = change[dim].values[at].astype(np.int64)
    for side in SIDES:
        for end in ENDS:
            array = change[f"{start}{side}{end}"].transpose(*dims)
            columns[side + end] = array.values.reshape(-1)  # [row]
    return pd.DataFrame(columns)


def _of_examples(tree: xr.DataTree, similarity: xr.Dataset) -> pd.DataFrame:
    """The examples whose maps changed most, the first one most."""
    return pd.DataFrame(
        {
            "base": str(tree.attrs.get("base_model", "")),
            "model": str(tree.attrs.get("model", "")),
            "rank": similarity["rank"].values + 1,
            "id": similarity["example_id"].values,
            "document": similarity["example_document"].values,
            "tokens": similarity["example_tokens"].values,
            "change": similarity["example_change"].values,
            "text": similarity["example_text"].values,
        }
    )
