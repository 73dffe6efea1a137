"""Gives the pages of a run: those of `headscope export`, drawn by this program.

Of the run folder only the manifest and the results are read, since its pages, figures and tables
may be anybody's: a script in one of them would act as our own page. The site is made when it is
first looked at, in a temporary folder that only this user can open, and again when the run has
changed; it is removed at the end. Until a run is finished each of its pages says so.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headscope.claims.head_labels import run_labels
from headscope.errors import HeadscopeError, InputError
from headscope.live.access import notice
from headscope.report.site import export_site
from headscope.run.manifest_file import MANIFEST, RESULTS
from headscope.run.store import Run, RunFolder, open_run
from headscope.run.written_files import LIST

HTML, TEXT = "text/html; charset=utf-8", "text/plain; charset=utf-8"
KINDS = {".html": HTML, ".svg": "image/svg+xml", ".png": "image/png", ".csv": "text/csv"}
KINDS |= {".parquet": "application/vnd.apache.parquet"}
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
    """The pages of the run in a folder, drawn on request.

    raises  InputError for a folder that holds no run
    """

    def __init__(self, folder: Path) -> None:
        self.folder = RunFolder(folder)
        if self.folder.manifest() is None and not (folder / RESULTS).is_file():
            raise InputError(f"{folder} holds no run; wanted the -o of atlas, or a model")
        self._lock = threading.Lock()
        self._run: tuple[Any, Run] | None = None
        self._site: dict[str, Path] | None = None  # what was drawn, by its address
        self._place = Path(tempfile.mkdtemp(prefix="headscope-"))
        self.close = weakref.finalize(self, shutil.rmtree, self._place, ignore_errors=True)

    @property
    def model(self) -> dict[str, Any]:
        """What the manifest says of the model: its name, revision, hash."""
        return dict((self.folder.manifest() or {}).get("model", {}))

    def run(self) -> Run:
        """The run in its current state; RunFolderError if it is not finished."""
        files = [self.folder.path / name for name in (MANIFEST, RESULTS)]
        state = [(file.stat().st_mtime_ns, file.stat().st_size) for file in files if file.exists()]
        if self._run is None or self._run[0] != state:
            self._site = None
            self._run = (state, open_run(self.folder.path))
        return self._run[1]

    def labels(self) -> list[list[str]] | None:
        """[layer][head] labels; None for an unfinished run."""
        try:
            with self._lock, (run := self.run()).showing():
                return run_labels(run.tree)
        except (HeadscopeError, OSError):
            return None

    def get(self, name: str) -> RunPage | None:
        """The page or file of this name; None where there is none."""
        try:
            with self._lock:
                if (file := self._drawn().get(name or "index.html")) is None:
                    return None
                kind = KINDS.get(file.suffix, TEXT)
                return RunPage(file.read_bytes(), kind, PAGE if kind == HTML else FILE)
        except (HeadscopeError, OSError) as error:
            page = notice("This run cannot be shown yet", str(error), back="../")
            return RunPage(page.encode("utf-8", errors="backslashreplace"))

    def _drawn(self) -> dict[str, Path]:
        """All files of the site by their address: nothing else of any folder is given out."""
        run = self.run()
        if self._site is None:
            place = self._place / "site"
            shutil.rmtree(place, ignore_errors=True)
            export_site(run, place)
            files = (file for file in place.rglob("*") if file.is_file() and file.name != LIST)
            self._site = {file.relative_to(place).as_posix(): file for file in files}
        return self._site
