"""Which group `patterns` does a run have, without a model?

`add_patterns` gives every head equal shares of all classes and two typical maps: a diagonal one of
four tokens, and one of three of which the last place stands for many.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

CLASSES = ["vertical", "diagonal", "vertical_diagonal", "block", "heterogeneous"]
FIRST = ["[CLS]", "a", "b", "[SEP]"]
SECOND = ["[CLS]", "c", "… 88 tokens …"]


def add_patterns(tree: xr.DataTree, *, shares=None, tokens=FIRST, maps: bool = True) -> xr.DataTree:
    """A copy of `tree` with the group `patterns`.

    shares  {(layer, head): {class: (value, low, high)}} that differ from 0.2 [0.18, 0.22]
    tokens  of the first map
    maps    whether there are typical maps
    """
    size = (int(tree.attrs["layers"]), int(tree.attrs["heads"]))
    ends = np.broadcast_to([0.2, 0.18, 0.22], (*size, len(CLASSES), 3)).copy()
    for place, given in (shares or {}).items():
        for name, values in given.items():
            ends[(*place, CLASSES.index(name))] = values
    dims = ("layer", "head", "pattern")
    units = {"units": "probability", "long_name": "maps of the class"}
    data = {
        f"share{end}": (dims, ends[..., at], units)
        for at, end in enumerate(("", "_ci_low", "_ci_high"))
    }
    value = ends[..., 0]
    for name, over, mean in (
        ("confidence", dims[:2], np.full(size, 0.9)),
        ("layer_share", ("layer", "pattern"), value.mean(1)),
        ("model_share", ("pattern",), value.mean((0, 1))),
    ):
        for end, apart in (("", 0), ("_ci_low", -0.02), ("_ci_high", 0.02)):
            data[name + end] = (over, mean + apart, units)
    coords: dict = {"layer": np.arange(size[0]), "head": np.arange(size[1]), "pattern": CLASSES}
    if maps:
        data |= _maps(size, tokens)
        coords |= _coords(size, tokens)
    own = {str(name): child.to_dataset() for name, child in tree.children.items()}
    whole = xr.DataTree.from_dict(own | {"patterns": xr.Dataset(data, coords=coords)})
    whole.attrs = dict(tree.attrs)
    return whole


def _maps(size, tokens):
    longest = max(len(tokens), len(SECOND))
    maps = np.full((*size, 3, longest, longest), np.nan, np.float32)
    n = len(tokens)
    maps[:, :, 0, :n, :n] = 0.6 * np.eye(n) + 0.4 / n
    maps[:, :, 1, :3, :3] = [[1, 0, 0], [0.25, 0.5, 0.25], [0, 0.75, 0.25]]
    score = np.broadcast_to([0.9, 0.6, np.nan], (*size, 3))
    return {
        "typical": (("layer", "head", "rank", "query", "key"), maps),
        "typical_score": (("layer", "head", "rank"), score, {"units": "probability"}),
    }


def _coords(size, tokens):
    longest = max(len(tokens), len(SECOND))
    rows = [[*row, *[""] * (longest - len(row))] for row in (tokens, SECOND, [])]
    counts = [[1] * len(tokens), [1, 1, 88], []]
    counts = [[*row, *[0] * (longest - len(row))] for row in counts]
    by_query = ("layer", "head", "rank", "query")
    return {
        "typical_token": (by_query, np.broadcast_to(rows, (*size, 3, longest))),
        "typical_token_count": (by_query, np.broadcast_to(counts, (*size, 3, longest))),
        "typical_class": (
            ("layer", "head", "rank"),
            np.broadcast_to(["diagonal", "vertical_diagonal", ""], (*size, 3)),
        ),
    }
