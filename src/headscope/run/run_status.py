"""The progress of a run folder: finished shards, active processes, rate and errors."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from headscope.core.whole_file import holder_of
from headscope.errors import RunFolderError
from headscope.run.merge_tree import children
from headscope.run.processes import ENDED, LOADING, PROCESSES, SILENCE, gone, records
from headscope.run.shard_files import numbers_in
from headscope.run.store import RunFolder

ALIVE = (
    LOADING,
    "planning",
    "computing",
    "merging",
    "waiting",
    "finishing",
)  # states, unless the process is dead


@dataclass(frozen=True)
class RunStatus:
    """The progress of a run.

    state      "finished", "running", "stopped" (nobody computes), "planning" or "empty"
    done       shards that are finished, of `shards`; None where that is not known yet
    rate       shards per second of all processes that live; None where nobody has computed one
    processes  a record each, with `state` "dead" for one that ended without a word
    holder     who writes to the folder alone; "" for nobody
    command    that goes on with the run
    unit       what they are: "parts", of what is no atlas
    """

    state: str
    done: int
    shards: int | None
    rate: float | None
    processes: list[dict[str, Any]] = field(default_factory=list)
    holder: str = ""
    command: str = ""
    unit: str = "shards"

    @property
    def seconds_left(self) -> float | None:
        """Estimated seconds until the last shard is finished; None if unknown."""
        if self.state != "running" or not self.rate or self.shards is None:
            return None
        return (self.shards - self.done) / self.rate

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for --json."""
        return {**vars(self), "seconds_left": self.seconds_left}

    def lines(self) -> Iterator[str]:
        """The status in words: one line for the run, then one for each process."""
        of = "" if self.shards is None else f"{self.done} of {self.shards} {self.unit} are done"
        left = self.seconds_left
        if left and self.rate is not None:
            of += f", {60 * self.rate:.3g} a minute, {timedelta(seconds=round(left))} left"
        yield ": ".join(filter(None, (self.state, of)))
        if self.holder:
            yield f"one process writes{self.holder}"
        elif self.state == "stopped" and self.command:
            yield f"nobody computes; go on with it: {self.command}"
        for one in self.processes:
            yield _line(one, self.unit)


def _line(one: Mapping[str, Any], unit: str) -> str:
    name = f"{one.get('shard', '?')} on {one.get('host', '?')}, process {one.get('pid', '?')}"
    what = str(one["state"])
    if what in ALIVE and one.get("doing"):
        what += f" ({one['doing']})"
    done = one.get("shards", 0)
    error = str(one.get("error") or "").replace("\n", " / ")
    return f"  {name}: {what}; {done} {unit}" + (f"; {error}" if error else "")


def run_status(path: str | Path) -> RunStatus:
    """The progress of the run in a folder; changes nothing and reads no shard.

    raises  RunFolderError for a folder without a run or processes, or with a damaged manifest
    """
    folder = RunFolder(path)
    manifest = folder.manifest()
    processes = _processes(folder.path)
    if manifest is None and not processes:
        raise RunFolderError(f"{path} holds no run; wanted the -o of a command")
    manifest = manifest or {}
    # Of what is no atlas the processes tell how many parts they know of by now.
    shards: int | None = manifest.get("shards") or None
    unit = "shards" if shards or not manifest else "parts"
    shards = shards or max((one.get("parts", 0) for one in processes), default=0) or None
    holder = holder_of(folder.path)
    rates = [
        one["shards"] / one["seconds"]
        for one in processes
        if one["state"] in ALIVE and one.get("shards") and one.get("seconds")
    ]
    alive = holder or any(one["state"] in ALIVE for one in processes)
    written = folder.has_results(manifest.get("results_sha256"))
    if written or (manifest.get("models") and not alive):  # a zoo has no results of its own
        return RunStatus("finished", shards or 0, shards, None, processes, unit=unit)
    state = "stopped"
    if alive:
        state = "running" if manifest else "planning"
    done = len(numbers_in(folder.named_spans()))
    return RunStatus(
        state,
        done,
        shards,
        sum(rates) or None,
        processes,
        holder,
        manifest.get("command", ""),
        unit,
    )


def all_shards_there(folder: RunFolder) -> bool:
    """Whether all shards of a run exist, judged by the names of their files.

    raises  RunFolderError for a damaged manifest
    """
    shards: int = (folder.manifest() or {}).get("shards", 0)
    return shards > 0 and set(children((0, shards - 1))) <= folder.named_spans()


def _processes(folder: Path) -> list[dict[str, Any]]:
    """The records; one that stopped changing belongs to a dead process.

    Times of change are compared with each other, and with that of a file made now: all are the
    file system's, whatever clock it has.
    """
    by_file = records(folder)
    changed = {file: _changed(file) for file in by_file}
    now = max([*changed.values(), _now(folder / PROCESSES) if by_file else 0.0])
    for file, one in by_file.items():
        one.setdefault("state", "unknown")
        silent = now - changed[file]
        if one["state"] not in ENDED and (gone(one) or silent > SILENCE):
            since = timedelta(seconds=round(silent))
            said = f"silent for {since}" if silent > SILENCE else "ended without a word"
            doing = f" ({one['doing']})" if one.get("doing") else ""
            one |= {"error": f"{said} while {one['state']}{doing}"}
            one["state"] = "dead"
    return list(by_file.values())


def _changed(file: Path) -> float:
    with suppress(OSError):
        return file.stat().st_mtime
    return 0.0


def _now(place: Path) -> float:
    """The file system's time; 0 where nothing can be written."""
    probe = place / f".now-{os.getpid()}"
    try:
        with probe.open("x") as made:  # no link that lies there
            return os.fstat(made.fileno()).st_mtime
    except OSError:
        return 0.0
    finally:
        with suppress(OSError):
            probe.unlink()
