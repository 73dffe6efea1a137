"""Tasks of `headscope slurm atlas` are requeued, preempted and killed by a Slurm that runs here.

It is begun for the trial alone: three nodes of this machine, with a key, ports and a folder of
their own. The atlas must be that of one process; and no process may be left.
"""

from __future__ import annotations

import os
import platform
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from getpass import getuser
from pathlib import Path

import click
import psutil

from trials import shim
from trials.desk import OUT, SCENARIOS, Scenario
from trials.file_operations import Bench, bench_of, compared, contents
from trials.forked import forked
from trials.kills import SLOW, until, without_strays
from trials.outcomes import Tally
from trials.together import fresh

PROGRAMS = "munged", "slurmctld", "slurmd", "sbatch"
NODES = "n1", "n2", "n3"
RUN = (*SCENARIOS["together"].run[:-3], "--no-report")  # all of its 200 shards
PATIENCE = 10 * SLOW
AGAIN = "SLURM_RESTART_COUNT"
# A request to end that fell into a callback of a library, where Python drops it.
UNHEARD = re.compile(r"Exception ignored .*?\nKeyboardInterrupt:? *\n", re.DOTALL)
CONF = """ClusterName=trial
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={place}/munge.sock,cred_expire=5
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/%n
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/%n.pid
SlurmctldLogFile={place}/slurmctld.log
SlurmdLogFile={place}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=5
MailProg=/bin/true
MpiDefault=none
PartitionName=low Nodes=ALL Default=YES PriorityTier=1
PartitionName=high Nodes=ALL PriorityTier=9
"""


@click.command("slurm-kills")
@click.option("--runs", default=1, show_default=True, help="Runs, each disturbed three times.")
@click.option("--seed", default=0, show_default=True, help="Seed of the moments.")
@click.option("--keep", default="trials-failed", show_default=True, type=click.Path(path_type=Path))
def command(runs: int, seed: int, keep: Path) -> None:
    """Requeue, preempt and kill tasks of a Slurm that is begun for it."""
    if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
        raise click.ClickException(f"needs {', '.join(missing)} (Debian: slurm-wlm)")
    shim.begin_again("trials")
    draws = random.Random(seed)
    with Tally(keep.absolute()).told() as tally, bench_of(SCENARIOS["together"]) as bench:
        fresh(bench)
        alone = forked(Scenario("one", RUN).work(bench.desk), bench.desk / "streams")
        if alone.code:
            raise RuntimeError(f"one process fails by itself: {alone.code}, {alone.err}")
        wanted = contents(bench.desk / OUT)
        for _ in range(runs):
            with a_slurm():
                *told, hits = attempt(bench, draws, wanted)
            outcome, what = without_strays(*told)
            tally.add("slurm", outcome, what, hits, len(WAYS), files=bench.desk / OUT)
            click.echo(f"{outcome}; {what}")


@contextmanager
def a_slurm() -> Iterator[None]:
    """Inside the context there is a Slurm, which sbatch finds."""
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder, ExitStack() as stack:
        place, host = Path(folder), platform.node()
        first, *ports = free_ports(1 + len(NODES))
        nodes = "".join(
            f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=1\n"
            for name, port in zip(NODES, ports, strict=True)
        )
        conf, _, parts = CONF.partition("PartitionName")
        conf = conf.format(host=host, port=first, user=getuser(), place=place)
        (place / "slurm.conf").write_text(f"{conf}{nodes}PartitionName{parts}")
        (place / "key").write_bytes(os.urandom(1024))
        (place / "key").chmod(0o600)
        for name in ("state", *NODES):
            (place / name).mkdir()
        os.environ["SLURM_CONF"] = str(place / "slurm.conf")
        files = {
            "key-file": "key",
            "socket": "munge.sock",
            "pid-file": "munge.pid",
            "seed-file": "seed",
            "log-file": "munge.log",
        }
        own = [f"--{option}={place / name}" for option, name in files.items()]
        stack.enter_context(running(place, "munged", "-F", "--force", *own))
        until((place / "munge.sock").exists)
        stack.enter_context(running(place, "slurmctld", "-D"))
        for name in NODES:
            stack.enter_context(running(place, "slurmd", "-D", "-N", name))
        until(lambda: asked("sinfo", "-hN", "-p", "low", "-o", "%T").split() == ["idle"] * 3)
        stack.callback(until, lambda: not asked("squeue", "-h"))
        stack.callback(asked, "scancel", "--full", "-u", getuser())
        yield


