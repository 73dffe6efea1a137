"""What do leases, planning and merging cost a run of a thousand processes, and where does it end?

python -m benchmarks.scale [--processes N] [--shards N] [--left N] [--cost S] [--folder F]
                           [--minutes M]
python -m benchmarks.scale --two [--texts N]

Simulated processes are threads of this process that run our own code (leases, merge tree, folders)
on a real file system, one at a time. Only the clock is simulated: to compute a shard takes a stated
cost, so does planning a partition; to wait takes what is waited, and what our code does takes the
time it took here. A run that is stopped (Ctrl-C, --minutes) tells what it has found. So a figure
per shard is that of a process by itself; all of their time together, against the run's, is the load
of the file system, were it as fast as this one and served one call at a time.

--two: two processes with --shard, one thread each, against one process with two threads; all real.
"""

from __future__ import annotations

import argparse
import gc
import heapq
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

from headscope.corpus import EncodeCounts, Example
from headscope.corpus.partitions import Partition
from headscope.run import gather_together, processes, shard_files, shared_parts, shared_plan
from headscope.run.life_cycle import Meter, RunInProgress
from headscope.run.merge_tree import children
from headscope.run.plan import Shard
from headscope.run.readings import MOST_SAMPLED, CorpusReading
from headscope.run.settings import Settings
from headscope.run.store import RunFolder

MOST_FILES = 10_000  # in any one folder
STACK = 256 << 10  # bytes of a thread
IN_A_PARTITION = 50  # shards of 32,768 tokens in 8 MiB of text
PLANNED = 5.0  # seconds of planning them


