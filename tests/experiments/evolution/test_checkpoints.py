"""Which folders are checkpoints, of which step, and what is said of those that cannot be read?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headscope.errors import InputError
from headscope.experiments.evolution.checkpoints import listed_checkpoints


def folder(place: Path, *, layers: int = 2, heads: int = 4, lacks: str = "") -> Path:
    """A folder as a Trainer leaves it, without real weights."""
    step = int(place.name.partition("-")[2])
    config = {"num_hidden_layers": layers, "num_attention_heads": heads}
    files = {
        "config.json": json.dumps(config),
        "model.safetensors": "",
        "trainer_state.json": json.dumps({"global_step": step}),
    }
    place.mkdir(parents=True)
    for name, text in files.items():
        if name != lacks:
            (place / name).write_text(text)
    return place


def test_a_trainers_folder_is_its_checkpoints_by_their_steps(tmp_path: Path) -> None:
    for step in (1000, 20, 300):
        folder(tmp_path / f"checkpoint-{step}")
    listed, left_out = listed_checkpoints([tmp_path])
    assert [one.step for one in listed] == [20, 300, 1000]
    assert left_out == []


@pytest.mark.parametrize(
    ("lacks", "says"),
    [
        ("trainer_state.json", "half written: the Trainer writes trainer_state.json last"),
        ("model.safetensors", "no *.safetensors (half written"),
        ("config.json", "no config.json (half written"),
    ],
)
def test_a_half_written_checkpoint_is_left_out_and_named(
    tmp_path: Path, lacks: str, says: str
) -> None:
    folder(tmp_path / "checkpoint-10")
    half = folder(tmp_path / "checkpoint-20", lacks=lacks)
    listed, left_out = listed_checkpoints([tmp_path])
    assert [one.step for one in listed] == [10]
    assert len(left_out) == 1
    assert str(half) in left_out[0]
    assert says in left_out[0]
    with pytest.raises(InputError, match="cannot be read"):
        listed_checkpoints([half])


def test_a_part_of_the_weights_that_is_not_there_yet_is_named(tmp_path: Path) -> None:
    place = folder(tmp_path / "checkpoint-10")
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    (place / "model.safetensors.index.json").write_text(json.dumps(index))
    (place / "model-1.safetensors").write_text("")
    with pytest.raises(InputError, match=r"half written: model-2\.safetensors is not there yet"):
        listed_checkpoints([place])


def test_a_training_whose_first_checkpoint_is_half_written_has_none(tmp_path: Path) -> None:
    folder(tmp_path / "checkpoint-10", lacks="trainer_state.json")
    with pytest.raises(InputError, match="checkpoint-10 is left out: it is half written"):
        listed_checkpoints([tmp_path])


def test_a_folder_without_checkpoints_says_what_it_holds(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    with pytest.raises(InputError, match=r"no checkpoint \(found runs\); wanted .*checkpoint-N"):
        listed_checkpoints([tmp_path])


def test_checkpoints_of_two_shapes_are_refused_by_name(tmp_path: Path) -> None:
    folder(tmp_path / "checkpoint-10")
    folder(tmp_path / "checkpoint-20", layers=3)
    with pytest.raises(InputError, match=r"3 layers × 4 heads, and .*-10 has 2 layers × 4 heads"):
        listed_checkpoints([tmp_path])


def test_revisions_of_the_hub_have_the_step_of_their_name() -> None:
    names = ["EleutherAI/pythia-70m@step1000", "EleutherAI/pythia-70m@step64"]
    listed, _ = listed_checkpoints(names)
    assert [(one.step, one.revision) for one in listed] == [(64, "step64"), (1000, "step1000")]
    assert listed[0].name == names[1]


def test_a_step_may_be_written_before_a_name() -> None:
    listed, _ = listed_checkpoints(["7=a/b", "3=a/c@main"])
    assert [(one.step, one.place) for one in listed] == [(3, "a/c"), (7, "a/b")]


def test_a_name_without_a_step_and_a_step_that_comes_twice_are_refused() -> None:
    with pytest.raises(InputError, match="does not say after which step it was saved"):
        listed_checkpoints(["owner/name@main"])
    with pytest.raises(InputError, match="are both of step 3"):
        listed_checkpoints(["3=a/b", "3=a/c"])
    with pytest.raises(InputError, match="are both of step 3"):
        listed_checkpoints(["3=a/b", "3=a/b"])
    with pytest.raises(InputError, match="found no checkpoint"):
        listed_checkpoints([])