@contextmanager
def running(place: Path, *program: str) -> Iterator[None]:
    with open(place / "said", "ab") as said:
        process = subprocess.Popen(program, stdout=said, stderr=said)
    try:
        yield
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(SLOW)
        process.kill()
        process.wait()


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        bound = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in bound:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in bound]


def asked(*command: str) -> str:
    """What a program of Slurm says; nothing where it fails."""
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def attempt(bench: Bench, draws: random.Random, wanted: dict[str, bytes]) -> tuple[str, str, int]:
    """One array of tasks, disturbed once enough shards are there; how it ended, and what hit."""
    fresh(bench)
    for file in bench.desk.glob("slurm-*.out"):
        file.unlink()
    how = ("--tasks", str(len(NODES)), "--partition", "low", "--cpus", "1", "--submit")
    done = forked(Scenario("slurm", ("slurm", *RUN, *how)).work(bench.desk), bench.desk / "streams")
    if done.code:
        return "unclear error", f"not submitted: {done.code}, {done.err}", 0
    told, hits = [], 0
    moments = sorted(draws.sample(range(1, 150), len(WAYS)))
    ways = draws.sample(WAYS, len(WAYS))
    for moment, way in zip(moments, ways, strict=True):
        until(lambda at=moment: bench.there() >= at, patience=PATIENCE)
        met = way(bench)
        hits += bool(met) and (way is kill or computes_again(bench, met.split()[0]))
        told.append(f"{way.__name__} ({met or 'none'}) at {bench.there()} shards")
    waits = ("squeue", "-h", "-o", "%i %t %r")
    until(lambda: not asked(*waits), patience=PATIENCE)
    what = ", ".join(told)
    if waiting := asked(*waits):
        return "hang", f"{what}; {waiting}", hits
    said = "".join(file.read_text("utf-8", "replace") for file in bench.desk.glob("slurm-*.out"))
    said = UNHEARD.sub("", said)
    restarts = sum(map(int, re.findall(r"Restarts=(\d+)", asked("scontrol", "show", "job"))))
    what += f"; {restarts} begun again"
    if "Traceback" in said or "headscope: " in said.replace("headscope: stopped", ""):
        return "unclear error", f"{what}; {said[-800:]}", hits
    outcome, more = compared(contents(bench.desk / OUT), wanted)
    outcome = {"resumed equal": "same bits"}.get(outcome, outcome)
    return outcome, f"{what} {more}".strip(), hits


def computes_again(bench: Bench, task: str) -> bool:
    """Whether a task that was requeued computes again, for which all others are stopped.

    They would have done all by then, and what a task does that is begun again were not seen.
    """
    from headscope.run.processes import records

    def processes() -> Iterator[tuple[int, int, dict[str, str]]]:
        for one in records(bench.desk / OUT / "run").values():
            with suppress(psutil.Error, KeyError):
                yield one["pid"], one["shards"], psutil.Process(one["pid"]).environ()

    number = task.partition("_")[2]
    others = [pid for pid, _, its in processes() if its.get("SLURM_ARRAY_TASK_ID") != number]
    try:
        for pid in others:
            os.kill(pid, signal.SIGSTOP)
        until(lambda: any(done and AGAIN in its for _, done, its in processes()), patience=SLOW)
        return any(done and AGAIN in its for _, done, its in processes())
    finally:
        for pid in others:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def a_task() -> list[str]:
    """Name and node of a task that runs; nothing where none does."""
    tasks = asked("squeue", "-h", "-r", "-t", "R", "-p", "low", "-o", "%i %N").splitlines()
    return tasks[0].split() if tasks else []


def requeue(bench: Bench) -> str:
    task = a_task()
    asked("scontrol", "requeue", *task[:1])
    return " ".join(task)


def preempt(bench: Bench) -> str:
    """A job that goes before all others takes the node of a task."""
    task = a_task()
    where = ("-w", *task[1:]) if task else ()
    asked("sbatch", "-p", "high", *where, "-o", "/dev/null", "--wrap", "sleep 1")
    return " ".join(task)


def kill(bench: Bench) -> str:
    from headscope.run.processes import records

    for one in records(bench.desk / OUT / "run").values():
        if one.get("state") == "computing":
            with suppress(ProcessLookupError):
                os.kill(one["pid"], signal.SIGKILL)
                return str(one["shard"])
    return ""


WAYS = [requeue, preempt, kill]  # each gives what it met
