"""Does an intervention change what it says and nothing else, and is nothing ever silent?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers as T
from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

import headscope.model.attention
from headscope.errors import HeadscopeError, ModelError
from headscope.model.attention import known_options, probabilities
from headscope.model.instrument import AttentionCall, Instrument, Intervention
from headscope.model.layer import LayerView
from model.families.tiny import inputs, make, seen_by, sharpened, tiny

registered_pair = pytest.mark.parametrize("name", ["BERT", "ALBERT", "Llama"])


def uniform(layer: int, head: int) -> Intervention:
    """Sets a head to 1/L."""

    def intervene(call: AttentionCall) -> None:
        if call.layer == layer:
            changed = call.attention.clone()
            changed[:, head] = 1 / changed.shape[-1]
            call.attention = changed

    return intervene


def without_values(layer: int, head: int) -> Intervention:
    """Zeroes the values of a head."""

    def intervene(call: AttentionCall) -> None:
        if call.layer == layer:
            kept = torch.ones(call.values.shape[1])
            kept[head] = 0
            call.values = call.values * kept[:, None, None]

    return intervene


def run(
    network: PreTrainedModel, name: str, *interventions: Intervention
) -> tuple[list[LayerView], torch.Tensor]:
    return seen_by(network, inputs(name)[0], interventions=interventions)


# --- interventions ----------------------------------------------------------------------------


@registered_pair
def test_a_uniform_head_changes_its_layer_and_what_follows(name: str) -> None:
    plain, output = run(tiny(name), name)
    changed, changed_output = run(tiny(name), name, uniform(1, 2))
    assert torch.equal(plain[0].attention, changed[0].attention)
    assert torch.equal(plain[0].output, changed[0].output)
    others = [0, 1, 3]
    assert torch.equal(plain[1].attention[:, others], changed[1].attention[:, others])
    assert torch.equal(changed[1].attention[:, 2], torch.full((3, 9, 9), 1 / 9))
    assert not torch.allclose(plain[1].output, changed[1].output, atol=1e-3)
    assert not torch.allclose(output, changed_output, atol=1e-3)


@registered_pair
def test_an_intervention_in_the_first_layer_reaches_the_second(name: str) -> None:
    plain, _ = run(tiny(name), name)
    changed, _ = run(tiny(name), name, uniform(0, 2))
    assert not torch.allclose(plain[1].attention, changed[1].attention, atol=1e-3)


def test_zeroed_values_are_a_head_without_output_projection() -> None:
    _, output = run(tiny("Llama"), "Llama", without_values(1, 2))
    network = make("Llama")()
    network.layers[1].self_attn.o_proj.weight.data[:, 16:24] = 0  # head 2 of width 8
    _, expected = run(network, "Llama")
    torch.testing.assert_close(output, expected, atol=1e-6, rtol=0)


def test_the_gradient_passes_an_intervention_by_the_other_heads_only() -> None:
    network = make("BERT")()
    with Instrument(network, interventions=[uniform(1, 2)]):
        network(**inputs("BERT")[0]).last_hidden_state.square().sum().backward()
    by_head = network.encoder.layer[1].attention.self.query.weight.grad.view(4, 8, 32)
    size = by_head.abs().sum((1, 2))
    assert size[2] == 0
    assert (size[[0, 1, 3]] > 0).all()


def test_nothing_changes_once_the_context_is_left() -> None:
    _, before = run(tiny("BERT"), "BERT")
    run(tiny("BERT"), "BERT", uniform(0, 0))
    _, after = run(tiny("BERT"), "BERT")
    assert torch.equal(before, after)


# --- nesting ----------------------------------------------------------------------------------


def test_nested_instruments_both_change_and_both_see_what_is_left() -> None:
    network, given = tiny("BERT"), inputs("BERT")[0]
    together, expected = run(network, "BERT", uniform(0, 1), uniform(1, 3))
    outer: list[LayerView] = []
    inner: list[LayerView] = []
    with (
        torch.no_grad(),
        Instrument(network, observers=[outer.append], interventions=[uniform(0, 1)]),
    ):
        with Instrument(network, observers=[inner.append], interventions=[uniform(1, 3)]):
            output = network(**given).last_hidden_state
        alone = network(**given).last_hidden_state
    assert torch.equal(output, expected)
    assert torch.equal(alone, run(network, "BERT", uniform(0, 1))[1])
    assert (len(outer), len(inner)) == (4, 2)
    for view, left, right in zip(together, outer[:2], inner, strict=True):
        assert torch.equal(view.attention, left.attention)
        assert torch.equal(view.attention, right.attention)
        assert left.residual is not None
        assert left.output is not None


def test_nested_instruments_on_two_models_keep_apart() -> None:
    seen: list[str] = []
    with (
        torch.no_grad(),
        Instrument(tiny("BERT"), observers=[lambda v: seen.append(f"bert {v.index}")]),
        Instrument(tiny("Llama"), observers=[lambda v: seen.append(f"llama {v.index}")]),
    ):
        tiny("BERT")(**inputs("BERT")[0])
        tiny("Llama")(**inputs("Llama")[0])
    assert seen == ["bert 0", "bert 1", "llama 0", "llama 1"]


def test_an_open_instrument_cannot_be_opened_again() -> None:
    instrument = Instrument(tiny("BERT"))
    with instrument, pytest.raises(HeadscopeError, match="already open"):
        instrument.__enter__()
    with instrument:  # but after it was closed
        pass


def test_every_configuration_gets_back_the_implementation_it_had() -> None:
    network = T.EncoderDecoderModel(
        encoder=make("BERT")(),
        decoder=T.BertLMHeadModel(make("BERT decoder")(add_cross_attention=True).config),
    )
    kinds = {"": "eager", "encoder": "sdpa", "decoder": "eager"}
    network.config._attn_implementation = kinds

    def now() -> list[str | None]:
        parts = (network.config, network.config.encoder, network.config.decoder)
        return [part._attn_implementation for part in parts]

    before = now()
    assert before == list(kinds.values())
    stacks: list[str] = []
    given = inputs("T5")[0]
    with torch.no_grad(), Instrument(network, observers=[lambda v: stacks.append(v.stack)]):
        assert now() == ["headscope"] * 3
        network(**given)
    assert now() == before
    assert sorted(stacks) == ["cross"] * 2 + ["decoder"] * 2 + ["encoder"] * 2


# --- nothing silent ---------------------------------------------------------------------------


def test_unknown_options_of_an_attention_function_are_refused() -> None:
    with pytest.raises(ModelError, match="k_aux"):
        known_options(nn.Identity(), {"k_aux": torch.zeros(4), "softcap": None})
    assert known_options(nn.Identity(), {"softcap": 5.0, "is_causal": True}) == {"softcap": 5.0}


class _Config(PreTrainedConfig):
    model_type = "headscope-test"


class _Mixer(nn.Module):
    """Calls the registry like an attention module, but is in no table and has no usual names."""

    def __init__(self, config: _Config, *, call: bool, **options: Any) -> None:
        super().__init__()
        self.config, self.call, self.options = config, call, options
        self.everything = nn.Linear(8, 24)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = self.everything(x).view(*x.shape[:2], 3, 2, 4)
        q, k, v = parts.permute(2, 0, 3, 1, 4)  # [example, head, token, dim] each
        if not self.call:
            return x
        attend = ALL_ATTENTION_FUNCTIONS.get_interface(self.config._attn_implementation, _eager)
        return x + attend(self, q, k, v, None, **self.options)[0].flatten(2)


def _eager(
    _module: nn.Module, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, _mask: Any, **_other: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    attention = (q @ k.transpose(2, 3) / 2).softmax(-1)
    return (attention @ v).transpose(1, 2), attention


class _Strange(PreTrainedModel):
    config_class = _Config

    def __init__(self, config: _Config, **options: Any) -> None:
        super().__init__(config)
        self.first = _Mixer(config, **options)
        self.post_init()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.first(x)


def test_attention_that_no_table_knows_is_read_but_has_no_norms() -> None:
    network = _Strange(_Config(), call=True).eval()
    x = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))
    views: list[LayerView] = []
    with torch.no_grad():
        expected = network(x)
        with Instrument(network, observers=[views.append]):
            torch.testing.assert_close(network(x), expected)
    (view,) = views
    assert (view.index, view.stack, view.site.path) == (0, "encoder", "first")
    with pytest.raises(ModelError, match="output projection of _Mixer is unknown"):
        _ = view.value_norm


def test_a_model_that_never_calls_the_registry_is_refused_when_it_has_run() -> None:
    network = _Strange(_Config(), call=False).eval()
    with Instrument(network), pytest.raises(ModelError, match="_Strange ran without calling"):
        network(torch.zeros(1, 2, 8))


def test_a_model_that_passes_more_than_is_known_is_refused_when_it_runs() -> None:
    network = _Strange(_Config(), call=True, sinks=torch.zeros(2)).eval()
    with Instrument(network), pytest.raises(ModelError, match="_Mixer passes sinks"):
        network(torch.zeros(1, 2, 8))


def test_one_layer_off_the_registry_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    network = make("BERT")()
    own = network.encoder.layer[1].attention.self
    own.forward = lambda hidden, *_a, **_k: (hidden, None)
    with (
        torch.no_grad(),
        Instrument(network),
        pytest.raises(ModelError, match=r"without calling.*layer\.1\.attention\.self"),
    ):
        network(**inputs("BERT")[0])


def test_a_layer_run_outside_a_forward_pass_is_refused() -> None:
    """Gradient checkpointing runs layers a second time: their numbers would be wrong."""
    network = make("Llama")()
    with Instrument(network), pytest.raises(HeadscopeError, match="outside a forward pass"):
        network.layers[0](
            torch.zeros(1, 3, 32), position_embeddings=(torch.ones(1, 3, 8), torch.zeros(1, 3, 8))
        )


# --- the mask and the arithmetic ---------------------------------------------------------------


@pytest.fixture
def masks(monkeypatch: pytest.MonkeyPatch) -> list[torch.Tensor | None]:
    """The masks that the attention function was given."""
    found: list[torch.Tensor | None] = []
    real = probabilities

    def spy(q: Any, k: Any, mask: torch.Tensor | None, **options: Any) -> torch.Tensor:
        found.append(mask)
        return real(q, k, mask, **options)

    monkeypatch.setattr(headscope.model.attention, "probabilities", spy)
    return found


@pytest.mark.parametrize("name", ["BERT", "RoBERTa", "DistilBERT", "ALBERT", "ELECTRA", "T5"])
def test_an_encoder_without_padding_gets_no_mask_to_add(
    name: str, masks: list[torch.Tensor | None]
) -> None:
    network = tiny(name).get_encoder() if name == "T5" else tiny(name)
    ids = inputs(name)[0]["input_ids"]
    with torch.no_grad(), Instrument(network):
        network(input_ids=ids, attention_mask=torch.ones_like(ids))
    assert masks == [None, None]


def test_a_padded_batch_gets_a_mask(masks: list[torch.Tensor | None]) -> None:
    run(tiny("BERT"), "BERT")
    assert all(mask is not None for mask in masks)


@pytest.mark.parametrize("tokens", [1, 2, 17, 130, 700])
@pytest.mark.parametrize("softcap", [None, 3.0])
def test_in_place_and_differentiable_arithmetic_are_the_same_bits(
    tokens: int, softcap: float | None
) -> None:
    draw = torch.Generator().manual_seed(tokens)
    q, k = (torch.randn(1, 2, tokens, 8, generator=draw) * 3 for _ in range(2))
    bias = torch.randn(1, 2, tokens, tokens, generator=draw)
    mask = torch.zeros(1, 1, tokens, tokens)
    mask[..., tokens // 2 + 1 :] = torch.finfo(torch.float32).min
    options: dict[str, Any] = {"scaling": 0.3, "softcap": softcap, "position_bias": bias}
    fast = probabilities(q, k, mask, **options)
    slow = probabilities(q.requires_grad_(), k, mask, **options)
    assert slow.requires_grad
    assert torch.equal(fast, slow.detach())
    assert fast[..., tokens // 2 + 1 :].count_nonzero() == 0


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16, torch.float64])
def test_other_precisions_keep_their_type(kind: torch.dtype) -> None:
    q = torch.randn(1, 2, 6, 8, generator=torch.Generator().manual_seed(0)).to(kind)
    attention = probabilities(q, q, None, scaling=None)
    assert attention.dtype == kind
    expected = (q.double() @ q.double().transpose(2, 3) * 8**-0.5).softmax(-1)
    torch.testing.assert_close(attention.double(), expected, atol=3e-2, rtol=0)


def test_a_trained_position_bias_alone_still_gets_its_gradient() -> None:
    q = torch.randn(1, 2, 4, 8, generator=torch.Generator().manual_seed(0))
    bias = torch.zeros(1, 2, 4, 4, requires_grad=True)
    probabilities(q, q, None, scaling=1.0, position_bias=bias).square().sum().backward()
    assert bias.grad is not None
    assert bias.grad.abs().sum() > 0


def test_dropout_in_training_draws_what_eager_attention_draws() -> None:
    network = sharpened(
        T.BertModel(
            T.BertConfig(
                **{**make("BERT").__self__.options, "attention_probs_dropout_prob": 0.3},
                attn_implementation="eager",
            )
        )
    ).train()
    given = inputs("BERT")[0]

    def output(around: Callable[[], Any]) -> torch.Tensor:
        torch.manual_seed(1)
        with torch.no_grad(), around():
            return network(**given).last_hidden_state

    views: list[LayerView] = []
    plain = output(torch.no_grad)
    seen = output(lambda: Instrument(network, observers=[views.append]))
    assert torch.equal(plain, seen)
    sums = views[0].attention[0].sum(-1)
    torch.testing.assert_close(sums, torch.ones_like(sums))  # shown before dropout
