"""Is a worker refused that has loaded another model than the run began with?"""

import json
import shutil
from functools import partial
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import headscope as hs
from headscope.analyses import patterns
from headscope.errors import InputError
from headscope.run import manifest
from headscope.run.gather import load_same
from headscope.run.manifest import loaded_identity
from headscope.run.settings import Settings, differences

PLAIN = Settings()
WEIGHTS, CONFIG, TOKENIZER = "model.safetensors", "config.json", "tokenizer.json"


def written_to(file, change):
    """Change a file in place, as a training loop does that saves there."""
    content = change(file.read_bytes())
    with file.open("r+b") as opened:
        opened.write(content)
        opened.truncate()


def other_weights(place):
    tensors = load_file(place / WEIGHTS)
    tensors["encoder.layer.0.attention.self.query.bias"][0] += 1e-6
    save_file(tensors, place / WEIGHTS, metadata={"format": "pt"})


def other_config(**values):
    def change(place):
        config = json.loads((place / CONFIG).read_text())
        (place / CONFIG).write_text(json.dumps(config | values))

    return change


def other_tokenizer(place):
    tokenizer = json.loads((place / TOKENIZER).read_text())
    ids = tokenizer["model"]["vocab"]
    ids["cat"], ids["dog"] = ids["dog"], ids["cat"]
    (place / TOKENIZER).write_text(json.dumps(tokenizer))


@pytest.fixture
def place(tiny_place, tmp_path):
    return shutil.copytree(tiny_place, tmp_path / "model")


@pytest.fixture
def again(tiny, place):
    """Loads the model in a worker, of a run that began with the tiny one."""
    return partial(load_same, str(place), tiny.load_options, PLAIN, loaded_identity(tiny, PLAIN))


def test_a_worker_with_the_same_model_computes(place, again):
    assert again().name == str(place)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (other_weights, "model.sha256: "),
        (other_config(layer_norm_eps=0.1), "layer_norm_eps: 1e-12, now 0.1"),
        (other_config(num_attention_heads=2), "num_attention_heads: 4, now 2"),
        (other_config(num_hidden_layers=1), "num_hidden_layers: 2, now 1"),
        (other_tokenizer, "model.tokenizer_sha256: "),
    ],
)
def test_another_model_under_the_same_path_is_refused(place, again, change, said):
    """Its numbers once stood under the first model's name and hash."""
    change(place)
    with pytest.raises(InputError, match=said):
        again()


def test_another_dtype_or_version_is_refused(tiny, place, again, monkeypatch):
    options = tiny.load_options | {"dtype": "bfloat16"}
    with pytest.raises(InputError, match=r'dtype: "float32", now "bfloat16"'):
        load_same(str(place), options, PLAIN, loaded_identity(tiny, PLAIN))
    monkeypatch.setattr(manifest, "deciding_versions", lambda: {"headscope": "0", "torch": "1.0"})
    with pytest.raises(InputError, match=r'versions.torch: "\d\.\d+", now "1.0"'):
        again()


def test_weights_that_are_written_to_change_nothing_of_a_loaded_model(place):
    """They were once mapped from the file: a loaded model changed with it, under the old hash."""
    network = hs.load(str(place)).network
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    written_to(place / WEIGHTS, lambda content: content[:-4096] + bytes(4096))
    assert all(torch.equal(tensor, before[name]) for name, tensor in network.state_dict().items())


def test_another_classifier_under_the_same_path_is_refused_and_is_another_run(
    tiny, place, tmp_path
):
    folder = tmp_path / "classifier"
    shutil.copytree(Path(patterns.__file__).parent / "data", folder)
    settings = Settings(analyses=("patterns",), options={"patterns": {"classifier": str(folder)}})
    before, wanted = settings.as_dict(), loaded_identity(tiny, settings)
    assert "files" not in PLAIN.as_dict()
    load_same(str(place), tiny.load_options, settings, wanted)
    (folder / "more").write_text("x")
    assert [one[:26] for one in differences(before, settings.as_dict())] == [
        "files.patterns.classifier:"
    ]
    with pytest.raises(InputError, match=r"or other files, .*files\.patterns\.classifier: "):
        load_same(str(place), tiny.load_options, settings, wanted)
