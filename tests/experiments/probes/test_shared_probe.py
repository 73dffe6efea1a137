"""Are probes that processes train together those of one, whoever dies?"""

from __future__ import annotations

import pytest

from experiments.probes.made import VECTORS, tiny, treebank
from headscope.errors import RunStopped
from headscope.experiments.probes import feature_files
from headscope.experiments.probes.feature_files import FeatureFile
from headscope.experiments.probes.probe import probe
from headscope.experiments.probes.settings import ProbeSettings
from headscope.run.execution import Execution
from headscope.run.processes import TakingPart


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    folder = tmp_path_factory.mktemp("desk")
    treebank(folder / "train.conllu", 12)
    treebank(folder / "test.conllu", 6, seed=1)
    (folder / "vectors.txt").write_text(VECTORS, "utf-8")
    return folder


@pytest.fixture(scope="module")
def model(desk):
    return tiny(desk)


def probed(model, desk, output, **execution):
    settings = ProbeSettings(
        replicates=5,
        probes=("attention", "random_words", "structural"),
        structural_epochs=1,
        batch_tokens=60,
        structural_layers=(0,),
    )
    return probe(
        model,
        desk / "train.conllu",
        desk / "test.conllu",
        words=desk / "vectors.txt",
        output=output,
        settings=settings,
        execution=Execution(linears="stock", **execution),
    )


@pytest.fixture
def written(monkeypatch):
    """The pieces of features that are written, each of one batch."""
    names, put = [], FeatureFile.put

    def noted(file, compute):
        names.append(file.path.name)
        put(file, compute)

    monkeypatch.setattr(FeatureFile, "put", noted)
    monkeypatch.setattr(feature_files, "PIECE", 1)
    return names


def test_a_stopped_run_reads_only_what_it_has_not_written(model, desk, tmp_path, written):
    """Pieces of one batch; stopped after three of them."""

    def stop(done, total):
        if len(written) == 3:
            raise KeyboardInterrupt

    with pytest.raises(RunStopped):
        probed(model, desk, tmp_path / "run", progress=stop)
    kept = {file.name for file in (tmp_path / "run" / "features").glob("*.bin")}
    assert kept == set(written[:3])
    probed(model, desk, tmp_path / "run")
    assert len(written) == len(set(written))  # none was made twice


def test_probes_of_several_processes_are_those_of_one(model, desk, tmp_path, written):
    """One was stopped while it read for the second network, one died with leases."""
    alone, folder, told = probed(model, desk, desk / "alone"), tmp_path / "run", []
    written.clear()

    def stop(done, total):
        told.append((done, total))
        if any(name.startswith("random") for name in written):
            raise KeyboardInterrupt

    with pytest.raises(RunStopped):
        probed(model, desk, folder, shard=(1, 2), progress=stop)
    first = [*written]
    kept = {file.name for file in (folder / "features").glob("*.bin")}
    assert kept == {first[-1]}  # those of the network before are not needed any more
    dead = TakingPart(folder, (1, 2))
    dead._ended.set()
    leases = ("random-features-00001", "00001", "20000", "finish")
    assert all(dead.claim(lease) for lease in leases)
    dead.tell(state="computing", started="0")
    told.clear()
    run = probed(model, desk, folder, shard=(2, 2), progress=lambda *at: told.append(at))
    assert (folder / "atlas.nc").read_bytes() == (alone.path / "atlas.nc").read_bytes()
    assert {file.name for file in folder.iterdir()} == {"atlas.nc", "manifest.json"}
    assert len(written) == len(set(written))  # none was made twice
    assert {name.partition("-")[0] for name in written} == {"model", "random", "hidden"}
    assert told[-1][0] == told[-1][1]
    assert not run.elsewhere
