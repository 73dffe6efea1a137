"""Are numbers the same wherever a model's weights are, and is it said where they cannot be?"""

from __future__ import annotations

import copy
import json
import shutil
import socket
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import headscope as hs
from forked import forked
from headscope.errors import HeadscopeError, InputError, ModelError
from headscope.model.instrument import Instrument
from headscope.model.placement import refuse_spread, spread
from headscope.model.weights import parameters_sha256
from headscope.run.compute import Computer
from headscope.run.control import shuffled
from made_models import small_bert
from model import ranks
from model.other_device import HERE, THERE, elsewhere, place

TEXTS = ["The cat sat on the mat. It slept.", "A dog barked, and ran."]
# Without an accelerator accelerate offloads to the disk alone: half of the network is there.
ON_DISK = {
    "embeddings": "disk",
    "encoder.layer.0": "disk",
    "encoder.layer.1": "cpu",
    "pooler": "cpu",
}


def numbers(run: Any) -> dict[str, np.ndarray[Any, Any]]:
    found = {f"{group}/{name}": run[group][name].values for group in run for name in run[group]}
    # Which contexts of a rule are shown hangs on their ranks, and ranks on the last digit.
    found = {name: values for name, values in found.items() if "/context_" not in name}
    return {name: values for name, values in found.items() if values.dtype.kind in "fiu"}


def same(one: dict[str, np.ndarray[Any, Any]], two: dict[str, np.ndarray[Any, Any]]) -> None:
    assert one.keys() == two.keys()
    for name, values in one.items():
        np.testing.assert_allclose(two[name], values, atol=2e-5, rtol=1e-5, err_msg=name)


@pytest.fixture(scope="module")
def offloaded(tiny_place: Path) -> hs.Model:
    return hs.load(tiny_place, device_map=ON_DISK)


def test_offloaded_weights_give_the_same_numbers(tiny: hs.Model, offloaded: hs.Model) -> None:
    dense = offloaded.network.encoder.layer[0].attention.output.dense
    assert dense.weight.is_meta
    assert spread(offloaded.network)
    assert offloaded.device.type == "cpu"
    assert offloaded.allows == tiny.allows
    assert offloaded.sha256 == tiny.sha256
    asked = ("norms", "mixing", "neurons")
    whole, parts = (hs.atlas(m, TEXTS, control="none", analyses=asked) for m in (tiny, offloaded))
    same(numbers(whole), numbers(parts))
    one, two = (shuffled(model.network).state_dict() for model in (tiny, offloaded))
    assert one.keys() == two.keys()
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert not torch.equal(next(iter(one.values())), next(iter(tiny.network.state_dict().values())))
    assert dense.weight.is_meta


@pytest.mark.parametrize("where", ["auto", {"": "cpu"}])
def test_a_map_to_the_host_alone_is_a_plain_load(
    tiny: hs.Model, tiny_place: Path, where: Any
) -> None:
    placed = hs.load(tiny_place, device_map=where)
    assert placed.load_options is not None
    assert placed.load_options["device_map"] == where
    one, two = (parameters_sha256(m.network) for m in (tiny, placed))
    assert one == two


def test_an_offloaded_network_that_is_given_has_the_hash_of_its_weights(
    tiny: hs.Model, offloaded: hs.Model
) -> None:
    given = hs.load(offloaded.network, tokenizer=tiny.tokenizer)
    assert given.sha256 == parameters_sha256(tiny.network)
    assert given.identity_fault == ""


def test_weights_that_are_to_be_changed_must_be_whole(tiny: hs.Model, offloaded: hs.Model) -> None:
    refuse_spread(tiny.network, "whose weights are trained")
    with pytest.raises(InputError, match="device map has placed; wanted one on one device, whose"):
        refuse_spread(offloaded.network, "whose weights are trained")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"device_map": "even"}, r"cannot load .*'balanced_low_0', 'sequential' but found even"),
        ({"device_map": "auto", "tp_plan": "auto"}, "device_map='auto' and tp_plan='auto'; wanted"),
        ({"tp_plan": "rows"}, "found tp_plan='rows'; wanted one of device, device_map, tp_plan="),
        ({"tp_plan": "auto"}, r"the family 'bert' splits its attention .* does not gather .none.;"),
    ],
)
def test_what_cannot_be_placed_is_refused(tiny_place: Path, asked: Any, told: str) -> None:
    with pytest.raises(ModelError, match=told):
        hs.load(tiny_place, **asked)


def test_without_accelerate_it_is_said_what_to_install(
    tiny_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headscope.model.placement.find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"accelerate, which is not installed\npip install 'he"):
        hs.load(tiny_place, device_map="auto")


