"""Workers of a Dask run, its scheduler and its command are killed at moments drawn by a seed.

Every run ends in the bits of one process, or in a clear error after which the same command does; no
torn file, no draft and no process is left. Workers are forked: a new process imports for seconds.
Commands of `--spawned` are begun as from a shell, and their workers as Dask begins them.
"""

from __future__ import annotations

import json
import logging
import os
import random
import signal
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click
import psutil

from trials import shim
from trials.desk import OUT, SCENARIOS, Scenario
from trials.file_operations import Bench, bench_of, compared, contents
from trials.forked import Ended, begun, ended, forked, headscope
from trials.kills import SLOW, alive, started, until, without_strays
from trials.outcomes import BAD, Tally
from trials.together import fresh

IN_A_RUN = 5  # kills of workers
SHARDS = 40
RUN = (*SCENARIOS["together"].run, "--limit", str(SHARDS), "--engine", "dask")


@click.command("dask-kills")
@click.option("--workers", default=150, show_default=True, help="Kills of workers.")
@click.option("--commands", default=25, show_default=True, help="Kills of the command.")
@click.option("--schedulers", default=25, show_default=True, help="Kills of a scheduler.")
@click.option("--spawned", default=25, show_default=True, help="Kills of one that forks nothing.")
@click.option("--seed", default=0, show_default=True, help="Seed of the moments.")
@click.option("--keep", default="trials-failed", show_default=True, type=click.Path(path_type=Path))
def command(
    workers: int, commands: int, schedulers: int, spawned: int, seed: int, keep: Path
) -> None:
    """Kill workers, the command and the scheduler of atlas --engine dask."""
    shim.begin_again("trials")
    with Tally(keep.absolute()).told() as tally, bench_of(SCENARIOS["together"]) as bench:
        trial = Trial(bench, random.Random(seed))
        began = time.monotonic()
        tell(tally, "undisturbed", *trial.of_workers(0), bench)
        trial.took = time.monotonic() - began
        for left in range(workers, 0, -IN_A_RUN):
            kills = min(IN_A_RUN, left)
            tell(tally, "workers", *trial.of_workers(kills), bench, kills)
        for _ in range(commands):
            tell(tally, "command", *trial.of_command(), bench)
        for _ in range(schedulers):
            tell(tally, "scheduler", *trial.of_scheduler(), bench)
        for _ in range(spawned):
            tell(tally, "spawned", *trial.of_spawned(), bench)


def tell(
    tally: Tally, name: str, outcome: str, what: str, hits: int, bench: Bench, tries: int = 1
) -> None:
    outcome, what = without_strays(outcome, what)
    tally.add(name, outcome, what, hits, tries, files=bench.desk / OUT)
    click.echo(f"{name}: {outcome}; {what}")


