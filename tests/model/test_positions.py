"""The longest input of a model, and what sets it."""

import json

import pytest
import torch
from transformers import LlamaConfig, LlamaModel, Phi3Config, Phi3Model

import headscope as hs
from headscope.errors import CorpusError, InputError
from headscope.model.request import limit_of, refuse_length
from model.families.tokenizers_made import wordpiece

SIZE = {
    "vocab_size": 13,
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "pad_token_id": 0,
}
LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32}
LONG = {"short_factor": [1.0] * 4, "long_factor": [2.0] * 4}
# What a configuration states, its scaling, the limit that transformers' documentation gives it,
# and what is said of it.
CONFIGS = {
    "none": (256, None, 256, "without scaling of rotary positions: rope_parameters"),
    "linear": (64, {"rope_type": "linear", "factor": 4.0}, 256, "linear scaling .*, 4 x 64"),
    "dynamic": (64, {"rope_type": "dynamic", "factor": 2.5}, 160, "dynamic scaling .*, 2.5 x 64"),
    "yarn": (64, {"rope_type": "yarn", "factor": 4.0}, 256, "yarn scaling .*, 4 x 64"),
    "yarn that is stated whole": (
        256, {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}, 256,
        "max_position_embeddings .* with yarn scaling of rotary positions, from 64",
    ),
    "llama3": (128, {"rope_type": "llama3", "factor": 8.0, **LLAMA3}, 128, "llama3 .*, from 32"),
    "longrope": (
        128, {"rope_type": "longrope", "original_max_position_embeddings": 32, **LONG}, 128,
        "longrope .*, from 32",
    ),
}  # fmt: skip


def made(name):
    stated, scaling, _, _ = CONFIGS[name]
    kind, shape = (Phi3Config, Phi3Model) if name == "longrope" else (LlamaConfig, LlamaModel)
    config = kind(**SIZE, max_position_embeddings=stated, rope_scaling=scaling)
    if name == "longrope":
        config.original_max_position_embeddings = 32
    tokenizer = wordpiece()
    tokenizer.model_max_length = int(1e30)
    torch.manual_seed(0)
    return hs.load(shape(config).eval(), tokenizer=tokenizer)


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_limit_is_what_scaling_of_rotary_positions_gives(name, tmp_path):
    """Of a loaded network and of the files alone; that many tokens are read, one more is not."""
    _, _, limit, said = CONFIGS[name]
    model = made(name)
    assert model.limit == limit
    text = "the cat sat " * limit
    asked = {"analyses": ("entropy",), "control": "none", "long": "error"}
    run = hs.atlas(model, [" ".join(["cat"] * (limit - 2))], max_length=limit, **asked)
    assert run.manifest["counts"]["tokens"] == limit
    told = rf"tokens; wanted .* to {limit} .what the model takes: .*{said}"
    with pytest.raises(InputError, match=told):
        hs.atlas(model, [text], max_length=limit + 1, **asked)
    if limit <= 512:
        with pytest.raises(CorpusError, match=rf"this model takes {limit}: .*{said}"):
            hs.atlas(model, [text], **asked)
    model.network.config.save_pretrained(tmp_path)
    refuse_length(str(tmp_path), limit)
    with pytest.raises(InputError, match=rf"up to {limit} .what the model takes: .*{said}"):
        refuse_length(str(tmp_path), limit + 1)


def test_a_tokenizer_and_learned_positions_limit_too(tmp_path):
    rotary = {"max_position_embeddings": 64, "rope_theta": 1e4, "rope_scaling": None}
    assert limit_of(rotary, 48) == (48, "model_max_length of its tokenizer")
    assert limit_of({"max_position_embeddings": 64}, 1e30, learned=62)[:1] == (62,)
    assert limit_of({"max_position_embeddings": 64}, None).source.endswith("of its config")
    assert limit_of({}, None).tokens > 1 << 17
    old = {**rotary, "rope_scaling": {"type": "yarn", "factor": 2.0}}  # as older files have it
    assert limit_of(old, None).tokens == 128
    layers = {"full": {"rope_type": "linear", "factor": 8.0}, "near": {"rope_type": "default"}}
    assert limit_of({**rotary, "rope_parameters": layers}, None).tokens == 64
    (tmp_path / "config.json").write_text(json.dumps({"max_position_embeddings": "many"}))
    refuse_length(str(tmp_path), 10**6)
