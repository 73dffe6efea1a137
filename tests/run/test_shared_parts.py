"""Do the parts of what is no atlas, shared by processes, give the bits of one process?"""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import headscope as hs
from forked import forked
from headscope.corpus.document import Example
from headscope.errors import InputError, RunStopped
from headscope.experiments.ablation.ablate import ablate
from headscope.experiments.ablation.settings import AblationSettings
from headscope.experiments.importance.importance import importance
from headscope.experiments.importance.settings import ImportanceSettings
from headscope.run.experiment import ExperimentRequest, run_experiment
from headscope.run.processes import TakingPart, read_record, records
from headscope.run.run_status import run_status
from headscope.tasks.task_model import load_for_task
from tasks.made import MOOD, checkpoint, data

FIRST, SECOND = range(5), range(100, 104)  # the second stage needs what the first has given


def request(model):
    ids = np.arange(6)
    example = Example("one", "one", ids, ids * 0, ids < 0)
    return ExperimentRequest(
        "count",
        model,
        corpus={"kind": "made", "files": []},
        examples=[example],
        settings={},
        divided=True,
    )


class Counting:
    """An experiment of two stages that remembers which parts it computed."""

    def __init__(self, at=lambda number: None):
        self.made, self.told, self.at = [], [], at

    def __call__(self, run):
        whole = [float(state["n"][0]) for state in self._states(run, FIRST, 0.1)]
        rest = self._states(run, SECOND, sum(whole), last=True)
        whole += [float(state["n"][0]) for state in rest]
        return {"counts": xr.Dataset({"n": ("part", whole)})}

    def _states(self, run, numbers, factor, **more):
        def make(number):
            self.at(number)
            self.made.append(number)
            return {"n": np.array([factor * number])}

        return run.parts(numbers, make, self.told.append, **more)


def counted(model, folder, shard=None, at=lambda number: None):
    work = Counting(at)
    execution = hs.Execution(linears="stock", shard=shard)
    return run_experiment(request(model), work, output=folder, execution=execution), work


def there(folder):
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


def stop(at):
    def stopped(number):
        if number == at:
            raise KeyboardInterrupt

    return stopped


@pytest.fixture(scope="module")
def alone(tiny, tmp_path_factory):
    run, work = counted(tiny, tmp_path_factory.mktemp("alone") / "run")
    assert work.made == work.told == [*FIRST, *SECOND]
    return (run.path / "atlas.nc").read_bytes()


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "run"


def left_by_the_dead(folder, *leases):
    """The record and the leases of a process that this machine has no more."""
    dead = TakingPart(folder, (1, 2))
    dead._ended.set()
    assert all(dead.claim(lease) for lease in leases)
    dead.tell(state="computing", started="0")


def test_one_of_two_processes_does_all_if_the_other_never_comes(tiny, alone, folder):
    run, work = counted(tiny, folder, (2, 2))
    assert (folder / "atlas.nc").read_bytes() == alone
    assert there(folder) == {"atlas.nc", "manifest.json"}
    assert work.made[:3] == [2, 3, 4]  # its own share first
    assert sorted(work.made) == sorted(work.told) == [*FIRST, *SECOND]
    assert sum(run.manifest["processors"].values()) == len(work.made)
    assert not run.elsewhere


def test_what_a_dead_process_held_and_left_is_done_by_the_next(tiny, alone, folder):
    with pytest.raises(RunStopped, match="goes on from what is finished"):
        counted(tiny, folder, (1, 2), stop(103))
    (first,) = (read_record(file) for file in records(folder))
    assert (first["state"], first["shards"], first["parts"]) == ("stopped", 7, 9)
    assert next(run_status(folder).lines()) == "stopped: 7 of 9 parts are done"
    left_by_the_dead(folder, "00103", "finish")
    _, work = counted(tiny, folder, (2, 2))
    assert sorted(work.made) == [102, 103]
    assert sorted(work.told) == [*FIRST, *SECOND]
    assert (folder / "atlas.nc").read_bytes() == alone
    assert there(folder) == {"atlas.nc", "manifest.json"}


