"""Gives the pages of a run: its report and files from the folder, index, cards and views in memory.

They are those of `headscope export`. The pages of an unfinished run say so until it is finished;
nothing is written.
"""

from __future__ import annotations

import mimetypes
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headscope.claims.head_labels import run_labels
from headscope.core.results import derived_once
from headscope.errors import HeadscopeError, InputError, RunFolderError
from headscope.report.cite import cite
from headscope.report.site import cards_page, index_page, site_views
from headscope.run.store import MANIFEST, RESULTS, Run, RunFolder, open_run
from headscope.serve.access import notice

HTML = "text/html; charset=utf-8"
# Of pages: they hold their own policy. Other files, such as figures, run nothing.
PAGE = "frame-ancestors 'self'"
FILE = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"


@dataclass(frozen=True)
class RunPage:
    """A page as it is sent: content, media type, content policy."""

    content: bytes
    kind: str = HTML
    policy: str = PAGE


class RunPages:
    """The pages of the run in a folder, opened on request.

    raises  InputError for a folder that holds no run
    """

    def __init__(self, folder: Path) -> None:
        self.folder = RunFolder(folder)
        if self.folder.manifest() is None and not (folder / RESULTS).is_file():
            raise InputError(f"{folder} holds no run; wanted the -o of atlas, or a model")
        self._lock = threading.Lock()
        self._made: dict[str, RunPage] = {}
        self._run: tuple[Any, Run] | None = None

    @property
    def model(self) -> dict[str, Any]:
        """What the manifest says of the model: its name, revision, hash."""
        return dict((self.folder.manifest() or {}).get("model", {}))

    def run(self) -> Run:
        """The run in its current state; RunFolderError if it is not finished."""
        files = [self.folder.path / name for name in (MANIFEST, RESULTS)]
        state = [(file.stat().st_mtime_ns, file.stat().st_size) for file in files if file.exists()]
        if self._run is None or self._run[0] != state:
            self._made.clear()
            self._run = (state, open_run(self.folder.path))
        return self._run[1]

    def labels(self) -> list[list[str]] | None:
        """[layer][head] labels; None for an unfinished run."""
        try:
            with self._lock:
                return run_labels(self.run().tree)
        except (HeadscopeError, OSError):
            return None

    def get(self, name: str) -> RunPage | None:
        """The page or file of this name; None where there is none."""
        try:
            with self._lock:
                return self._get(name or "index.html")
        except (HeadscopeError, OSError) as error:
            title = "This run cannot be shown yet"
            return RunPage(_bytes(notice(title, str(error), back="../")))

    def _get(self, name: str) -> RunPage | None:
        run = self.run()
        if name in self._made:
            return self._made[name]
        if name == "index.html" or name.startswith("views/"):
            self._make_views(run)
        elif name == "heads.html":
            self._made[name] = RunPage(_bytes(cards_page(run)))
        elif name == "sources.bib":
            self._made[name] = RunPage(cite(run).bibtex.encode(), "text/plain; charset=utf-8", FILE)
        if name in self._made:
            return self._made[name]
        if name == "report.html" and not (self.folder.path / name).is_file():
            raise RunFolderError(
                f"the run has no report.html yet; make it: headscope report {self.folder.path}"
            )
        if name != "report.html" and name not in self.folder.listed():
            return None
        content = (self.folder.path / name).read_bytes()
        if name.endswith(".html"):
            return RunPage(content)
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        return RunPage(content, kind, FILE)

    def _make_views(self, run: Run) -> None:
        links = []
        with derived_once():
            for name, text, page in site_views(run):
                self._made[name] = RunPage(page)
                links.append((name, text))
        self._made["index.html"] = RunPage(_bytes(index_page(run, links, self.folder.path)))


def _bytes(page: str) -> bytes:
    return page.encode("utf-8", errors="backslashreplace")
