"""Open the results of a run, and read them by the names of the analyses; without model or torch.

run = open_run("atlas-demo")
run["flow"]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import xarray as xr

import headscope
from headscope.errors import InputError, RunFolderError
from headscope.run.store import RESULTS, RunFolder


def open_run(path: str | Path) -> Run:
    """A finished run from its folder; raises RunFolderError if it is none, or not finished."""
    folder = RunFolder(path)
    manifest, file = folder.manifest(), folder.path / RESULTS
    if not file.is_file():
        if manifest is None:
            raise RunFolderError(
                f"{path} is no run folder: it has no {RESULTS}; give the -o of atlas"
            )
        again = f": {manifest['command']}" if manifest.get("command") else ""
        raise RunFolderError(f"the run in {path} is not finished; run its command again{again}")
    try:
        tree = xr.load_datatree(file, engine="h5netcdf")
    except (OSError, ValueError, KeyError) as error:
        raise RunFolderError(
            f"{file} is damaged ({str(error).splitlines()[0][:100]}); "
            "run the run's command again: finished shards are kept"
        ) from error
    return Run(tree, manifest or {}, folder.path)


@dataclass
class Run:
    """The results of a run, one xarray Dataset per analysis.

    tree      the whole, an xarray DataTree
    manifest  what was asked and found; empty if only atlas.nc was left of the folder
    path      the run folder, or None if the run was in memory
    """

    tree: xr.DataTree
    manifest: dict[str, Any] = field(repr=False)
    path: Path | None = None

    def __getitem__(self, name: str) -> xr.Dataset:
        """The results of one analysis."""
        if name not in self.tree.children:
            there = ", ".join(self.tree.children)
            raise KeyError(f"no analysis called {name!r} in this run; there are {there}")
        return self.tree.children[name].to_dataset(inherit=False)

    def __iter__(self) -> Iterator[str]:
        """The names of the analyses that were run."""
        return iter(self.tree.children)

    def __len__(self) -> int:
        """How many analyses there are."""
        return len(self.tree.children)

    def __contains__(self, name: object) -> bool:
        """Whether an analysis was run."""
        return name in self.tree.children

    def report(self) -> Path:
        """(Re)build tables, figures and report.html from the results; returns report.html."""
        if self.path is None:
            raise InputError("this run is in memory; give atlas(..., output=FOLDER) for a report")
        page: Path = headscope.write_report(self.tree, self.manifest, self.path)
        return page

    @property
    def has_report(self) -> bool:
        """Whether report.html, which is written last, is there and newer than the results."""
        if self.path is None:
            return False
        page, results = self.path / "report.html", self.path / RESULTS
        return page.is_file() and page.stat().st_mtime_ns >= results.stat().st_mtime_ns

    def __repr__(self) -> str:
        """What was run on what, and which analyses there are."""
        a = self.tree.attrs
        return (
            f"<headscope.Run {a['model']} on {a['documents']} documents, {a['tokens']} tokens: "
            f"{', '.join(self)}>"
        )

    def _repr_html_(self) -> str:
        summary: str = headscope.run_summary(self.tree, self.manifest)
        return summary
