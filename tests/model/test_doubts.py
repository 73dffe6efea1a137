"""Is it told what of a checkpoint was not read, and a vocabulary that is not the network's?"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from headscope.cli.main import group
from headscope.errors import ModelError
from headscope.model import checkpoint as module
from headscope.model.doubts import heads_doubt, vocabulary_doubt
from headscope.model.model import load
from headscope.model.request import place_of
from tasks.made import MOOD, checkpoint


class Tokenizer:
    """A vocabulary alone."""

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def get_vocab(self) -> dict[str, int]:
        return {name: at for at, name in enumerate(self.names)}


def changed(folder: Path, **options: object) -> Path:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **options}))
    return folder


@pytest.fixture
def made(tmp_path):
    return checkpoint(tmp_path / "model")


def test_a_whole_checkpoint_has_no_doubts(made, tmp_path):
    assert load(made).notes == ()
    headed = load(checkpoint(tmp_path / "headed", head=MOOD))  # the head is another's to read
    assert headed.notes == ()


def test_layers_that_the_configuration_leaves_out_are_told(made):
    (note,) = load(changed(made, num_hidden_layers=1)).notes
    assert (
        "16 of the tensors of the weights are not read by the network (first: encoder.layer.1"
        in note
    )
    assert "a configuration with fewer layers" in note


def test_an_adapter_that_was_not_merged_is_told(made):
    tensors = load_file(made / "model.safetensors")
    tensors["encoder.layer.0.attention.self.query.lora_A.weight"] = torch.ones(2, 24)
    save_file(tensors, made / "model.safetensors", {"format": "pt"})
    (note,) = load(made).notes
    assert "1 of the tensors of the weights" in note
    assert "an adapter that was not merged" in note


def test_code_that_was_not_run_is_told(made):
    (note,) = load(changed(made, auto_map={"AutoModel": "modeling.Own"})).notes
    assert "code of its own (auto_map in config.json), which was not run" in note


def test_weights_that_change_while_they_are_read_are_refused(made, tmp_path, monkeypatch):
    other = checkpoint(tmp_path / "other", seed=1) / "model.safetensors"

    def hashed(place, network):
        shutil.copy(other, Path(place) / "model.safetensors")
        return "0" * 64

    monkeypatch.setattr(module, "weights_sha256", hashed)
    with pytest.raises(ModelError, match="changed while they were read"):
        load(made)


@pytest.mark.parametrize(
    ("order", "doubtful"),
    [("own", False), ("shuffled", True), ("one further", True), ("untrained", False)],
)
def test_a_vocabulary_that_is_not_that_of_the_embeddings_is_told(demo, order, doubtful, tiny):
    names = demo.tokenizer.convert_ids_to_tokens(range(len(demo.tokenizer)))
    if order == "shuffled":
        names = np.random.default_rng(0).permutation(names).tolist()
    if order == "one further":
        names = ["[new]", *names[:-1]]
    note = vocabulary_doubt(Tokenizer(names), (tiny if order == "untrained" else demo).network)
    assert ("does not go with the embeddings" in note) == doubtful


def test_a_vocabulary_that_was_cut_is_told(demo):
    names = demo.tokenizer.convert_ids_to_tokens(range(len(demo.tokenizer)))
    assert "has 2,500 tokens" in vocabulary_doubt(Tokenizer(names[:2500]), demo.network)
    assert vocabulary_doubt(Tokenizer(names[:-500]), demo.network) == ""  # rows to fill up


@pytest.mark.parametrize(
    ("heads", "dim", "says"),
    [
        (12, 32, ""),
        (6, 64, "look like those of 12 heads"),
        (3, 128, "look like those of 12 heads"),
        (24, 16, "look like those of 12 heads"),
    ],
)
def test_heads_of_another_number_than_were_trained_are_told(heads, dim, says):
    rng = np.random.default_rng(0)
    sizes = rng.lognormal(sigma=0.3, size=(8, 12, 1)) * rng.lognormal(sigma=0.1, size=(8, 12, 32))
    untrained = rng.lognormal(sigma=0.1, size=(8, heads, dim))
    doubt = heads_doubt(sizes.reshape(8, heads, dim), shared=False)
    assert says in doubt
    assert bool(says) == bool(doubt)
    assert heads_doubt(untrained, shared=False) == ""


def test_the_heads_of_the_demo_are_those_that_were_trained(demo, tmp_path):
    assert demo.notes == ()
    place = tmp_path / "demo"
    shutil.copytree(place_of("demo"), place)
    (note,) = load(changed(place, num_attention_heads=6)).notes
    assert "those of 12 heads in each layer, and are read as 6" in note


def test_doctor_says_so(made, capsys):
    changed(made, num_hidden_layers=1)
    group(["doctor", str(made)], standalone_mode=False)
    assert "note  doubts" in (said := capsys.readouterr().out)
    assert "16 of the tensors of the weights are not read" in said
