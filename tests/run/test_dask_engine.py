"""Does a Dask cluster give the bits of one process, also where its workers die?"""

import asyncio
import io
import logging
import pickle
import re
import shutil
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
from click.testing import CliRunner
from distributed import Client, KilledWorker, LocalCluster
from distributed.client import FutureCancelledError

import headscope as hs
from commands import WHOLE, WHOLE_SHARDS, shard_files, until_shards
from forked import forked
from headscope.cli.main import group
from headscope.errors import HeadscopeError, InputError
from headscope.run import dask_engine
from headscope.run.plan import Shard
from made_models import small_bert

# Workers are forked here, as a new process imports for five seconds; one of them kills itself.
CODE = """
import os, signal, warnings
from pathlib import Path

import dask

from headscope.__main__ import main
from headscope.run import dask_engine

warnings.simplefilter("ignore")
dask.config.set({"distributed.worker.multiprocessing-method": "fork"})
plain = dask_engine.Computer.compute

def compute(computer, shard, *more):
    if shard.number == 2 and not list(Path().glob("died-*")):
        Path(f"died-{os.getpid()}").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return plain(computer, shard, *more)

dask_engine.Computer.compute = compute
main()
"""


def command(place):
    given = [word for name, value in WHOLE.items() for word in (f"--{name}", value)]
    return [
        "atlas",
        place,
        "--demo",
        "--analyses",
        "surface,entropy",
        "--no-report",
        "--linears",
        "stock",
        "--threads",
        "1",
        "--control",
        "none",
        "--keep-shards",
        "--engine",
        "dask",
        "--workers",
        "2",
        *(str(word).replace("_", "-") for word in given),
        "-o",
        "run",
    ]


def test_a_worker_that_is_killed_changes_no_bit_and_opens_no_port(tiny_place, short, tmp_path):
    with forked(*command(tiny_place), cwd=tmp_path, code=CODE) as process:
        until_shards(tmp_path / "run", 1, process)
        listened, command_ = set(), psutil.Process(process.pid)
        for one in (command_, *command_.children(recursive=True)):
            with suppress(psutil.Error):  # it has ended
                listened |= {c.laddr.ip for c in one.net_connections() if c.laddr}
        _, complaint = process.communicate()
    assert process.returncode == 0, complaint
    assert listened == {"127.0.0.1"}
    assert len(list(tmp_path.glob("died-*"))) == 1
    assert len(shard_files(tmp_path / "run")) == WHOLE_SHARDS
    assert (tmp_path / "run" / "atlas.nc").read_bytes() == (short.path / "atlas.nc").read_bytes()
    assert hs.open_run(tmp_path / "run").manifest["engine"] == "dask"
    assert "Traceback" not in complaint


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KilledWorker("x", None, 3), "shard 3 ended 4 workers"),
        (FutureCancelledError("x", "scheduler-connection-lost"), "the Dask cluster is gone"),
        (OSError("Timed out trying to connect"), "the Dask cluster is gone"),
    ],
)
def test_what_dask_gives_up_is_said_with_what_to_do(error, said):
    said = rf"{said}.*finished shards are kept"
    with pytest.raises(HeadscopeError, match=said), dask_engine._in_words(Shard(2, 0, 1, 4, "")):
        raise error


@pytest.fixture(scope="module")
def cluster():
    """One that is there: a worker of two threads, in this process."""
    with LocalCluster(
        1,
        threads_per_worker=2,
        processes=False,
        host="127.0.0.1",
        protocol="tcp",
        dashboard_address=":0",
        silence_logs=logging.CRITICAL,
    ) as made:
        yield made.scheduler_address


def run_on(cluster, model, **more):
    execution = hs.Execution(engine="dask", scheduler=cluster, linears="stock", threads=1)
    asked = {"analyses": ("surface", "entropy"), **WHOLE, **more}
    return hs.atlas(model, hs.demo_corpus(), execution=execution, **asked)


def test_a_cluster_that_is_there_gives_the_same_and_keeps_nothing(cluster, tiny, short):
    assert run_on(cluster, tiny).tree.identical(short.tree)
    assert dask_engine._JOBS == {}


def test_what_dask_logs_of_a_scheduler_that_is_gone_is_not_printed(cluster):
    """A traceback stood before our error."""
    printed = logging.StreamHandler(io.StringIO())
    logging.getLogger("distributed").addHandler(printed)
    try:
        with dask_engine._client(cluster, 0):
            logging.getLogger("distributed.client").error("Failed to reconnect")
    finally:
        logging.getLogger("distributed").removeHandler(printed)
    assert printed.stream.getvalue() == ""


def test_workers_of_this_machine_are_killed_before_the_cluster_closes():
    """One that was stopped would hear nothing less."""
    did = []

    def worker(name):
        process = SimpleNamespace(kill=lambda: did.append(name))
        return SimpleNamespace(auto_restart=True, process=SimpleNamespace(process=process))

    starting = SimpleNamespace(auto_restart=True, process=None)
    workers = {0: worker("one"), 1: starting, 2: worker("other")}
    end = SimpleNamespace(workers=workers, sync=lambda do: do(), close=lambda: did.append("closed"))
    dask_engine._stop(end)
    assert did == ["one", "other", "closed"]
    assert not any(one.auto_restart for one in workers.values())


