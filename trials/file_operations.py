"""Every k-th file operation fails: does the command say so, and does the same one go on from there?

A disk that is full from then on, one that fails once, a write of half its bytes, a kill before the
operation, and one in the midst of a write.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import islice
from pathlib import Path

import click

from trials import shim
from trials.desk import ATLAS, OUT, SCENARIOS, Scenario, lay, prepare
from trials.forked import forked, headscope
from trials.outcomes import BAD, Tally

DATES = (
    "created",
    "seconds",
    "command",
    "processors",
    "written_by",
)  # of a manifest or a record, what no result depends on
HIT = "hit"  # on the desk where the fault of the last child has happened
REMOVALS = ("unlink", "rmdir")  # what cannot be removed is left


@click.command("file-operations")
@click.option("--only", default=",".join(SCENARIOS), show_default=True, help="Scenarios.")
@click.option("--kinds", default=",".join(shim.KINDS), show_default=True, help="Kinds of faults.")
@click.option("--every", default=1, show_default=True, help="Only each so many-th operation.")
@click.option("--first", default=0, show_default=True, help="From this operation on.")
@click.option("--keep", default="trials-failed", show_default=True, type=click.Path(path_type=Path))
def command(only: str, kinds: str, every: int, first: int, keep: Path) -> None:
    """Let every k-th file operation of every command that writes fail."""
    shim.begin_again("trials")
    with Tally(keep.absolute()).told() as tally:
        for name in only.split(","):
            with bench_of(SCENARIOS[name]) as bench:
                attempt_all(bench, kinds.split(","), tally, every=every, first=first)


def attempt_all(
    bench: Bench, kinds: Sequence[str], tally: Tally, *, every: int = 1, first: int = 0
) -> None:
    """All faults of a scenario, or every so many-th of them."""
    scenario = bench.scenario
    faults = [
        (number, kind)
        for number, name in enumerate(bench.operations)
        for kind in kinds
        if name == "write" or kind not in shim.OF_WRITES
    ]
    click.echo(f"{scenario.name}: {len(bench.operations)} operations, {len(faults)} faults")
    for number, kind in islice(faults, first, None, every):
        tally.add(scenario.name, *bench.attempt(number, kind), files=bench.desk / OUT)
    click.echo(tally.lines()[len(tally.counts) - 1])


@contextmanager
def bench_of(scenario: Scenario) -> Iterator[Bench]:
    """A bench in a folder of its own, which is removed."""
    with tempfile.TemporaryDirectory(prefix="trial-", dir=memory()) as folder:
        yield Bench.of(scenario, Path(folder).resolve())


def memory() -> str | None:
    """A file system without a disk, where there is one: its syncs cost nothing."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


@dataclass(frozen=True)
class Bench:
    """A desk with what a scenario starts from, and what it ends in.

    start       a copy of what is there before
    reference   content of each file after a run that nothing disturbed
    operations  of that run, by name
    """

    scenario: Scenario
    desk: Path
    start: Path
    reference: dict[str, bytes]
    operations: list[str]

    @classmethod
    def of(cls, scenario: Scenario, folder: Path) -> Bench:
        """Lay a desk and run the scenario once for each of two references, which must be equal."""
        desk = lay(folder / "desk")
        warm(scenario, desk)
        start = Path(shutil.copytree(desk / OUT, folder / "start"))
        log = folder / "log"
        found = []
        for _ in range(2):
            restore(start, desk / OUT)
            done = forked(partial(armed, scenario, desk, None, 0, log), folder / "streams")
            if done.code:
                raise RuntimeError(f"{scenario.name} fails by itself: {done.err}{done.out}")
            found.append(contents(desk / OUT))
        if found[0] != found[1]:
            raise RuntimeError(f"{scenario.name} differs by itself: {differing(*found)}")
        logged = shim.operations(log.read_bytes())
        names = [each["name"][1:] for each in logged if each["name"].startswith("?")]
        return cls(scenario, desk, start, found[0], names)

    def attempt(self, number: int, kind: str) -> tuple[str, str, bool]:
        """(outcome, what happened, whether it did) of one fault."""
        outcome, what = self._attempt(number, kind)
        return outcome, what, (self.desk / HIT).exists()

    def there(self) -> int:
        """How many shards the run folder has."""
        from headscope.run.shard_files import numbers_in
        from headscope.run.store import RunFolder

        return len(numbers_in(RunFolder(self.desk / OUT / "run").named_spans()))

    def _attempt(self, number: int, kind: str) -> tuple[str, str]:
        out, streams = self.desk / OUT, self.desk.parent / "streams"
        restore(self.start, out)
        ended = forked(partial(armed, self.scenario, self.desk, kind, number, None), streams)
        told = " / ".join(ended.err.splitlines()[-4:])
        what = f"{kind} at operation {number}, {self.operations[number]}: {ended.code}, {told}"
        if ended.code is None:
            return "hang", what
        left = drafts(out, self.reference) if kind not in shim.KILLS else []
        unclear = ended.code > 0 and not ended.clear
        if ended.code == 0:
            outcome = self._finished(number)
        else:
            outcome, more = self._resumed(streams)
            what += f"; {more}" if more else ""
        if outcome in BAD:
            return outcome, what
        if left and self.operations[number] not in REMOVALS:
            return "draft left", f"{what} {left}"
        if unclear:
            return "unclear error", what
        how = "killed, " if ended.code < 0 else "clear error, " if ended.code else ""
        return how + outcome, what

    def _finished(self, number: int) -> str:
        """What a command has left that says it is done."""
        found = contents(self.desk / OUT)
        if found == self.reference:
            return "unharmed"
        same = {name: found[name] for name in found if name in self.reference} == self.reference
        of_removal = self.operations[number] in REMOVALS
        return "unharmed, but not removed" if same and of_removal else "wrong"

    def _resumed(self, streams: Path) -> tuple[str, str]:
        """What the same command comes to now."""
        again = forked(self.scenario.work(self.desk), streams)
        if again.code is None:
            return "hang", "when resumed"
        if again.code:
            return "torn", f"then {again.code}, {again.err[-400:]}"
        return compared(contents(self.desk / OUT), self.reference)


