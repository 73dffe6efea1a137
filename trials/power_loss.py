"""The power fails after each operation of a command, which goes on from what is then on the disk.

The command's operations are logged once and replayed up to every point, under three disks:

    ordered  names and sizes are kept in their order; content that was not synced is gone
    zeros    so too, but the content that is gone left zeros of its length
    strict   a name is kept only if its folder was synced since, and with it the folders around it

A kill, after which everything is kept, is `file-operations`' own: a state hits where something is
lost.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

import click

from trials import shim
from trials.desk import LABELS, OUT, SCENARIOS
from trials.file_operations import Bench, armed, bench_of, compared, contents, restore
from trials.forked import forked
from trials.outcomes import Tally

DISKS = ("ordered", "zeros", "strict")
LOST = 0.7  # of the states: in the others all that was written was safe by then
LOST_OF_LABELS = 0.6  # three small files: a third of their twelve states are safe
FOLDER = None  # in place of a file
SILENCE = 1.0  # seconds in place of 120 after which an unknown owner of a lease is dead


@click.command("power-loss")
@click.option("--only", default=",".join(SCENARIOS), show_default=True, help="Scenarios.")
@click.option("--every", default=1, show_default=True, help="Only each so many-th state.")
@click.option("--keep", default="trials-failed", show_default=True, type=click.Path(path_type=Path))
def command(only: str, every: int, keep: Path) -> None:
    """Drop what was not synced at every point of every command that writes."""
    shim.begin_again("trials")
    with Tally(keep.absolute()).told() as tally:
        for name in only.split(","):
            with bench_of(SCENARIOS[name]) as bench:
                attempt_all(bench, tally, every=every)


@dataclass(eq=False)
class File:
    """A file on a disk: its content, and what of it is safe."""

    content: bytearray
    safe: bytes = b""


@dataclass
class Disk:
    """What is there, and what a power loss leaves of it; paths are absolute.

    names  path → file, or FOLDER
    kept   the same, as far as the folders were synced
    """

    root: str
    names: dict[str, File | None] = field(default_factory=dict)
    kept: dict[str, File | None] = field(default_factory=dict)

    @classmethod
    def of(cls, out: Path, start: Path) -> Disk:
        """A disk that holds a copy of `start`, all of it safe, below `out`."""
        names: dict[str, File | None] = {}
        for path in sorted(start.rglob("*")):
            content = None if path.is_dir() else path.read_bytes()
            file = FOLDER if content is None else File(bytearray(content), content)
            names[str(out / path.relative_to(start))] = file
        return cls(str(out), names, dict(names))

    def apply(self, each: Mapping[str, Any]) -> None:
        """One operation of the log."""
        path, file = each["path"], self.names.get(each["path"])
        match each["name"]:
            case "open" | "create":
                if file is None:
                    self.names[path] = File(bytearray())
                elif each["name"] == "create":
                    file.content.clear()
                    file.safe = b""  # its size is safe before what is written next
            case "write" if file is not None:
                end = each["place"] + len(each["bytes"])
                file.content.extend(bytes(max(0, end - len(file.content))))
                file.content[each["place"] : end] = each["bytes"]
            case "truncate" if file is not None:
                del file.content[each["place"] :]
                file.safe = file.safe[: each["place"]]
            case "fsync" if file is not None:
                file.safe = bytes(file.content)
            case "fsync":
                self._keep(path)
            case "mkdir":
                self.names[path] = FOLDER
            case "link":
                self.names[each["to"]] = file
            case "unlink" | "rmdir":
                self.names.pop(path, None)
            case "rename":
                inside = [name for name in self.names if _within(name, each["to"])]
                for name in inside:
                    del self.names[name]
                for name in [name for name in self.names if _within(name, path)]:
                    self.names[each["to"] + name[len(path) :]] = self.names.pop(name)

    def _keep(self, folder: str) -> None:
        """The names in a folder are safe now, and so are the folders around it."""
        for names in (self.names, self.kept):
            for name in [n for n in names if n.rpartition("/")[0] == folder]:
                if name in self.names:
                    self.kept[name] = self.names[name]
                else:
                    for gone in [n for n in self.kept if _within(n, name)]:
                        del self.kept[gone]
        for above in PurePosixPath(folder).parents:
            if str(above) in self.names:
                self.kept[str(above)] = FOLDER
        if folder in self.names:
            self.kept[folder] = FOLDER

    def after(self, disk: str) -> dict[str, bytes | None]:
        """What is left, of a disk that "keeps" all of it: content by path below the root; None for
        a folder."""
        names = self.kept if disk == "strict" else self.names
        left = {}
        for name, file in names.items():
            content = None if file is None else file.safe
            if file is not None and content is not None and disk == "zeros":
                content += bytes(max(0, len(file.content) - len(content)))
            if file is not None and disk == "keeps":
                content = bytes(file.content)
            left[name.removeprefix(self.root + "/")] = content
        return left


def _within(name: str, folder: str) -> bool:
    return name == folder or name.startswith(folder + "/")


def states(
    log: bytes, out: Path, start: Path
) -> Iterator[tuple[str, dict[str, bytes | None], int, bool]]:
    """(where the power failed, what is left, writes of labels before it, whether anything is lost),
    each state once."""
    disk, seen = Disk.of(out, start), set()
    effects = [each for each in shim.operations(log) if not each["name"].startswith("?")]
    labelled = 0
    for number, each in enumerate(effects):
        disk.apply(each)
        labelled += each["name"] == "write" and "/labels-" in each["path"]
        whole = disk.after("keeps")
        for kind in DISKS:
            left = disk.after(kind)
            key = hash(
                (
                    labelled,
                    *sorted(
                        (name, content) for name, content in left.items() if content is not None
                    ),
                    *sorted(name for name in left if left[name] is None),
                )
            )
            if key not in seen:
                seen.add(key)
                last = number == len(effects) - 1
                where = f"{kind} disk, after operation {number} ({each['name']} {each['path']})"
                yield where, left, labelled if last else max(0, labelled - 1), left != whole


def attempt_all(bench: Bench, tally: Tally, *, every: int = 1) -> None:
    """Every state that a scenario can be left in."""
    scenario = bench.scenario
    place = bench.desk.parent
    out, log = bench.desk / OUT, place / "log"
    restore(bench.start, out)
    forked(partial(armed, scenario, bench.desk, None, 0, log), place / "streams")
    before = contents(bench.start)
    name = f"{scenario.name}, powerless"
    tally.share[name] = LOST_OF_LABELS if scenario.name == "labels" else LOST
    every_state = states(log.read_bytes(), out, bench.start)
    for where, left, labelled, lost in islice(every_state, 0, None, every):
        shutil.rmtree(out)
        write_out(left, out)
        outcome, what = after_loss(bench, before, labelled)
        tally.add(name, outcome, f"{where}: {what}", lost, files=out)
    click.echo(tally.lines()[len(tally.counts) - 1])


def write_out(left: Mapping[str, bytes | None], out: Path) -> None:
    """Make a folder of what is left."""
    out.mkdir()
    for name, content in sorted(left.items()):
        path = out / name
        if content is None:
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def after_loss(bench: Bench, before: dict[str, bytes], labelled: int) -> tuple[str, str]:
    """(outcome, words): it opens with right results or not at all; the command goes on."""
    out, streams = bench.desk / OUT, bench.desk.parent / "streams"
    opened = forked(partial(open_results, out), streams)
    if opened.code == 0:
        results = [(out / name).read_bytes() for name in opened.out.split()]
        known = [*bench.reference.values(), *before.values()]
        if any(result not in known for result in results):
            return "wrong", "results open that nobody made"
    elif not opened.clear:
        return "unclear error", opened.err[-400:]
    if bench.scenario.name == "labels":
        file = out / "session/labels-a.csv"
        lines = file.read_text().splitlines() if file.is_file() else []
        wanted = [f"{number},{name}" for number, name in enumerate(LABELS[:labelled])]
        if lines[:labelled] != wanted:
            return "wrong", f"{labelled} labels were kept; found {lines}"
    again = forked(partial(resumed, bench), streams)
    if again.code is None:
        return "hang", again.err[-800:]
    if again.code:
        # Refused in words, too: a manifest that was renamed before it was synced would be.
        return "torn" if again.clear else "unclear error", again.err[-400:]
    return compared(contents(out), bench.reference)


def resumed(bench: Bench) -> None:
    """In a child: the command again, which soon takes over what a lease without content holds."""
    from headscope.run import processes

    processes.SILENCE = SILENCE
    bench.scenario.work(bench.desk)()


def open_results(out: Path) -> None:
    """In a child: the results below a folder that can be opened, by name; else the last error."""
    from headscope.cli.terminal_output import complain
    from headscope.errors import HeadscopeError
    from headscope.run.store import open_run

    refused = None
    for file in sorted(out.rglob("atlas.nc")):
        try:
            open_run(file.parent)
            print(file.relative_to(out))
        except HeadscopeError as error:
            refused = error
    if refused is not None:
        complain(str(refused))
        raise SystemExit(refused.exit_code)
