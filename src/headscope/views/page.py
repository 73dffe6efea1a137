"""How does one example, as captured, become a page that can be explored offline?"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from headscope.report.policy import content_policy, island
from headscope.report.theme import theme_css

SCRIPTS = ("core.js", "sentences.js", "model.js", "lines.js", "head.js", "matrix.js", "page.js")


def build_page(payload: Mapping[str, Any]) -> bytes:
    """One HTML file with the views of an example; no request leaves it.

    payload  JSON-ready: title, model, tokens, special, segment, word, boundary, measures, labels.
             A measure's data is base64 of gzipped uint8 [layer, head, query, key], and a value is
             (byte / 255)² · scale[layer · heads + head]
    returns  UTF-8; tokens stand in it as data only, whatever characters they hold
    raises   ValueError for numbers that JSON does not have
    """
    style = "\n".join([theme_css(), _asset("view.css")])
    script = "\n".join(_asset(name) for name in SCRIPTS)
    page = _template().render(
        title=payload["title"],
        model=payload["model"],
        tokens=len(payload["tokens"]),
        measures=payload["measures"],
        boundary=payload["boundary"],
        special=any(payload["special"]),
        style=Markup(style),
        script=Markup(script),
        policy=content_policy(style=style, script=script),
        island=Markup(island(payload)),
    )
    # Half of a surrogate pair is no text, but its escape is what JSON writes for it.
    return page.encode("utf-8", errors="backslashreplace")


def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    return environment.from_string(_asset("view.html.j2"))


def _asset(name: str) -> str:
    return (resources.files("headscope.views") / "assets" / name).read_text(encoding="utf-8")
