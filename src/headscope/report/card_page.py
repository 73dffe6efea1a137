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

from headscope.claims.caption_words import over
from headscope.claims.card_part import MAPS, TypicalMap
from headscope.core.display import printable
from headscope.core.head_names import names_of
from headscope.core.results import derived_once, model_name, shape
from headscope.core.wording import percent
from headscope.heads.head_card import HeadCard, card_parts, head_maps
from headscope.page.shell import island, render_page, script_of, style_of, template, write_page
from headscope.report import heads
from headscope.views.packed_arrays import packed

SCRIPTS = ("page.js", "fold.js", "card_maps.js", "card_rules.js", "card.js")
LEVELS = 31  # steps: an error of the root of 1/62, finer than the shades of the ramp
ROOM = 160_000  # characters of coded maps


@derived_once()
def cards(tree: xr.DataTree) -> dict[str, Any]:
    """What the page needs for the card of every head, beside `heads.data`: what questions add, and

    from       where maps come from, in words
    maps       what `_maps` gives; None where there are none
    """
    maps = head_maps(tree)
    by_head = [maps.of(*place) for place in np.ndindex(*shape(tree))] if maps.source else []
    added = {k: value for part, run in card_parts(tree) for k, value in part.page(run).items()}
    return {**added, "from": maps.words, "maps": _fitting(by_head) if maps.source else None}


def _fitting(by_head: list[list[TypicalMap]]) -> dict[str, Any]:
    """As many maps of every head as ROOM holds, one at least."""
    for most in range(MAPS, 0, -1):
        made = _maps([maps[:most] for maps in by_head])
        if len(made["codes"]) <= ROOM:
            break
    return made


def _maps(by_head: list[list[TypicalMap]]) -> dict[str, Any]:
    """The typical maps of all heads, for the page's scripts.

    inputs  rows of tokens and the places of those that the tokenizer added
    heads   [unit] rows of input, class, how sure, and strongest links
    codes   the weights of all maps, [query, key] each
    """
    inputs: dict[tuple[tuple[str, ...], tuple[int, ...]], int] = {}
    of_heads, codes = [], []
    for maps in by_head:
        rows = []
        for one in maps:
            added = tuple(np.flatnonzero(one.special).tolist())
            place = inputs.setdefault((tuple(map(printable, one.pieces)), added), len(inputs))
            sure = percent(one.score) if one.kind else ""
            links = [[query, key, percent(share)] for query, key, share in one.links()]
            rows.append([place, one.title, sure, links])
            codes.append(np.rint(np.sqrt(one.weights.clip(0, 1)) * LEVELS).astype(np.uint8).ravel())
        of_heads.append(rows)
    return {
        "levels": LEVELS,
        "inputs": [[list(tokens), list(added)] for tokens, added in inputs],
        "heads": of_heads,
        "codes": packed(*codes),
    }


def build_card(tree: xr.DataTree, card: HeadCard, path: Path) -> Path:
    """Writes the offline page of one head, whole or not at all; returns `path`."""
    return write_page(path, render_card(tree, card))


@derived_once()
def render_card(tree: xr.DataTree, card: HeadCard) -> str:
    """The page as text; it opens with the card of one head."""
    layers, per_layer = shape(tree)
    chosen = {"map": None, "cards": cards(tree), "card": card.layer * per_layer + card.head}
    return render_page(
        template("card.html.j2"),
        style=style_of("report.css", "card.css"),
        script=script_of(SCRIPTS),
        model=model_name(tree),
        layers=layers,
        heads=per_layer,
        n=over(tree),
        names=names_of(tree),
        version=printable(tree.attrs.get("headscope_version", "")),
        fingerprint=printable(tree.attrs.get("spec_fingerprint", ""))[:12],
        island=island(heads.data(tree) | chosen),
    )
