"""Is every parameter in the right part, and does each part learn as fast as it is told to?"""

from __future__ import annotations

import pytest
import torch
import transformers as T
from torch import nn
from transformers import AutoModelForSequenceClassification

from headscope.experiments.finetune.optimization import (
    ParameterGroup,
    gradient_norm,
    norm,
    parts_of,
    rates,
    relative_change,
)
from tasks.made import config

SMALL = {"vocab_size": 50, "num_labels": 2, "pad_token_id": 0}
BERT = SMALL | {
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 32,
}
FAMILIES = {
    "Bert": (BERT, 3),
    "Roberta": (BERT, 3),
    "Electra": (BERT | {"embedding_size": 8}, 3),
    "DistilBert": (SMALL | {"dim": 16, "n_layers": 3, "n_heads": 2, "hidden_dim": 16}, 3),
    "Albert": (BERT | {"embedding_size": 8}, 1),  # one layer, run three times
    "DebertaV2": (BERT, 3),
    "ModernBert": (BERT, 3),
    "GPT2": (SMALL | {"n_embd": 16, "n_layer": 3, "n_head": 2, "n_positions": 32}, 3),
    "Llama": (BERT | {"num_key_value_heads": 2}, 3),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_parameter_of_a_family_is_in_one_part(family):
    options, layers = FAMILIES[family]
    network = AutoModelForSequenceClassification.from_config(
        getattr(T, f"{family}Config")(**options)
    )
    parts = parts_of(network)
    names = [name for parameters in parts.values() for name in parameters]
    assert sorted(names) == sorted(name for name, _ in network.named_parameters())
    assert [part.layer for part in parts if part.layer is not None] == list(range(layers))
    base = getattr(network, network.base_model_prefix)
    words = base.get_input_embeddings().weight
    assert any(p is words for p in parts[ParameterGroup("embeddings")].values())
    inside = {id(p) for p in base.parameters()}
    head = parts[ParameterGroup("head")]
    assert {id(p) for p in network.parameters()} - inside <= {id(p) for p in head.values()}
    assert next(iter(parts)) == ParameterGroup("embeddings")
    assert list(parts)[-1] == ParameterGroup("head")


def test_berts_parts_are_the_ones_its_names_say():
    network = AutoModelForSequenceClassification.from_config(config())
    parts = parts_of(network)
    for part, parameters in parts.items():
        for name in parameters:
            wanted = {
                "embeddings": "bert.embeddings.",
                "layer": f"bert.encoder.layer.{part.layer}.",
                "head": ("bert.pooler.", "classifier."),
            }[part.name]
            assert name.startswith(wanted)
    names = [(part.name, part.layer) for part in parts]
    assert names == [("embeddings", None), ("layer", 0), ("layer", 1), ("head", None)]


def test_each_layer_learns_more_slowly_than_the_one_above():
    parts = [
        ParameterGroup("embeddings"),
        *(ParameterGroup("layer", n) for n in range(3)),
        ParameterGroup("rest"),
        ParameterGroup("head"),
    ]
    found = rates(dict.fromkeys(parts), rate=8.0, decay=0.5)
    assert [found[part] for part in parts] == [0.5, 1.0, 2.0, 4.0, 4.0, 8.0]
    assert set(rates(dict.fromkeys(parts), rate=8.0, decay=1.0).values()) == {8.0}


def test_norms_are_those_of_all_numbers_together():
    a, b = nn.Parameter(torch.tensor([3.0, 0.0])), nn.Parameter(torch.tensor([[4.0], [12.0]]))
    unused = nn.Parameter(torch.ones(5))
    (a * 2).sum().backward()
    (b * torch.tensor([[1.0], [-1.0]])).sum().backward()
    parameters = {"a": a, "b": b, "unused": unused}
    assert norm({"a": a, "b": b}) == pytest.approx(13.0)
    assert gradient_norm(parameters) == pytest.approx((4 + 4 + 1 + 1) ** 0.5)
    assert gradient_norm({"unused": unused}) == 0
    before = {"a": torch.tensor([0.0, 4.0]), "b": torch.tensor([[4.0], [9.0]])}
    after = {"a": a, "b": b}
    assert relative_change(before, after) == pytest.approx((9 + 16 + 9) ** 0.5 / 113**0.5)
