"""Processes that are killed, stopped or robbed of their disk, at moments drawn by a seed.

driver   killed at any moment
worker   killed while it computes, or while it starts; stopped, and the command with it
disks    of every size: what was begun on a full one goes on where there is room
two      commands at one folder at the same time

A kill hits where the command does not end well; a disk, where it is too small; a second command,
where it begins before the first has ended.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import click
import psutil

from trials import shim
from trials.desk import MANY, OUT, SCENARIOS, Scenario
from trials.file_operations import Bench, bench_of, contents, differing, drafts, restore
from trials.forked import PATIENCE, Ended, forked
from trials.outcomes import BAD, Tally

SLOW = 60.0  # seconds for a command with workers, which start from nothing
SIZES = range(4, 84, 4)  # KiB of a disk; the run takes some 70
SHARDS = 200  # of a run whose workers are killed
WORKERS = Scenario("workers", (*MANY, "--no-report", "--limit", str(SHARDS)))
SOME = 5  # pairs of commands, of which one at least is refused where the folder is held
LATE = 0.9  # of the time that a command takes: what is later may come too late


@click.command("kills")
@click.option("--of", type=click.Choice([*SCENARIOS]), default="atlas", show_default=True)
@click.option("--drivers", default=200, show_default=True, help="Kills of the command itself.")
@click.option("--workers", default=30, show_default=True, help="Kills and stops of a worker.")
@click.option("--pairs", default=60, show_default=True, help="Two commands at one folder.")
@click.option("--disks", default=len(SIZES), show_default=True, help="Sizes of a disk.")
@click.option("--seed", default=0, show_default=True, help="Seed of the moments.")
@click.option("--keep", default="trials-failed", show_default=True, type=click.Path(path_type=Path))
def command(
    of: str, drivers: int, workers: int, pairs: int, disks: int, seed: int, keep: Path
) -> None:
    """Kill the command, kill and stop the workers of atlas, fill its disk, start it twice."""
    shim.begin_again("trials")
    with Tally(keep.absolute()).told() as tally, bench_of(SCENARIOS[of]) as bench:
        attempt_all(bench, tally, drivers=drivers, pairs=pairs, disks=disks, seed=seed)
        attempt_workers(bench, tally, workers, begin=started, seed=seed)


def attempt_all(
    bench: Bench, tally: Tally, *, drivers: int, pairs: int, disks: int, seed: int = 0
) -> None:
    """So many of each."""
    draws = random.Random(seed)
    began, spent = time.monotonic(), processor()
    forked(bench.scenario.work(bench.desk), bench.desk / "streams")
    took, spent = time.monotonic() - began, processor() - spent
    attempts: list[tuple[str, int, Callable[[], tuple[str, str, bool]]]] = [
        ("driver", drivers, lambda: killed(bench, draws.uniform(0, LATE * spent))),
        ("two drivers", pairs, lambda: both(bench, draws.uniform(0, LATE * took))),
    ]
    of = "" if bench.scenario.name == "atlas" else f", {bench.scenario.name}"
    for name, count, attempt in attempts:
        for _ in range(count):
            restore(bench.start, bench.desk / OUT)
            tally.add(name + of, *attempt(), files=bench.desk / OUT)
        if name == "two drivers" and count >= SOME and not refusals(tally.counts[name + of]):
            tally.add(name + of, "wrong", "no second command was ever refused", 0, 0)
        if count:
            click.echo(tally.lines()[len(tally.counts) - 1])
    for size in spread(disks):
        tally.add("full disk" + of, *on_disk(bench, size), files=bench.desk / OUT)


def attempt_workers(
    bench: Bench, tally: Tally, workers: int, *, begin: Begin, seed: int = 0
) -> None:
    """So many kills and stops of workers; how the command is begun says what they are."""
    if not workers:
        return
    draws = random.Random(seed)
    bench = replace(bench, scenario=WORKERS)
    restore(bench.start, bench.desk / OUT)
    if (alone := forked(WORKERS.work(bench.desk), bench.desk / "streams")).code:
        raise RuntimeError(f"one process fails by itself: {alone.code}, {alone.err}")
    bench = replace(bench, reference=contents(bench.desk / OUT))
    for _ in range(workers):
        restore(bench.start, bench.desk / OUT)
        tally.add("worker", *robbed(bench, draws, begin), files=bench.desk / OUT)
    click.echo(tally.lines()[len(tally.counts) - 1])


def refusals(counts: Counter[str]) -> int:
    """How often one of two commands at one folder was refused."""
    return sum(count for outcome, count in counts.items() if "one was refused" in outcome)


def processor() -> float:
    """Seconds of a processor that the children that have ended took: less moved by load."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def spread(count: int) -> list[int]:
    """So many of the sizes, from the smallest to the largest."""
    return [SIZES[at * len(SIZES) // count] for at in range(count)]


def resumed(bench: Bench, how: str) -> tuple[str, str]:
    """What the same command comes to now."""
    again = forked(bench.scenario.work(bench.desk), bench.desk / "streams")
    if again.code is None:
        return "hang", "when resumed"
    if again.code:
        return "torn", again.err[-400:]
    found = contents(bench.desk / OUT)
    if found != bench.reference:
        return "wrong", str(differing(found, bench.reference))
    return f"{how}, resumed equal", ""


def killed(bench: Bench, moment: float) -> tuple[str, str, bool]:
    """The command is killed after so many seconds of a processor."""

    def work() -> None:
        signal.signal(signal.SIGPROF, signal.SIG_DFL)  # which ends the process, unasked
        signal.setitimer(signal.ITIMER_PROF, max(moment, 1e-3))
        bench.scenario.work(bench.desk)()

    ended = forked(work, bench.desk / "streams")
    hit = ended.code == -signal.SIGPROF
    if ended.code != 0 and not hit:
        return "unclear error", f"after {moment:.3f} s: {ended.code}, {ended.err[-400:]}", hit
    outcome, what = resumed(bench, "killed" if hit else "done before")
    return outcome, f"killed after {moment:.3f} s; {what}", hit


def both(bench: Bench, later: float) -> tuple[str, str, bool]:
    """A second command at the same folder, so many seconds later."""
    ends: list[Ended] = []
    began = bench.desk / "began"  # the second, by the clock
    began.write_text("inf")

    def work() -> None:
        time.sleep(later)
        began.write_text(str(time.monotonic()))
        bench.scenario.work(bench.desk)()

    # In turn the first is a fork of a fork, so that both can be waited for.
    def first_and_second() -> None:
        one, other = bench.desk / "one", bench.desk / "other"
        thread = threading.Thread(target=lambda: ends.append(forked(work, other)))
        thread.start()
        ends.append(forked(bench.scenario.work(bench.desk), one))
        print(int(float(began.read_text()) < time.monotonic()))
        thread.join()
        for ended in ends:
            print(ended.code, int(ended.clear), ended.err.replace("\n", " / "))

    done = forked(first_and_second, bench.desk / "streams", patience=2 * PATIENCE)
    if done.code != 0:
        return "hang" if done.code is None else "unclear error", done.err[-400:], False
    at_once, *told = done.out.splitlines()
    hit = at_once == "1"
    if not all(line.startswith(("0 ", "2 1 ")) for line in told):
        return "unclear error", f"{later:.3f} s later: {told}", hit
    if not any(line.startswith("0 ") for line in told):
        return "wrong", f"neither wrote: {told}", hit
    refused = any(line.startswith("2 1 ") for line in told)
    how = "one was refused" if refused else "both did it" if hit else "one after the other"
    outcome, what = resumed(bench, how)
    return outcome, f"{later:.3f} s later; {what}", hit


# --- workers --------------------------------------------------------------------------------


def robbed(bench: Bench, draws: random.Random, begin: Begin) -> tuple[str, str, bool]:
    """A worker is killed while it starts or computes, or stopped before Ctrl-C."""
    how = draws.choice(["killed starting", "killed computing", "stopped, then Ctrl-C"])
    which, some = draws.randrange(2), draws.randrange(SHARDS // 2)
    streams, took = bench.desk / "streams", False
    with begin((*bench.scenario.run, "--workers", "2"), bench.desk, streams) as process:
        workers = two_workers(process)
        if how != "killed starting":
            until(lambda: process.poll() is not None or bench.there() > some)
        with suppress(psutil.Error, IndexError):
            workers[which].suspend() if "stopped" in how else workers[which].kill()
            took = True
        if "stopped" in how:
            os.killpg(process.pid, signal.SIGINT)
        until(lambda: process.poll() is not None)
        code = process.poll()
        left = [worker for worker in workers if alive(worker)]
        ended = Ended(code, "", (streams / "err").read_text("utf-8", "replace"))
    what = f"{how}, worker {which}, more than {some} shards: {code}, {ended.err[-300:]}"
    hit = took and code != 0
    if code is None or left:
        return "hang", what + f"; {len(left)} workers left", hit
    if code not in (0, 1, 130) or (code and not ended.clear):
        return "unclear error", what, hit
    outcome, more = resumed(bench, how if hit else f"{how}, too late")
    return outcome, what + more, hit


class Process(Protocol):
    """What a trial needs of a command that runs."""

    pid: int

    def poll(self) -> int | None: ...


Begin = Callable[[tuple[str, ...], Path, Path], AbstractContextManager[Process]]


@contextmanager
def started(
    arguments: tuple[str, ...], folder: Path, streams: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """The command line as a process, in a group of its own; nothing is left behind."""
    streams.mkdir(exist_ok=True)
    with open(streams / "out", "wb") as out, open(streams / "err", "wb") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "headscope", *arguments],
            cwd=folder,
            env={**os.environ, **shim.ALONE},
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def apart(arguments: tuple[str, ...], folder: Path, streams: Path) -> Iterator[Process]:
    """The same as a fork, whose workers are forks too: a new interpreter imports for seconds."""
    import forked  # that of the tests

    if not forked._origin:
        forked.begin()
    (streams / "err").unlink(missing_ok=True)
    with forked.forked(*arguments, cwd=folder) as process:
        (streams / "err").symlink_to(process.told[1])
        yield process
    (streams / "err").unlink()


def two_workers(process: Process) -> list[psutil.Process]:
    """The workers, as soon as both are there or the command has ended."""
    found: list[psutil.Process] = []

    def there() -> bool:
        with suppress(psutil.Error):
            children = psutil.Process(process.pid).children()
            found[:] = [worker for child in children for worker in child.children()]
        return len(found) == 2 or process.poll() is not None

    until(there)
    return found


def until(condition: Callable[[], bool], *, patience: float = SLOW) -> None:
    """Returns once the condition holds, or after the time that a command may take."""
    deadline = time.monotonic() + patience
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)


def strays() -> list[str]:
    """Processes that this trial has begun, at whatever distance, and that are left."""
    mark, found = os.environ[shim.MARK], list[str]()
    for one in psutil.process_iter():
        with suppress(psutil.Error):
            if one.pid != os.getpid() and one.environ().get(shim.MARK) == mark and alive(one):
                told = " ".join(one.cmdline())
                if "resource_tracker" not in told:  # it ends with this process
                    found.append(f"{one.pid} {told[-80:]}")
    return found


def without_strays(outcome: str, what: str) -> tuple[str, str]:
    """What came of a run, or that it has left a process behind."""
    until(lambda: not strays())
    left = strays() if outcome not in BAD else []
    return ("orphan", f"{what} {left}") if left else (outcome, what)


def alive(process: psutil.Process) -> bool:
    """Whether a process runs, and is not only waited for."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


# --- disks ------------------------------------------------------------------------------------


def mount(size: int, place: Path) -> bool:
    """Whether a disk of so many KiB is mounted there now."""
    words = ["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", str(place)]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def unmount(place: Path) -> None:
    subprocess.run(["umount", "-l", str(place)], check=True)


def may_mount() -> bool:
    """Whether disks may be mounted here at all."""
    with tempfile.TemporaryDirectory() as folder:
        if allowed := mount(SIZES[0], Path(folder)):
            unmount(Path(folder))
    return allowed


def on_disk(bench: Bench, size: int) -> tuple[str, str, bool]:
    """The command on a disk of so many KiB; then the same with room."""
    out, streams = bench.desk / OUT, bench.desk / "streams"
    shutil.rmtree(out)
    out.mkdir()
    if not mount(size, out):
        return "not allowed to mount", "", False
    try:
        ended = forked(bench.scenario.work(bench.desk), streams)
        what = f"{size} KiB: {ended.code}, {ended.err[-300:]}"
        left = drafts(out, bench.reference)
        shutil.copytree(out, bench.desk / "full", symlinks=True)
    finally:
        unmount(out)
    out.rmdir()
    (bench.desk / "full").rename(out)
    hit = bool(ended.code)
    if ended.code is None:
        return "hang", what, True
    if ended.code and not ended.clear:
        return "unclear error", what, hit
    if left:
        return "draft left", what + str(left), hit
    outcome, more = resumed(bench, "full" if hit else "room enough")
    if outcome not in BAD and ended.code == 2:
        return "unclear error", what + " (exit code 1 is that of a full disk)", hit
    return outcome, what + more, hit
