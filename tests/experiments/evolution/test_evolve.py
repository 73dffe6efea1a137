"""Does an evolution hold what its checkpoints' own runs hold, and lose nothing on the way?"""

from __future__ import annotations

import json
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headscope as hs
from experiments.evolution.made import FEW, taught
from forked import forked, killed_at
from headscope.claims.head_labels import head_labels
from headscope.claims.reading import run_findings
from headscope.errors import InputError, ModelError, RunFolderError, RunStopped
from headscope.experiments.circuits.circuits import circuits
from headscope.experiments.evolution.evolve import evolve
from headscope.experiments.evolution.spells import spells
from headscope.model.checkpoint import quietly
from headscope.run.folder_check import BAD, check_folder
from headscope.run.run_status import run_status
from made_models import small_bert

STOCK = hs.Execution(linears="stock", threads=1)
INDUCTION = "circuits.score.induction"
HOW: dict[str, Any] = {**FEW, "execution": STOCK, "replicates": 20}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Trainer's folder with checkpoints of steps 8, 16 and 24."""
    folder = tmp_path_factory.mktemp("trained")
    with quietly():
        taught(folder, save_strategy="steps", save_steps=8).train()
    return folder


@pytest.fixture(scope="module")
def followed(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> hs.Run:
    place = tmp_path_factory.mktemp("followed") / "run"
    return evolve([trained], output=place, control="random", **HOW)


def test_numbers_and_labels_of_a_step_are_those_of_its_own_run(
    trained: Path, followed: hs.Run
) -> None:
    alone = circuits(
        str(trained / "checkpoint-24"),
        **FEW,
        haystack=0,
        successors=False,
        composition=False,
        replicates=20,
        control="random",
        execution=STOCK,
    )
    at = followed["evolution"].sel(step=24)
    own = alone["circuits"]["score"].sel(circuit="induction").values
    np.testing.assert_array_equal(at["value"].sel(measure=INDUCTION).values, own)
    low = alone["circuits"]["score_ci_low"].sel(circuit="induction").values
    np.testing.assert_array_equal(at["value_ci_low"].sel(measure=INDUCTION).values, low)
    given = {
        (label.name, *place)
        for place, one in head_labels(alone.tree).items()
        for label in one.labels
    }
    assert given, "a label is there to be compared"
    labelled = {
        (name, layer, head)
        for row, name in enumerate(at["label"].values.tolist())
        for layer, head in np.argwhere(at["labelled"].values[row] > 0).tolist()
    }
    assert labelled == given
    most = max(
        float(network["circuits"]["score"].sel(circuit="induction").max())
        for network in alone.tree.children["control"].children.values()
    )
    assert float(at["control_most"].sel(measure=INDUCTION)) == most


def test_the_folder_is_whole_finished_and_has_a_page(followed: hs.Run) -> None:
    assert followed.path is not None
    followed.report()
    assert [line for line in check_folder(followed.path) if line[0] == BAD] == []
    assert run_status(followed.path).state == "finished"
    page = (followed.path / "report.html").read_text("utf-8")
    assert "at step " in page.partition("data-heads")[2]  # lines answer with a number
    assert ", born between steps " in page or ", born by step " in page  # and so do lives
    assert "What do heads do over training?" in page
    assert "When are labels born" in page
    assert (followed.path / "tables" / "label_spells.csv").is_file()
    assert {one.name for one in (followed.path / "figures").glob("*.svg")} >= {
        "evolution.svg",
        "label_lives.svg",
    }
    said = " ".join(run_findings(followed.tree))
    assert "at 3 steps, from 8 to 24" in said


def test_checkpoints_that_come_later_are_added_and_deleted_ones_are_not_lost(
    trained: Path, followed: hs.Run, tmp_path: Path
) -> None:
    training = tmp_path / "training"
    shutil.copytree(trained / "checkpoint-8", training / "checkpoint-8")
    how = {**HOW, "output": tmp_path / "run", "control": "none"}
    first = evolve([training], **how)
    assert first["evolution"]["step"].values.tolist() == [8]
    shutil.rmtree(training / "checkpoint-8")  # as save_total_limit does
    for step in (16, 24):
        shutil.copytree(trained / f"checkpoint-{step}", training / f"checkpoint-{step}")
    (training / "checkpoint-24" / "trainer_state.json").unlink()
    second = evolve([training], **how)
    assert second["evolution"]["step"].values.tolist() == [8, 16]
    assert any("checkpoint-24 is left out: it is half written" in one for one in second.notes)
    shutil.copy(trained / "checkpoint-24" / "trainer_state.json", training / "checkpoint-24")
    third = evolve([training], **how)
    np.testing.assert_array_equal(
        third["evolution"]["value"].values, followed["evolution"]["value"].values
    )
    assert [one for one in third.notes if "left out" in one] == []


def test_processes_share_the_checkpoints_and_go_on_for_each_other(
    trained: Path, followed: hs.Run, tmp_path: Path
) -> None:
    begun = list[str]()

    def stops_at_the_second(name: str) -> None:
        begun.append(Path(name).name)
        if len(begun) == 2:
            raise KeyboardInterrupt

    def shared(number: int, checkpoints: list[Path | str], **more: Any) -> hs.Run:
        how = HOW | {"execution": replace(STOCK, shard=(number, 2)), "control": "none", **more}
        return evolve(checkpoints, output=tmp_path / "run", **how)

    with pytest.raises(RunStopped):
        shared(2, [trained], begin=stops_at_the_second)
    assert begun == ["checkpoint-16", "checkpoint-24"]  # its half of three, from the second on
    run = shared(1, [trained], begin=lambda name: begun.append(Path(name).name))
    assert begun[2:] == ["checkpoint-8", "checkpoint-24"]  # what is finished is not read again
    numbers = followed["evolution"]["value"].values
    np.testing.assert_array_equal(run["evolution"]["value"].values, numbers)
    assert run.manifest["steps"] == followed.manifest["steps"]
    late = shared(2, [trained], begin=begun.append)
    assert late.elsewhere
    assert len(begun) == 4
    np.testing.assert_array_equal(late["evolution"]["value"].values, numbers)
    with pytest.raises(InputError, match="one process to add them: leave --shard out"):
        shared(1, [trained, f"32={trained / 'checkpoint-24'}"])


def test_an_evolution_that_was_killed_goes_on_with_the_same_numbers(
    trained: Path, followed: hs.Run, tmp_path: Path
) -> None:
    few = [word for name, value in FEW.items() for word in (f"--{name}", value)]
    how = ("--replicates", 20, "--linears", "stock", "--control", "none", "--no-report")
    for at in (4, 6):  # within the first step, and after it
        words = ("evolve", trained, *few, *how, "-o", "run")
        with forked(*words, cwd=tmp_path, code=killed_at(at)) as process:
            _, complaint = process.communicate()
        assert process.returncode == -signal.SIGKILL, complaint
    assert list((tmp_path / "run").rglob(".part-*"))  # what it was about to rename
    run = evolve([trained], output=tmp_path / "run", **(HOW | {"control": "none"}))
    np.testing.assert_array_equal(run["evolution"]["value"], followed["evolution"]["value"])
    assert run.manifest["steps"] == followed.manifest["steps"]
    assert not list((tmp_path / "run").rglob(".part-*"))


@pytest.mark.parametrize("shard", [None, (1, 2)])
def test_a_damaged_checkpoint_is_left_out_and_the_others_are_measured(
    shard: tuple[int, int] | None, trained: Path, tmp_path: Path
) -> None:
    training = tmp_path / "training"
    shutil.copytree(trained, training)
    weights = training / "checkpoint-16" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:2000])
    how = HOW | {"execution": replace(STOCK, shard=shard), "control": "none"}
    run = evolve([training], output=tmp_path / "run", **how)
    assert run["evolution"]["step"].values.tolist() == [8, 24]
    assert any("checkpoint-16 is left out" in one for one in run.notes)


