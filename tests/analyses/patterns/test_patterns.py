"""Does `patterns` count the classes that its classifier tells, and show maps that are real?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr
from safetensors.torch import save

from analyses.running import run
from headscope.analyses.patterns.classes import NAMES
from headscope.analyses.patterns.measure import PLACES, RANKS, SECOND
from headscope.analyses.patterns.measure_marked import FILES as MARKED
from headscope.analyses.patterns.measure_marked import MarkedClassifier, read_marked
from headscope.analyses.patterns.measure_network import (
    FILES,
    SIDE,
    Classifier,
    read_classifier,
)
from headscope.core.results import with_token_names
from headscope.corpus.document import Example
from headscope.errors import InputError
from headscope.model.batch import Batch
from headscope.run.contract_bench import VOCABULARY, tiny_examples, tiny_network, tiny_views
from reference.patterns import picture


def found(
    examples: Sequence[Example] | None = None, *, size: int = 3, least_tokens: int = 2
) -> xr.Dataset:
    options = {"patterns": {"least_tokens": least_tokens, "columns": "any"}}
    network = tiny_network(torch.float32)
    return run(options, network=network, examples=examples, size=size)["patterns"]


def real_maps(example: Example) -> np.ndarray:
    """[layer, head, query, key] of one input, without padding."""
    batch = Batch.of([example], VOCABULARY, replicates=0)
    views, n = tiny_views(batch, dtype=torch.float64), len(example)
    return np.stack([view.attention[0, :, :n, :n].numpy() for view in views])


def by_hand(examples: Sequence[Example]) -> tuple[np.ndarray, np.ndarray]:
    """[example, layer, head] class and confidence, one map at a time."""
    network, _ = read_classifier()
    label, sure = [], []
    for example in examples:
        maps = real_maps(example)
        seen = np.array([[picture(one, SIDE) for one in layer] for layer in maps])
        logits = network(torch.from_numpy(seen).float().flatten(0, 1)).double()
        probability = (
            logits.softmax(-1).numpy().reshape(*seen.shape[:2], -1)
        )  # [layer, head, class]
        label.append(probability.argmax(-1))
        sure.append(probability.max(-1))
    return np.stack(label), np.stack(sure)  # [example, layer, head]


@pytest.mark.parametrize("size", [1, 7])
def test_shares_and_confidence_are_those_of_one_map_at_a_time(size: int) -> None:
    examples = [e for e in tiny_examples() if len(e) > 1]
    label, sure = by_hand(examples)
    dataset = found(size=size)
    expected = (label[..., None] == np.arange(len(NAMES))).mean(0)
    np.testing.assert_allclose(dataset.share, expected, atol=1e-12)
    np.testing.assert_allclose(dataset.confidence, sure.mean(0), atol=1e-4)
    np.testing.assert_allclose(dataset.share.sum("pattern"), 1, atol=1e-12)


def test_layers_and_the_model_are_means_over_their_heads() -> None:
    dataset = found()
    np.testing.assert_allclose(dataset.layer_share, dataset.share.mean("head"), atol=1e-12)
    whole = dataset.share.mean(("layer", "head"))
    np.testing.assert_allclose(dataset.model_share, whole, atol=1e-12)
    assert not (dataset.model_share_ci_low > dataset.model_share).any()


def test_short_inputs_are_left_out() -> None:
    long = [e for e in tiny_examples() if len(e) >= 9]
    np.testing.assert_array_equal(found(least_tokens=9).share, found(long).share)
    assert np.isnan(found(least_tokens=13).share).all()


def test_a_typical_map_is_a_map_of_an_input_with_its_tokens() -> None:
    examples = [e for e in tiny_examples() if len(e) > 1]
    dataset = found()
    seen = 0
    for layer, head, rank in np.ndindex(*dataset.typical_score.shape):
        where = {"layer": layer, "head": head, "rank": rank}
        if not str(dataset.typical_class.isel(where).values):
            assert np.isnan(dataset.typical.isel(where)).all()
            continue
        ids = dataset.typical_token_id.isel(where).values
        n = int((dataset.typical_token_count.isel(where).values == 1).sum())
        (example,) = [e for e in examples if np.array_equal(e.input_ids, ids[:n])]
        real = real_maps(example)[layer, head]
        kept = dataset.typical.isel(where).values
        # half a step of the root: |√a - √b| ≤ 1/510
        np.testing.assert_allclose(np.sqrt(kept[:n, :n]), np.sqrt(real), atol=0.5 / 255 + 1e-6)
        assert np.isnan(kept[n:]).all()
        assert np.isnan(kept[:, n:]).all()
        seen += 1
    assert seen >= dataset.sizes["layer"] * dataset.sizes["head"]


def test_the_most_typical_maps_are_those_of_the_highest_probability() -> None:
    examples = [e for e in tiny_examples() if len(e) > 1]
    label, sure = by_hand(examples)
    dataset = found()
    for layer, head in np.ndindex(label.shape[1:]):
        share = dataset.share.values[layer, head]
        main = int(np.argmax(share))
        best = np.sort(sure[label[:, layer, head] == main, layer, head])[::-1]
        scores = dataset.typical_score.values[layer, head]
        labels = dataset.typical_class.values[layer, head].tolist()
        assert labels[0] == NAMES[main]
        of_main = [s for s, name in zip(scores, labels, strict=True) if name == NAMES[main]]
        np.testing.assert_allclose(of_main, best[: len(of_main)], atol=2e-4)
        if len(best) >= RANKS and np.sort(share)[-2] < SECOND:
            assert labels == [NAMES[main]] * RANKS


def test_a_long_input_is_folded_and_the_fold_is_named() -> None:
    rng = np.random.default_rng(0)
    ids = rng.integers(6, 20, 60)
    long = Example("a0", "a", ids, np.zeros(60, np.int64), np.zeros(60, bool))
    config = tiny_network(torch.float32).config
    network = type(tiny_network(torch.float32))(replace_positions(config, 64)).eval()
    dataset = run(
        {"patterns": {}}, network=network, examples=[long, replace(long, id="b0", document="b")]
    )["patterns"]
    named = with_token_names(dataset, lambda ids: tuple(f"t{i}" for i in ids))
    tokens = named.typical_token.values[0, 0, 0].tolist()
    assert len([t for t in tokens if t]) == PLACES
    assert tokens[PLACES // 2] == "… 21 tokens …"
    assert tokens[0] == f"t{ids[0]}"
    assert tokens[PLACES - 1] == f"t{ids[-1]}"
    rows = dataset.typical.values[0, 0, 0]
    np.testing.assert_allclose(rows.sum(-1), 1, atol=0.05)  # folded sums are coded in steps


def replace_positions(config: object, count: int) -> object:
    changed = type(config).from_dict({**config.to_dict(), "max_position_embeddings": count})
    return changed


def test_another_classifier_is_used_and_named(tmp_path) -> None:
    torch.manual_seed(1)
    other = Classifier()
    with torch.no_grad():
        other.head[1].weight.zero_()
        other.head[1].bias.copy_(torch.tensor([0.0, 0, 0, 9, 0]))
    FILES.write(other, {}, tmp_path)
    examples = [e for e in tiny_examples() if len(e) > 1]
    options = {"classifier": str(tmp_path), "least_tokens": 2, "columns": "any"}
    dataset = run({"patterns": options}, network=tiny_network(torch.float32), examples=examples)[
        "patterns"
    ]
    assert (dataset.share.sel(pattern="block") == 1).all()
    assert dataset.attrs["classifier_sha256"] == read_classifier(tmp_path)[1]


def test_large_weights_are_kept_to_half_a_step_of_their_output_channel(tmp_path) -> None:
    """The step is 1/127 of the channel's largest weight; smaller tensors are halves of a float."""
    for network, files, read in (
        (Classifier(), FILES, read_classifier),
        (MarkedClassifier(), MARKED, read_marked),
    ):
        for weight in network.parameters():
            torch.nn.init.normal_(weight)
        files.write(network, {}, tmp_path)
        assert (tmp_path / files.weights).stat().st_size < 0.32 * 4 * sum(
            weight.numel() for weight in network.parameters()
        )
        kept = read(tmp_path)[0].state_dict()
        for name, given in network.state_dict().items():
            inputs = 1 if name.startswith("weights") else (1, 2, 3)
            off = (kept[name] - given).abs()
            if given.dim() < 2:
                assert not off.any(), name
            elif given.numel() < 10_000:
                assert (off <= 2**-11 * given.abs() + 1e-7).all(), name
            else:
                most = given.abs().amax(inputs, keepdim=True)
                assert (off <= most / 254 * 1.001).all(), name
                assert off.any(), name


