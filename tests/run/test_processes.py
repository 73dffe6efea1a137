"""Does a run survive being killed, stopped or robbed of a worker, at whatever moment?"""

import os
import signal
import subprocess
import sys
from functools import partial
from multiprocessing import reduction

import psutil
import pytest
from click.testing import CliRunner

import headscope as hs
from commands import (
    PATIENCE,
    QUICK,
    SHARDS,
    alive,
    environment,
    shard_files,
    started,
    until,
    until_shards,
    workers_of,
)
from headscope.cli.main import group
from headscope.errors import ModelError
from headscope.run.compute import ShardJob
from headscope.run.gather import run_workers
from headscope.run.plan import Shard

# On the demo: a tiny model would be ready before it is stopped.
QUICK_RUN = ("atlas", "demo", *QUICK, "--no-report", "-o", "run")


@pytest.fixture(scope="session")
def uninterrupted(demo, tmp_path_factory):
    """atlas.nc of the same run, made in one go, in this process."""
    run = hs.atlas(
        demo, hs.demo_corpus(), output=tmp_path_factory.mktemp("uninterrupted") / "run",
        analyses=("surface", "entropy"), replicates=20, shard_tokens=800,
        execution=hs.Execution(linears="stock", threads=1),
    )  # fmt: skip
    assert len(shard_files(run.path)) == SHARDS
    return (run.path / "atlas.nc").read_bytes()


@pytest.fixture
def finish(tmp_path, monkeypatch):
    """The same command again, to its end; nothing that was finished may be written anew."""

    def finish_():
        before = shard_files(tmp_path / "run")
        monkeypatch.chdir(tmp_path)
        done = CliRunner().invoke(group, list(QUICK_RUN))
        assert done.exit_code == 0, done.output
        assert before.items() <= shard_files(tmp_path / "run").items()
        if before:
            assert f"resumed: {len(before)} of {SHARDS} shards" in done.output
        return (tmp_path / "run" / "atlas.nc").read_bytes()

    return finish_


def test_a_run_killed_again_and_again_ends_in_the_same_bits(tmp_path, finish, uninterrupted):
    finished = {}
    for moment in (2, SHARDS):  # at the last one it is merging or writing its results
        with started(*QUICK_RUN, cwd=tmp_path) as process:
            until_shards(tmp_path / "run", moment, process)
            process.send_signal(signal.SIGKILL)
            process.wait()
        found = shard_files(tmp_path / "run")
        assert finished.items() <= found.items()
        finished = found
    assert finish() == uninterrupted


def test_ctrl_c_ends_in_one_line_and_the_run_goes_on(tmp_path, finish, uninterrupted):
    with started(*QUICK_RUN, cwd=tmp_path) as process:
        until_shards(tmp_path / "run", 2, process)
        os.killpg(process.pid, signal.SIGINT)
        _, complaint = process.communicate()
    assert process.returncode == 1
    assert complaint.startswith("headscope: stopped; ")
    assert complaint.count("\n") == 1
    assert finish() == uninterrupted


def test_ctrl_c_before_the_first_shard_is_as_quiet(tmp_path):
    with started(*QUICK_RUN, cwd=tmp_path) as process:
        until(lambda: _has_imported(process, "torch"), what="torch being imported")
        os.killpg(process.pid, signal.SIGINT)
        _, complaint = process.communicate()
    assert process.returncode == 1
    assert complaint.startswith("headscope: stopped")
    assert "Traceback" not in complaint


def _has_imported(process, library):
    return any(library in m.path for m in psutil.Process(process.pid).memory_maps())