def test_the_same_step_of_another_training_is_refused_in_words(
    trained: Path, tmp_path: Path
) -> None:
    how = {**HOW, "output": tmp_path / "run", "control": "none"}
    evolve([trained / "checkpoint-8"], **how)
    with pytest.raises(RunFolderError, match="holds step 8 of another training"):
        evolve([f"8={trained / 'checkpoint-16'}"], **how)
    with pytest.raises(RunFolderError, match="other settings"):
        evolve([trained / "checkpoint-8"], **(how | {"sequences": 12}))


def test_a_shape_that_no_configuration_names_is_refused_when_it_is_seen(
    trained: Path, tmp_path: Path
) -> None:
    place = small_bert(tmp_path / "step-30", layers=3)
    config = json.loads((place / "config.json").read_text())
    other = small_bert(tmp_path / "step-10")
    assert config["num_hidden_layers"] == 3
    with pytest.raises(InputError, match="has 3 layers × 4 heads"):
        evolve([other, place], output=tmp_path / "run", control="none", **HOW)


def test_an_encoder_reads_text_and_gets_the_labels_of_its_atlas(tmp_path: Path) -> None:
    places = [small_bert(tmp_path / f"step-{step}", seed=step) for step in (1, 2)]
    how = {"limit": 3, "execution": STOCK, "replicates": 3, "control": "none"}
    run = evolve(places, hs.demo_corpus(), output=tmp_path / "run", **how)
    alone = hs.atlas(str(places[1]), hs.demo_corpus(), analyses=["surface", "entropy"], **how)
    own = alone["surface"]["attention"].sel(target="previous").values
    at = run["evolution"].sel(step=2, measure="surface.attention.previous")
    np.testing.assert_array_equal(at["value"].values, own)
    given = sum(len(one.labels) for one in head_labels(alone.tree).values())
    labelled = run["evolution"].get("labelled")
    assert (0 if labelled is None else int(labelled.sel(step=2).sum())) == given


def test_a_number_that_is_not_measured_is_refused_with_those_that_are(
    trained: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"no number 'induction' .*circuits\.score\.induction"):
        evolve(
            [trained / "checkpoint-8"],
            output=tmp_path / "run",
            control="none",
            follow=("induction",),
            **HOW,
        )


def test_checkpoints_without_a_tokenizer_take_one_that_is_named(
    trained: Path, tmp_path: Path
) -> None:
    bare = tmp_path / "checkpoint-8"
    shutil.copytree(trained / "checkpoint-8", bare)
    for file in bare.glob("tokenizer*"):
        file.unlink()
    how = {**HOW, "output": tmp_path / "run", "control": "none"}
    with pytest.raises(ModelError, match="no tokenizer files"):
        evolve([bare], **how)
    run = evolve([bare], tokenizer=trained / "checkpoint-16", **how)
    assert run["evolution"]["step"].values.tolist() == [8]


def test_spells_on_the_page_are_those_of_the_data(followed: hs.Run) -> None:
    assert all(one.born_after in (None, 8, 16) for one in spells(followed["evolution"]))