def test_a_classifier_of_full_weights_is_read_as_it_is(tmp_path) -> None:
    """As `patterns train` wrote them before it rounded."""
    given = {name: tensor.contiguous() for name, tensor in Classifier().state_dict().items()}
    (tmp_path / "weights.safetensors").write_bytes(save(given))
    for name, tensor in read_classifier(tmp_path)[0].state_dict().items():
        assert torch.equal(tensor, given[name])


NO_SCALE = save({"layers.0.weight": torch.ones(16, 3, 3, 3, dtype=torch.int8)})


@pytest.mark.parametrize("content", [None, b"", b"no weights", NO_SCALE])
def test_what_is_no_classifier_is_refused(tmp_path, content) -> None:
    if content is not None:
        (tmp_path / "weights.safetensors").write_bytes(content)
    with pytest.raises(InputError, match="cannot read a classifier from"):
        read_classifier(tmp_path)


def test_maps_that_leave_no_doubt_are_told_as_they_look() -> None:
    """Drawn by hand: what leaves no doubt."""
    network, _ = read_classifier()
    n = 48
    grid = np.full((n, n), 0.002)
    column, line = grid.copy(), grid.copy()
    column[:, [0, 30]] += 0.45
    line += 0.9 * np.eye(n, k=-1)
    both = column + line
    block = grid.copy()
    block[:20, :20] += 1 / 20
    block[20:, 20:] += 1 / 28
    seen = np.stack([picture(one, SIDE) for one in (column, line, both, block)])
    told = network(torch.from_numpy(seen).float()).argmax(-1).tolist()
    assert [NAMES[at] for at in told] == ["vertical", "diagonal", "vertical_diagonal", "block"]
