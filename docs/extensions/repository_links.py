"""Links that lead out of docs/: to the page that shows the file, else to where the source lives."""

import os
import re
from pathlib import Path

from sphinx.application import Sphinx


def _lead_somewhere(app: Sphinx, name: str, source: list[str]) -> None:
    docs = Path(app.srcdir)
    here = (docs / name).parent

    def mended(link: re.Match[str]) -> str:
        path = (here / link[1]).resolve()
        if path.is_relative_to(docs):
            return link[0]
        page = docs / "project" / path.name
        if page.exists():
            return f"]({os.path.relpath(page, here)}"
        return f"]({app.config.repository}/blob/main/{path.relative_to(docs.parent)}"

    source[0] = re.sub(r"\]\(((?:\.\./)+[^)#\s]+)", mended, source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Read each page with its links mended; `repository` is the address of the source."""
    app.add_config_value("repository", "", "env", [str])
    app.connect("source-read", _lead_somewhere)
    return {"parallel_read_safe": True}
