"""A view on the first page of the site, made from the demo model by each build."""

from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

import headscope as hs
from headscope.views.view_text import notebook_frame

FILE, HEIGHT = "first-view.html", 512  # pixels


class FirstView(Directive):
    """The page of the view, in a frame that is dark where the site is."""

    def run(self) -> list[nodes.Node]:
        """The frame."""
        own = {"src": FILE, "sandbox": "allow-scripts allow-downloads"}
        frame = notebook_frame("headscope view", own, height=HEIGHT)
        return [nodes.raw("", f'<div class="first-view">{frame}</div>', format="html")]


def _write(app: Sphinx, failure: Exception | None) -> None:
    if failure is None and app.builder.format == "html":
        hs.view("demo", app.config.first_view).save(Path(app.outdir) / FILE)


def setup(app: Sphinx) -> dict[str, bool]:
    """The sentence is `first_view` in conf.py."""
    app.add_config_value("first_view", "", "env", str)
    app.add_directive("first-view", FirstView)
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True}
