"""The life of a run: lock its folder, compare the spec, resume, write the results.

Every command that writes a run folder goes through here. A command that was stopped or killed goes
on from the parts that it has kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from typing import Any

import xarray as xr

from headscope.core.whole_file import held
from headscope.errors import RunFolderError, RunStopped, memory_told
from headscope.run.manifest import Manifest, label, versions
from headscope.run.manifest_file import RESULTS
from headscope.run.netcdf import tree_as_netcdf
from headscope.run.other_request import other_request
from headscope.run.processes import TakingPart, drop_all, records
from headscope.run.settings import fingerprint
from headscope.run.shared_parts import KeptParts, Member
from headscope.run.store import Run, RunFolder, open_run

Progress = Callable[[int, int], None]
TOO_MUCH = "finished shards are kept; wanted smaller --batch-tokens, or a shorter --max-length"
MOST_SAID = 6  # differences from the request of the run in the folder
INSTEAD = "nothing of it can be reused: choose another folder with -o, or --overwrite it"


class Meter:
    """Progress of a job in stages, some of which may be skipped or end early.

    total     items of all stages
    progress  called as progress(done, total)
    """

    def __init__(self, total: int, progress: Progress | None = None) -> None:
        self.total, self.progress = total, progress
        self.done, self._end = 0, total

    def advance(self, count: int) -> None:
        """Count more finished items; never more than the stage has."""
        self.done = min(self.done + count, self._end)
        if self.progress is not None:
            self.progress(self.done, self.total)

    @contextmanager
    def stage(self, size: int) -> Iterator[None]:
        """Inside the context a stage of `items` runs; afterwards all of them count as done."""
        start = self.done
        self._end = start + size
        yield
        self.done = start
        self.advance(size)


class RunInProgress(KeptParts):
    """A run between its first file and its results.

    manifest  of this run; written when the run begins and when it ends
    said      how it goes on otherwise than requested
    """

    folder: RunFolder | None

    def __init__(
        self, folder: RunFolder | None, manifest: Manifest, own: TakingPart | None = None
    ) -> None:
        super().__init__(folder, manifest["fingerprint"], own)
        self.manifest = manifest
        self.said: tuple[str, ...] = ()

    @property
    def linears(self) -> str:
        """ "onednn" or "stock", as chosen when the run began."""
        return str(self.manifest["linears"])

    def finished(self) -> Run | None:
        """The finished run, if its results are complete."""
        digest = self.manifest.get("results_sha256")
        if self.folder is None or not self.folder.has_results(digest):
            return None
        self.clear()  # of a run that was killed when its results were written
        return replace(open_run(self.folder.path), said=self.said)

    def elsewhere(self) -> Run:
        """The run, if another process has written its results."""
        run = self.finished()
        assert run is not None
        return replace(run, elsewhere=True)

    def refreshed(self) -> bool:
        """See what is finished by now, by any process; whether the results are."""
        assert self.folder is not None
        if (self.folder.path / RESULTS).is_file():
            self.manifest = self.folder.manifest() or self.manifest
            if self.folder.has_results(self.manifest.get("results_sha256")):
                return True
        return super().refreshed()

    def clear(self) -> None:
        """Delete what only an unfinished run needs."""
        assert self.folder is not None
        with suppress(OSError):  # another process may do it too
            if self.own:  # nobody writes any more
                self.folder.clear_drafts()
        self.folder.drop_shards()
        drop_all(self.folder.path)

    def lead(self) -> None:
        """Go on alone, of several processes, when nothing is left to share.

        raises  WrittenElsewhereError in the others, once the results are there
        """
        if self.own is not None:
            member = Member(self, (), lambda number: {}, len)
            member.together(lambda: member.finishing() or None)

    def finish(self, results: Mapping[str, xr.Dataset], *, title: str, **attrs: str) -> Run:
        """Label the results, write them, and complete the manifest.

        results  by group
        attrs    further attributes of the root
        raises   WrittenElsewhereError where another of several processes has done it
        """
        self.lead()
        tree = label(results, self.manifest, title=title, **attrs)
        if self.folder is None:
            return Run(tree, self.manifest, said=self.said)
        self._note_processes()
        self.manifest["results_sha256"] = self.folder.put_results(tree_as_netcdf(tree))
        self.save_manifest()
        self.clear()  # results and manifest are synced: power may fail from here on
        return Run(tree, self.manifest, self.folder.path, said=self.said)

    def _note_processes(self) -> None:
        """Say in the manifest on what kinds of processors how many shards were computed."""
        assert self.folder is not None
        if self.own is None:
            return
        kinds, others = Counter[str](), self.manifest.get("continued_with", [])
        for record in records(self.folder.path).values():
            kinds[str(record.get("processor", "unknown"))] += int(record.get("shards", 0))
            now = record.get("versions")
            if record.get("shards") and now not in [None, self.manifest["versions"], *others]:
                others = [*others, now]
        self.manifest |= {"processors": dict(sorted((+kinds).items()))}
        self.manifest |= {"continued_with": others} if others else {}

    def note_versions(self) -> None:
        """Say in the manifest that other versions of the libraries go on with an unfinished run."""
        now, begun = versions(), self.manifest.get("versions")
        others = self.manifest.get("continued_with", [])
        if begun and now not in [begun, *others] and "results_sha256" not in self.manifest:
            self.manifest["continued_with"] = [*others, now]
            self.save_manifest()

    def note_linears(self, requested: str) -> None:
        """Note that the run was begun with another kind of linear maps than is requested now, or
        that the cache did not serve to choose one.
        """
        trouble = str(self.manifest.get("linears_by", "")).partition("; ")[2]
        self.said = (trouble,) if trouble and requested == "auto" else ()
        if requested not in ("auto", self.linears):
            self.said = (
                f"the run was begun with --linears {self.linears}, and stays so: --linears "
                f"{requested} is for a new folder, or --overwrite",
            )

    def save_manifest(self) -> None:
        """Write the current manifest."""
        if self.folder is not None:
            self.folder.write_manifest(self.manifest)

    def stopped(self) -> str:
        """The progress of the run and how to resume it; "" for a run in memory without shards."""
        if shards := self.manifest.get("shards"):
            kept = " and kept: the same command goes on from here" if self.folder else ""
            return f"stopped; {len(self.done)} of {shards} shards are finished{kept}"
        return "stopped; the same command goes on from what is finished" if self.folder else ""


@contextmanager
def run_in_progress(
    folder: RunFolder | None,
    spec: Mapping[str, Any],
    new_manifest: Callable[[], Manifest],
    *,
    overwrite: bool,
    instead: str = INSTEAD,
    own: TakingPart | None = None,
) -> Iterator[RunInProgress]:
    """Lock a run folder for the run of one spec.

    folder        is locked while the context lasts; None: the run is in memory
    spec          everything that decides the numbers
    new_manifest  gives the manifest of a run that begins; not called where one is continued
    overwrite     replace a run of another spec
    instead       what to do where the folder holds a run of another spec
    own           this process, where several fill the folder together; it keeps out all others
    raises        RunFolderError where another process writes, or where the folder holds something
                  else or a run of another spec; RunStopped on Ctrl-C; HeadscopeError where memory
                  runs out
    """
    here = held(folder.path, shared=own is not None) if folder else nullcontext()
    with memory_told(TOO_MUCH), here:
        manifest = None
        if folder is not None:
            if own is None:
                folder.prepare(overwrite=overwrite and _differs(folder, spec))
            manifest = _manifest_of_spec(folder, spec, instead, new_manifest)
        begins = manifest is None
        if manifest is None:
            manifest = new_manifest()
            if own and folder and not folder.begin(manifest):  # another process was faster
                manifest = _manifest_of_spec(folder, spec, instead, new_manifest) or manifest
        run = RunInProgress(folder, manifest, own)
        if own is not None:
            own.tell(versions=versions())
        elif begins:
            run.save_manifest()
        else:
            run.note_versions()
        try:
            yield run
        except KeyboardInterrupt as error:
            if text := run.stopped():
                raise RunStopped(text) from error
            raise


def _manifest_of_spec(
    folder: RunFolder,
    spec: Mapping[str, Any],
    instead: str = INSTEAD,
    new_manifest: Callable[[], Mapping[str, Any]] | None = None,
) -> Manifest | None:
    manifest = folder.manifest()
    if manifest is None or manifest["fingerprint"] == fingerprint(spec):
        return manifest
    now = new_manifest() if new_manifest else {"spec": spec}
    where = other_request(manifest, now)
    raise RunFolderError(
        f"{folder.path} holds a run with other settings "
        f"({'; '.join(where[:MOST_SAID])}{'; …' if len(where) > MOST_SAID else ''})\n{instead}"
    )


def _differs(folder: RunFolder, spec: Mapping[str, Any]) -> bool:
    try:
        _manifest_of_spec(folder, spec)
    except RunFolderError:
        return True
    return False
