"""Is every family's attention read exactly, and is the model left exactly as it was?"""

from __future__ import annotations

import math
from unittest.mock import Mock

import pytest
import torch
from torch import nn
from transformers import PreTrainedModel

from headscope.errors import ModelError
from headscope.model.instrument import Instrument
from headscope.model.layer import LayerView
from model.families.tiny import (
    FAMILIES,
    HEADS,
    REFUSED,
    UNLISTED,
    Family,
    inputs,
    make,
    seen_by,
    tiny,
)

every_family = pytest.mark.parametrize("name", FAMILIES)
_ON_REGISTRY = [name for name, family in FAMILIES.items() if family.on_registry]


def eager(
    network: PreTrainedModel, given: dict[str, torch.Tensor]
) -> tuple[dict[tuple[str, int], torch.Tensor], torch.Tensor]:
    """The family's own maps by stack and layer, and the last hidden state."""
    with torch.no_grad():
        output = network(**given, output_attentions=True)
    if "encoder_last_hidden_state" in output:
        stacks = {
            "encoder": output.encoder_attentions,
            "decoder": output.decoder_attentions,
            "cross": output.cross_attentions,
        }
    else:
        stacks = {"": output.attentions}
    maps = {
        (stack, layer): attention
        for stack, attentions in stacks.items()
        for layer, attention in enumerate(attentions)
    }
    return maps, output.last_hidden_state


def own_map(maps: dict[tuple[str, int], torch.Tensor], view: LayerView) -> torch.Tensor:
    return maps[(view.stack if ("encoder", 0) in maps else "", view.index)]


@every_family
def test_maps_are_the_eager_maps(name: str) -> None:
    given, _ = inputs(name)
    maps, hidden = eager(tiny(name), given)
    views, output = seen_by(tiny(name), given)
    assert len(views) == len(maps)
    for view in views:
        torch.testing.assert_close(view.attention, own_map(maps, view), atol=1e-6, rtol=0)
    torch.testing.assert_close(output, hidden, atol=1e-6, rtol=0)


@every_family
def test_maps_are_sharp_enough_to_show_mistakes(name: str) -> None:
    given, _ = inputs(name)
    views, _ = seen_by(tiny(name), given)
    for view in views:
        sharpness = torch.special.entr(view.attention[0]).sum(-1).mean()
        assert sharpness < 0.9 * math.log(view.attention.shape[-1])


@every_family
def test_padding_changes_nothing(name: str) -> None:
    given, mask = inputs(name)
    row, length = 1, int(mask[1].sum())
    alone = {key: tensor[row : row + 1] for key, tensor in given.items()}
    alone["input_ids"], alone["attention_mask"] = (
        alone[key][:, :length] for key in ("input_ids", "attention_mask")
    )
    padded, padded_output = seen_by(tiny(name), given)
    bare, bare_output = seen_by(tiny(name), alone)
    for long, short in zip(padded, bare, strict=True):
        queries, keys = short.attention.shape[2:]
        real = long.attention[row, :, :queries]  # [head, query, key]
        torch.testing.assert_close(real[..., :keys], short.attention[0], atol=1e-5, rtol=0)
        assert real[..., keys:].count_nonzero() == 0
    tokens = bare_output.shape[1]
    torch.testing.assert_close(padded_output[row, :tokens], bare_output[0], atol=5e-5, rtol=1e-5)


@every_family
def test_real_rows_sum_to_one(name: str) -> None:
    given, mask = inputs(name)
    for view in seen_by(tiny(name), given)[0]:
        sums = view.attention.sum(-1)  # [example, head, query]
        if sums.shape[-1] == mask.shape[1]:
            sums = sums.transpose(1, 2)[mask]
        torch.testing.assert_close(sums, torch.ones_like(sums), atol=1e-6, rtol=0)


@every_family
def test_layers_are_numbered_from_0_in_every_pass(name: str) -> None:
    given, _ = inputs(name)
    views: list[LayerView] = []
    with torch.no_grad(), Instrument(tiny(name), observers=[views.append]):
        for _ in range(2):
            tiny(name)(**given)
            numbers = {s: [v.index for v in views if v.stack == s] for s in FAMILIES[name].stacks}
            assert numbers == {s: list(range(n)) for s, n in FAMILIES[name].stacks.items()}
            assert len(views) == sum(FAMILIES[name].stacks.values())
            views.clear()


