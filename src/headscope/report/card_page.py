"""Make the card of every head: its data for the report, and a page of its own.

Maps are coded by the square root in LEVELS steps, one byte a weight, all heads one after the other,
compressed; the page decodes them. Tokens stand once for all heads that show the same input. The
page of one head is the card of the report, drawn by the same script. It holds the cards of all
heads, so that a click on a near head leads to its card.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from markupsafe import Markup

from headscope.analyses.dependency.best_relations import best_relations
from headscope.analyses.divergence.clusters import clusters, nearest_heads
from headscope.analyses.patterns.typical_maps import MAPS, TypicalMap, TypicalMaps
from headscope.core.results import model_name, printable, shape
from headscope.core.wording import number, percent
from headscope.draw.caption_words import over
from headscope.heads.head_card import CLASS_NAMES, FROM, HeadCard
from headscope.page.shell import asset, content_policy, island, template, theme_css, write_page
from headscope.report import heads
from headscope.views.packed_arrays import packed

SCRIPTS = ("page.js", "card_maps.js", "card.js")
LEVELS = 31  # steps: an error of the root of 1/62, finer than the shades of the ramp
ROOM = 160_000  # characters of coded maps
NAN = float("nan")


def cards(tree: xr.DataTree) -> dict[str, Any]:
    """What the page needs for the card of every head, beside `heads.data`.

    relations  [unit] rows of words, accuracy, baseline, rank
    nearest    [unit] rows of unit and divergence
    clusters   the clusters' names; cluster: [unit] which one, -1 for none; empty without clusters
    from       where maps come from, in words; maps: what `_maps` gives; none where there are none
    """
    layers, per_layer = shape(tree)
    places = [(layer, head) for layer in range(layers) for head in range(per_layer)]
    found = clusters(tree)
    number_of = {unit: one.number for one in found for unit in one.units}
    maps = TypicalMaps(tree)
    return {
        "relations": [_relations(tree, *place) for place in places],
        "nearest": [_nearest(tree, *place) for place in places],
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


def _nearest(tree: xr.DataTree, layer: int, head: int) -> list[list[object]]:
    per_layer = shape(tree)[1]
    return [
        [near.layer * per_layer + near.head, number(near.js, near.low, near.high)]
        for near in nearest_heads(tree, layer, head)
    ]


def _fitting(found: list[list[TypicalMap]]) -> dict[str, Any]:
    """As many maps of every head as ROOM holds, one at least."""
    for most in range(MAPS, 1, -1):
        made = _maps([maps[:most] for maps in found])
        if len(made["codes"]) <= ROOM:
            return made
    return _maps([maps[:1] for maps in found])


def _maps(found: list[list[TypicalMap]]) -> dict[str, Any]:
    """The typical maps of all heads, for the page's scripts.

    inputs  rows of tokens and the places of those that the tokenizer added
    heads   [unit] rows of input, class, how sure, and strongest links
    codes   the weights of all maps, [query, key] each
    """
    inputs: dict[tuple[tuple[str, ...], tuple[int, ...]], int] = {}
    of_heads, codes = [], []
    for maps in found:
        rows = []
        for one in maps:
            added = tuple(np.flatnonzero(one.special).tolist())
            place = inputs.setdefault((tuple(map(printable, one.tokens)), added), len(inputs))
            sure = percent(one.score, NAN, NAN) if one.kind else ""
            links = [[query, key, percent(share, NAN, NAN)] for query, key, share in one.links()]
            rows.append([place, CLASS_NAMES.get(one.kind, printable(one.kind)), sure, links])
            codes.append(np.rint(np.sqrt(one.weights.clip(0, 1)) * LEVELS).astype(np.uint8).ravel())
        of_heads.append(rows)
    return {
        "levels": LEVELS,
        "inputs": [[list(tokens), list(added)] for tokens, added in inputs],
        "heads": of_heads,
        "codes": packed(*codes),
    }


def build_card(tree: xr.DataTree, card: HeadCard, path: Path) -> Path:
    """Writes the page of one head, whole or not at all; it works offline.

    returns  `path`
    raises   OSError if it cannot be written
    """
    return write_page(path, render_card(tree, card))


def render_card(tree: xr.DataTree, card: HeadCard) -> str:
    """The page as text; it opens with the card of one head."""
    style = "\n".join([theme_css(), asset("report.css"), asset("card.css")])
    script = "\n".join(asset(name) for name in SCRIPTS)
    layers, per_layer = shape(tree)
    data = {
        **heads.data(tree),
        "map": None,
        "cards": cards(tree),
        "card": card.layer * per_layer + card.head,
    }
    return template("card.html.j2").render(
        model=model_name(tree),
        layers=layers,
        heads=per_layer,
        n=over(tree),
        version=printable(tree.attrs.get("headscope_version", "")),
        fingerprint=printable(tree.attrs.get("spec_fingerprint", ""))[:12],
        style=Markup(style),
        script=Markup(script),
        policy=content_policy(style=style, script=script),
        island=Markup(island(data)),
    )
