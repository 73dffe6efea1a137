"""The frame that the pages of claims share: one template, and the sheets of style."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from headscope.page.shell import asset, content_policy, template, theme_css
from headscope.page.svg import Styles

PAPERS, SHARED = "headscope.papers", "headscope.report"  # packages with assets


def render_page(name: str, styles: Styles, *, rules: str = "", **content: Any) -> str:
    """A page as text; everything in it is escaped, but for drawings made here.

    name    of the template NAME.html.j2 and its sheet NAME.css
    styles  the classes of the drawings
    rules   more rules of style
    """
    sheets = [theme_css(), asset("report.css", SHARED), asset(f"{name}.css", PAPERS)]
    style = "\n".join([*sheets, *([rules] if rules else []), styles.css()])
    return template(f"{name}.html.j2", PAPERS, SHARED).render(
        style=Markup(style), policy=content_policy(style=style, script=""), **content
    )
