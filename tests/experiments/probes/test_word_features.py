"""Are features of a sentence the maps and states that the model itself gives?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from experiments.probes.made import rows, split_of, tiny
from headscope.experiments.probes.trees import sentence_of
from headscope.experiments.probes.word_features import (
    attention_of,
    attention_shape,
    hidden_of,
    hidden_shape,
    randomised,
)
from headscope.model.model import Model


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Model:
    return tiny(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def sentences(model, tmp_path: Path):
    text = rows(["the", "cats", "a"], [2, 0, 2]) + rows(["b"], [0])
    text += rows(["cats"] * 4, [0, 1, 1, 1])
    (tmp_path / "t.conllu").write_text(text, "utf-8")
    return split_of(model, tmp_path / "t.conllu").sentences


def stock(model, sentence):
    ids = torch.from_numpy(sentence.example.input_ids)[None]
    with torch.no_grad():
        return model.network(ids, output_attentions=True, output_hidden_states=True)


def test_maps_are_summed_to_words_and_averaged_from_them(model, sentences) -> None:
    found = attention_of(model, "mean")(sentences)
    assert [maps.shape for maps in found] == [attention_shape(s, model) for s in sentences]
    token = stock(model, sentences[0]).attentions[1][0, 2].double().numpy()
    # [CLS] the cat ##s a [SEP]: places 2 and 3 are one word
    to = np.stack([token[:, 0], token[:, 1], token[:, 2] + token[:, 3], *token[:, 4:].T], -1)
    whole = np.stack([to[0], to[1], (to[2] + to[3]) / 2, to[4], to[5]])
    np.testing.assert_allclose(found[0][:, :, 1 * 3 + 2], whole, atol=1e-3)
    for maps in found:
        np.testing.assert_allclose(maps.astype(float).sum(1), 1, atol=5e-3)


def test_a_sentence_gives_the_same_alone_and_among_others(model, sentences) -> None:
    for extract in (attention_of(model, "mean"), hidden_of(model)):
        for together, sentence in zip(extract(sentences), sentences, strict=True):
            np.testing.assert_allclose(together, extract([sentence])[0], atol=2e-3)


def test_states_of_a_word_are_the_mean_of_its_tokens(model, sentences) -> None:
    found = hidden_of(model)(sentences)
    assert [states.shape for states in found] == [hidden_shape(s, model) for s in sentences]
    token = torch.stack(stock(model, sentences[0]).hidden_states)[:, 0].numpy()
    wanted = np.stack([token[:, 1], token[:, 2:4].mean(1), token[:, 4]], 1)
    np.testing.assert_allclose(found[0], wanted, atol=5e-3)


def test_absent_special_tokens_have_no_attention(model, sentences) -> None:
    """As a decoder's tokenizer gives them: words only."""
    example = sentences[0].example
    inner = slice(1, -1)
    bare = replace(
        example,
        input_ids=example.input_ids[inner],
        segment_ids=example.segment_ids[inner],
        special=example.special[inner],
        word_index=example.word_index[inner],
    )
    sentence = sentence_of(bare)
    (maps,) = attention_of(model, "mean")([sentence])
    assert maps.shape[:2] == (5, 5)
    for edge in (maps[0], maps[-1], maps[:, 0], maps[:, -1]):
        assert not edge.any()
    np.testing.assert_allclose(maps[1:-1, 1:-1].astype(float).sum(1), 1, atol=5e-3)


def test_the_random_model_keeps_embeddings_and_nothing_else(model) -> None:
    fresh = randomised(model, seed=0)
    again = randomised(model, seed=0)
    assert fresh.sha256 == again.sha256 != randomised(model, seed=1).sha256 != model.sha256
    before, after = model.network.state_dict(), fresh.network.state_dict()
    for name, tensor in before.items():
        kept = torch.equal(tensor, after[name])
        table = "embeddings" in name and "LayerNorm" not in name
        assert kept == table or not tensor.is_floating_point(), name
    assert not fresh.network.training
