"""Is a zoo that processes fill together the zoo of one, whoever dies?"""

from __future__ import annotations

import json

import pytest

from headscope.corpus import MemoryCorpus
from headscope.errors import RunStopped
from headscope.papers.zoo.zoo import zoo
from headscope.run import shared_parts
from headscope.run.execution import Execution
from headscope.run.processes import TakingPart
from headscope.run.run_status import run_status
from headscope.run.store import RunFolder
from tasks.made import checkpoint

MODELS = ("small", "nothing", "copy", "large")


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """Two models, and one of them by another name."""
    folder = tmp_path_factory.mktemp("zoo")
    for name in ("small", "copy"):
        checkpoint(folder / name)
    checkpoint(folder / "large", num_hidden_layers=3)
    return folder


def zoo_of(desk, output, shard=None, begin=lambda label: None):
    return zoo(
        [str(desk / name) for name in MODELS],
        MemoryCorpus(["a b .", "b a , b ."]),
        output=output,
        replicates=2,
        analyses=("surface",),
        reports=False,
        begin=begin,
        control="none",
        execution=Execution(threads=1, linears="stock", shard=shard),
    )


@pytest.fixture(scope="module")
def alone(desk):
    return zoo_of(desk, desk / "alone")


def results(made):
    return {label: (run.path / "atlas.nc").read_bytes() for label, run in made.runs.items()}


def member(folder):
    own = TakingPart(folder, (1, 2))
    own._ended.set()
    return own


def left(folder):
    return {path.name for path in folder.iterdir()} - {"models", "manifest.json", ".models.lock"}


def test_a_zoo_of_several_processes_is_that_of_one(desk, alone, tmp_path):
    """One was stopped at its second model, one died with the lease on another."""
    folder, begun = tmp_path / "zoo", []

    def stop(label):
        begun.append(label)
        if label == "nothing":
            raise KeyboardInterrupt

    with pytest.raises(RunStopped, match="the same command goes on"):
        zoo_of(desk, folder, (1, 2), stop)
    assert begun == ["small", "nothing"]
    assert next(run_status(folder).lines()) == "stopped: 1 of 4 parts are done"
    dead = member(folder)
    assert dead.claim("model-00003")
    assert dead.claim("finish")
    dead.tell(state="computing", started="0")
    begun.clear()
    made = zoo_of(desk, folder, (2, 2), begun.append)
    assert begun[0] == "copy"
    assert sorted(begun[1:]) == ["large", "nothing"]  # by what it had looked at last
    assert results(made) == results(alone)
    assert (made.failed, list(made.runs)) == (alone.failed, list(alone.runs))
    assert made.failed["copy"] == "has the same weights as small"
    assert not left(folder)
    assert not made.elsewhere
    assert run_status(folder).state == "finished"


def test_a_process_helps_with_the_models_of_another_and_sees_its_end(
    desk, alone, tmp_path, monkeypatch
):
    folder, begun = tmp_path / "zoo", []
    other = member(folder)
    assert other.claim("model-00000")
    assert other.claim("finish")
    paused = []

    def pause(_seconds):
        paused.append([*begun])
        if len(paused) == 1:
            assert (folder / "models/small/atlas.nc").is_file()  # by the one that helped
            other.release("model-00000")
        else:
            manifest = json.loads((alone.path / "manifest.json").read_text("utf-8"))
            manifest.pop("checksum")
            RunFolder(folder).write_manifest(manifest | {"written_by": "other"})
            other.end("done")

    monkeypatch.setattr(shared_parts.time, "sleep", pause)
    made = zoo_of(desk, folder, (1, 2), begun.append)
    order = ["nothing", "large", "copy", "small"]
    assert paused == [order, [*order, "small"]]
    assert made.elsewhere
    assert results(made) == results(alone)
    assert made.manifest["written_by"] == "other"
