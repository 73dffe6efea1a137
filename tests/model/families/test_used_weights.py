"""Are norms right, or refused, where a linear layer uses another weight than it stores?"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
import torch
from torch import nn
from transformers import PreTrainedModel

import headscope as hs
from headscope.errors import InputError
from headscope.model.linears import used_matrix
from headscope.run.control import shuffled
from model.families.tiny import inputs, make, seen_by, tiny
from model.families.tokenizers_made import wordpiece


class Scaled(nn.Linear):
    """Stores a quarter of what it uses: norms were a quarter of the truth (found by hand)."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(x, self.weight * 4, self.bias)


class Bytes(nn.Linear):
    """Stores whole numbers of 8 bits, and their scale."""

    scale: torch.Tensor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(x, self.weight * self.scale, self.bias)


class Packed(nn.Linear):
    """Stores two numbers in each byte, as 4-bit layers do: of another shape than the matrix."""

    whole: torch.Tensor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(x, self.whole, self.bias)


class Rounding(nn.Linear):
    """Rounds its inputs coarsely: no linear map."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(x.sign(), self.weight, self.bias)


def scaled(linear: nn.Linear) -> nn.Linear:
    new = Scaled(linear.in_features, linear.out_features, bias=linear.bias is not None)
    new.weight.data = linear.weight.data / 4
    return new


def in_bytes(linear: nn.Linear) -> nn.Linear:
    new = Bytes(linear.in_features, linear.out_features, bias=linear.bias is not None)
    new.scale = linear.weight.data.abs().max() / 127
    whole = (linear.weight.data / new.scale).round().to(torch.int8)
    new.weight = nn.Parameter(whole, requires_grad=False)
    return new


def packed(linear: nn.Linear) -> nn.Linear:
    new = Packed(linear.in_features, linear.out_features, bias=linear.bias is not None)
    new.whole = linear.weight.data
    half = torch.zeros(linear.weight.numel() // 2, 1, dtype=torch.int8)
    new.weight = nn.Parameter(half, requires_grad=False)
    return new


def rounding(linear: nn.Linear) -> nn.Linear:
    new = Rounding(linear.in_features, linear.out_features, bias=linear.bias is not None)
    new.weight.data = linear.weight.data
    return new


class Narrow(nn.Linear):
    """Stores floats of 8 bits, and their scale, as fp8 layers do."""

    scale: torch.Tensor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(x, self.weight.to(x.dtype) * self.scale, self.bias)


def narrow(linear: nn.Linear) -> nn.Linear:
    new = Narrow(linear.in_features, linear.out_features, bias=linear.bias is not None)
    new.scale = linear.weight.data.abs().max() / torch.finfo(torch.float8_e4m3fn).max
    rounded = (linear.weight.data / new.scale).to(torch.float8_e4m3fn)
    new.weight = nn.Parameter(rounded, requires_grad=False)
    return new


def with_layers(name: str, kind: Callable[[nn.Linear], nn.Linear]) -> PreTrainedModel:
    """A tiny model with all its linear layers replaced."""
    network = make(name)()
    for module in list(network.modules()):
        for child, linear in list(module.named_children()):
            if type(linear) is nn.Linear:
                new = kind(linear)
                if linear.bias is not None:
                    new.bias.data = linear.bias.data
                setattr(module, child, new)
    return network


@pytest.mark.parametrize("name", ["BERT", "Llama", "T5", "DeBERTa v2"])
@pytest.mark.parametrize("kind", [scaled, packed])
def test_norms_are_of_the_weight_that_is_used(
    name: str, kind: Callable[[nn.Linear], nn.Linear]
) -> None:
    given, _ = inputs(name)
    views, output = seen_by(with_layers(name, kind), given)
    plain, expected = seen_by(tiny(name), given)
    torch.testing.assert_close(output, expected, atol=1e-4, rtol=1e-4)
    for view, one in zip(views, plain, strict=True):
        torch.testing.assert_close(view.value_norm, one.value_norm, atol=1e-4, rtol=1e-3)
        mixed = view.attention @ view.values
        whole = torch.einsum("bhqd,hdm->bqm", mixed, view.projection.weight)
        bias = 0 if view.projection.bias is None else view.projection.bias
        torch.testing.assert_close(whole + bias, view.output, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize(("kind", "near"), [(in_bytes, 1.1), (narrow, 1.3)])
def test_numbers_of_8_bits_are_read_with_their_scale(
    kind: Callable[[nn.Linear], nn.Linear], near: float
) -> None:
    given, _ = inputs("BERT")
    network = with_layers("BERT", kind)
    for view, one in zip(seen_by(network, given)[0], seen_by(tiny("BERT"), given)[0], strict=True):
        ratio = view.value_norm / one.value_norm
        assert 1 / near < float(ratio.min()) <= float(ratio.max()) < near
        (weight, bias), dense = used_matrix(view.site.projection), view.site.projection
        torch.testing.assert_close(weight.T, dense.weight.float() * dense.scale)
        torch.testing.assert_close(bias, dense.bias)
    assert hs.load(network, tokenizer=wordpiece()).identity_fault == ""


def test_layers_that_torch_has_quantised_are_read_by_what_they_do() -> None:
    """Its weights are packed, no tensor; its inputs are rounded to 8 bits for the whole batch."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch will move them to another package
        kinds = {nn.Linear}
        network = torch.ao.quantization.quantize_dynamic(make("BERT")(), kinds, dtype=torch.qint8)
        model = hs.load(network, tokenizer=wordpiece())
        views, _ = seen_by(network, inputs("BERT")[0])
    assert "projection" in model.allows
    for view in views:
        packed_weight = view.site.projection.weight().dequantize()  # [model, head·dim]
        own = view.projection.weight.flatten(0, 1).T
        torch.testing.assert_close(own, packed_weight, atol=1e-5, rtol=1e-2)
    dealt = shuffled(network).encoder.layer[0].attention.output.dense.weight
    first = network.encoder.layer[0].attention.output.dense.weight().dequantize()
    assert not torch.equal(dealt, first)
    torch.testing.assert_close(
        dealt.flatten().sort()[0], first.flatten().sort()[0], atol=1e-3, rtol=0
    )


