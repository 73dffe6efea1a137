"""Is value zeroing what a plain loop over tokens gives, and is the model left as it was?"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from analyses.flow.layers import families_layers
from headscope.analyses.flow import measure_matrices
from headscope.analyses.flow.measure_matrices import layer_matrix
from headscope.errors import ModelError
from headscope.model.instrument import AttentionCall, Instrument
from headscope.model.key_value_cache import cache_of
from headscope.model.layer import LayerView
from headscope.model.replay_layer import run_again
from model.families.test_families import eager, hooks_in, implementations, own_map
from model.families.tiny import FAMILIES, UNLISTED, inputs, make, tiny

ON_REGISTRY = [name for name, family in FAMILIES.items() if family.on_registry]


def first_of(output: Any) -> torch.Tensor:
    return output[0] if isinstance(output, tuple) else output


def layers_output(
    name: str, layer: int, zeroed: int | None
) -> tuple[torch.Tensor, list[LayerView]]:
    """[example, token, model] what a layer gives in the whole model, and all layers as seen."""
    given, _ = inputs(name)
    stack = "encoder" if "encoder" in FAMILIES[name].stacks else "decoder"
    views: list[LayerView] = []
    outputs: list[torch.Tensor] = []

    def silence(call: AttentionCall) -> None:
        if zeroed is not None and call.layer == layer and call.site.stack == stack:
            call.values = call.values.clone()
            call.values[:, :, zeroed] = 0

    with Instrument(tiny(name), observers=[views.append], interventions=[silence], stacks=[stack]):
        with torch.no_grad():
            tiny(name)(**given)
        blocks = [view.given.block for view in views if view.given]
        hooks = [
            block.register_forward_hook(lambda _m, _a, out: outputs.append(first_of(out)))
            for block in dict.fromkeys(blocks)
        ]
        try:
            with torch.no_grad():
                tiny(name)(**given)
        finally:
            for hook in hooks:
                hook.remove()
    return outputs[layer], views[: len(views) // 2]


@pytest.mark.parametrize("name", ON_REGISTRY)
def test_it_is_what_a_loop_over_tokens_gives(name: str) -> None:
    views, batch = families_layers(name)
    for view in views:
        whole = nn.functional.normalize(layers_output(name, view.index, None)[0].double(), dim=-1)
        raw = torch.zeros(view.attention[:, 0].shape, dtype=torch.float64)
        for key in range(raw.shape[-1]):
            other = layers_output(name, view.index, key)[0].double()
            raw[..., key] = 1 - (whole * nn.functional.normalize(other, dim=-1)).sum(-1)
        raw *= view.attention.amax(1) > 0
        found = layer_matrix(view, batch, "value_zeroing")
        for row, n in enumerate(batch.lengths):
            wanted = raw[row, :n, :n] / raw[row, :n, :n].sum(-1, keepdim=True)
            torch.testing.assert_close(found[row, :n, :n].double(), wanted, rtol=0, atol=2e-4)


@pytest.mark.parametrize("name", [*ON_REGISTRY, *UNLISTED])
def test_run_again_unchanged_a_layer_gives_what_it_gave(name: str) -> None:
    """Also while the model is still running, with a cache of keys and values."""
    network = tiny(name) if name in FAMILIES else UNLISTED[name].build()
    given, mask = inputs(name if name in FAMILIES else "BERT")
    again: list[torch.Tensor] = []
    outputs: list[torch.Tensor] = []

    def repeat(view: LayerView) -> None:
        assert view.values is not None
        rows = [
            run_again(view, example=row, values=view.values[row].expand(2, -1, -1, -1))[1]
            for row in range(len(view.attention))
        ]
        again.append(torch.stack(rows))  # [example, token, model]

    stacks = FAMILIES[name].stacks if name in FAMILIES else {"encoder": 2, "decoder": 2}
    stack = ["encoder"] if {"encoder", "cross"} <= set(stacks) else ["encoder", "decoder"]
    with torch.no_grad(), Instrument(network, observers=[repeat], stacks=stack) as instrument:
        blocks = {site.block: None for site in instrument.sites if site.stack in stack}
        hooks = [
            b.register_forward_hook(lambda _m, _a, o: outputs.append(first_of(o))) for b in blocks
        ]
        network(**given)
    for hook in hooks:
        hook.remove()
    assert len(again) == len(outputs) > 1
    for one, other in zip(outputs, again, strict=True):
        torch.testing.assert_close(one[mask], other[mask], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ["BERT", "GPT-2", "Llama", "T5", "ALBERT"])
def test_nothing_of_the_pass_is_disturbed(name: str) -> None:
    """Its maps, states, cache and what the other observers see are those without it."""
    given, _ = inputs(name)
    maps, hidden = eager(tiny(name), given)
    views: list[LayerView] = []

    def zero(view: LayerView) -> None:
        if view.stack != "cross" and view.attention.shape[2] == view.attention.shape[3]:
            run_again(view, example=0, values=torch.zeros_like(view.values[:1]))

    asked = {"output_hidden_states": True, "output_attentions": True}
    with torch.no_grad(), Instrument(tiny(name), observers=[zero, views.append]):
        found = tiny(name)(**given, **asked)
    with torch.no_grad():
        wanted = tiny(name)(**given, **asked)
    torch.testing.assert_close(found.last_hidden_state, hidden, atol=1e-6, rtol=0)
    assert len(views) == len(maps)
    for view in views:
        torch.testing.assert_close(view.attention, own_map(maps, view), atol=1e-6, rtol=0)
    for key in wanted:
        if key.endswith(("hidden_states", "attentions")):
            assert len(found[key]) == len(wanted[key])
            for one, other in zip(found[key], wanted[key], strict=True):
                torch.testing.assert_close(one, other, atol=1e-6, rtol=0)
    if (cache := cache_of(found)) is not None:
        assert cache.get_seq_length() == cache_of(wanted).get_seq_length()


def test_a_layer_can_be_run_again_when_the_pass_is_long_over() -> None:
    views, batch = families_layers("BERT")
    before = hooks_in(tiny("BERT")), implementations(tiny("BERT"))
    layer_matrix(views[1], batch, "value_zeroing")
    assert (hooks_in(tiny("BERT")), implementations(tiny("BERT"))) == before


@pytest.mark.parametrize("where", ["in the layer", "in an observer"])
def test_an_error_leaves_no_trace(where: str) -> None:
    network = make("BERT")()
    given, _ = inputs("BERT")
    network(**given, output_attentions=True)
    broken: list[Any] = []

    def hook(_module: nn.Module, _args: Any) -> None:
        """One of the caller's own."""

    own = network.encoder.layer[0].output.dense.register_forward_pre_hook(hook)
    before = hooks_in(network), implementations(network)

    def fail(view: LayerView) -> None:
        if where == "in the layer":
            network.encoder.layer[view.index].output.dense.forward = boom
        run_again(view, example=0, values=view.values[:1])
        raise ArithmeticError

    def boom(_inputs: torch.Tensor) -> torch.Tensor:
        broken.append(True)
        raise ArithmeticError

    with (
        pytest.raises(ArithmeticError),
        torch.no_grad(),
        Instrument(network, observers=[fail]),
    ):
        network(**given)
    assert bool(broken) == (where == "in the layer")
    assert (hooks_in(network), implementations(network)) == before
    own.remove()


