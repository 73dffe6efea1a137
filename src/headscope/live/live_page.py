"""Makes the live page: the views of `headscope view`, with a field to type in and what is changed.

It contains no user's text and no token: the typed text is kept after # in its address, which no
browser sends to any server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from markupsafe import Markup

from headscope.core.head_names import HeadNames
from headscope.live.requests import MOST_CHARACTERS
from headscope.page.shell import asset, content_policy, island, style_of, template
from headscope.views.view_page import PACKAGE, STYLES, page_script

OWN = "headscope.live"
SCRIPTS = ("asking.js", "together.js", "changes.js", "outcome.js", "writers.js", "live.js")
BEGIN = "begin.js"  # of a page that has its example
EXAMPLES = {
    "next": "When Mary and John went to the store, John gave a drink to",
    "mask": "The capital of France is {mask}.",
    "classes": "The film was long, and I loved every minute of it.",
    "vectors": "The cat sat on the mat because it was tired.",
}


@dataclass(frozen=True)
class LivePage:
    """The page of one model.

    about   what `LiveModel.about` says
    text    that the page opens with; None: a usual one
    run     whether pages of a run are served as well
    absent  why there is no model, if there is none
    framed  whether a page elsewhere, such as a notebook, may show it in a frame
    """

    about: Mapping[str, Any]
    text: str | None = None
    pair: str = ""
    run: bool = False
    absent: str = ""
    framed: bool = False

    @cached_property
    def html(self) -> tuple[str, str]:
        """The page, and its content policy for the header."""
        style = "\n".join([style_of(*STYLES, package=PACKAGE), asset("live.css", OWN)])
        begin = asset(BEGIN, PACKAGE)
        script = page_script().removesuffix(begin) + "\n".join(asset(one, OWN) for one in SCRIPTS)
        policy = content_policy(style=style, script=script) + "; connect-src 'self'"
        text = EXAMPLES[self.about["answers"]] if self.text is None else self.text
        data = {
            "version": 0,
            "countsFrom": HeadNames(()).first,
            "sides": [],
            "stacks": [],
            "live": {
                **self.about,
                "text": text.replace("{mask}", str(self.about["mask"])),
                "pair": self.pair,
            },
        }
        links = [("report", "run/report.html"), ("cards", "run/heads.html"), ("all pages", "run/")]
        page = template("live.html.j2", OWN, PACKAGE).render(
            policy=policy,
            style=Markup(style),
            script=Markup(script),
            island=island(data),
            about=self.about,
            title=f"{self.about['name']}, live",
            precision=" ",
            links=links if self.run else [],
            characters=MOST_CHARACTERS,
            absent=self.absent,
        )
        return page, policy if self.framed else f"{policy}; frame-ancestors 'none'"
