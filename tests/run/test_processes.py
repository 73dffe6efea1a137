"""Does a run survive being killed, stopped or robbed of a worker, at whatever moment?"""

import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import get_context, reduction

import psutil
import pytest
from click.testing import CliRunner

import headscope as hs
from commands import (
    PATIENCE,
    QUICK,
    SHARDS,
    alive,
    servers_of,
    shard_files,
    started,
    until,
    until_shards,
    workers_of,
)
from forked import called_apart, forked
from headscope.cli.main import group
from headscope.errors import ModelError
from headscope.run.compute import ShardJob
from headscope.run.gather import run_workers
from headscope.run.plan import Shard
from headscope.run.worker_processes import stop_at_once

# On the demo: a tiny model would be ready before it is stopped.
QUICK_RUN = ("atlas", "demo", *QUICK, "--no-report", "--keep-shards", "-o", "run")


@pytest.fixture(scope="session")
def uninterrupted(demo, tmp_path_factory):
    """atlas.nc of the same run, made in one go, in this process."""
    run = hs.atlas(
        demo,
        hs.demo_corpus(),
        output=tmp_path_factory.mktemp("uninterrupted") / "run",
        analyses=("surface", "entropy"),
        replicates=20,
        shard_tokens=400,
        limit=7,
        execution=hs.Execution(linears="stock", threads=1, keep_shards=True),
    )
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


def test_a_run_killed_and_stopped_again_and_again_ends_in_the_same_bits(
    tmp_path, finish, uninterrupted
):
    """Killed in the middle, stopped with Ctrl-C, killed where it merges or writes its results."""
    finished = {}
    for moment, how in ((2, signal.SIGKILL), (4, signal.SIGINT), (SHARDS, signal.SIGKILL)):
        with forked(*QUICK_RUN, cwd=tmp_path) as process:
            until_shards(tmp_path / "run", moment, process)
            os.killpg(process.pid, how)
            _, complaint = process.communicate()
        if how == signal.SIGINT:
            assert process.returncode == 130
            assert complaint.startswith("headscope: stopped; ")
            assert complaint.count("\n") == 1
        found = shard_files(tmp_path / "run")
        assert finished.items() <= found.items()
        finished = found
    assert finish() == uninterrupted


def test_ctrl_c_before_the_first_shard_is_as_quiet(tmp_path):
    with started(*QUICK_RUN, cwd=tmp_path) as process:
        until(lambda: _has_imported(process, "torch"), what="torch being imported")
        os.killpg(process.pid, signal.SIGINT)
        _, complaint = process.communicate()
    assert process.returncode == 130
    assert complaint.startswith("headscope: stopped")
    assert "Traceback" not in complaint


# What workers are forked from is a new interpreter, which takes seconds to import.
IMPORTING = """
import multiprocessing.util, forked, headscope.__main__
multiprocessing.util.spawnv_passfds = forked._spawn
headscope.__main__.main()
"""


def _has_imported(process, library):
    return any(library in m.path for m in psutil.Process(process.pid).memory_maps())


@pytest.mark.parametrize(
    ("moment", "sign"),
    [
        ("importing", signal.SIGINT),
        (
            "computing, and one is stopped",
            signal.SIGTERM,
        ),  # which hears nothing: this hung for ever
    ],
)
def test_ctrl_c_with_two_workers_leaves_no_process_behind(tmp_path, moment, sign):
    code = IMPORTING if moment == "importing" else None
    with forked(*QUICK_RUN, "--workers", "2", cwd=tmp_path, code=code) as process:
        until(lambda: servers_of(process), what="what the workers are forked from")
        left = servers_of(process)
        if moment != "importing":
            until(lambda: len(workers_of(process)) == 2, what="two workers")
            workers = workers_of(process)
            until_shards(tmp_path / "run", 1, process)
            workers[0].suspend()
            left += workers
        os.killpg(process.pid, sign)  # as a terminal and a scheduler do: to all of them
        _, complaint = process.communicate()
    assert process.returncode == 130
    assert complaint.startswith("headscope: stopped; ")
    ours = [line for line in complaint.splitlines() if "resource_tracker" not in line]
    assert len([line for line in ours if "warnings.warn" not in line]) == 1, complaint
    assert not any(map(alive, left[1:]))
    until(lambda: not any(map(alive, left)), what="the end of what they are forked from")


def test_workers_end_when_their_parent_is_killed(tmp_path):
    with forked(*QUICK_RUN, "--workers", "2", cwd=tmp_path) as process:
        until(lambda: len(workers_of(process)) == 2, what="two workers")
        left = [*servers_of(process), *workers_of(process)]
        until_shards(tmp_path / "run", 1, process)
        process.send_signal(signal.SIGKILL)
        process.wait()
        until(lambda: not any(map(alive, left)), what="the workers' end")


def test_a_worker_that_dies_is_an_error_that_says_what_to_do(tmp_path):
    with forked(*QUICK_RUN, "--workers", "2", cwd=tmp_path) as process:
        until(lambda: len(workers_of(process)) == 2, what="two workers")
        workers_of(process)[0].kill()
        _, complaint = process.communicate()
    assert process.returncode == 1
    assert complaint.startswith("headscope: a worker process died")
    assert "fewer --workers" in complaint
    assert "Traceback" not in complaint


def test_what_goes_wrong_in_a_worker_is_said_as_if_it_had_here(tmp_path):
    """It was once reported as a worker that died, with a traceback of the pool.

    What a new process is given goes through a pipe, and more than that holds would wait for its
    reader: no worker may wait for the imports of the one before, however large the corpus.
    """
    assert "Traceback" not in called_apart(no_worker_finds_its_model, cwd=tmp_path)


def no_worker_finds_its_model():
    given, dump = [], reduction.dump

    def recorded(thing, file, protocol=None):
        dump(thing, file, protocol)
        given.append(file.tell())

    reduction.dump = recorded
    large = hs.corpus.MemoryCorpus(["A cat. " * 100_000])
    job = ShardJob(
        large, hs.Settings(), hs.plugins.Scope(6, 12), ("entropy",), "encoder", "stock", 1
    )
    again = partial(hs.load, "no-such/model", **hs.load("demo").load_options)
    with pytest.raises(ModelError, match="no-such/model"):
        list(run_workers(again, job, [Shard(0, 0, 1, 4, "")], print, workers=2))
    assert 0 < max(given) < 16_384


def end_pools():
    """Large results, so that workers are likely to be in the middle of one when they are ended."""
    for count in range(6):
        pool = ProcessPoolExecutor(2, mp_context=get_context("spawn"))
        futures = [pool.submit(bytes, 3_000_000) for _ in range(60)]
        for done, _ in enumerate(as_completed(futures)):
            if done == count:
                break
        stop_at_once(pool)


def test_workers_end_in_the_middle_of_a_large_result():
    """The pool waited for ever for the rest of a result whose worker was gone."""
    ending = threading.Thread(target=end_pools, daemon=True)
    ending.start()
    ending.join(PATIENCE)
    assert not ending.is_alive()