@pytest.mark.parametrize("at_once", [1, 5])
def test_how_many_tokens_are_zeroed_at_once_does_not_matter(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    views, batch = families_layers("BERT")
    wanted = layer_matrix(views[0], batch, "value_zeroing")
    monkeypatch.setattr(measure_matrices, "_at_once", lambda _layer: at_once)
    found = layer_matrix(views[0], batch, "value_zeroing")
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-5)


def test_memory_is_bounded_whatever_the_length() -> None:
    views, _ = families_layers("BERT")
    copies = measure_matrices._at_once(views[0])
    tokens, heads = views[0].attention.shape[2], views[0].attention.shape[1]
    assert copies >= 1
    assert copies * tokens * (heads * tokens + 10 * 32) <= measure_matrices.MOST_NUMBERS


def test_weights_that_were_changed_stay_changed() -> None:
    """Zeroing follows the attention that was seen, whoever intervened."""
    given, _ = inputs("BERT")
    views: list[LayerView] = []

    def uniform(call: AttentionCall) -> None:
        seen = (call.attention > 0).to(call.attention)
        call.attention = seen / seen.sum(-1, keepdim=True)

    change = Instrument(tiny("BERT"), observers=[views.append], interventions=[uniform])
    with torch.no_grad(), change:
        tiny("BERT")(**given)
        kept: list[torch.Tensor] = []
        block = tiny("BERT").encoder.layer[0]
        hook = block.register_forward_hook(lambda _m, _a, out: kept.append(first_of(out)))
        tiny("BERT")(**given)
        hook.remove()
    assert views[0].values is not None
    again = run_again(views[0], example=0, values=views[0].values[:1])
    torch.testing.assert_close(again[0], kept[0][0], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ["MPNet", "DeBERTa v2"])
def test_families_off_the_registry_are_refused(name: str) -> None:
    views, _ = families_layers(name)
    with pytest.raises(ModelError, match="cannot be run again"):
        run_again(views[0], example=0, values=views[0].values[:1])


@pytest.mark.parametrize("name", [n for n, f in FAMILIES.items() if f.post_norm])
def test_the_norm_that_closes_a_layer_gives_what_the_next_is_given(name: str) -> None:
    given, _ = inputs(name)
    closed: list[torch.Tensor] = []
    views: list[LayerView] = []
    stack = "encoder" if "encoder" in FAMILIES[name].stacks else "decoder"
    with torch.no_grad(), Instrument(tiny(name), observers=[views.append], stacks=[stack]) as seen:
        norms = {s.final_norm: None for s in seen.sites if s.stack == stack}
        hooks = [n.register_forward_hook(lambda _m, _a, out: closed.append(out)) for n in norms]
        tiny(name)(**given)
    for hook in hooks:
        hook.remove()
    assert len(closed) == len(views) > 1
    for after, following in zip(closed, views[1:], strict=False):
        residual = following.residual
        assert residual is not None
        torch.testing.assert_close(after.reshape(residual.shape), residual, atol=0, rtol=0)
