"""How does the card of a head become a page of its own?

It is the card of the report, by the same script, and holds those of all heads: a click on a near
head leads to its card.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import xarray as xr
from markupsafe import Markup

from headscope.core.results import model_name, printable, shape
from headscope.core.whole_file import write_whole
from headscope.draw.caption_words import over
from headscope.heads.head_card import HeadCard
from headscope.page.shell import asset, content_policy, island, template, theme_css
from headscope.report import heads
from headscope.report.cards import cards

SCRIPTS = ("page.js", "card_maps.js", "card.js")


def build_card(tree: xr.DataTree, card: HeadCard, path: Path) -> Path:
    """Writes the page, whole or not at all: self-contained, no request leaves it.

    returns  `path`
    raises   OSError if it cannot be written
    """
    page = render_card(tree, card).encode("utf-8", errors="backslashreplace")
    return write_whole(path, partial(_write, page))


def render_card(tree: xr.DataTree, card: HeadCard) -> str:
    """The page as text; opens with the card of one head."""
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


def _write(page: bytes, path: str) -> None:
    Path(path).write_bytes(page)
