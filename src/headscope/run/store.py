"""A run folder on disk: manifest, shards and results; and a finished run as an object.

    RUN/manifest.json   the spec, versions, model and corpus; written before the first shard
    RUN/shards/*/       one file per finished shard, by the hash of its content; gone at the end
    RUN/processes/      of processes that fill the folder together; gone at the end
    RUN/atlas.nc        the labelled results, written last

Every file is written beside its place, synced and renamed: readers, and a crash, see all of it or
nothing. Nothing here needs a model or torch.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import headscope
from headscope.claims.question import named
from headscope.core.inside import (
    digest_inside,
    drop_inside,
    is_inside,
    names_inside,
    opened_inside,
    read_inside,
)
from headscope.core.whole_file import DRAFT, held, names_in, why_unwritten, write_whole
from headscope.errors import InputError, RunFolderError, told_as
from headscope.run.manifest_file import (
    CHECKSUM,
    KINDS,
    KINDS_OF_RESULTS,
    MANIFEST,
    RESULTS,
    check_kinds,
    checksum_of,
    no_run,
    sealed,
)
from headscope.run.processes import DIVIDED, PROCESSES, drop_all
from headscope.run.shard_files import SHARDS, ShardFiles
from headscope.run.written_files import LIST, listing, written_files

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from headscope.run.execution import Execution


class RunFolder(ShardFiles):
    """A run folder on disk.

    parts  the name of its folder of shards, or of whole runs
    """

    def __init__(self, path: Path | str, *, parts: str = SHARDS, keep_shards: bool = False) -> None:
        super().__init__(path, keep_shards=keep_shards)
        self.parts = parts

    def manifest(self) -> dict[str, Any] | None:
        """The manifest; None without a run; RunFolderError if it is damaged or was changed."""
        file = self.path / MANIFEST
        try:
            manifest = dict(json.loads(read_inside(self.path, MANIFEST)))
            _ = manifest["fingerprint"], manifest["spec"]
            checksum = manifest.pop(CHECKSUM)
            check_kinds(manifest, KINDS)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (ValueError, TypeError, KeyError, OSError, RecursionError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise RunFolderError(
                f"{file} is no manifest of a run of headscope ({why[:200]}); no file was "
                "changed: choose another folder with -o"
            ) from error
        if checksum != checksum_of(manifest):
            raise RunFolderError(
                f"{file} is damaged or was changed: its checksum is wrong; no file was changed: "
                "put the old file back, or choose "
                "another folder with -o"
            )
        return manifest

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Replace the manifest, and store a checksum of its content."""
        write_whole(self.path / MANIFEST, sealed(manifest))

    def begin(self, manifest: Mapping[str, Any]) -> bool:
        """Write the manifest unless another process was first; returns whether it was written."""
        try:
            write_whole(self.path / MANIFEST, sealed(manifest), anew=True)
        except FileExistsError:
            return False
        return True

    def check(self) -> None:
        """Raise RunFolderError for a place that cannot hold a run; writes nothing."""
        place = self.path
        while not place.exists() and place != place.parent:
            place = place.parent
        if not place.is_dir():
            raise RunFolderError(f"{place} is a file; wanted a folder for the run (-o {self.path})")
        if not os.access(place, os.W_OK | os.X_OK):
            raise RunFolderError(f"cannot write to {place}; choose another folder with -o")
        names = names_in(place) if place == self.path else []
        for name in {SHARDS, self.parts, PROCESSES}.intersection(names):
            if (place / name).is_symlink():
                raise RunFolderError(
                    f"{place / name} is a link; nothing outside a run folder is written; "
                    "choose another with -o"
                )
        if MANIFEST not in names:  # in one look: another process may begin the run meanwhile
            strange = [name for name in names if not self._ours_without_manifest(place / name)]
            if strange:
                raise RunFolderError(
                    f"{self.path} holds {min(strange)!r} but no run; "
                    "choose an empty or a new folder with -o"
                )

    def prepare(self, *, overwrite: bool) -> None:
        """Make the folder ready for writing; the caller holds its lock.

        Without a manifest nobody knows which spec a shard belongs to, so such shards are deleted,
        and so are drafts of a process that was killed. Overwriting removes what the run wrote, and
        nothing else that lies there.

        raises  RunFolderError where what is to be overwritten is no run of ours
        """
        self.check()
        try:
            if overwrite and self.manifest() is not None:
                self._remove()
            # A shard makes its own folder: a finished run has none, and is left as it is.
            inner = self.path if self.parts == SHARDS else self.path / self.parts
            inner.mkdir(parents=True, exist_ok=True)
            stale = [] if (self.path / MANIFEST).exists() else self._shard_files()
            for name in [*self.drafts(), *stale]:
                drop_inside(self.path, name)
        except OSError as error:
            raise why_unwritten(error, self.path) from error
        drop_all(self.path)  # who holds the folder alone knows that they are dead

    def drafts(self) -> list[str]:
        """Names of unfinished files of a killed process."""
        places = ("", "*/", "figures/*/", f"{SHARDS}/*/")
        drafts = (file for place in places for file in self.path.glob(f"{place}{DRAFT}*"))
        return [file.relative_to(self.path).as_posix() for file in drafts]

    def clear_drafts(self) -> None:
        """Delete them."""
        for name in self.drafts():
            drop_inside(self.path, name)

    def _remove(self) -> None:
        """Remove the run's files, the manifest last: killed before, the folder is still a run."""
        for place in (f"{self.parts}/{part}" for part in names_in(self.path / self.parts)):
            if is_inside(self.path, f"{place}/{MANIFEST}"):
                with suppress(RunFolderError, OSError):  # what is no run of ours stays
                    run = RunFolder(self.path / place)
                    run.manifest()
                    with held(run.path):
                        run._remove()
                        drop_inside(self.path, place)
        names = [*self._shard_files(), *self.listed(), "report.html", RESULTS, LIST, MANIFEST]
        for name in names:
            drop_inside(self.path, name)
        emptied = {str(folder) for name in names for folder in PurePosixPath(name).parents}
        for name in sorted(emptied - {"."}, key=lambda name: name.count("/"), reverse=True):
            with suppress(OSError):  # something else lies there
                drop_inside(self.path, name)

    def listing(self) -> AbstractContextManager[None]:
        """Inside the context, files written to the folder are listed as the run's own."""
        return listing(self.path)

    def listed(self) -> dict[str, str]:
        """The sha256 of tables, figures and pages that the run wrote, by name in the folder."""
        return written_files(self.path)[0]

    def _ours_without_manifest(self, file: Path) -> bool:
        if file.name in (SHARDS, self.parts) and file.is_dir():
            files = map(PurePosixPath, names_inside(self.path, file.name))
            return all(p.suffix == ".shard" or p.name.startswith(DRAFT) for p in files)
        return file.name.startswith(".") or (file.name == PROCESSES and file.is_dir())

    def put_results(self, content: bytes) -> str:
        """Write atlas.nc; returns its sha256 for the manifest."""
        write_whole(self.path / RESULTS, content)
        return hashlib.sha256(content).hexdigest()

    def has_results(self, sha256: str | None) -> bool:
        """Whether atlas.nc exists and has this hash."""
        return bool(sha256) and digest_inside(self.path, RESULTS) == sha256


