"""Does `sinks` find what all tokens attend to, and the numbers of the stream that are massive?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from analyses.running import SPECIAL, flags, observe, planted, run
from headscope.analyses.sinks.figure import massive_table
from headscope.analyses.sinks.measure import Sinks
from headscope.claims.head_labels import label_rules
from headscope.model.batch import Batch
from headscope.run.analysis import Scope
from headscope.run.check_analysis import check_analysis
from headscope.run.contract_bench import VOCABULARY, tiny_examples, tiny_network
from headscope.run.known_analyses import known_analyses
from model.families.tiny import tiny
from recorded import claims, reading, recorded
from reference import sinks
from reference.extraction import Blocks

SHORT = {"least": 2, "tokens": 5}
EXAMPLES = [e for e in tiny_examples() if len(e) >= SHORT["least"]]


def _right(found: object, received: list[np.ndarray], threshold: float) -> None:
    """Shares by kind of token and position, from a_k [layer, head, key] of each example."""
    shares = {kind: found.sink_share_of.sel(kind=kind) for kind in flags(EXAMPLES)}
    kinds = {**flags(EXAMPLES), "any": [np.ones(len(e), bool) for e in EXAMPLES]}
    for kind, keys in kinds.items():
        pairs = zip(received, keys, strict=True)
        has = [sinks.has_sink(a, which, threshold=threshold) for a, which in pairs]
        share = shares.get(kind, found.sink_share)
        np.testing.assert_allclose(share, np.mean(has, 0), atol=1e-12)
    for position in range(SHORT["tokens"]):
        there = [a[..., position] for a in received if position < a.shape[-1]]
        rates = [(a > threshold).mean() for a in there if not np.isnan(a).any()]
        wanted = np.mean(rates) if rates else np.nan
        np.testing.assert_allclose(found.sink_rate.sel(position=position), wanted, atol=1e-12)


@pytest.mark.parametrize("threshold", [0.2, 0.3])
def test_an_encoder_agrees_with_the_reference(reference: list[Blocks], threshold: float) -> None:
    found = run({"sinks": {**SHORT, "threshold": threshold}})["sinks"]
    maps = [b["attention"] for b in reference if b["attention"].shape[-1] >= SHORT["least"]]
    received = [sinks.received(one, causal=False) for one in maps]
    assert 0 < np.mean([(a > threshold).any(-1) for a in received]) < 1
    _right(found, received, threshold)


def test_a_decoder_is_asked_of_its_first_tokens_and_agrees_with_the_reference() -> None:
    network, vocabulary = tiny("Llama"), replace(VOCABULARY, pad=0)
    asked = {**SHORT, "threshold": 0.4}
    found = run({"sinks": asked}, network=network, vocabulary=vocabulary)["sinks"]
    received = []
    for example in EXAMPLES:
        views = observe(network, Batch.of([example], vocabulary, replicates=0))
        n = len(example)
        maps = np.stack([v.attention[0, :, :n, :n].double() for v in views])
        received.append(sinks.received(maps, causal=True, tokens=SHORT["tokens"]))
    assert {a.shape[-1] for a in received} == {2, 5}
    _right(found, received, asked["threshold"])


def test_planted_sinks_come_out_as_such() -> None:
    plant = planted(("sep", "uniform", "self"), ("sep", "previous", "next"))
    found = run({"sinks": {**SHORT, "tokens": 12}}, plant=plant)["sinks"]
    few = np.mean([0 < kind.sum() < 4 for kind in flags(EXAMPLES)["sep"]])  # each gets one third
    assert float(found.sink_share_of.sel(layer=0, head=0, kind="sep")) == pytest.approx(few)
    assert float(found.sink_share_of.sel(layer=0, head=0, kind="other")) == 0
    two = np.mean([len(e) < 4 for e in EXAMPLES])  # of two tokens, each gets half of everything
    for head in (1, 2):
        assert float(found.sink_share.sel(layer=0, head=head)) == pytest.approx(two)


def test_short_inputs_say_nothing_as_uniform_attention_has_sinks_there() -> None:
    """Under a causal mask the first of nine tokens gets Σ 1/i / 9 = 0.31 of uniform attention."""
    found = run({"sinks": {}})["sinks"]
    assert np.isnan(found.sink_share).all()
    assert np.isnan(found.sink_rate).all()
    plant = planted(*[["causal"] * 4] * 2)
    asked = {"threshold": 0.3, "least": 9}
    for length, share in ((9, 1.0), (12, 0.0)):
        examples = [e for e in tiny_examples() if len(e) == length]
        found = run({"sinks": asked}, network=tiny("BERT decoder"), plant=plant, examples=examples)[
            "sinks"
        ]
        assert (found.sink_share == share).all()


def test_the_contract_is_kept_with_inputs_that_are_long_enough() -> None:
    check_analysis(known_analyses()["sinks"], **SHORT, threshold=0.2)


def test_massive_numbers_of_the_stream_are_found_where_they_are() -> None:
    """With their tokens, the largest of each dimension; 150 is above 100, not 1,000 medians."""
    scope = Scope(2, 3, 5, SPECIAL, replicates=5)
    analysis, network = Sinks(scope, **SHORT), tiny_network(torch.float64)
    rng, streams = np.random.default_rng(0), []
    for at, example in enumerate(tiny_examples()):
        batch = Batch.of([example], VOCABULARY, replicates=5)
        views = observe(network, batch)
        for view in views:
            assert view.residual is not None
            stream = rng.normal(size=view.residual.shape[1:])
            if view.index == 1 and len(example) > 8:
                stream[1, 7] = -9000 - at
                stream[0, 3] = 5000
                stream[2, 4] = 150 if at else 500 * 9
            view.residual = torch.from_numpy(stream)[None]
            streams.append((view.index, stream[: len(example)]))
            analysis.observe(view, batch)
        analysis.finish(batch)
    found = analysis.result()
    for layer in range(2):
        own = [stream for index, stream in streams if index == layer]
        share = np.mean([bool(sinks.massive(stream)) for stream in own])
        assert float(found.massive_share[layer]) == pytest.approx(share)
        largest = np.mean([np.abs(stream).max() for stream in own])
        assert float(found.largest[layer]) == pytest.approx(largest)
    assert np.isnan(found.massive[0]).all()
    last = max(at for at, e in enumerate(tiny_examples()) if len(e) > 8)
    assert found.massive[1, 0] == 9000 + last
    assert found.massive_dimension[1].values.tolist() == [7, 3, 4]
    assert found.massive_position[1].values.tolist() == [1, 0, 2]
    assert int(found.massive_token_id[1, 0]) == tiny_examples()[last].input_ids[1]
    assert float(found.massive_times[1, 0]) > 1000


def test_the_table_of_massive_numbers_names_layers_once() -> None:
    tree = recorded(6, 12, groups=("sinks",))
    assert massive_table(reading(tree, "sinks")) is None
    dataset = tree["sinks"].to_dataset()
    sizes = np.full(dataset["massive"].shape, np.nan)
    sizes[[1, 2, 3, 5], 0] = 1000, 3000, 2000, 1500
    names = np.where(np.isfinite(sizes), "the", "")
    tree["sinks"] = dataset.assign(
        massive=dataset["massive"].copy(data=sizes),
        massive_times=dataset["massive"].copy(data=sizes / 2),
    ).assign_coords(
        massive_dimension=(("layer", "rank"), np.where(np.isfinite(sizes), 1415, -1)),
        massive_position=(("layer", "rank"), np.zeros(sizes.shape, int)),
        massive_token=(("layer", "rank"), names),
    )
    table = massive_table(reading(tree, "sinks"))
    assert table is not None
    ((row,),) = [group.rows for group in table.groups]
    assert [cell.text for cell in row] == ["1,415", "the", "0", "2–4, 6", "3,000", "1,500", "3"]


def test_a_head_with_a_sink_in_nearly_all_inputs_is_claimed_to_have_one() -> None:
    tree = recorded(3, 4, groups=("surface", "norms", "sinks"))
    dataset = tree["sinks"].to_dataset()
    at = dataset["kind"].values.tolist().index("sep")
    for end, value in (("", 0.95), ("_ci_low", 0.93), ("_ci_high", 0.97)):
        dataset[f"sink_share_of{end}"].values[...] = 0.0
        dataset[f"sink_share_of{end}"].values[1, 2, at] = value
    tree["sinks"] = dataset
    (claim,) = claims(tree, "sinks")
    assert (claim.layer, claim.head, claim.kind) == (1, 2, "threshold_sink")
    assert label_rules()[claim.kind].passes(claim)
    assert claim.label.startswith("sink on [SEP] in 95 % [93, 97] of inputs")
    assert "of the norm" in claim.sentence