@pytest.mark.parametrize(
    ("moment", "sign"),
    [
        ("importing", signal.SIGINT), ("computing", signal.SIGINT),
        ("a worker is stopped", signal.SIGTERM),  # it hears nothing; this once hung for ever
    ],
)  # fmt: skip
def test_ctrl_c_with_two_workers_leaves_no_process_behind(tmp_path, moment, sign):
    with started(*QUICK_RUN, "--workers", "2", cwd=tmp_path) as process:
        until(lambda: len(workers_of(process)) == 2, what="two workers")
        workers = workers_of(process)
        if moment == "computing":
            until_shards(tmp_path / "run", 1, process)
        if moment == "a worker is stopped":
            workers[0].suspend()
            process.send_signal(sign)
        else:
            os.killpg(process.pid, sign)  # as a terminal does: to all of them
        _, complaint = process.communicate()
    assert process.returncode == 1
    assert complaint.startswith("headscope: stopped; ")
    assert complaint.count("\n") == 1, complaint
    assert not any(map(alive, workers))


def test_workers_end_when_their_parent_is_killed(tmp_path):
    with started(*QUICK_RUN, "--workers", "2", cwd=tmp_path) as process:
        until(lambda: len(workers_of(process)) == 2, what="two workers")
        workers = workers_of(process)
        until_shards(tmp_path / "run", 1, process)
        process.send_signal(signal.SIGKILL)
        process.wait()
        until(lambda: not any(map(alive, workers)), what="the workers' end")


def test_a_worker_that_dies_is_an_error_that_says_what_to_do(tmp_path):
    with started(*QUICK_RUN, "--workers", "2", cwd=tmp_path) as process:
        until(lambda: len(workers_of(process)) == 2, what="two workers")
        workers_of(process)[0].kill()
        _, complaint = process.communicate()
    assert process.returncode == 1
    assert complaint.startswith("headscope: a worker process died")
    assert "fewer --workers" in complaint
    assert "Traceback" not in complaint


def test_what_goes_wrong_in_a_worker_is_said_as_if_it_had_here(demo, capfd):
    """It was once reported as a worker that died, with a traceback of the pool."""
    settings = hs.Settings(analyses=("entropy",))
    task = ShardJob(
        hs.MemoryCorpus(["A cat."]), settings, hs.Scope(6, 12), ("entropy",), "encoder", "stock", 1
    )
    again = partial(hs.load, "no-such/model", **demo.load_options)
    with pytest.raises(ModelError, match="no-such/model"):
        list(run_workers(again, task, [Shard(0, 0, 1, 4, "")], print, workers=2))
    assert "Traceback" not in capfd.readouterr().err


def test_no_worker_waits_for_the_imports_of_the_one_before(demo, monkeypatch):
    """What a new process is given goes through a pipe; more than that holds wait for its reader."""
    given, dump = [], reduction.dump

    def recorded(thing, file, protocol=None):
        dump(thing, file, protocol)
        given.append(file.tell())

    monkeypatch.setattr(reduction, "dump", recorded)
    large = hs.MemoryCorpus(["A cat. " * 100_000])
    job = ShardJob(large, hs.Settings(), hs.Scope(6, 12), ("entropy",), "encoder", "stock", 1)
    again = partial(hs.load, "no-such/model", **demo.load_options)
    with pytest.raises(ModelError):
        list(run_workers(again, job, [Shard(0, 0, 1, 4, "")], print, workers=2))
    assert 0 < max(given) < 16_384


# Large results, so that workers are likely to be in the middle of one when they are ended.
ENDING = """
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

if __name__ == "__main__":  # not in the workers, which begin sooner without it
    from headscope.run.gather import _end

    for count in range(6):
        pool = ProcessPoolExecutor(2, mp_context=get_context("spawn"))
        futures = [pool.submit(bytes, 3_000_000) for _ in range(60)]
        for done, future in enumerate(as_completed(futures)):
            if done == count:
                break
        _end(pool)
    print("ended")
"""


def test_workers_end_in_the_middle_of_a_large_result(tmp_path):
    """The pool waited for ever for the rest of a result whose worker was gone."""
    file = tmp_path / "ending.py"
    file.write_text(ENDING)
    done = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, timeout=PATIENCE,
        check=False, env=environment(),
    )  # fmt: skip
    assert (done.stdout, done.returncode) == ("ended\n", 0), done.stderr
