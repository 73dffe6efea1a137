"""Is what is written for those who serve a model what they read, and what was measured?"""

from __future__ import annotations

import json

import numpy as np
import pytest

import headscope as hs
from experiments.circuits import made
from experiments.circuits.decoders import ADDING, decoder
from headscope.errors import InputError, ModelError
from headscope.experiments.circuits import export
from headscope.run.store import RunFolder

TEXT = " ".join(["cat dog tree house"] * 10)
PLAIN = {
    "sequences": 10,
    "length": 4,
    "replicates": 10,
    "control": "none",
    "composition": False,
    "successors": False,
}
STREAMED = np.array([[0.9, 0.7, 0.8, 0.8], [0.5, 0.1, 0.4, 1]])
SCORES = np.array([[0.1, 0.3, 0.5, 0.7], [0, 0.2, 1, 0]])


@pytest.fixture(scope="module")
def grouped(tmp_path_factory):
    """A run on a decoder of 2 × 4 heads, of which two share keys; its heads score as in SCORES."""
    model = made.language_model(made.small("Llama"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headscope.experiments.circuits.result.ANSWERED", -1)  # whatever it tells
        folder = tmp_path_factory.mktemp("grouped") / "run"
        run = hs.circuits(model, [TEXT], output=folder, **PLAIN, needles=10, haystack=20)
    run.tree["circuits"]["retrieval"].values[:] = SCORES
    run.tree["circuits"]["retrieval_ci_low"].values[0, 0] = np.nan
    assert np.isnan(run["circuits"]["needle_streaming"]).all()  # answers see fewer tokens
    return run, model.model


def duo(folder):
    """As `load_attn_pattern` of DuoAttention and the press of kvpress read it."""
    gates = np.loadtxt(folder / "full_attention_heads.tsv", dtype=float, delimiter="\t")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    return gates, config


def test_gates_are_the_mean_and_the_maximum_of_the_heads_that_share_keys(grouped):
    run, model = grouped
    written = export.export_heads(run, model, ["duo"])
    assert {path.parent.name for path in written} == {"gates-mean", "gates-max"}
    for over, wanted in (("mean", [[0.2, 0.6], [0.1, 0.5]]), ("max", [[0.3, 0.7], [0.2, 1]])):
        gates, config = duo(run.path / f"gates-{over}")
        np.testing.assert_allclose(gates, wanted, rtol=1e-15)
        assert (config["sink_size"], config["recent_size"]) == (128, 256)
        assert config["over_query_heads"] == over
        assert "not a gate that DuoAttention learned" in config["gate"]
    before = [path.read_bytes() for path in written]
    assert export.export_heads(run, model, ["kvpress"]) == written
    assert [path.read_bytes() for path in written] == before
    assert set(RunFolder(run.path).listed()) >= {
        path.relative_to(run.path).as_posix() for path in written
    }


def test_the_json_says_it_of_every_head(grouped):
    run, model = grouped
    (file,) = export.export_heads(run, model, ["json"])
    found = json.loads(file.read_text("utf-8"))
    assert (found["layers"], found["heads"], found["key_value_heads"]) == (2, 4, [2, 2])
    assert (found["needles"], found["answered"], found["threshold"]) == (10, 10, 0.1)
    one = found["query_heads"][6]
    low = run["circuits"]["retrieval_ci_low"].values
    assert (one["layer"], one["head"], one["key_value_head"]) == (1, 2, 1)
    assert (one["retrieval"], one["low"]) == (1.0, low[1, 2])
    assert [each["retrieval"] for each in found["query_heads"]] == SCORES.ravel().tolist()
    assert found["query_heads"][0]["low"] is None
    gate = {"layer": 1, "key_value_head": 1, "mean": 0.5, "max": 1.0}
    assert found["gates"][3] == gate | {"streaming_mean": None, "streaming_min": None}


def test_the_streaming_share_stands_beside_the_gates(grouped, monkeypatch):
    """The mean of heads that share keys beside their mean, and the least beside the maximum."""
    run, model = grouped
    written = export.export_heads(run, model, ["duo"])
    assert not any(path.name == "streaming_share.tsv" for path in written)
    share = run.tree["circuits"]["needle_streaming"].values
    monkeypatch.setattr(export, "WINDOW", "4+64")
    share[..., 0] = STREAMED
    written = export.export_heads(run, model, ["duo", "json"])
    for over, wanted in (("mean", [[0.8, 0.8], [0.3, 0.7]]), ("max", [[0.7, 0.8], [0.1, 0.4]])):
        found = np.loadtxt(run.path / f"gates-{over}/streaming_share.tsv", delimiter="\t")
        np.testing.assert_allclose(found, wanted, rtol=1e-15)
    told = json.loads((run.path / "retrieval_heads.json").read_text("utf-8"))
    assert [one["streaming"] for one in told["query_heads"]] == STREAMED.ravel().tolist()
    assert told["gates"][2]["streaming_min"] == 0.1
    share[..., 0] = np.nan


def test_a_run_that_says_nothing_of_retrieval_is_refused(grouped, tmp_path):
    _, model = grouped
    language = made.language_model(made.small())
    bare = hs.circuits(language, output=tmp_path / "bare", **PLAIN)
    with pytest.raises(InputError, match="there is no haystack in this run"):
        export.export_heads(bare, model, ["duo"])
    asked = {"needles": 10, "haystack": 20}
    few = hs.circuits(language, [TEXT], output=tmp_path / "few", **PLAIN, **asked)
    with pytest.raises(InputError, match=r"of 10 needles the model answers 0, and .* needs 10"):
        export.export_heads(few, model, ["json"])
    with pytest.raises(InputError, match="in memory"):
        export.export_heads(hs.circuits(language, **PLAIN), model, ["json"])


def test_layers_with_other_numbers_of_keys_make_no_table(grouped, monkeypatch):
    run, model = grouped
    monkeypatch.setattr(export, "key_heads", lambda _: [4, 1])
    with pytest.raises(ModelError, match=r"with 1 key-value .* with 4; .* give --export json"):
        export.export_heads(run, model, ["duo"])
    (file,) = export.export_heads(run, model, ["json"])
    gates = json.loads(file.read_text("utf-8"))["gates"]
    assert [one["max"] for one in gates] == [*SCORES[0], 1.0]


@pytest.mark.parametrize("name", ADDING)
def test_every_family_says_which_heads_share_keys(name):
    model = decoder(name).model
    config = model.network.config.get_text_config()
    wanted = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    assert export.key_heads(model) == [wanted] * model.shape.layers