class Trial:
    """Runs on Dask that are disturbed, held against one process.

    took  seconds of one that is not
    """

    def __init__(self, bench: Bench, draws: random.Random) -> None:
        import distributed  # noqa: F401  # here, once for all forks

        self.bench, self.draws, self.took = bench, draws, 1.0
        self.streams = bench.desk / "streams"
        fresh(bench)
        alone = Scenario("one", RUN[:-2]).work(bench.desk)
        if code := forked(alone, self.streams).code:
            raise RuntimeError(f"one process fails by itself: {code}")
        self.wanted = self.found()

    def found(self) -> dict[str, bytes]:
        """The content of each file; of the manifest, all but by what engine it was made."""
        found = contents(self.bench.desk / OUT)
        manifest = json.loads(found["run/manifest.json"])
        manifest.pop("engine", None)
        return found | {"run/manifest.json": json.dumps(manifest).encode()}

    def run(self, scheduler: str = "") -> Callable[[], None]:
        """The command, to be done in a child: with workers of its own, or on a cluster."""
        on = ("--scheduler", scheduler) if scheduler else ("--workers", "2")

        def work() -> None:
            on_forks()
            headscope((*RUN, *on), self.bench.desk)

        return work

    def of_workers(self, kills: int) -> tuple[str, str, int]:
        """Workers are killed while the command runs, which begins others; none is a hit, too."""
        fresh(self.bench)
        hits, seen = 0, set[psutil.Process]()
        child = begun(self.run(), self.streams)
        for _ in range(kills):
            time.sleep(self.draws.uniform(0, self.took / kills))  # in a trial, not in a test
            until(lambda: bool(family(child)) or over(child))
            if found := sorted(family(child), key=lambda one: one.pid):
                seen |= {*found}
                with suppress(psutil.Error):
                    self.draws.choice(found).kill()
                    hits += 1
        end = ended(child, self.streams)
        return *self.judged(end, seen, f"{hits} workers killed"), hits if kills else 1

    def of_command(self) -> tuple[str, str, int]:
        """The command is killed, and with it the scheduler of its own workers."""
        fresh(self.bench)
        child = begun(self.run(), self.streams)
        if self.draws.random() < 0.75:  # to start takes far longer than to compute
            some = self.draws.randrange(SHARDS)
            until(lambda: self.bench.there() > some or over(child))
        else:
            time.sleep(self.draws.uniform(0, self.took))
        seen, there = family(child), self.bench.there()
        os.kill(child, signal.SIGKILL)
        end = ended(child, self.streams)
        return *self.judged(end, seen, f"{there} shards were there"), end.code == -signal.SIGKILL

    def of_spawned(self) -> tuple[str, str, int]:
        """The command is killed as its workers import, compute, or one of them begins anew."""
        fresh(self.bench)
        moment = self.draws.choice(["importing", "computing", "beside a killed worker"])
        streams = self.streams
        with started((*RUN, "--workers", "2"), self.bench.desk, streams) as process:
            self.wait_for(process, lambda: len(family(process.pid)) >= 2)
            if moment != "importing":
                some = self.draws.randrange(SHARDS)
                self.wait_for(process, lambda: self.bench.there() > some)
            seen = family(process.pid)
            if moment == "beside a killed worker" and seen:
                with suppress(psutil.Error):
                    self.draws.choice(sorted(seen, key=lambda one: one.pid)).kill()
            if moment != "computing":
                time.sleep(self.draws.uniform(0, 5))  # as long as a worker imports
            seen |= family(process.pid)
            process.kill()
            code = process.wait()
            what = f"{moment}: {len(seen)} below it, {self.bench.there()} shards were there"
            end = Ended(code, "", (streams / "err").read_text("utf-8", "replace"))
            return *self.judged(end, seen, what), code == -signal.SIGKILL

    @staticmethod
    def wait_for(process: subprocess.Popen[bytes], condition: Callable[[], bool]) -> None:
        """As `until`, for one whose workers import."""
        until(lambda: condition() or process.poll() is not None, patience=5 * SLOW)

    def of_scheduler(self) -> tuple[str, str, int]:
        """The scheduler is killed of a cluster that was there, with those that start workers."""
        fresh(self.bench)
        with self.cluster() as (scheduler, address):
            child = begun(self.run(address), self.streams)
            some = self.draws.randrange(SHARDS)
            until(lambda: self.bench.there() > some or over(child))
            seen, hit = {psutil.Process(scheduler), *family(scheduler)}, not over(child)
            os.kill(scheduler, signal.SIGKILL)
            what = f"{self.bench.there()} shards were there"
            end = ended(child, self.streams)
        with self.cluster() as (_, address):
            return *self.judged(end, seen, what, address), hit

    @contextmanager
    def cluster(self) -> Iterator[tuple[int, str]]:
        """A scheduler with two workers: its process and its address."""
        told = self.bench.desk / "address"
        told.unlink(missing_ok=True)
        child = begun(lambda: serve(told), self.bench.desk / "streams-cluster")
        try:
            until(lambda: told.exists() or over(child))
            yield child, told.read_text()
        finally:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)

    def judged(
        self, end: Ended, seen: set[psutil.Process], what: str, scheduler: str = ""
    ) -> tuple[str, str]:
        """How a run ended; one that stopped is begun again."""
        what += f"; {end.code} {' / '.join(end.err.splitlines()[-3:])}" if end.code else ""
        if end.code is None:
            return "hang", f"{what} {end.err}"
        if end.code > 0 and not end.clear:
            return "unclear error", f"{what} {end.err[-800:]}"
        until(lambda: not any(map(alive, seen)))
        if left := [one.pid for one in seen if alive(one)]:
            return "orphan", f"{what} {left}"
        how = "same bits"
        if end.code:
            how = "killed, same bits" if end.code < 0 else "clear error, same bits"
            again = forked(self.run(scheduler), self.streams)
            if again.code is None:
                return "hang", f"{what}, when resumed: {again.err}"
            if again.code:
                return "torn", f"{what}; then {again.code}, {again.err[-400:]}"
        outcome, more = compared(self.found(), self.wanted)
        return (outcome if outcome in BAD else how), f"{what} {more}".strip()


def on_forks() -> None:
    """In a child: workers are forked, and a scheduler that is gone is given up soon.

    A worker ends as a pipe does that this child holds. Workers that are spawned have no more of it;
    of forks each would hold those of the others, and none would end.
    """
    import dask
    from distributed.process import AsyncProcess

    held, begin, run = list[Any](), AsyncProcess.__init__, AsyncProcess._run.__func__

    def noted(process: AsyncProcess, *given: Any, **more: Any) -> None:
        begin(process, *given, **more)
        held.append(process._keep_child_alive)

    def by_itself(cls: type[AsyncProcess], *given: Any) -> None:
        for end in held:
            end.close()
        run(cls, *given)

    AsyncProcess.__init__, AsyncProcess._run = noted, classmethod(by_itself)

    warnings.simplefilter("ignore")  # of forks beside threads
    dask.config.set(
        {
            "distributed.worker.multiprocessing-method": "fork",
            "distributed.comm.timeouts.connect": "3s",
        }
    )


def serve(told: Path) -> None:
    """In a child: a cluster, until it is killed."""
    from distributed import LocalCluster

    on_forks()
    with LocalCluster(
        2,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address=None,
        memory_limit=0,
        silence_logs=logging.CRITICAL,
    ) as made:
        draft = told.with_suffix(".draft")
        draft.write_text(made.scheduler_address)
        draft.rename(told)
        signal.pause()


def family(child: int) -> set[psutil.Process]:
    """The processes below a child, its workers, that are alive; not what counts its semaphores."""
    found = set[psutil.Process]()
    with suppress(psutil.Error):
        for one in psutil.Process(child).children(recursive=True):
            with suppress(psutil.Error):
                if alive(one) and "resource_tracker" not in " ".join(one.cmdline()):
                    found.add(one)
    return found


def over(child: int) -> bool:
    """Whether a child has ended."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
