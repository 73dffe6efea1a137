"""The frame that the pages of claims share: one template, the sheets of style, the assets."""

from __future__ import annotations

from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from headscope.page.policy import content_policy
from headscope.page.svg import Styles
from headscope.page.templates import asset as shared_asset
from headscope.page.templates import unbroken
from headscope.page.theme import theme_css


def render_page(name: str, styles: Styles, *, rules: str = "", **content: Any) -> str:
    """A page as text; everything in it is escaped, but for drawings made here.

    name    of the template NAME.html.j2 and its sheet NAME.css
    styles  the classes of the drawings
    rules   more rules of style
    """
    sheets = [theme_css(), asset("report.css"), asset(f"{name}.css"), *([rules] if rules else [])]
    style = "\n".join([*sheets, styles.css()])
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(asset),
    )  # fmt: skip
    environment.filters["drawing"] = Markup
    environment.filters["unbroken"] = unbroken
    return environment.get_template(f"{name}.html.j2").render(
        style=Markup(style), policy=content_policy(style=style, script=""), **content
    )


def asset(name: str) -> str:
    """The text of a file in `assets`, else of the one that all pages share."""
    place = resources.files("headscope.papers") / "assets" / name
    return place.read_text(encoding="utf-8") if place.is_file() else shared_asset(name)
