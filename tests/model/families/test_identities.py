"""Do values, projections, residuals and norms of every family add up to what the model computes?"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from transformers import PreTrainedModel

from headscope.errors import ModelError
from headscope.model.instrument import Instrument
from headscope.model.layer import LayerView
from model.families.tiny import FAMILIES, inputs, make, seen_by, tiny

every_family = pytest.mark.parametrize("name", FAMILIES)


def layers(network: PreTrainedModel, given: dict[str, torch.Tensor]) -> list[LayerView]:
    return seen_by(network, given)[0]


def transformed(view: LayerView) -> torch.Tensor:
    """[example, head, key, model] f_h(x_j) in full, float64."""
    assert view.values is not None
    weight = view.projection.weight.double()
    return torch.einsum("bhkd,hdm->bhkm", view.values.double(), weight)


@every_family
def test_weighted_transformed_vectors_add_up_to_the_output(name: str) -> None:
    for view in layers(tiny(name), inputs(name)[0]):
        total = torch.einsum("bhqk,bhkm->bqm", view.attention.double(), transformed(view))
        if view.projection.bias is not None:
            total = total + view.projection.bias
        assert view.output is not None
        torch.testing.assert_close(total.float(), view.output, atol=1e-5, rtol=1e-5)


@every_family
def test_norms_by_the_factor_are_the_norms_in_full(name: str) -> None:
    for view in layers(tiny(name), inputs(name)[0]):
        full = transformed(view).norm(dim=-1).float()
        torch.testing.assert_close(view.value_norm, full, atol=1e-5, rtol=1e-5)


@every_family
def test_gram_holds_the_inner_products_in_full(name: str) -> None:
    for view in layers(tiny(name), inputs(name)[0]):
        vectors = transformed(view)
        full = torch.einsum("bgkm,bhkm->bghk", vectors, vectors)
        lower = torch.ones(full.shape[1:3]).tril()[None, :, :, None]
        size = float(full.abs().max())
        torch.testing.assert_close(view.gram, (full * lower).float(), atol=1e-6 * size, rtol=1e-5)


@every_family
def test_projecting_all_mixed_values_is_the_output(name: str) -> None:
    for view in layers(tiny(name), inputs(name)[0]):
        mixed = view.attention @ view.values
        torch.testing.assert_close(view.project(mixed), view.output, atol=1e-5, rtol=1e-5)


def inputs_of_norms(network: PreTrainedModel, given: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """What every norm, or module named like one, was given in one pass."""
    found: list[torch.Tensor] = []

    def keep(_module: nn.Module, args: tuple[Any, ...]) -> None:
        found.append(args[0].detach())

    hooks = [
        module.register_forward_pre_hook(keep)
        for path, module in network.named_modules()
        if "norm" in path.lower() or ".ln" in path
    ]
    with torch.no_grad():
        network(**given)
    for hook in hooks:
        hook.remove()
    return found


def nearest(wanted: torch.Tensor, arrived: list[torch.Tensor]) -> float:
    """Distance to the nearest of those that arrived (OPT flattens examples and tokens)."""
    return min(
        float((given.reshape(wanted.shape) - wanted).abs().max())
        for given in arrived
        if given.numel() == wanted.numel()
    )


@every_family
def test_residual_and_output_are_what_the_next_norm_is_given(name: str) -> None:
    """Before the next norm (post-norm families: the block's own) the two have been added."""
    network = tiny(name)
    if name == "GPT-NeoX":  # its blocks add attention and MLP at once, unless told otherwise
        network = make(name)(use_parallel_residual=False)
    given, _ = inputs(name)
    arrived = inputs_of_norms(network, given)
    for view in layers(network, given):
        assert (view.residual is not None) == FAMILIES[name].residual
        if view.residual is not None:
            assert nearest(view.residual + view.output, arrived) < 1e-5


@every_family
def test_the_norm_after_attention_is_the_blocks_own(name: str) -> None:
    network = tiny(name)
    given, _ = inputs(name)
    normed: list[torch.Tensor] = []
    views: list[LayerView] = []
    with torch.no_grad(), Instrument(network, observers=[views.append]) as instrument:
        norms = {site.norm for site in instrument.sites if site.norm is not None}
        hooks = [n.register_forward_hook(lambda _m, _a, out: normed.append(out)) for n in norms]
        network(**given)
    for hook in hooks:
        hook.remove()
    assert len(normed) == (len(views) if FAMILIES[name].post_norm else 0)
    for view, after in zip(views, normed, strict=FAMILIES[name].post_norm):
        assert view.site.post_norm is not None
        total = view.residual + view.output
        centred = total - total.mean(-1, keepdim=True)
        deviation = (centred.square().mean(-1, keepdim=True) + view.site.post_norm.epsilon).sqrt()
        shifted = after - view.site.norm.bias  # type: ignore[union-attr]
        torch.testing.assert_close(
            centred / deviation * view.site.post_norm.scale, shifted, atol=1e-5, rtol=1e-5
        )


@pytest.mark.parametrize("name", ["BERT decoder", "GPT-2"])
def test_cross_attention_of_a_decoder_adds_up_too(name: str) -> None:
    network = make(name)(add_cross_attention=True)
    memory = torch.randn(3, 5, 32, generator=torch.Generator().manual_seed(3))
    given = {**inputs(name)[0], "encoder_hidden_states": memory}
    arrived = inputs_of_norms(network, given)
    for view in layers(network, given):
        assert nearest(view.residual + view.output, arrived) < 1e-5


def test_norms_are_refused_where_something_stands_before_the_projection() -> None:
    network = make("Llama")()
    gate = network.layers[1].self_attn.o_proj.register_forward_pre_hook(lambda _m, a: (a[0] * 2,))
    first, second = layers(network, inputs("Llama")[0])
    gate.remove()
    assert first.value_norm.isfinite().all()
    with pytest.raises(ModelError, match="between the values and its output projection"):
        _ = second.value_norm
