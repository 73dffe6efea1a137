"""Is attention read rightly where a family bypasses the registry and returns its own maps?"""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers as T
from benchmarks.family_models import BERT, inputs, made
from torch import nn

from headscope.errors import ModelError
from headscope.model.families.eager import map_in
from headscope.model.families.sites import Site
from headscope.model.instrument import Instrument
from headscope.model.layer import LayerView
from model.families.tiny import sharpened

WITH_VALUES = [
    "XLM",
    "RoFormer",
    "RemBERT",
    "GPT-1",
    "GPT-Neo",
    "BLOOM",
    "MPT",
    "GPT-J",
    "MVP",
    "Falcon",
    "DeBERTa v1",
    "CodeGen",
    "FSMT",
]
WITHIN_WINDOWS = ["Longformer", "LED"]
WITHOUT = ["XLNet", "SqueezeBERT", "ConvBERT"]


def seen(name: str, **changes: Any) -> tuple[list[LayerView], dict[str, torch.Tensor]]:
    network = made(name)
    given = inputs(network, name) | changes
    views: list[LayerView] = []
    with torch.no_grad(), Instrument(network, observers=[views.append]):
        network(**given)
    return views, given


@pytest.mark.parametrize("name", [*WITH_VALUES, *WITHIN_WINDOWS])
def test_values_are_offered_where_they_explain_the_output(name: str) -> None:
    for view in seen(name)[0]:
        assert {"attention", "values", "projection"} <= view.offers
        mixed = view.attention @ view.values
        torch.testing.assert_close(view.project(mixed), view.output, atol=2e-4, rtol=1e-4)


@pytest.mark.parametrize("name", WITHOUT)
def test_values_that_explain_nothing_are_not_offered(name: str) -> None:
    """ConvBERT adds a convolution to what attention mixes; XLNet has matrices without modules."""
    for view in seen(name)[0]:
        assert "attention" in view.offers
        assert "values" not in view.offers
        with pytest.raises(ModelError, match="norms are not available"):
            _ = view.value_norm


@pytest.mark.parametrize("name", [*WITH_VALUES, *WITHOUT])
def test_rows_sum_to_one_and_padding_is_not_attended(name: str) -> None:
    views, given = seen(name)
    real = given["attention_mask"].bool()
    for view in views:
        sums = view.attention.sum(-1)
        torch.testing.assert_close(sums, torch.ones_like(sums), atol=1e-5, rtol=0)
        if view.attention.shape[-1] == real.shape[1] and view.stack != "decoder":
            queries = view.attention[1][:, : int(real[1].sum())]
            assert float(queries[..., ~real[1]].max()) < 1e-6


@pytest.mark.parametrize(
    ("name", "stack"),
    [("BLOOM", "decoder"), ("GPT-1", "decoder"), ("XLNet", "encoder"), ("XLM", "encoder")],
)
def test_decoders_are_told_from_encoders(name: str, stack: str) -> None:
    views = seen(name)[0]
    assert {view.stack for view in views} == {stack}
    later = [view.attention[0].triu(1).any() for view in views]
    assert not any(later) if stack == "decoder" else all(later)