@pytest.mark.slow
def test_heads_of_two_processes_are_gathered(tmp_path: Path) -> None:
    """Two gloo processes, each with half of a tiny Llama's weights, find what one finds."""
    ranks.write_model(tmp_path / "llama")
    whole = hs.load(tmp_path / "llama")
    assert (whole.shape.layers, whole.shape.heads) == (2, 4)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    around = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}

    def rank(number: int) -> str:
        its = {**around, "RANK": str(number), "LOCAL_RANK": str(number)}
        return (
            f"import os, pathlib; os.environ.update({its!r}); from model import ranks\n"
            f"ranks.main(pathlib.Path({str(tmp_path)!r}))"
        )

    with ExitStack() as stack:
        both = [stack.enter_context(forked(cwd=tmp_path, code=rank(number))) for number in (0, 1)]
        said = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    expected = ranks.what_is_seen(whole)
    for rank in range(2):
        with np.load(tmp_path / f"{rank}.npz") as found:
            assert int(found["heads"]) == 4
            assert int(found["own_rows"]) == 16  # of 32 that the queries' weight has
            for name, values in expected.items():
                assert values.shape[1] == (1 if name.startswith("output") else 4)
                np.testing.assert_allclose(found[name], values, atol=2e-5, rtol=1e-4)
            assert "this one sees 2 of its 4 heads" in str(found["refused"])


def test_the_statistics_of_half_precision_are_in_float32(tiny_place: Path) -> None:
    for dtype in ("bfloat16", "float16"):
        views: list[hs.plugins.LayerView] = []
        model = hs.load(tiny_place, dtype=dtype)
        ids = model.tokenizer(TEXTS[0], return_tensors="pt")["input_ids"]
        with torch.no_grad(), Instrument(model.network, observers=[views.append]):
            model.network(ids)
        for view in views:
            weight = view.projection.weight
            assert weight.dtype == getattr(torch, dtype)
            assert view.attention.dtype == view.values.dtype == torch.float32  # type: ignore[union-attr]
            vectors = torch.einsum("bhkd,hdm->bhkm", view.values.double(), weight.double())  # type: ignore[union-attr]
            assert view.value_norm.dtype == view.gram.dtype == torch.float32
            torch.testing.assert_close(
                view.value_norm.double(), vectors.norm(dim=-1), atol=1e-6, rtol=1e-5
            )


def test_what_float16_cannot_hold_is_said_on_loading(tiny: hs.Model) -> None:
    network = copy.deepcopy(tiny.network)
    network.encoder.layer[1].attention.self.value.weight.data *= 1e6
    assert hs.load(network, tokenizer=tiny.tokenizer).identity_fault == ""
    narrow = network.half()
    for parameter in narrow.parameters():
        parameter.data.clamp_(-6e4, 6e4)
    with pytest.raises(ModelError, match=r"layer\.1\.attention.* gives NaN .*float16; wanted"):
        hs.load(narrow, tokenizer=tiny.tokenizer)


def test_shards_that_hold_nan_or_do_not_fit_are_said(
    tiny: hs.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_much(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 5 GiB.\nmore")

    monkeypatch.setattr("headscope.run.compute.forward", too_much)
    told = r"out of memory .CUDA out of memory. .*; finished shards are kept; wanted small"
    timed = hs.Execution(linears="onednn")  # which is compared before the first shard
    with pytest.raises(HeadscopeError, match=told):
        hs.atlas(tiny, TEXTS, control="none", analyses=("entropy",), execution=timed)
    monkeypatch.undo()
    whole = Computer.compute
    monkeypatch.setattr(
        Computer,
        "compute",
        lambda *given: {name: array * np.nan for name, array in whole(*given).items()},
    )
    with pytest.raises(HeadscopeError, match=r"entropy/.* of shard 1 holds NaN: .*float32 gave"):
        hs.atlas(tiny, TEXTS, control="none", analyses=("entropy",))


def test_statistics_follow_each_layer_to_its_own_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second of three layers is on a device of its own; what mixes devices is refused."""
    whole = hs.load(small_bert(tmp_path / "three", layers=3))
    network = copy.deepcopy(whole.network)
    first, second, third = network.encoder.layer
    for module in (network.embeddings, first, third, network.pooler):
        place(module, HERE)
    place(second, THERE)
    asked, some = tuple(set(hs.plugins.known_analyses()) - {"frames"}), ("pairs", "entropy")
    corpus = hs.demo_corpus()
    expected = numbers(hs.atlas(whole, corpus, control="none", analyses=asked, limit=1))
    long: dict[str, Any] = {"control": "none", "analyses": some, "limit": 1, "whole_maps": 64}
    without_maps = numbers(hs.atlas(whole, corpus, **long))
    with elsewhere(monkeypatch):
        with pytest.raises(RuntimeError, match="tensors of two devices"):
            second.attention.self.query.weight @ first.attention.self.query.weight
        parts = hs.Model(network, whole.tokenizer, whole.name, "", "")
        assert parts.device == HERE
        assert parts.identity_fault == ""
        found = hs.atlas(parts, corpus, control="none", analyses=asked, limit=1)
        rows = hs.atlas(parts, corpus, **long)
    same(expected, numbers(found))
    same(without_maps, numbers(rows))


@pytest.mark.skipif(find_spec("bitsandbytes") is not None, reason="bitsandbytes is installed")
@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "cannot load .*bitsandbytes"),
        ({"quant_method": "mine"}, "quantised by 'mine', which this transformers cannot read; wan"),
    ],
)
def test_a_quantisation_that_cannot_be_read_is_said(
    tiny_place: Path, tmp_path: Path, kind: dict[str, Any], told: str
) -> None:
    place = shutil.copytree(tiny_place, tmp_path / "quantised")
    config = json.loads((place / "config.json").read_text("utf-8"))
    (place / "config.json").write_text(json.dumps(config | {"quantization_config": kind}))
    with pytest.raises(ModelError, match=told):
        hs.load(place)
