"""What does the page need to draw the card of every head, beside the numbers that it has anyway?

Maps are coded by the square root in LEVELS steps, one byte a weight, all heads one after the other,
compressed; the page takes them apart. Tokens stand once for all heads that show the same input.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from headscope.analyses.divergence.clusters import clusters, nearest_heads
from headscope.analyses.patterns.typical_maps import MAPS, TypicalMap, TypicalMaps
from headscope.core.results import printable, shape
from headscope.core.wording import number, percent
from headscope.heads.head_card import CLASS_NAMES, FROM, best_relations

LEVELS = 31  # steps: an error of the root of 1/62, finer than the shades of the ramp
ROOM = 160_000  # characters of coded maps
NAN = float("nan")


def cards(tree: xr.DataTree) -> dict[str, Any]:
    """Rows of text and numbers, by unit.

    relations  [unit] rows of words, accuracy, baseline, rank
    nearest    [unit] rows of unit and divergence
    clusters   the clusters' names; cluster: [unit] which one, -1 for none; empty without clusters
    from       where maps come from, in words; maps: what `_maps` gives; none where there are none
    """
    layers, heads = shape(tree)
    places = [(layer, head) for layer in range(layers) for head in range(heads)]
    found = clusters(tree)
    number_of = {unit: one.number for one in found for unit in one.units}
    maps = TypicalMaps(tree)
    return {
        "relations": [_relations(tree, *place) for place in places],
        "nearest": [
            [[near.layer * heads + near.head, number(near.js, near.low, near.high)] for near in row]
            for row in (nearest_heads(tree, *place) for place in places)
        ],
        "clusters": [one.name for one in found],
        "cluster": [number_of.get(unit, -1) for unit in range(len(places))] if found else [],
        "from": FROM.get(maps.source, ""),
        "maps": _fitting([maps.of(*place) for place in places]) if maps.source else None,
    }


def _relations(tree: xr.DataTree, layer: int, head: int) -> list[list[object]]:
    return [
        [one.words, percent(*one.ends), percent(one.baseline, NAN, NAN), one.rank]
        for one in best_relations(tree, layer, head)
    ]


def _fitting(found: list[list[TypicalMap]]) -> dict[str, Any]:
    """As many maps of every head as ROOM holds, one at least."""
    for most in range(MAPS, 1, -1):
        made = _maps([maps[:most] for maps in found])
        if len(made["codes"]) <= ROOM:
            return made
    return _maps([maps[:1] for maps in found])


def _maps(found: list[list[TypicalMap]]) -> dict[str, Any]:
    """inputs: rows of tokens and the places of those that were added; heads: [unit] rows of input,
    class, how sure, and strongest links; codes: the weights of all maps, [query, key] each.
    """
    inputs: dict[tuple[tuple[str, ...], tuple[int, ...]], int] = {}
    heads, codes = [], []
    for maps in found:
        rows = []
        for one in maps:
            added = tuple(np.flatnonzero(one.special).tolist())
            place = inputs.setdefault((tuple(map(printable, one.tokens)), added), len(inputs))
            sure = percent(one.score, NAN, NAN) if one.kind else ""
            links = [[query, key, percent(share, NAN, NAN)] for query, key, share in one.links()]
            rows.append([place, CLASS_NAMES.get(one.kind, printable(one.kind)), sure, links])
            codes.append(np.rint(np.sqrt(one.weights.clip(0, 1)) * LEVELS).astype(np.uint8).ravel())
        heads.append(rows)
    return {
        "levels": LEVELS,
        "inputs": [[list(tokens), list(added)] for tokens, added in inputs],
        "heads": heads,
        "codes": _packed(codes),
    }


def _packed(codes: list[np.ndarray[Any, np.dtype[np.uint8]]]) -> str:
    from headscope.views.coding import packed  # not above: the views take from this package

    return packed(*codes)
