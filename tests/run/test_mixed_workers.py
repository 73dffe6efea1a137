"""Is a worker refused that has loaded another model than the run began with?"""

import json
import pickle
import shutil
from functools import partial
from queue import Queue

import pytest
import torch
from safetensors.torch import load_file, save_file

import headscope as hs
from headscope.errors import ModelError
from headscope.model import checkpoint
from headscope.run import compute, gather
from headscope.run.compute import ShardJob, worker_of
from headscope.run.manifest import deciding_versions, identity_of
from headscope.run.plan import Shard

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
def job(tiny):
    spec = {"model": identity_of(tiny), "versions": deciding_versions(), "settings": {}}
    scope = hs.Scope(tiny.shape.layers, tiny.shape.heads)
    settings, corpus = hs.Settings(), hs.demo_corpus()
    return ShardJob(corpus, settings, scope, ("entropy",), tiny.shape.stack, spec=spec)


def test_a_worker_with_the_same_model_computes(place, job):
    assert worker_of(lambda: hs.load(str(place)), job).model.name == str(place)


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
def test_another_model_under_the_same_path_is_refused(place, job, change, said):
    """Its numbers once stood under the first model's name and hash."""
    change(place)
    with pytest.raises(ModelError, match=said):
        worker_of(lambda: hs.load(str(place)), job)


def test_another_dtype_or_version_is_refused(place, job, monkeypatch):
    with pytest.raises(ModelError, match=r'dtype: "float32", now "bfloat16"'):
        worker_of(lambda: hs.load(str(place), dtype="bfloat16"), job)
    monkeypatch.setattr(compute, "deciding_versions", lambda: {"headscope": "0", "torch": "1.0"})
    with pytest.raises(ModelError, match=r'torch: "\d\.\d+", now "1.0"'):
        worker_of(lambda: hs.load(str(place)), job)


def test_a_process_that_computes_shards_refuses_too(place, job, monkeypatch):
    other_weights(place)
    handed = Queue()
    handed.put(pickle.dumps((partial(hs.load, str(place)), job)))
    monkeypatch.setattr(gather, "_WORKER", [handed])
    with pytest.raises(ModelError, match="a worker has loaded another"):
        gather._compute(Shard(0, 0, 1, 4, ""))


def test_weights_that_are_written_to_change_nothing_of_a_loaded_model(place):
    """They were once mapped from the file: a loaded model changed with it, under the old hash."""
    network = hs.load(str(place)).network
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    written_to(place / WEIGHTS, lambda content: content[:-4096] + bytes(4096))
    assert all(torch.equal(tensor, before[name]) for name, tensor in network.state_dict().items())


def test_weights_that_change_between_reading_and_hashing_are_refused(place, monkeypatch):
    def hashed(*_):
        other_weights(place)
        return "hash of other weights"

    monkeypatch.setattr(checkpoint, "weights_sha256", hashed)
    with pytest.raises(ModelError, match="changed while they were read"):
        hs.load(str(place))