@every_family
def test_heads_are_the_query_heads(name: str) -> None:
    given, _ = inputs(name)
    for view in seen_by(tiny(name), given)[0]:
        assert view.attention.shape[1] == HEADS
        for part in (view.queries, view.keys, view.values):
            assert part is None or part.shape[1] == HEADS


@pytest.mark.parametrize("name", _ON_REGISTRY)
def test_the_maps_are_the_softmax_of_queries_and_keys(name: str) -> None:
    """Queries and keys are shown as used: rotated, normed, repeated to the query heads."""
    given, _ = inputs(name)
    for view in seen_by(tiny(name), given)[0]:
        assert "queries_keys" in view.offers
        scores = view.queries @ view.keys.transpose(2, 3) * view.scaling
        if view.softcap is not None:
            scores = torch.tanh(scores / view.softcap) * view.softcap
        if view.position_bias is not None:
            assert view.position_bias.shape[1:] == scores.shape[1:]
            scores = scores + view.position_bias
        seen = torch.ones_like(scores, dtype=torch.bool) if view.seen is None else view.seen
        full, found = scores[0], view.attention[0]  # the longest row: no query is padding
        expected = full.masked_fill(~seen.expand_as(scores)[0], -torch.inf).softmax(-1)
        torch.testing.assert_close(expected, found, atol=1e-6, rtol=0)
        assert (view.position_bias is not None) == ("T5" in name)
        assert (view.softcap is not None) == (name == "Gemma2")


@pytest.mark.parametrize("name", [n for n in FAMILIES if not FAMILIES[n].on_registry])
def test_queries_and_keys_are_not_offered_where_they_are_not_seen(name: str) -> None:
    for view in seen_by(tiny(name), inputs(name)[0])[0]:
        assert view.queries is None
        assert "queries_keys" not in view.offers


def hooks_in(network: nn.Module) -> int:
    return sum(
        len(hooks)
        for module in network.modules()
        for key, hooks in vars(module).items()
        if "hooks" in key and isinstance(hooks, dict)
    )


def implementations(network: PreTrainedModel) -> list[str | None]:
    return [
        m.config._attn_implementation for m in network.modules() if isinstance(m, PreTrainedModel)
    ]


@every_family
@pytest.mark.parametrize("how", ["clean", "observer raises", "caller raises"])
def test_leaving_restores_the_model(name: str, how: str) -> None:
    network = tiny(name)
    given, _ = inputs(name)
    eager(network, given)  # transformers keeps hooks of its own from the first such pass on
    before = hooks_in(network), implementations(network)

    def fail(_view: LayerView) -> None:
        if how == "observer raises":
            raise ArithmeticError

    def run() -> None:
        with torch.no_grad(), Instrument(network, observers=[fail]):
            assert hooks_in(network) > before[0]
            network(**given)
            if how == "caller raises":
                raise ArithmeticError

    if how == "clean":
        run()
    else:
        with pytest.raises(ArithmeticError):
            run()
    assert (hooks_in(network), implementations(network)) == before
    seen_by(network, given)  # and it can be looked at again


@every_family
def test_gradients_flow_and_are_the_eager_gradients(name: str) -> None:
    network = make(name)().train()
    frozen = next(iter(dict(network.named_parameters())))
    network.get_parameter(frozen).requires_grad_(False)
    given, mask = inputs(name)

    def gradients() -> dict[str, torch.Tensor]:
        network.zero_grad()
        hidden = network(**given).last_hidden_state
        weights = torch.linspace(-1, 1, hidden.shape[-1])
        rows = hidden if hidden.shape[1] != mask.shape[1] else hidden[mask]
        (rows * weights).sum().backward()
        return {n: p.grad.clone() for n, p in network.named_parameters() if p.grad is not None}

    flags = {n: p.requires_grad for n, p in network.named_parameters()}
    expected = gradients()
    views: list[LayerView] = []
    with Instrument(network, observers=[views.append]):
        found = gradients()
    assert views
    assert not any(view.attention.requires_grad for view in views)
    assert found.keys() == expected.keys()
    for key, gradient in expected.items():
        size = max(1.0, float(gradient.abs().max()))
        torch.testing.assert_close(found[key], gradient, atol=1e-5 * size, rtol=0)
    assert all(module.training for module in network.modules())
    assert flags == {n: p.requires_grad for n, p in network.named_parameters()}