def test_a_stored_weight_that_is_not_the_one_used_is_found_on_loading() -> None:
    """Its norms were 0.25 of the truth, and nothing said so."""
    model, plain = (
        hs.load(network, tokenizer=wordpiece())
        for network in (with_layers("BERT", scaled), make("BERT")())
    )
    assert model.identity_fault == ""
    corpus = hs.corpus.MemoryCorpus(["the cat sat.", "a b, a."])
    one, two = (
        hs.atlas(each, corpus, control="none", analyses=("norms",))["norms"]
        for each in (model, plain)
    )
    assert one.sizes == two.sizes
    for name in one:
        torch.testing.assert_close(
            torch.from_numpy(one[name].values),
            torch.from_numpy(two[name].values),
            atol=1e-4,
            rtol=1e-3,
            equal_nan=True,
        )


def test_norms_are_refused_by_name_where_something_changes_what_the_heads_add_up_to() -> None:
    network = make("BERT")()
    second = network.encoder.layer[1].attention.output.dense
    second.register_forward_hook(lambda _module, _given, output: output * 4)  # an adapter, say
    model = hs.load(network, tokenizer=wordpiece())
    told = (
        r"the heads of encoder.layer.1.attention.self do not add up to its output: off by 75% of it"
    )
    assert model.identity_fault == told
    assert "projection" not in model.allows
    corpus = hs.corpus.MemoryCorpus(["the cat sat.", "a b, a."])
    with pytest.raises(InputError, match=f"norms needs projection, .*: {told}; leave it"):
        hs.atlas(model, corpus, control="none", analyses=("norms",))
    views, _ = seen_by(network, inputs("BERT")[0])
    assert ["projection" in view.offers for view in views] == [True, False]
    assert "norms" not in hs.atlas(model, corpus, control="none")


def test_a_layer_that_is_not_linear_has_no_norms_from_loading_on() -> None:
    model = hs.load(with_layers("BERT", rounding), tokenizer=wordpiece())
    assert "projection" not in model.allows
    assert "values" in model.allows
    corpus = hs.corpus.MemoryCorpus(["the cat sat.", "a b, a."])
    with pytest.raises(InputError, match="norms needs projection, which cannot be read from Bert"):
        hs.atlas(model, corpus, settings=hs.Settings(analyses=("norms",)))


def test_the_parts_of_queries_are_of_the_weights_that_are_used() -> None:
    given, _ = inputs("BERT")
    for kind in (scaled, packed):
        (first, _), _ = seen_by(with_layers("BERT", kind), given)
        parts = first.site.embeddings
        assert parts is not None
        queries, _ = parts.queries_and_keys(
            given["input_ids"], torch.zeros_like(given["input_ids"]), heads=4
        )
        whole = queries.sum(2).transpose(1, 2)  # [example, head, token, dim]
        torch.testing.assert_close(whole, first.queries, atol=1e-3, rtol=1e-3)
    (first, _), _ = seen_by(with_layers("BERT", rounding), given)
    assert first.site.embeddings is None


def test_a_plain_layer_is_not_asked() -> None:
    linear = nn.Linear(3, 2)
    linear.register_forward_hook(lambda *_: pytest.fail("it was run"))
    found = used_matrix(linear)
    assert found is not None
    assert found[0].data_ptr() == linear.weight.data_ptr()