def test_a_damaged_part_is_computed_again(tiny, alone, folder):
    with pytest.raises(RunStopped):
        counted(tiny, folder, (1, 2), stop(103))
    for name in ("00001", "00101"):
        (file,) = folder.glob(f"shards/*/{name}-*")
        file.write_bytes(file.read_bytes()[:-1])
    _, work = counted(tiny, folder, (1, 2))
    assert sorted(work.made) == [1, 101, 102, 103]
    assert (folder / "atlas.nc").read_bytes() == alone


def test_results_of_another_process_end_the_work(tiny, folder, tmp_path):
    done, _ = counted(tiny, tmp_path / "done")

    def other(number):
        if number == 3:
            for name in ("atlas.nc", "manifest.json"):
                shutil.copy(done.path / name, folder / name)

    run, work = counted(tiny, folder, (1, 2), other)
    assert run.elsewhere
    assert not set(SECOND) & set(work.made)
    assert there(folder) == {"atlas.nc", "manifest.json"}


def test_a_process_without_a_share_goes_on_alone(tiny, alone, folder):
    with pytest.raises(RunStopped):
        counted(tiny, folder, (1, 2), stop(103))
    _, work = counted(tiny, folder)
    assert work.made == [102, 103]
    assert (folder / "atlas.nc").read_bytes() == alone


def test_a_share_needs_a_folder(tiny):
    with pytest.raises(InputError, match="found a shard and no run folder"):
        counted(tiny, None, (1, 2))


# --- the experiments themselves ---------------------------------------------------------------


@pytest.fixture(scope="module")
def mood(tmp_path_factory):
    return load_for_task(checkpoint(tmp_path_factory.mktemp("mood") / "model", head=MOOD), MOOD)


@pytest.mark.parametrize(
    ("make", "settings", "tokens"),
    [
        (ablate, AblationSettings(replicates=5, batch_tokens=200), "ablation.ablating"),
        (
            importance,
            ImportanceSettings(replicates=5, methods=("gradient",)),
            "importance.measuring",
        ),
    ],
)
def test_an_experiment_of_two_processes_is_that_of_one(
    make, settings, tokens, mood, folder, tmp_path, monkeypatch
):
    monkeypatch.setattr(f"headscope.experiments.{tokens}.PART_TOKENS", 30)

    def made(output, **execution):
        how = hs.Execution(linears="stock", **execution)
        return make(mood, data(12), settings=settings, output=output, execution=how)

    alone = made(tmp_path / "alone", keep_shards=True)
    files = sorted(alone.path.glob("shards/*/*.shard"))
    parts = [file.name.partition("-")[0] for file in files]
    assert len(parts) > 2
    left_by_the_dead(folder, parts[0], parts[-1], "finish")
    run = made(folder, shard=(2, 2))
    assert (folder / "atlas.nc").read_bytes() == (alone.path / "atlas.nc").read_bytes()
    assert there(folder) == {"atlas.nc", "manifest.json"}
    assert sum(run.manifest["processors"].values()) == len(parts)


# --- real processes -----------------------------------------------------------------------------

COUNTED = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = [{tests!r}]
import headscope as hs
from run.test_shared_parts import counted
model = hs.load({model!r})

def at(number):
    if number == {fatal}:
        os.kill(os.getpid(), signal.SIGKILL)

counted(model, Path("run"), ({share}, 2), at)
"""


def test_a_process_that_is_killed_costs_its_part(tiny, tiny_place, alone, tmp_path):
    """It is killed in the middle; then two at once take over what it held."""
    tests, model, folder = str(Path(__file__).parents[1]), str(tiny_place), tmp_path / "run"

    def process(share, fatal=-1):
        code = COUNTED.format(tests=tests, model=model, share=share, fatal=fatal)
        return forked(cwd=tmp_path, code=code)

    with process(1, fatal=1) as killed:
        assert killed.wait() == -signal.SIGKILL
    assert (folder / "processes/00001.lease").is_file()
    with process(1) as first, process(2) as second:
        assert (first.wait(), second.wait()) == (0, 0), second.communicate()
    assert (folder / "atlas.nc").read_bytes() == alone
    assert there(folder) == {"atlas.nc", "manifest.json"}