@pytest.mark.parametrize("name", ["T5", "BART", "Marian"])
def test_an_encoder_can_be_run_by_itself_again_and_again(name: str) -> None:
    """Found in tests: layers were counted on from batch to batch when only the encoder ran."""
    given, _ = inputs(name)
    given.pop("decoder_input_ids")
    network = tiny(name)
    views: list[LayerView] = []
    with torch.no_grad(), Instrument(network, observers=[views.append]):
        for _ in range(2):
            network.get_encoder()(**given)
    assert [(v.stack, v.index) for v in views] == [("encoder", 0), ("encoder", 1)] * 2


@pytest.mark.parametrize("name", ["BERT decoder", "GPT-2"])
def test_cross_attention_of_a_decoder_is_a_stack_of_its_own(name: str) -> None:
    network = make(name)(add_cross_attention=True)
    given, _ = inputs(name)
    memory = torch.randn(3, 5, 32, generator=torch.Generator().manual_seed(3))
    views, _ = seen_by(network, {**given, "encoder_hidden_states": memory})
    assert [v.index for v in views if v.stack == "cross"] == [0, 1]
    assert {v.attention.shape[-1] for v in views if v.stack == "cross"} == {5}
    only, _ = seen_by(network, {**given, "encoder_hidden_states": memory}, stacks=["cross"])
    assert [v.stack for v in only] == ["cross", "cross"]


@pytest.mark.parametrize("name", UNLISTED)
def test_a_family_in_no_table_is_read_exactly_and_its_projection_checked(name: str) -> None:
    given, _ = inputs("BERT")
    network = UNLISTED[name].build()
    maps, hidden = eager(network, given)
    views, output = seen_by(network, given)
    assert torch.equal(output, hidden)
    for view in views:
        assert torch.equal(view.attention, own_map(maps, view))
        if name == "BitNet":
            with pytest.raises(ModelError, match="a gate or a norm"):
                _ = view.projection
            continue
        mixed = view.attention @ view.values
        torch.testing.assert_close(view.project(mixed), view.output, atol=1e-5, rtol=1e-5)


def sinking(*, seed: int = 0) -> PreTrainedModel:
    options = {**FAMILIES["Llama"].options, "num_local_experts": 2, "num_experts_per_tok": 1}
    family = Family("GptOss", {**options, "layer_types": ["full_attention"] * 2})
    return family.build(seed=seed)


def test_learned_sinks_leave_the_rest_of_each_row_to_no_token() -> None:
    """GPT-OSS adds a column to the softmax: without it the maps would be wrong."""
    given, mask = inputs("Llama")
    network = sinking()
    maps, hidden = eager(network, given)
    views, output = seen_by(network, given)
    assert torch.equal(output, hidden)
    for view in views:
        assert torch.equal(view.attention, own_map(maps, view))
        whole = torch.cat([view.attention, view.rest[..., None]], -1)  # [example, head, query, …]
        assert float(view.rest.transpose(1, 2)[mask].mean()) > 0.05
        assert "queries_keys" not in view.offers
        mixed = view.attention @ view.values  # no token has no value vector
        torch.testing.assert_close(view.project(mixed), view.output, atol=1e-5, rtol=1e-5)
        none = torch.zeros_like(mask)
        batch = Mock(mask=mask, lengths=mask.sum(1).numpy(), is_sep=none, needed_of_rows=set())
        nats = torch.special.entr(whole.double()).sum(-1).transpose(1, 2)[mask]
        found = view.entropy(batch).transpose(1, 2)[mask]
        torch.testing.assert_close(found.double(), nats, atol=2e-6, rtol=0)


def test_a_row_that_sums_to_one_leaves_nothing() -> None:
    for view in seen_by(tiny("Llama"), inputs("Llama")[0])[0]:
        assert not view.sinks
        assert float(view.rest.max()) < 1e-6


@pytest.mark.parametrize("name", REFUSED)
def test_families_without_whole_maps_are_refused_by_name(name: str) -> None:
    network = REFUSED[name].build()
    with pytest.raises(ModelError, match=network.config.model_type):
        Instrument(network)


@pytest.mark.parametrize("name", [n for n, f in FAMILIES.items() if not f.on_registry])
def test_the_fallback_refuses_interventions(name: str) -> None:
    with pytest.raises(ModelError, match="can be read, not changed"):
        Instrument(tiny(name), interventions=[lambda call: None])