class Clock:
    """A simulated clock; of all processes the one whose time is next runs, alone."""

    def __init__(self) -> None:
        self.turns: list[tuple[float, int, threading.Semaphore]] = []
        self.back = threading.Semaphore(0)
        self.now, self.mine = 0.0, threading.local()
        self.real, self.cpu = 0.0, 0.0
        self.spent, self.counts = Counter[str](), Counter[str]()
        self.of_cpu = Counter[str]()

    def begin(self, number: int, at: float) -> None:
        """In a thread: wait for the first turn."""
        self.mine.number, self.mine.turn, self.mine.at = number, threading.Semaphore(0), at
        self.mine.used = [0.0, 0.0]
        self._wait()

    def _turn_ends(self) -> None:
        if hasattr(self.mine, "real"):
            self.mine.used = self.used()
            self.real += time.perf_counter() - self.mine.real
            self.cpu += time.thread_time() - self.mine.cpu

    def used(self) -> list[float]:
        """Real and CPU seconds of this process's turns so far."""
        real, cpu = self.mine.used
        return [
            real + time.perf_counter() - self.mine.real,
            cpu + time.thread_time() - self.mine.cpu,
        ]

    def _wait(self) -> None:
        self._turn_ends()
        heapq.heappush(self.turns, (self.mine.at, self.mine.number, self.mine.turn))
        self.back.release()
        self.mine.turn.acquire()
        self.mine.real, self.mine.cpu = time.perf_counter(), time.thread_time()

    def sleep(self, seconds: float) -> None:
        """Let so many simulated seconds pass, beside what was spent since the turn began."""
        self.mine.at = self.time() + seconds
        self._wait()

    def time(self) -> float:
        """Simulated seconds, of the process whose turn it is."""
        return float(self.mine.at + time.perf_counter() - self.mine.real)

    def end(self) -> None:
        """In a thread: no further turn."""
        self.now = max(self.now, self.time())
        self._turn_ends()
        self.back.release()

    def run(self, processes: int, seconds: float, tell: Callable[[], object]) -> bool:
        """Give turns until all processes have ended; whether they have.

        seconds  real ones, after which, as after Ctrl-C, no more turns are given
        tell     called once a minute
        """
        for _ in range(processes):
            self.back.acquire()
        begun = told = time.monotonic()
        try:
            while self.turns:
                now = time.monotonic()
                if now - begun > seconds:
                    return False
                if now - told > 60:
                    told = now
                    tell()
                at, _, turn = heapq.heappop(self.turns)
                self.now = max(self.now, at)
                turn.release()
                self.back.acquire()
        except KeyboardInterrupt:
            self.back.acquire(timeout=60)  # the turn that was begun
            return False
        return True

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        """Count what is done inside the context, and its real seconds."""
        start = self.used()
        try:
            yield
        finally:
            real, cpu = self.used()
            self.spent[what] += real - start[0]
            self.of_cpu[what] += cpu - start[1]
            self.counts[what] += 1

    def timing(self, what: str, plain: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, timed."""

        def timed(*given: Any) -> Any:
            with self.timed(what):
                return plain(*given)

        return timed

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """What is done inside the context takes no time, and is not counted."""
        start, cpu, counts = time.perf_counter(), time.thread_time(), self.counts.copy()
        yield
        self.mine.real += time.perf_counter() - start
        self.mine.cpu += time.thread_time() - cpu
        self.counts = counts

    @contextmanager
    def operations(self, folder: Path) -> Iterator[None]:
        """Inside the context count what is asked of the file system below a folder."""
        place, on = str(folder), [True]
        kinds = {
            "open": "open",
            "os.listdir": "list",
            "os.link": "link",
            "os.remove": "unlink",
            "os.rename": "rename",
            "os.mkdir": "mkdir",
            "os.rmdir": "rmdir",
        }

        def heard(event: str, given: tuple[Any, ...]) -> None:
            if event in kinds and on and str(given[0]).startswith(place):
                self.counts[f"op {kinds[event]}"] += 1

        def stat(path: Any, *more: Any, plain: Any = os.stat, **options: Any) -> Any:
            self.counts["op stat"] += str(path).startswith(place)
            return plain(path, *more, **options)

        def listdir(path: Any, plain: Any = os.listdir) -> list[str]:
            names: list[str] = plain(path)
            self.counts["names listed"] += len(names)
            return names

        sys.addaudithook(heard)
        with patch.object(os, "stat", stat), patch.object(os, "listdir", listdir):
            yield
        on.clear()


class Sums:
    """An analysis that is nothing but numbers."""

    name = "sums"

    def __init__(self, size: int) -> None:
        self.values = np.zeros(size)

    def reset(self) -> None:
        self.values[:] = 0

    def state(self) -> dict[str, np.ndarray[Any, Any]]:
        return {"values": self.values}

    def load(self, state: dict[str, np.ndarray[Any, Any]]) -> None:
        self.values[:] = state["values"]

    def merge(self, other: Sums) -> None:
        self.values += other.values


class Folder(RunFolder):
    """A run folder whose looks and writes are timed, and which is measured now and then."""

    clock: Clock
    most: Counter[str]
    every: int  # shards between two measures

    def named_spans(self, near: tuple[int, int] | None = None) -> set[tuple[int, int]]:
        with self.clock.timed("look"):
            return super().named_spans(near)

    def put_shard(self, number: int, state: Any) -> None:
        with self.clock.timed("write"):
            super().put_shard(number, state)
        if self.clock.counts["write"] % self.every == 0:
            with self.clock.stopped():
                self._measure()

    def _measure(self) -> None:
        files, sizes = Counter[str](), 0
        left = [str(self.path)]
        while left:
            with suppress(OSError), os.scandir(place := left.pop()) as found:
                for file in found:
                    if file.is_dir():
                        left.append(file.path)
                    else:
                        files[place] += 1
                        sizes += file.stat().st_size * file.name.endswith(".shard")
        states = sum(n for place, n in files.items() if f"/{shard_files.SHARDS}/" in place)
        for name, now in (("files", max(files.values())), ("states", states), ("bytes", sizes)):
            self.most[name] = max(self.most[name], now)


def fill(folder: RunFolder, count: int, shards: int, left: int, state: dict[str, Any]) -> int:
    """Write what is there when each process has so many shards of its share left; returns those."""
    there, folder.owner = np.ones(shards, bool), "scale"
    for at in range(1, count + 1):
        end = at * shards // count
        there[max(end - left, (at - 1) * shards // count) : end] = False
    nodes = [(0, shards - 1)]
    while nodes:
        first, last = node = nodes.pop()
        if there[first : last + 1].all() and node != (0, shards - 1):
            folder.put_span(node, {key: (last - first + 1) * sums for key, sums in state.items()})
        elif there[first : last + 1].any():
            nodes += children(node)
    return int((~there).sum())


def plan_of(shards: int) -> list[shared_plan.PlanPart]:
    """A plan by its partitions, each with a sample as large as a run's."""
    parts = []
    draw = np.random.default_rng(0)
    ids = draw.integers(0, 30_000, (MOST_SAMPLED // 128, 128))
    for first in range(0, shards, IN_A_PARTITION):
        reading = CorpusReading.new(30_522, seed=0)
        part = shared_plan.PlanPart([], EncodeCounts(documents=1), 1000, {"texts": reading})
        for n in range(min(IN_A_PARTITION, shards - first)):
            part.shards.append(Shard(n, n, 1, 32_768, f"{first + n:064x}", 1))
        for n, of_one in enumerate(ids):
            name = f"{first}/{n}"
            reading.add([Example(name, name, of_one, of_one * 0, of_one < 0)])
            part.list((name, name))
        part.digests = [f"{first:064x}"]
        parts.append(part)
    return parts


def planning(clock: Clock, shards: int, cost: float) -> list[tuple[Any, str, Any]]:
    """What stands in for the corpus, and for planning a partition of it."""
    parts = plan_of(shards)
    names = [Partition(str(at), lambda: iter(()), 8 << 20) for at in range(len(parts))]

    def plan_partition(_: object, partition: Partition, __: object) -> shared_plan.PlanPart:
        clock.sleep(cost)
        return parts[int(partition.name)]

    return [
        (shared_plan, "partitions_of", lambda _: names),
        (shared_plan, "plan_partition", plan_partition),
        (shared_plan, "encoder_for", lambda *_: None),
        (shared_plan, "identity_of", lambda _: {}),
        (shared_plan, "deciding_versions", dict),
    ]


def simulate(
    folder: Path,
    count: int,
    shards: int,
    cost: float,
    size: int,
    left: int | None = None,
    *,
    minutes: float = float("inf"),
) -> dict[str, Any]:
    """So many processes compute so many shards; real seconds of our code, files, bytes.

    cost  seconds that a process computes a shard, of which each takes 0.5 to 1.5 times as long
    size  numbers of eight bytes of a state
    left  shards of each process that are simulated; those before are there; None: all
    minutes  real ones, after which the run is stopped
    """
    clock, draw = Clock(), np.random.default_rng(0)
    state, costs = {"sums/values": draw.random(size)}, draw.uniform(0.5, 1.5, shards) * cost
    plan = SimpleNamespace(shards=[Shard(n, n, n + 1, 1, "") for n in range(shards)])
    corpus = SimpleNamespace(describe=dict)
    job = SimpleNamespace(new_parts=lambda: {"sums": Sums(size)})
    todo = shards if left is None else fill(RunFolder(folder), count, shards, left, state)
    Folder.clock, Folder.most, Folder.every = clock, Counter(), max(1, todo // 50)
    ends = Counter[str]()
    RunFolder(folder).write_manifest({"fingerprint": "scale", "spec": {}, "shards": shards})

    def compute(_: object, shard: Shard) -> Any:
        clock.sleep(float(costs[shard.number]))
        return state

    def work(number: int) -> None:
        clock.begin(number, 0.01 * number)  # they do not all start at once
        try:
            with clock.timed("begin"):
                own = processes.TakingPart(folder, (number + 1, count))
                own.others = processes.Silences(clock.time)
            if shards > IN_A_PARTITION:
                with clock.timed("plan"):
                    made = shared_plan.shared_plan(None, corpus, Settings(), own)  # type: ignore[arg-type]
                    assert len(made.shards) == shards
                    del made
            with clock.timed("begin"):
                run = RunInProgress(Folder(folder), {"fingerprint": "scale"}, own)
            merged = gather_together.gather_together(run, None, job, plan, Meter(shards))  # type: ignore[arg-type]
            (sums,) = merged.values()
            assert np.allclose(sums.values, shards * state["sums/values"])  # type: ignore[attr-defined]
            run.manifest |= {"spec": {}, "results_sha256": run.folder.put_results(b"")}  # type: ignore[union-attr]
            run.save_manifest()
            ends["wrote the results"] += 1
            own.end("done")
        except BaseException as error:
            ends[type(error).__name__] += 1
        finally:
            clock.end()

    with ExitStack() as stack:
        stack.enter_context(clock.operations(folder))
        for place, name, value in (
            (processes.TakingPart, "_beat", lambda _: None),
            (processes.TakingPart, "claim", clock.timing("lease", processes.TakingPart.claim)),
            (processes.TakingPart, "release", clock.timing("lease", processes.TakingPart.release)),
            (gather_together.Merging, "keep", clock.timing("merge", gather_together.Merging.keep)),
            (gather_together, "Computer", lambda *_: None),
            (gather_together, "shard_sums", compute),
            (shared_parts, "time", SimpleNamespace(monotonic=clock.time, sleep=clock.sleep)),
            *planning(clock, shards, PLANNED),
        ):
            stack.enter_context(patch.object(place, name, value))
        before = threading.stack_size(STACK)
        for number in range(count):
            threading.Thread(target=work, args=(number,), daemon=True).start()
        threading.stack_size(before)
        gc.freeze()  # or every collection would go through the plan
        began = time.monotonic()

        def tell() -> None:
            done, so_far = clock.counts["write"], (time.monotonic() - began) / 60
            each = 1e3 * clock.cpu / max(done, 1)
            told = f"{done:,} of {todo:,} shards after {so_far:.0f} minutes"
            print(f"{told}, {each:.1f} ms of CPU time each", file=sys.stderr)

        whole = clock.run(count, 60 * minutes, tell)
        gc.unfreeze()
    return {
        "whole": whole,
        "todo": todo,
        "cpu": clock.cpu,
        "of_cpu": dict(clock.of_cpu),
        "processes": count,
        "shards": shards,
        "computed": clock.counts["write"],
        "cost": cost,
        "simulated": clock.now,
        "ideal": cost * clock.counts["write"] / count,
        "real": clock.real,
        "ends": dict(ends),
        "spent": dict(clock.spent),
        "counts": dict(clock.counts),
        "most": dict(Folder.most),
        "state": len(shard_files.pack(state)),
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def told(found: dict[str, Any]) -> Iterator[str]:
    """The figures in words."""
    shards, most = max(found["computed"], 1), Counter(found["most"])
    if not found["whole"]:
        yield f"stopped after {shards:,} of {found['todo']:,} shards: what follows is of these"
    yield (
        f"{found['processes']:,} processes, {shards:,} of {found['shards']:,} shards of "
        f"{found['cost']:g} s: "
        f"{found['simulated']:,.0f} s simulated, {found['ideal']:,.0f} of them computing"
    )
    for what, seconds in sorted(found["spent"].items(), key=lambda one: -one[1]):
        count = found["counts"][what]
        yield (
            f"{what:>8} {1e3 * seconds / shards:8.2f} ms a shard, "
            f"{1e3 * found['of_cpu'][what] / shards:8.2f} of CPU, {count / shards:6.2f} times, "
            f"{1e3 * seconds / count:8.2f} ms each"
        )
    each, busy = found["real"] / shards, found["real"] / max(found["simulated"], 1e-9)
    yield (
        f"{'all':>8} {1e3 * each:8.2f} ms a shard, {1e3 * found['cpu'] / shards:8.2f} of CPU, "
        f"{each / found['cost']:.2%} of computing it"
    )
    yield (
        f"one such file system is busy {busy:.1%} of the run, and "
        f"full at {found['cost'] / max(each, 1e-9):,.0f} processes"
    )
    operations = {
        what.removeprefix("op "): count / shards
        for what, count in found["counts"].items()
        if what.startswith("op ")
    }
    yield (
        f"{sum(operations.values()):.1f} operations of the file system a shard: "
        + ", ".join(f"{each:.1f} {what}" for what, each in sorted(operations.items()))
        + f"; {found['counts'].get('names listed', 0) / shards:,.0f} names listed"
    )
    yield (
        f"at most {most['files']:,} files in a folder, {most['states']:,} states, "
        f"{most['bytes'] / 2**20:,.1f} MiB of {found['state']:,} bytes each; "
        f"memory of all {found['memory'] / 2**20:,.0f} MiB"
    )
    yield f"ends: {found['ends']}"


# --- two processes against two threads --------------------------------------------------------

# In a process of its own: `sys.argv` is the place of the clock, then the command.
TIMED = """
import json, os, sys, time
from pathlib import Path
from headscope.cli.main import main
from headscope.run import corpus_run, gather, gather_together

place, of = Path(sys.argv[1]), int(sys.argv[2])
sys.argv = ["headscope", *sys.argv[3:]]
shards = []

def timed(make):
    def whole(*given, **more):
        (place / f"ready-{os.getpid()}").touch()
        while len(list(place.glob("ready-*"))) < of:
            time.sleep(0.01)
        start, cpu = time.time(), time.process_time()
        try:
            return make(*given, **more)
        finally:
            found = [start, time.time(), time.process_time() - cpu, sum(shards), len(shards)]
            (place / f"told-{os.getpid()}").write_text(json.dumps(found))
    return whole

def sums(*given, plain=gather.shard_sums):
    start = time.thread_time() if of > 1 else time.perf_counter()
    try:
        return plain(*given)
    finally:
        shards.append((time.thread_time() if of > 1 else time.perf_counter()) - start)

gather.shard_sums = gather_together.shard_sums = sums
corpus_run.gather = timed(gather.gather)
corpus_run.gather_together = timed(gather_together.gather_together)
main()
"""


def two(folder: Path, texts: int, **shape: Any) -> dict[str, Any]:
    """Two processes of one thread, then one of two: seconds, CPU seconds, and those of shards."""
    from transformers import AutoTokenizer

    from benchmarks.inputs import bert
    from benchmarks.memory import write_text
    from headscope.model.request import place_of

    write_text(folder / "texts.txt", texts)
    bert(**shape).save_pretrained(folder / "model")
    AutoTokenizer.from_pretrained(place_of("demo")).save_pretrained(folder / "model")
    found = {}
    for name, threads, shares in (
        ("warm", "2", ()),
        ("two", "1", ("1/2", "2/2")),
        ("one", "2", ()),
    ):
        place = folder / name
        place.mkdir()
        given = [
            "atlas",
            str(folder / "model"),
            "--text",
            str(folder / "texts.txt"),
            "--linears",
            "stock",
            "--control",
            "none",
            "--no-report",
            "--shard-tokens",
            "2048",
            "--threads",
            threads,
            "-o",
            str(place / "run"),
        ]
        begun = [
            subprocess.Popen(
                [sys.executable, "-c", TIMED, str(place), str(len(shares) or 1), *given, *share],
                stdout=subprocess.DEVNULL,
            )
            for share in ([("--shard", each) for each in shares] or [()])
        ]
        codes = [process.wait() for process in begun]
        if any(codes):
            raise SystemExit("a run failed")
        rows = np.array([json.loads(file.read_text()) for file in place.glob("told-*")])
        found[name] = {
            "seconds": float(rows[:, 1].max() - rows[:, 0].min()),
            "cpu": float(rows[:, 2].sum()),
            "shard_cpu": float(rows[:, 3].sum()),
            "shards": int(rows[:, 4].sum()),
        }
    return found


def told_of_two(found: dict[str, Any]) -> Iterator[str]:
    """The figures in words."""
    one, both = found["one"], found["two"]
    for name, each in (("one process, two threads", one), ("two processes of one", both)):
        yield f"{name:>26}: {each['seconds']:7.1f} s, {each['cpu']:7.1f} s of CPU time"
    yield (
        f"throughput of two processes: {one['seconds'] / both['seconds']:.3f} of one's, "
        f"{one['cpu'] / both['cpu']:.3f} by CPU time"
    )
    engine = both["cpu"] - both["shard_cpu"]
    yield (
        f"engine: {1e3 * engine / both['shards']:.1f} ms of CPU time a shard, "
        f"{engine / both['shard_cpu']:.2%} of its own; {os.getloadavg()[0]:.1f} processes wanted "
        f"this machine's {os.cpu_count()} cores"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures; 1 where a limit is missed."""
    parser = argparse.ArgumentParser("python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--processes", type=int, default=1000)
    parser.add_argument("--shards", type=int, default=100_000)
    parser.add_argument("--cost", type=float, default=60.0, help="seconds of a shard")
    parser.add_argument("--size", type=int, default=512, help="numbers of a state")
    parser.add_argument("--left", type=int, help="shards of each process; those before are there")
    parser.add_argument("--folder", type=Path, help="on the file system to be measured")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="real ones, at most")
    parser.add_argument("--two", action="store_true")
    parser.add_argument("--texts", type=int, default=60)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        if given.two:
            found = two(Path(name), given.texts)
            lines, missed = told_of_two(found), False
        else:
            found = simulate(
                Path(name) / "run",
                given.processes,
                given.shards,
                given.cost,
                given.size,
                given.left,
                minutes=given.minutes,
            )
            lines = told(found)
            missed = not found["whole"] or found["most"]["files"] > MOST_FILES
    print("\n".join(lines))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
