"""The families of wired networks: their configurations, and where their weights stand."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
import transformers as T
from transformers import PreTrainedModel

from headscope.core.accumulators import Float64
from headscope.wired.features import LETTERS
from headscope.wired.reach import rope_rate
from headscope.wired.stream import Stream

FAMILIES = ("bert", "gpt2", "llama", "t5")
ABSOLUTE = ("bert", "gpt2")  # with an embedding of positions
NEURONS = len(LETTERS)  # of the feed-forward layers, which write nothing, or which letter it is
T5_NEAR = 32  # offsets that T5's table tells apart on either side
State = dict[str, torch.Tensor]


@dataclass(frozen=True)
class WiredShape:
    """What a network is made of.

    size     numbers of a head
    grouped  query heads that share keys and values
    places   of an absolute position embedding; 0 for none
    speaks   with a language-model head
    """

    family: str
    layers: int
    heads: int
    size: int
    grouped: int = 1
    places: int = 0
    speaks: bool = False


def blank_network(shape: WiredShape, stream: Stream) -> PreTrainedModel:
    """A network whose embeddings and norms are in place, and whose heads write nothing yet."""
    network: Any = _made(shape, len(stream.tokens), len(stream.directions))
    state = network.state_dict()
    for name, tensor in state.items():
        is_norm = tensor.ndim == 1 and not name.endswith("bias")
        tensor.fill_(stream.scale if is_norm else 0.0)
    tables = {
        "word_embeddings.weight": stream.tokens,
        "wte.weight": stream.tokens,
        "embed_tokens.weight": stream.tokens,
        "shared.weight": stream.tokens,
        "position_embeddings.weight": stream.places,
        "wpe.weight": stream.places,
        "token_type_embeddings.weight": stream.segments,
    }
    for name, tensor in state.items():
        for last, table in tables.items():
            if name.endswith(last):
                tensor.copy_(as_tensor(stream.embedded(table)))
        if name.endswith("transform.dense.weight"):
            tensor.copy_(torch.eye(len(tensor)))
        if name.endswith(("lm_head.weight", "predictions.decoder.weight")):
            speaks = stream.directions[:, stream.spans["spoken"]]
            tensor.copy_(as_tensor(stream.tokens[:, stream.spans["word"]] @ speaks.T))
    network.load_state_dict(state)
    network.train(False)
    return network  # type: ignore[no-any-return]


def _made(shape: WiredShape, vocabulary: int, width: int) -> Any:
    family, layers, heads, size = shape.family, shape.layers, shape.heads, shape.size
    if family == "bert":
        config: Any = T.BertConfig(
            vocab_size=vocabulary,
            hidden_size=width,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            intermediate_size=NEURONS,
            max_position_embeddings=shape.places,
            hidden_act="linear" if shape.speaks else "gelu",  # its head has an activation, too
            tie_word_embeddings=False,
        )
        bare = partial(T.BertModel, add_pooling_layer=False)
        network: Any = (T.BertForMaskedLM if shape.speaks else bare)(config)
    elif family == "gpt2":
        config = T.GPT2Config(
            vocab_size=vocabulary,
            n_embd=width,
            n_layer=layers,
            n_head=heads,
            n_inner=NEURONS,
            n_positions=shape.places,
            tie_word_embeddings=False,
            bos_token_id=2,
            eos_token_id=3,
        )
        network = (T.GPT2LMHeadModel if shape.speaks else T.GPT2Model)(config)
    elif family == "llama":
        config = T.LlamaConfig(
            vocab_size=vocabulary,
            hidden_size=width,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            num_key_value_heads=heads // shape.grouped,
            head_dim=size,
            intermediate_size=NEURONS,
            max_position_embeddings=512,
            tie_word_embeddings=False,
            rope_parameters={"rope_type": "default", "rope_theta": rope_rate(size)},
            bos_token_id=2,
            eos_token_id=3,
            pad_token_id=0,
        )
        network = (T.LlamaForCausalLM if shape.speaks else T.LlamaModel)(config)
    else:
        config = T.T5Config(
            vocab_size=vocabulary,
            d_model=width,
            d_kv=size,
            d_ff=NEURONS,
            num_layers=layers,
            num_heads=heads,
            relative_attention_num_buckets=4 * T5_NEAR,
            relative_attention_max_distance=8 * T5_NEAR,
            dropout_rate=0.0,
        )
        network = T.T5EncoderModel(config)
    return network


NAMES = {
    "bert": {
        "query": "attention.self.query.weight",
        "key": "attention.self.key.weight",
        "value": "attention.self.value.weight",
        "output": "attention.output.dense.weight",
    },
    "gpt2": {
        "query": "attn.c_attn.weight#0",
        "key": "attn.c_attn.weight#1",
        "value": "attn.c_attn.weight#2",
        "output": "attn.c_proj.weight",
    },
    "llama": {
        name: f"self_attn.{letter}_proj.weight"
        for name, letter in (("query", "q"), ("key", "k"), ("value", "v"), ("output", "o"))
    },
    "t5": {
        name: f"layer.0.SelfAttention.{letter}.weight"
        for name, letter in (("query", "q"), ("key", "k"), ("value", "v"), ("output", "o"))
    },
}


def columns_of(state: State, index: int, end: str, *, out: bool = False) -> torch.Tensor:
    """[width, number of a head] a view of a matrix of a layer."""
    last, _, part = end.partition("#")
    tensor = end_of(state, f".{index}.{last}")
    matrix = tensor if last.startswith("attn.") else tensor.T  # GPT-2 has them turned
    if part:
        width = len(tensor)
        matrix = matrix[:, int(part) * width : (int(part) + 1) * width]
    return matrix.T if out else matrix


def end_of(state: State, end: str) -> torch.Tensor:
    """The first tensor whose name ends so."""
    return next(tensor for name, tensor in state.items() if name.endswith(end))


def as_tensor(values: Float64) -> torch.Tensor:
    """In single precision."""
    return torch.from_numpy(np.ascontiguousarray(values)).float()