def open_run(path: str | Path) -> Run:
    """A finished run from its folder.

    raises  RunFolderError if it is none, if it is not finished, or if its results are not those
            that were written; what only atlas.nc is left of is opened unchecked
    """
    folder = RunFolder(path)
    manifest, file = folder.manifest(), folder.path / RESULTS
    digest = None if manifest is None else manifest.get("results_sha256", "")
    if not os.path.lexists(file) or digest == "":
        if manifest is None:
            raise RunFolderError(no_run(path))
        again = f": {manifest['command']}" if manifest.get("command") else ""
        raise RunFolderError(f"the run in {path} is not finished; run its command again{again}")
    try:
        check_kinds(manifest or {}, KINDS_OF_RESULTS)
    except TypeError as error:
        raise RunFolderError(
            f"{folder.path / MANIFEST} is no manifest of a run with results ({error})"
        ) from error
    from headscope.run.netcdf import tree_of_netcdf  # not for who only looks at the folder

    def damaged(said: str) -> RunFolderError:
        return RunFolderError(f"{file} is damaged ({said[:150]}); run the run's command again")

    with told_as(damaged), opened_inside(folder.path, RESULTS) as content:
        if digest and hashlib.file_digest(content, "sha256").hexdigest() != digest:
            raise damaged("its checksum is wrong")
        tree = tree_of_netcdf(content)
    return Run(tree, manifest or {}, folder.path)