def armed(scenario: Scenario, desk: Path, kind: str | None, at: int, log: Path | None) -> None:
    """In a child: the scenario with one fault, or with a log of its operations.

    A file says whether the fault has happened; a kill lets nobody say that it has not.
    """
    hit = desk / HIT
    hit.touch()
    handle = -1
    if log is not None:
        handle = os.open(log, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
    faults = shim.faults()
    work = scenario.work(desk)
    faults.arm(desk / OUT, kind, at, handle)
    try:
        work()
    finally:
        if not faults.hits():
            hit.unlink()


def warm(scenario: Scenario, desk: Path) -> None:
    """Import in this process what the scenario needs, found by doing it in a child."""
    seen = desk / "modules"

    def work() -> None:
        try:
            scenario.work(desk)()
        finally:
            seen.write_text("\n".join(sys.modules))

    prepare(scenario, desk)
    start = Path(shutil.copytree(desk / OUT, desk / "before"))
    done = forked(work, desk / "streams")
    if done.code:
        raise RuntimeError(f"{scenario.name} fails by itself: {done.err}{done.out}")
    for name in seen.read_text().splitlines():
        if not name.startswith("__"):
            with suppress(Exception):
                import_module(name)
    with redirect_stdout(None), suppress(SystemExit):  # loads the compiled loops
        headscope((*ATLAS[:-1], str(desk / "warm"), "--no-report"), desk)
    gc.collect()
    gc.freeze()  # nothing of it is looked at, and copied, in a child
    restore(start, desk / OUT)
    shutil.rmtree(start)


def restore(start: Path, out: Path) -> None:
    """What was there before, in place of what is there."""
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(start, out)


def contents(folder: Path) -> dict[str, bytes]:
    """The content of each file; of records in JSON, without dates."""
    found = {}
    for file in sorted(folder.rglob("*")):
        if file.is_file() and not file.name.endswith(".lock"):
            content = file.read_bytes()
            if file.suffix == ".json":
                content = undated(content)
            found[file.relative_to(folder).as_posix()] = content
    return found


def undated(content: bytes) -> bytes:
    """A record without what no result depends on."""
    try:
        record = json.loads(content)
    except ValueError:
        return content
    if isinstance(record, dict):
        for name in (*DATES, "checksum"):
            record.pop(name, None)
    return json.dumps(record, sort_keys=True).encode()


def drafts(out: Path, reference: dict[str, bytes]) -> list[str]:
    """Drafts of files and folders; the working folder of a training is none."""
    return [
        name
        for name in (p.relative_to(out).as_posix() for p in out.rglob(".*"))
        if (".part" in name or name.endswith(".old")) and name not in reference
    ]


def compared(found: dict[str, bytes], wanted: dict[str, bytes]) -> tuple[str, str]:
    """The outcome of a command that was resumed and ended well, and which files say so."""
    if found == wanted:
        return "resumed equal", ""
    more = found.keys() - wanted.keys()
    if {name: found[name] for name in found if name not in more} == wanted:
        return "draft left after", str(sorted(more))
    return "wrong", str(differing(found, wanted))


def differing(one: dict[str, bytes], other: dict[str, bytes]) -> list[str]:
    """Names of files that differ."""
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