def test_an_end_does_not_wait_for_ever_for_a_scheduler_that_is_gone(cluster, monkeypatch):
    async def never(*_, **__):
        await asyncio.Event().wait()

    job = dask_engine._Job("x", ("0", None, None))
    with Client(cluster, set_as_default=False) as client:
        with monkeypatch.context() as patched, dask_engine._handed(client, job, cluster):
            assert "x" in dask_engine._JOBS
            patched.setattr(Client, "_unregister_worker_plugin", never)
            patched.setattr(dask_engine, "PATIENCE", "10ms")
        client.unregister_worker_plugin("x")
    assert dask_engine._JOBS == {}


def test_what_goes_wrong_in_a_worker_is_said_with_its_name(cluster, tiny, monkeypatch):
    def missing(*_):
        raise FileNotFoundError(2, "No such file or directory", "wiki.txt")

    monkeypatch.setattr(dask_engine.Computer, "compute", missing)
    with pytest.raises(InputError, match=r"'wiki.txt'\non the worker tcp:.*under the same paths"):
        run_on(cluster, tiny)
    monkeypatch.setattr(dask_engine.Computer, "compute", lambda *_: {"x/y": np.array([np.nan])})
    with pytest.raises(HeadscopeError, match=r"x/y of shard \d holds NaN"):
        run_on(cluster, tiny)


def test_a_worker_whose_path_holds_other_weights_is_refused(cluster, tiny_place, tmp_path):
    """Its numbers once stood under the first model's name and hash."""
    loaded = hs.load(str(shutil.copytree(tiny_place, tmp_path / "model")))
    small_bert(tmp_path / "model", seed=1)
    with pytest.raises(InputError, match=r"another .*model\.sha256: (.|\n)*on the worker tcp:"):
        run_on(cluster, loaded)


def test_a_worker_with_another_version_computes_nothing(monkeypatch):
    monkeypatch.setitem(dask_engine._JOBS, "x", pickle.dumps(("0.0", hs.load, None)))
    here = SimpleNamespace(address="tcp://10.0.0.1:9")
    monkeypatch.setattr(dask_engine.distributed, "get_worker", lambda: here)
    said = rf"found headscope {re.escape(hs.__version__)}; wanted 0.0\non the worker tcp:"
    with pytest.raises(InputError, match=said):
        dask_engine._compute("x", Shard(2, 0, 1, 4, ""))


def test_a_gpu_is_asked_of_workers_that_announce_one(cluster):
    compute = dask_engine.compute_on_dask(
        None, None, [None], None, scheduler=cluster, workers=1, gpu=True
    )
    with pytest.raises(InputError, match=r"none of the 1 workers.*--resources GPU=1"):
        next(compute)


def test_a_model_that_is_only_in_memory_is_refused(cluster, tiny):
    loaded = hs.load(tiny.network, tokenizer=tiny.tokenizer)
    with pytest.raises(InputError, match="give a name or a folder"):
        run_on(cluster, loaded, limit=1)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nowhere", "http://127.0.0.1:1"])
def test_an_address_where_nobody_answers_is_said(monkeypatch, address):
    monkeypatch.setattr(dask_engine, "PATIENCE", "50ms")
    with pytest.raises(InputError, match=rf"no Dask scheduler answers at {address}: "):
        dask_engine.reach(address)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--scheduler", "tcp://a:1"], "wanted the engine dask"),
        (["--engine", "dask", "--scheduler", "tcp://a:1", "--workers", "2"], "wanted one of them"),
        (["--engine", "dask"], "pip install 'headscope[cluster]'"),
    ],
)
def test_what_cannot_be_is_refused_before_a_model_is_loaded(monkeypatch, given, said):
    if len(given) == 2 and given[1] == "dask":
        monkeypatch.setattr("headscope.run.execution.find_spec", lambda _: None)
    done = CliRunner().invoke(group, ["atlas", "no-such/model", "--demo", *given])
    assert isinstance(done.exception, InputError)
    assert said in str(done.exception)


@pytest.mark.parametrize(("dead", "tries"), [(2, 3), (9, 3)])
def test_workers_that_die_as_they_start_are_started_again_and_not_for_ever(
    monkeypatch, dead, tries
):
    begun = []

    def start(**options):
        begun.append(options["n_workers"])
        if len(begun) <= dead:
            raise RuntimeError("Nanny failed to start.")
        raise KeyboardInterrupt  # enough was seen

    monkeypatch.setattr(dask_engine, "LocalCluster", start)
    ends = pytest.raises(HeadscopeError, match=r"end as they start.*`if __name__")
    with ends if dead >= tries else pytest.raises(KeyboardInterrupt), dask_engine._client(None, 2):
        pass
    assert begun == [2] * tries
