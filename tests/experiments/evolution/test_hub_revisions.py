"""Are revisions of the hub followed as their folders are, and missing ones refused at once?"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import huggingface_hub
import numpy as np
import pytest
from huggingface_hub import constants, scan_cache_dir

import headscope as hs
from headscope.errors import InputError, ModelError
from headscope.experiments.evolution.checkpoints import listed_checkpoints
from headscope.experiments.evolution.evolve import evolve
from headscope.model.model import load
from made_models import small_bert

COMMITS = {"step1": "a" * 40, "step2": "b" * 40}
HOW: dict[str, Any] = {
    "limit": 3,
    "execution": hs.Execution(linears="stock", threads=1),
    "replicates": 3,
    "control": "none",
}


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the hub, laid out as its library documents, with two revisions of tiny/bert; the
    hub is out of reach."""
    assert scan_cache_dir  # its module may have been imported before, with the user's own cache
    repository = tmp_path / "cache" / "models--tiny--bert"
    (repository / "refs").mkdir(parents=True)
    for seed, (revision, commit) in enumerate(COMMITS.items()):
        small_bert(repository / "snapshots" / commit, seed=seed)
        (repository / "refs" / revision).write_text(commit)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return repository


def test_revisions_in_the_cache_are_measured_as_their_folders(cached: Path, tmp_path: Path) -> None:
    names = ["tiny/bert@step2", "tiny/bert@step1"]
    run = evolve(names, hs.demo_corpus(), output=tmp_path / "hub", **HOW)
    folders = [f"{step}={cached / 'snapshots' / COMMITS[f'step{step}']}" for step in (1, 2)]
    alone = evolve(folders, hs.demo_corpus(), output=tmp_path / "folders", **HOW)
    assert run["evolution"]["step"].values.tolist() == [1, 2]
    assert run["evolution"]["checkpoint"].values.tolist() == names[::-1]
    values = run["evolution"]["value"].values
    np.testing.assert_array_equal(values, alone["evolution"]["value"].values)
    assert (values[0] != values[1]).any()


def test_a_revision_that_is_not_there_is_refused_before_anything_is_measured(
    cached: Path, tmp_path: Path
) -> None:
    with pytest.raises(ModelError) as caught:
        evolve(
            ["tiny/bert@step1", "tiny/bert@step3"],
            hs.demo_corpus(),
            output=tmp_path / "run",
            **HOW,
        )
    assert str(caught.value).startswith(
        "cannot load 'tiny/bert': no revision 'step3' of it is in the cache, and the hub is out of "
        "reach; did you mean 'step2'? there are step1, step2, aaa"
    )
    assert not (tmp_path / "run").exists()
    with pytest.raises(ModelError, match="no revision 'main' of it is in the cache"):
        load("tiny/bert", revision="main")
    assert load("tiny/bert", revision=COMMITS["step2"]).shape.layers == 2


def test_the_hub_says_which_revisions_there_are(
    cached: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hub itself says no with its address, and not with the revisions that it has."""
    refs = SimpleNamespace(
        branches=[SimpleNamespace(name=f"step{at}") for at in range(20)], tags=[]
    )
    error = huggingface_hub.errors.RevisionNotFoundError("404 Client Error.", response=Mock())
    monkeypatch.setattr(huggingface_hub.HfApi, "list_repo_refs", lambda *_: refs)
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", Mock(side_effect=error))
    said = r"no revision 'stop7' of it is on the hub; did you mean 'step7'\? there are step0, .*, …"
    with pytest.raises(ModelError, match=said):
        evolve(["tiny/bert@stop7"], hs.demo_corpus(), output=tmp_path / "run", **HOW)
    with pytest.raises(ModelError, match=said):
        load("tiny/bert", revision="stop7")


def test_the_digits_of_a_commit_are_no_step() -> None:
    with pytest.raises(InputError, match="does not say after which step it was saved"):
        listed_checkpoints(["tiny/bert@3f0a9c41d2"])
    (one,), _ = listed_checkpoints(["500=tiny/bert@3f0a9c41d2"])
    assert (one.step, one.revision) == (500, "3f0a9c41d2")
