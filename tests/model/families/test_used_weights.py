"""Are norms right, or refused, where a linear layer uses another weight than it stores?"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from transformers import PreTrainedModel

import headscope as hs
from headscope.errors import InputError
from headscope.model.linears import used_matrix
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


def test_whole_numbers_of_8_bits_are_read_with_their_scale() -> None:
    given, _ = inputs("BERT")
    for view, one in zip(
        seen_by(with_layers("BERT", in_bytes), given)[0], seen_by(tiny("BERT"), given)[0],
        strict=True,
    ):  # fmt: skip
        ratio = view.value_norm / one.value_norm
        assert 0.9 < float(ratio.min()) <= float(ratio.max()) < 1.1


def test_a_layer_that_is_not_linear_has_no_norms_from_loading_on() -> None:
    model = hs.load(with_layers("BERT", rounding), tokenizer=wordpiece())
    assert "projection" not in model.allows
    assert "values" in model.allows
    corpus = hs.MemoryCorpus(["the cat sat.", "a b, a."])
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