@dataclass
class Run:
    """The results of a run, one xarray Dataset per analysis.

    tree      the whole, an xarray DataTree; with its control, if it has one
    manifest  request and results; empty if only atlas.nc was left of the folder
    path      the run folder; None: in memory
    elsewhere whether another process of several wrote the results
    said      how this command went on otherwise than requested
    """

    tree: xr.DataTree
    manifest: dict[str, Any] = field(repr=False)
    path: Path | None = None
    elsewhere: bool = field(default=False, kw_only=True, repr=False)
    said: tuple[str, ...] = field(default=(), kw_only=True, repr=False)

    @property
    def notes(self) -> tuple[str, ...]:
        """What makes the numbers doubtful, and what was not done as requested."""
        return (*map(str, self.manifest.get("notes", ())), *self.said)

    def __getitem__(self, name: str) -> xr.Dataset:
        if name not in self.tree.children:
            raise KeyError(f"no analysis called {name!r} in this run; there are {', '.join(self)}")
        return self.tree.children[name].to_dataset(inherit=False)

    def __iter__(self) -> Iterator[str]:
        from headscope.claims.control import BASE, CONTROL
        from headscope.claims.length_bands import BANDS

        beside = BASE, CONTROL, BANDS
        return (str(name) for name in self.tree.children if name not in beside)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return name in self.tree.children

    def heads(self, *numbers: str) -> pd.DataFrame:
        """One row per head, with `numbers` as well, say "surface.attention.previous"."""
        frame: pd.DataFrame = headscope.head_frame(self.tree, *numbers)
        return frame

    def find(self, what: str) -> pd.DataFrame:
        """The heads that do something, say "direct object"; `is_label`: by the rule of its kind."""
        return headscope.find_heads(self.tree, what)

    def explain(self, head: str | tuple[int, int]) -> dict[str, Any]:
        """The rules of a head, "L3H9" or (2, 8) from 0, and how much of it they explain."""
        question = named("explained")
        assert question is not None
        return dict(question.named_part("rules_as_data:explanation")(self.tree, head))

    def figure(self, name: str, *, columns: int | None = None) -> Figure:
        """A figure of the report with its caption, by the name of its file: "best_heads".

        columns  of a journal: 1 or 2; None: what suits the figure
        raises   InputError for what is not there, with all names
        """
        shown: Figure = headscope.run_figure(self.tree, name, columns=columns)
        return shown

    def report(self, path: str | Path | None = None) -> Path:
        """(Re)build tables, figures and report.html from the results; returns report.html.

        path  writes the page there instead; a run in memory needs it
        """
        if path is not None:
            with self.showing():
                return Path(headscope.write_report(self, path))
        if self.path is None:
            raise InputError(
                "this run is in memory; give report('report.html'), or atlas(..., output=FOLDER)"
            )
        with held(self.path, instead="wait until it has finished"):
            digest = self.manifest.get("results_sha256")
            if digest is not None and not RunFolder(self.path).has_results(digest):
                raise RunFolderError(
                    f"{self.path} has new results since this run was opened; open it again"
                )
            RunFolder(self.path).clear_drafts()
            # As it was read or is read later: its parts stand in another order in memory.
            manifest = RunFolder(self.path).manifest() or self.manifest
            with self.showing():
                return Path(headscope.write_report(Run(self.tree, manifest, self.path), self.path))

    @property
    def unproven(self) -> str:
        """A warning about results without a manifest; "" with one."""
        if self.manifest or self.path is None:
            return ""
        return (
            f"{self.path} has no {MANIFEST}: nothing says what these results were computed from, "
            "or whether they were changed"
        )

    @contextmanager
    def showing(self) -> Iterator[None]:
        """Inside the context, what goes wrong as results of a folder are shown may be their fault.

        raises  RunFolderError that says so, in place of errors that no code of headscope raises
        """
        if self.path is None:
            yield
            return
        with told_as(
            lambda said: RunFolderError(
                f"the results in {self.path} cannot be shown ({said[:150]}): they are not such as "
                "headscope writes, or this is an error of headscope\nask headscope doctor, or run "
                "their command again; if they are your own, run again with --debug and report it"
            )
        ):
            yield

    @property
    def has_report(self) -> bool:
        """Whether report.html is there, newer than the results, with all tables and figures."""
        if self.path is None:
            return False
        page, results = self.path / "report.html", self.path / RESULTS
        newer = page.is_file() and page.stat().st_mtime_ns >= results.stat().st_mtime_ns
        listed = RunFolder(self.path).listed() if newer else {}
        return bool(listed) and all(is_inside(self.path, name) for name in listed)

    def __repr__(self) -> str:
        from headscope.core.results import counted, documents

        a, many = self.tree.attrs, counted(self.tree)
        many = many.removesuffix("s") if documents(self.tree) == 1 else many
        return (
            f"<headscope.Run {a.get('model', 'of a model')} on {documents(self.tree)} {many}, "
            f"{a.get('tokens', 'unknown')} tokens: {', '.join(self)}>"
        )

    def _repr_html_(self) -> str:
        with self.showing():
            return str(headscope.run_summary(self.tree, self.manifest))


def check_run_folder(folder: str | Path | None) -> None:
    """Raise RunFolderError for what cannot hold a run, before anything is computed."""
    if folder is not None:
        RunFolder(folder).check()


def folder_of(
    output: str | Path | None, execution: Execution, *, divided: bool = False
) -> RunFolder | None:
    """The run folder that is named, checked; None for a run in memory.

    divided  whether the work can be divided among processes
    raises   InputError for a shard of other work, or without a folder
    """
    if execution.shard is not None and not divided:
        raise InputError(f"found a shard; wanted none: it is for {', '.join(DIVIDED)}")
    if output is None:
        if execution.shard is not None:
            raise InputError("found a shard and no run folder; wanted output=FOLDER, one for all")
        return None
    folder = RunFolder(output, keep_shards=execution.keep_shards)
    folder.check()
    return folder
