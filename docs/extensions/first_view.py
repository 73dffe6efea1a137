"""A view on the first page of the site, made from the demo model by each build."""

from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

import headscope as hs
from headscope.page.shell import asset

FILE = "first-view.html"
FRAME = (
    '<iframe class="headscope first-view" title="headscope view" '
    f'src="{FILE}" sandbox="allow-scripts allow-downloads"></iframe><script>{{}}</script>'
)


class FirstView(Directive):
    """The page of the view, in a frame that is dark where the site is."""

    def run(self) -> list[nodes.Node]:
        """The frame, and the script that says whether the site is dark."""
        script = asset("frame.js", "headscope.views")
        return [nodes.raw("", FRAME.format(script), format="html")]


def _write(app: Sphinx, failure: Exception | None) -> None:
    if failure is None and app.builder.format == "html":
        hs.view("demo", app.config.first_view).save(Path(app.outdir) / FILE)


def setup(app: Sphinx) -> dict[str, bool]:
    """The sentence is `first_view` in conf.py."""
    app.add_config_value("first_view", "", "env", str)
    app.add_directive("first-view", FirstView)
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True}
