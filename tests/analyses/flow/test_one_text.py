"""Does `hs.flow` say where the representations of a text come from?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import BatchEncoding

import headscope as hs
from headscope.analyses.flow import METHODS
from headscope.analyses.flow.measure_one_text import max_flow
from headscope.errors import InputError, ModelError
from headscope.model.model import Model
from model.families.tiny import tiny
from model.families.tokenizers_made import wordpiece
from reference import extraction
from reference import flow as reference

CAT = "The cat sat on the mat, unbelievably."
TINY = "the cat . a b , the cats"


def model_of(name: str) -> Model:
    return Model(tiny(name), wordpiece(), name, "", "")


@pytest.fixture(scope="module")
def in_float64(demo: Model) -> tuple[BatchEncoding, extraction.Blocks, reference.Closing]:
    """Two sentences, and what the reference reads of them."""
    given = demo.tokenizer(CAT, "It was tired.")
    network = extraction.float64_copy(demo.network)
    blocks = extraction.bert_blocks(network, given.input_ids, given.token_type_ids)
    return given, blocks, reference.bert_closing(network, given.input_ids, given.token_type_ids)


@pytest.mark.parametrize("method", METHODS)
def test_a_text_flows_as_in_the_reference(demo: Model, in_float64, method: str) -> None:
    found = hs.flow(demo, CAT, "It was tired.", method=method)
    given, blocks, closing = in_float64
    expected = reference.rollout(reference.layer_matrices(blocks, closing, method))
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-4)
    assert found.query_token.values.tolist() == given.tokens() == found.key_token.values.tolist()
    assert found.dims == ("layer", "query", "key")
    assert found.name == method


def test_a_real_model_of_twelve_layers(shared: Path) -> None:
    model = hs.load(shared / "models/e5-small")
    for method in METHODS:
        found = hs.flow(model, CAT, method=method)
        np.testing.assert_allclose(found.sum("key"), 1, rtol=0, atol=1e-5)
        assert (found >= 0).all()
    with torch.no_grad():
        given = model.tokenizer(CAT, return_tensors="pt")
        maps = model.network(**given, output_attentions=True).attentions
    expected = np.eye(len(found.key))
    for layer in maps:
        expected = (layer[0].mean(0).numpy() / 2 + np.eye(len(expected)) / 2) @ expected
    np.testing.assert_allclose(hs.flow(model, CAT)[-1], expected, rtol=0, atol=1e-5)


def test_layers_are_the_factors_of_their_product(demo: Model) -> None:
    single = hs.flow(demo, CAT, method="globenc", paths="none").values
    product = hs.flow(demo, CAT, method="globenc").values
    np.testing.assert_allclose(single[1] @ single[0], product[1], atol=1e-12)
    np.testing.assert_array_equal(single[0], product[0])


def test_the_maximum_flow_is_of_the_last_layer_unless_others_are_asked_for(demo: Model) -> None:
    layers = hs.flow(demo, CAT, paths="none").values
    found = hs.flow(demo, CAT, paths="max_flow")
    assert found.layer.values.tolist() == [5]
    np.testing.assert_array_equal(found[0], max_flow(layers))
    second = hs.flow(demo, CAT, paths="max_flow", layers=[1])
    np.testing.assert_array_equal(second[0], max_flow(layers[:2]))
    assert found.attrs["units"] == "1"


def test_decoders_take_nothing_from_what_comes_later() -> None:
    for method in ("rollout", "weighted_norm_residual", "alti", "value_zeroing"):
        found = hs.flow(model_of("Llama"), TINY, method=method).values
        assert not np.triu(found, 1).any()
        np.testing.assert_allclose(found[:, 0, 0], 1, rtol=1e-6)


def test_of_an_encoder_decoder_the_encoder_is_followed() -> None:
    found = hs.flow(model_of("BART"), TINY, method="globenc")
    assert found.sizes["layer"] == 2
    np.testing.assert_allclose(found.sum("key"), 1, rtol=1e-5)


def test_a_method_without_a_meaning_says_why() -> None:
    with pytest.raises(ModelError, match="globenc is not there for LlamaAttention: its"):
        hs.flow(model_of("Llama"), TINY, method="globenc")
    with pytest.raises(ModelError, match=r"alti is not there .* does not show its residual"):
        hs.flow(model_of("Gemma2"), TINY, method="alti")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"method": "rolout"}, "found 'rolout'; wanted methods among"),
        ({"paths": "shortest"}, "paths is 'shortest'; wanted one of product"),
        ({"layers": [6]}, "found the layer 6; wanted 0 to 5"),
        ({"text": " "}, "found an empty text"),
    ],
)
def test_what_cannot_be_asked_is_refused(demo: Model, given: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        hs.flow(demo, **{"text": CAT, **given})


def test_the_model_is_left_as_it_was() -> None:
    model = model_of("BERT")
    model.network.train()
    hs.flow(model, TINY, method="value_zeroing")
    assert all(module.training for module in model.network.modules())
    model.network.eval()