@pytest.mark.parametrize("everywhere", [False, True])
def test_attention_within_windows_is_a_whole_map(everywhere: bool) -> None:
    """α v is what the output projection is given, but for tokens that attend by weights of their
    own to all; of these the rows are the model's `global_attentions`.
    """
    torch.manual_seed(0)
    config = T.LongformerConfig(**BERT, attention_window=[4, 4], attention_probs_dropout_prob=0.0)
    network = sharpened(T.LongformerModel(config)).eval()
    ids = torch.randint(6, 90, (2, 11))
    mask, chosen = torch.ones_like(ids), torch.zeros_like(ids)
    mask[1, 8:] = 0
    if everywhere:
        chosen[0, [0, 3]] = chosen[1, 1] = 1
    given = {"input_ids": ids, "attention_mask": mask, "global_attention_mask": chosen}
    views: list[LayerView] = []
    mixed: list[torch.Tensor] = []
    values: list[torch.Tensor] = []
    layer = network.encoder.layer[0].attention
    layer.output.dense.register_forward_pre_hook(lambda _, args: mixed.append(args[0]))
    layer.self.value.register_forward_hook(lambda *call: values.append(call[-1]))
    with torch.no_grad(), Instrument(network, observers=[views.append]):
        network(**given)
    with torch.no_grad():
        stock = network(**given, output_attentions=True)
    attention = views[0].attention
    assert attention.shape == (2, 4, 11, 11)
    of_heads = values[0][:11].transpose(0, 1).reshape(2, 11, 4, 8).transpose(1, 2)
    found = (attention @ of_heads).transpose(1, 2).flatten(2)
    local = mask.bool() & ~chosen.bool()
    torch.testing.assert_close(found[local], mixed[0][:, :11][local], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(attention.sum(-1)[:, 0], mask.float(), atol=1e-5, rtol=0)
    assert ("values" in views[0].offers) != everywhere  # such tokens have values of their own
    if everywhere:
        own = stock.global_attentions[0]  # [example, head, key, token] or its transpose
        rows = attention[0][:, [0, 3]]  # [head, query, key]
        other = own[0][..., :11] if own.shape[-1] >= 11 else own[0].transpose(1, 2)[..., :11]
        torch.testing.assert_close(rows, other[:, :2])


def test_mixtures_with_the_residual_explain_deberta() -> None:
    """LayerNorm of residual plus Σ α f(x) + b_O is what the block of attention gives."""
    network = made("DeBERTa v1")
    views: list[LayerView] = []
    given: list[torch.Tensor] = []
    layer = network.encoder.layer[1].attention
    layer.output.register_forward_hook(lambda *call: given.append(call[-1]))
    with torch.no_grad(), Instrument(network, observers=[views.append]):
        network(**inputs(network, "DeBERTa v1"))
        view = views[1]
        assert {"residual", "values"} <= view.offers
        mixed = view.project(view.attention @ view.values)
        found = layer.output.LayerNorm(mixed + view.residual)
    torch.testing.assert_close(found, given[0], atol=1e-5, rtol=1e-5)


def test_a_window_is_not_asked_for_again_after_the_model_has_padded_it() -> None:
    views, given = seen("LED")
    shapes = {view.attention.shape[2:] for view in views if view.stack == "encoder"}
    assert shapes == {(given["input_ids"].shape[1],) * 2}


def test_a_stack_without_maps_is_refused_and_the_others_read() -> None:
    network = made("LongT5")
    with pytest.raises(ModelError, match="LongT5LocalAttention reads blocks of tokens"):
        Instrument(network)
    views: list[LayerView] = []
    with torch.no_grad(), Instrument(network, observers=[views.append], stacks=["decoder"]):
        network(**inputs(network, "LongT5"))
    assert [view.index for view in views] == [0, 1, 2]


class _Strange(nn.Module):
    pass


@pytest.mark.parametrize(
    ("shape", "told"), [((1, 2, 3, 4), "1 × 2 × 3 × 4"), ((1, 2, 3), "1 × 2 × 3"), ((), "")]
)
def test_other_shapes_are_refused_by_name(shape: tuple[int, ...], told: str) -> None:
    site = Site("layer.0", "encoder", _Strange().eval())
    with pytest.raises(ModelError, match=f"layer.0 .*_Strange.*found tensors of {told}"):
        map_in((torch.ones(shape),), site)


def test_rows_that_do_not_sum_to_one_are_refused() -> None:
    site = Site("layer.0", "encoder", _Strange().eval())
    scores = torch.ones(1, 2, 3, 3)
    with pytest.raises(ModelError, match="summing to 1 over the keys"):
        map_in((scores,), site)
    assert map_in((None, (scores / 3,)), site).shape == scores.shape
    whole_row_masked = (scores / 3).index_fill(2, torch.tensor([1]), 0.0)
    assert map_in({"weights": whole_row_masked}, site) is whole_row_masked


def test_a_map_that_was_not_seen_where_it_is_computed_is_noticed() -> None:
    network = made("XLM")
    given = inputs(network, "XLM")
    instrument = Instrument(network)
    instrument.sites = instrument.sites[:1]
    with (
        torch.no_grad(),
        pytest.raises(ModelError, match="returned 2 attention maps, and 1 were found"),
        instrument,
    ):
        network(**given)


def test_fused_attention_of_a_family_is_read_eagerly() -> None:
    """Falcon may be loaded with sdpa, which returns no weights; the choice comes back."""
    network = made("Falcon")
    given = inputs(network, "Falcon")
    with torch.no_grad():
        expected = network(**given, output_attentions=True).attentions
    network.config._attn_implementation_internal = "sdpa"
    views: list[LayerView] = []
    with torch.no_grad(), Instrument(network, observers=[views.append]):
        network(**given)
    assert all(torch.equal(view.attention, one) for view, one in zip(views, expected, strict=True))
    assert network.config._attn_implementation_internal == "sdpa"


def test_two_towers_are_two_stacks_with_their_names() -> None:
    views = seen("CLIP")[0]
    assert {(view.stack, view.index) for view in views} == {
        ("text", 0),
        ("text", 1),
        ("vision", 0),
        ("vision", 1),
    }
    assert {view.attention.shape[-1] for view in views if view.stack == "vision"} == {17}
    network = made("CLIP")
    only: list[LayerView] = []
    with torch.no_grad(), Instrument(network, observers=[only.append], stacks=["vision"]):
        network(**inputs(network, "CLIP"))
    assert [view.stack for view in only] == ["vision", "vision"]
