"""Processes that fill one run folder together are killed at moments drawn by a seed.

Each that is killed is started again, as a scheduler does. In the end the folder is that of one
process, without a torn file or an orphan; and no more shards were computed twice than were killed.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trials import shim
from trials.desk import OUT, SCENARIOS, Scenario
from trials.file_operations import Bench, compared, contents, warm
from trials.file_operations import bench_of as new_bench
from trials.forked import PATIENCE, begun, ended, forked
from trials.kills import until, without_strays
from trials.outcomes import Tally

if TYPE_CHECKING:
    from headscope.run.shard_files import State
    from headscope.run.shared_parts import KeptParts

PROCESSES = 3
ENDED = os.WEXITED | os.WNOHANG | os.WNOWAIT
SCENARIO = SCENARIOS["together"]
# What else processes fill together. Of a zoo a process claims a model, and shards inside.
COMMANDS = {
    "atlas": SCENARIO.run,
    "zoo": ("zoo", "model", "other", *SCENARIO.run[2:]),
    **{name: SCENARIOS[name].run for name in ("probe", "importance")},
    "ablate": (*SCENARIOS["ablate"].run, "--batch-tokens", "1"),  # one example at a time: 12 parts
}


@click.command("together")
@click.option("--of", type=click.Choice([*COMMANDS]), default="atlas", show_default=True)
@click.option("--runs", default=20, show_default=True, help="Runs, each in a folder of its own.")
@click.option("--kills", default=10, show_default=True, help="Kills in each.")
@click.option("--shards", default=200, show_default=True, help="Shards of each, at most.")
@click.option("--seed", default=0, show_default=True, help="Seed of the moments.")
@click.option("--keep", default="trials-failed", show_default=True, type=click.Path(path_type=Path))
def command(of: str, runs: int, kills: int, shards: int, seed: int, keep: Path) -> None:
    """Kill processes of a command with --shard, and start them again."""
    shim.begin_again("trials")
    with Tally(keep.absolute()).told() as tally, new_bench(SCENARIO) as bench:
        attempt_all(bench, tally, of=of, runs=runs, kills=kills, shards=shards, seed=seed)


def attempt_all(
    bench: Bench,
    tally: Tally,
    *,
    of: str = "atlas",
    runs: int,
    kills: int,
    shards: int,
    seed: int = 0,
) -> None:
    """So many runs of about so many shards, with so many kills in each."""
    draws = random.Random(seed)
    run = (*COMMANDS[of], *(("--limit", str(shards)) if of in {"atlas", "zoo"} else ()))
    if of != "atlas":
        from tasks.made import MOOD, checkpoint

        checkpoint(bench.desk / "other", head=MOOD, seed=1)
        fresh(bench)
        warm(Scenario(of, run), bench.desk)
    fresh(bench)
    began = time.monotonic()
    alone = forked(noting(bench, run, bench.desk / "alone"), bench.desk / "streams")
    if alone.code:
        raise RuntimeError(f"one process fails by itself: {alone.code}, {alone.err}")
    took, wanted = time.monotonic() - began, contents(bench.desk / OUT)
    parts = len((bench.desk / "alone").read_text().splitlines())
    for _ in range(runs):
        moments = sorted(draws.randrange(parts) for _ in range(kills))
        *told, hits = attempt(bench, run, moments, draws, wanted, took=took)
        outcome, what = without_strays(*told)
        name = "together" if of == "atlas" else f"together, {of}"
        tally.add(name, outcome, what, hits, kills, files=bench.desk / OUT)
        click.echo(f"{outcome}; {what}")


def fresh(bench: Bench) -> None:
    shutil.rmtree(bench.desk / OUT)
    (bench.desk / OUT).mkdir()


def attempt(
    bench: Bench,
    run: tuple[str, ...],
    moments: list[int],
    draws: random.Random,
    wanted: dict[str, bytes],
    *,
    took: float,
) -> tuple[str, str, int]:
    """Several processes, of which one is killed after so many parts, and started again.

    took     seconds of one process alone
    returns  (outcome, words, how many were killed before they had ended)
    """
    fresh(bench)
    log = bench.desk / "computed"
    log.write_text("")
    running = {number: start(bench, run, number, log) for number in range(1, PROCESSES + 1)}
    killed = Counter[str]()
    for moment in moments:
        if draws.random() < 0.25:  # as it starts, too
            time.sleep(draws.uniform(0, took / 4))  # in a trial, not in a test
        else:
            until(partial(come_to, bench, running, log, moment))
        among = [n for n in still(running) if past_plan(bench, running[n])]
        among = among or still(running)
        if not among:
            break
        number = draws.choice(among)
        os.kill(running[number], signal.SIGKILL)
        hit = ended(running[number], streams(bench, number)).code == -signal.SIGKILL
        killed[doing(bench, running[number]) if hit else "too late"] += 1
        running[number] = start(bench, run, number, log)
    hits = killed.total() - killed["too late"]
    deadline = time.monotonic() + 3 * PATIENCE
    ends = {
        number: ended(child, streams(bench, number), patience=max(0, deadline - time.monotonic()))
        for number, child in running.items()
    }
    if hung := [f"process {number}: {end.err}" for number, end in ends.items() if end.code is None]:
        return "hang", "\n".join(hung), hits
    for number, end in ends.items():
        if end.code:
            return "unclear error", f"process {number}: {end.code}, {end.err[-400:]}", hits
    computed = log.read_text().split()
    again = len(computed) - len(set(computed))
    told = ", ".join(f"{count} {state}" for state, count in sorted(killed.items()))
    what = f"killed: {told}; {len(set(computed))} parts, {again} computed again"
    if again > hits:
        return "wrong", what, hits
    outcome, more = compared(contents(bench.desk / OUT), wanted)
    outcome = {"resumed equal": "same bits"}.get(outcome, outcome)
    return outcome, f"{what} {more}".strip(), hits


def still(running: dict[int, int]) -> list[int]:
    """Numbers of the processes that have not ended."""
    return [n for n in sorted(running) if os.waitid(os.P_PID, running[n], ENDED) is None]


def come_to(bench: Bench, running: dict[int, int], log: Path, moment: int) -> bool:
    """Whether so many parts were computed and a process is at work, or all have ended."""
    left = still(running)
    enough = len(log.read_text().split()) >= moment
    return not left or (enough and any(past_plan(bench, running[n]) for n in left))


def past_plan(bench: Bench, child: int) -> bool:
    """Whether a process computes."""
    return doing(bench, child) in ("computing", "merging", "waiting", "finishing")


def doing(bench: Bench, child: int) -> str:
    """What a process did when it was killed, by its record."""
    from headscope.run.processes import records

    told = {
        one.get("pid"): str(one.get("state")) for one in records(bench.desk / OUT / "run").values()
    }
    return told.get(child, "before its record")


def streams(bench: Bench, number: int) -> Path:
    return bench.desk / f"streams-{number}"


def start(bench: Bench, run: tuple[str, ...], number: int, log: Path) -> int:
    """A process, which notes every part that it computes."""
    share = (*run, "--shard", f"{number}/{PROCESSES}")
    return begun(noting(bench, share, log), streams(bench, number))


def noting(bench: Bench, run: tuple[str, ...], log: Path) -> Callable[[], None]:
    """The command, to be done in a child, which notes every part that is computed."""

    def note(parts: KeptParts, what: str, number: int) -> None:
        with suppress(OSError), open(log, "a") as file:
            place = parts.folder and parts.folder.path
            file.write(f"{place}:{what}:{number}\n".replace(" ", "_"))

    def work() -> None:
        from headscope.run.shared_parts import KeptParts, Member
        from trials.forked import headscope

        work_on, keep = Member.work_on, KeptParts.keep

        def noted(member: Member, span: tuple[int, int]) -> None:
            work_on(member, span)
            if member.what != "model":  # its shards are noted
                note(member.run, member.what, span[0])

        def alone(parts: KeptParts, number: int, state: State) -> None:
            keep(parts, number, state)
            note(parts, "", number)

        if "--shard" in run:
            Member.work_on = noted  # type: ignore[method-assign]
        else:
            KeptParts.keep = alone  # type: ignore[method-assign]
        for name in ("ablation.ablating", "importance.measuring"):
            import_module(f"headscope.experiments.{name}").PART_TOKENS = 10  # type: ignore[attr-defined]
        headscope(run, bench.desk)

    return work
