"""Does a run survive being killed, stopped or robbed of a worker, at whatever moment?"""

import os
import signal

import psutil
import pytest
from commands import (
    QUICK,
    SHARDS,
    alive,
    headscope,
    shard_files,
    started,
    until,
    until_shards,
    workers_of,
)

import headscope as hs

QUICK_RUN = ("atlas", "demo", *QUICK, "--no-report", "-o", "run")


@pytest.fixture(scope="session")
def uninterrupted(demo, tmp_path_factory):
    """atlas.nc of the same run, made in one go, in this process."""
    run = hs.atlas(
        demo, hs.demo_corpus(), output=tmp_path_factory.mktemp("uninterrupted") / "run",
        analyses=("surface", "entropy"), replicates=20, shard_tokens=400,
        execution=hs.Execution(linears="stock", threads=1),
    )  # fmt: skip
    assert len(shard_files(run.path)) == SHARDS
    return (run.path / "atlas.nc").read_bytes()


def finish(folder, *more):
    """The same command again, to its end; nothing that was finished may be written anew."""
    before = shard_files(folder / "run")
    done = headscope(*QUICK_RUN, *more, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert before.items() <= shard_files(folder / "run").items()
    if before:
        assert f"resumed: {len(before)} of {SHARDS} shards" in done.stdout
    return (folder / "run" / "atlas.nc").read_bytes()


def test_a_run_killed_again_and_again_ends_in_the_same_bits(tmp_path, uninterrupted):
    finished = {}
    for moment in (1, 4, SHARDS):  # at the last one it is merging or writing its results
        with started(*QUICK_RUN, cwd=tmp_path) as process:
            until_shards(tmp_path / "run", moment, process)
            process.send_signal(signal.SIGKILL)
            process.wait()
        found = shard_files(tmp_path / "run")
        assert finished.items() <= found.items()
        finished = found
    assert finish(tmp_path) == uninterrupted


def test_ctrl_c_ends_in_one_line_and_the_run_goes_on(tmp_path, uninterrupted):
    with started(*QUICK_RUN, cwd=tmp_path) as process:
        until_shards(tmp_path / "run", 2, process)
        os.killpg(process.pid, signal.SIGINT)
        _, complaint = process.communicate()
    assert process.returncode == 1
    assert complaint.startswith("headscope: stopped; ")
    assert complaint.count("\n") == 1
    assert finish(tmp_path) == uninterrupted


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


@pytest.mark.parametrize("moment", ["importing", "computing"])
def test_ctrl_c_with_two_workers_leaves_no_process_behind(tmp_path, uninterrupted, moment):
    with started(*QUICK_RUN, "--workers", "2", cwd=tmp_path) as process:
        until(lambda: len(workers_of(process)) == 2, what="two workers")
        workers = workers_of(process)
        if moment == "computing":
            until_shards(tmp_path / "run", 1, process)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
        _, complaint = process.communicate()
    assert process.returncode == 1
    assert complaint.startswith("headscope: stopped; ")
    assert complaint.count("\n") == 1, complaint
    assert not any(map(alive, workers))
    if moment == "computing":
        assert finish(tmp_path, "--workers", "2") == uninterrupted


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


def test_what_goes_wrong_in_a_worker_is_said_as_if_it_had_here(tmp_path):
    """It was once reported as a worker that died, with a traceback of the pool."""
    code = (
        "import headscope as hs\n"
        "from headscope.errors import ModelError\n"
        "if __name__ == '__main__':\n"
        "    model = hs.load('demo')\n"
        "    model.name = 'no-such-folder/model'\n"
        "    try:\n"
        "        hs.atlas(model, hs.MemoryCorpus(['A cat.', 'A dog.']), analyses=['entropy'],\n"
        "                 shard_tokens=1, execution=hs.Execution(workers=2, linears='stock'))\n"
        "    except ModelError as error:\n"
        "        print(error)\n"
    )
    (tmp_path / "script.py").write_text(code)
    done = headscope(cwd=tmp_path, code="import runpy; runpy.run_path('script.py', run_name='__main__')")
    assert done.returncode == 0, done.stderr
    assert "no-such-folder/model" in done.stdout
    assert "Traceback" not in done.stderr
