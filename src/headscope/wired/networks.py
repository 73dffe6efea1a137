"""Writes the weights of real transformers so that each head does what it is wired to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import transformers as T
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from headscope.core.accumulators import Float64
from headscope.wired.features import JUNK, PLACE
from headscope.wired.heads import Head, Value
from headscope.wired.language import tokenizer
from headscope.wired.reach import ROPE_WAVES, rope_kernel, rope_rate, wave_kernel
from headscope.wired.stream import Stream, code_width, frequencies, make_stream

FAMILIES = ("bert", "gpt2", "llama", "t5")
T5_NEAR = 32  # offsets that T5's table tells apart on either side
SMALL = 4  # neurons of the feed-forward layers, which write nothing


@dataclass(frozen=True)
class Wired:
    """A network whose heads are known.

    network    of `transformers`, in evaluation mode
    tokenizer  of the made language
    heads      [layer][head] what each was wired to do
    stream     where in the residual stream each feature stands
    """

    network: PreTrainedModel
    tokenizer: PreTrainedTokenizerFast
    heads: tuple[tuple[Head, ...], ...]
    stream: Stream


@dataclass
class _Matrices:
    """Of one head, or of the keys and values of a group, in codes: [code, number of the head]."""

    query: Float64
    key: Float64
    value: Float64
    output: Float64  # [number of the head, code]


def wire(
    family: str, layers: Sequence[Sequence[Head]], *, seed: int = 0, noise: float = 0.0,
    turned: bool = False, overlap: float = 0.0, places: int = 64, grouped: int = 1,
    speaks: bool = False,
) -> Wired:  # fmt: skip
    """Makes a network of these heads.

    family   "bert", "gpt2", "llama" or "t5" (its encoder)
    layers   [layer][head]; as many heads in each layer
    seed     of the codes of words, of the noise and of the directions
    noise    standard deviation of what is added to every weight matrix, as a share of the root
             mean square of its numbers that are not 0
    turned   the stream is turned at random
    overlap  about the cosine of two directions of the stream, which hold different features
    places   of an absolute position embedding: the longest input, of which no head that has a
             `reach` may see more than half on one side
    grouped  query heads that share keys and values; of "llama"
    speaks   with a language-model head, which reads SPOKEN; of decoders
    """
    tokens, heads = tokenizer(family), [one for layer in layers for one in layer]
    vocabulary = tokens.convert_ids_to_tokens(list(range(len(tokens))))
    absolute = places if family in ("bert", "gpt2") else 0
    features = [feature for head in heads for feature in head.features]
    if absolute and any(head.reach for head in heads):
        features.append(PLACE)
    count, codes = len(layers[0]), code_width(features, absolute)
    ranks = [_rank(layer[at : at + grouped], absolute) for layer in layers
             for at in range(0, count, grouped)]  # fmt: skip
    size = max(ranks) + 2 * ROPE_WAVES * (family == "llama")
    if absolute:  # heads together are as wide as the stream
        size = max(size, -(-2 * codes // count))
    size += size % 2
    width = size * count if absolute else -(-2 * codes // (2 * count)) * 2 * count
    stream = make_stream(
        features, vocabulary, width=width, places=absolute, seed=seed, turned=turned,
        overlap=overlap,
    )  # fmt: skip
    network = _network(family, stream, len(layers), count, size, grouped, absolute, speaks)
    state = network.state_dict()
    for index, layer in enumerate(layers):
        for at in range(0, count, grouped):
            group = layer[at : at + grouped]
            made = [_matrices(head, place, group, stream, family, size, absolute)
                    for place, head in enumerate(group)]  # fmt: skip
            _write(state, index, at, size, made, stream, NAMES[family], scaled=family != "t5")
    if family == "t5":
        _t5_reach(state, layers)
    _add_noise(state, noise, seed)
    network.load_state_dict(state)
    return Wired(network.eval(), tokens, tuple(map(tuple, layers)), stream)


def _rank(group: Sequence[Head], places: int) -> int:
    keys = sum(one.key.width for head in group for one in head.matches)
    keys += max(2 * frequencies(places) if places and head.reach else 0 for head in group)
    values = sum(sum(one.width for one in head.value.reads) for head in group)
    return max(keys, values)


def _matrices(
    head: Head, place: int, group: Sequence[Head], stream: Stream, family: str, size: int,
    places: int,
) -> _Matrices:  # fmt: skip
    """What one head of a group asks for, offers, takes and writes; others of the group have their
    own numbers of keys and values.
    """
    made = _Matrices(*(np.zeros((stream.codes, size)) for _ in range(3)),
                     np.zeros((size, stream.codes)))  # fmt: skip
    order = _content_numbers(family, size)
    start = sum(one.key.width for other in group[:place] for one in other.matches)
    for one in head.matches:
        span = order[start : start + one.key.width]
        made.query[:, span] += one.weight * stream.select(one.query)
        made.key[:, span] += stream.select(one.key)
        start += one.key.width
    if places and head.reach:
        keys = sum(one.key.width for other in group for one in other.matches)
        span = order[keys : keys + 2 * frequencies(places)]
        select = stream.select(PLACE)
        made.query[:, span] += select @ wave_kernel(head.reach, places)
        made.key[:, span] += select
    if family == "llama":
        _rope_reach(made, head, group, stream, size)
    _value(made, head.value, sum(_read(other) for other in group[:place]), stream)
    return made


def _read(head: Head) -> int:
    return sum(one.width for one in head.value.reads)


def _value(made: _Matrices, value: Value, start: int, stream: Stream) -> None:
    into = stream.select(value.writes)  # [code, number]
    at = 0
    for one in value.reads:
        span = slice(start, start + one.width)
        made.value[:, span] = stream.select(one)
        if value.turns is None:
            made.output[span] = value.gain * into[:, at : at + one.width].T
        else:
            made.output[span] = value.gain * value.turns(stream.seed) @ into.T
        start += one.width
        at += one.width if value.writes.name == JUNK.name else 0


def _content_numbers(family: str, size: int) -> list[int]:
    """Which numbers of a head hold matches: in Llama, those that rotate least."""
    if family != "llama":
        return list(range(size))
    half = size // 2
    slow = range(ROPE_WAVES, half)
    return [at for one in slow for at in (one, one + half)]


def _rope_reach(
    made: _Matrices, head: Head, group: Sequence[Head], stream: Stream, size: int
) -> None:
    """Keys are constant in the numbers that rotate fast; queries weigh and shift these waves."""
    if not any(other.reach for other in group):
        return
    constant = stream.tokens[0, stream.spans["one"]][0]
    one, half = stream.spans["one"].start, size // 2
    for wave in range(ROPE_WAVES):
        made.key[one, wave] = 1 / constant
    if head.reach:
        cosine, sine = rope_kernel(tuple(sorted(head.reach.items())))
        made.query[one, :ROPE_WAVES] = cosine / constant
        made.query[one, half : half + ROPE_WAVES] = sine / constant


# --- families ----------------------------------------------------------------------------------


def _network(
    family: str, stream: Stream, layers: int, heads: int, size: int, grouped: int, places: int,
    speaks: bool,
) -> PreTrainedModel:  # fmt: skip
    """A network of the family whose heads write nothing yet."""
    vocabulary, width = len(stream.tokens), len(stream.directions)
    if family == "bert":
        config: Any = T.BertConfig(
            vocab_size=vocabulary, hidden_size=width, num_hidden_layers=layers,
            num_attention_heads=heads, intermediate_size=SMALL, max_position_embeddings=places,
        )  # fmt: skip
        network: Any = T.BertModel(config, add_pooling_layer=False)
    elif family == "gpt2":
        config = T.GPT2Config(
            vocab_size=vocabulary, n_embd=width, n_layer=layers, n_head=heads, n_inner=SMALL,
            n_positions=places, tie_word_embeddings=False, bos_token_id=2, eos_token_id=3,
        )  # fmt: skip
        network = (T.GPT2LMHeadModel if speaks else T.GPT2Model)(config)
    elif family == "llama":
        config = T.LlamaConfig(
            vocab_size=vocabulary, hidden_size=width, num_hidden_layers=layers,
            num_attention_heads=heads, num_key_value_heads=heads // grouped, head_dim=size,
            intermediate_size=SMALL, max_position_embeddings=512, tie_word_embeddings=False,
            rope_parameters={"rope_type": "default", "rope_theta": rope_rate(size)},
            bos_token_id=2, eos_token_id=3, pad_token_id=0,
        )  # fmt: skip
        network = (T.LlamaForCausalLM if speaks else T.LlamaModel)(config)
    else:
        config = T.T5Config(
            vocab_size=vocabulary, d_model=width, d_kv=size, d_ff=SMALL, num_layers=layers,
            num_heads=heads, relative_attention_num_buckets=4 * T5_NEAR,
            relative_attention_max_distance=8 * T5_NEAR, dropout_rate=0.0,
        )  # fmt: skip
        network = T.T5EncoderModel(config)
    state = network.state_dict()
    for name, tensor in state.items():
        tensor.zero_()
        if tensor.ndim == 1 and not name.endswith("bias"):  # of a norm
            tensor.fill_(stream.scale)
    tables = {"word_embeddings.weight": stream.tokens, "wte.weight": stream.tokens,
              "embed_tokens.weight": stream.tokens, "shared.weight": stream.tokens,
              "position_embeddings.weight": stream.places, "wpe.weight": stream.places,
              "token_type_embeddings.weight": stream.segments}  # fmt: skip
    for name, tensor in state.items():
        for end, table in tables.items():
            if name.endswith(end):
                tensor.copy_(_tensor(stream.embedded(table)))
        if name.endswith("lm_head.weight"):
            tensor.copy_(_tensor(stream.tokens[:, stream.spans["word"]]
                                 @ stream.directions[:, stream.spans["spoken"]].T))  # fmt: skip
    network.load_state_dict(state)
    return network  # type: ignore[no-any-return]


State = dict[str, torch.Tensor]


def _write(state: State, index: int, at: int, size: int, made: Sequence[_Matrices], stream: Stream,
           names: Mapping[str, str], *, scaled: bool = True) -> None:  # fmt: skip
    """Writes a group of heads into the weights of a layer, of which `names` tells the ends.

    at  the first head of the group
    """
    key, value = _together([one.key for one in made]), _together([one.value for one in made])
    group = at // len(made)
    for place, one in enumerate(made):
        rows = slice((at + place) * size, (at + place + 1) * size)
        query = one.query * (np.sqrt(size) if scaled else 1)
        _put(state, index, names["query"], rows, stream.directions @ query)
        _put(state, index, names["output"], rows, stream.directions @ one.output.T, out=True)
    rows = slice(group * size, (group + 1) * size)
    _put(state, index, names["key"], rows, stream.directions @ key)
    _put(state, index, names["value"], rows, stream.directions @ value)


def value_norms(wired: Wired) -> Float64:
    """[layer, head, token] the length of what each head writes of each token of the vocabulary, as
    it is embedded: read from the weights, noise and all.
    """
    stream, state = wired.stream, wired.network.state_dict()
    family = wired.network.config.model_type
    embedded = _tensor(stream.embedded(stream.tokens + stream.places[:1] + stream.segments[:1]))
    layers, heads = len(wired.heads), len(wired.heads[0])
    norms = np.zeros((layers, heads, len(embedded)))
    for layer in range(layers):
        value = _columns(state, layer, NAMES[family]["value"])
        output = _columns(state, layer, NAMES[family]["output"], out=True)
        size = output.shape[1] // heads
        shared = heads * size // value.shape[1]
        for head in range(heads):
            at, own = head // shared * size, slice(head * size, (head + 1) * size)
            written = embedded @ value[:, at : at + size] @ output[:, own].T
            norms[layer, head] = written.norm(dim=1).numpy()
    return norms


def _together(parts: Sequence[Float64]) -> Float64:
    whole = parts[0].copy()
    for part in parts[1:]:
        whole[part != 0] = part[part != 0]
    return whole


def _put(
    state: State, index: int, end: str, rows: slice, columns: Float64, *, out: bool = False
) -> None:
    """Writes [width, number of the head] into the matrix of a layer; `end` as in `NAMES`."""
    _columns(state, index, end, out=out)[:, rows] = _tensor(columns)


def _columns(state: State, index: int, end: str, *, out: bool = False) -> torch.Tensor:
    """[width, number of a head] a view of a matrix of a layer."""
    end, _, part = end.partition("#")
    tensor = next(t for name, t in state.items() if name.endswith(f".{index}.{end}"))
    matrix = tensor if end.startswith("attn.") else tensor.T  # GPT-2 has them turned
    if part:
        width = len(tensor)
        matrix = matrix[:, int(part) * width : (int(part) + 1) * width]
    return matrix.T if out else matrix


NAMES = {
    "bert": {
        "query": "attention.self.query.weight", "key": "attention.self.key.weight",
        "value": "attention.self.value.weight", "output": "attention.output.dense.weight",
    },
    "gpt2": {
        "query": "attn.c_attn.weight#0", "key": "attn.c_attn.weight#1",
        "value": "attn.c_attn.weight#2", "output": "attn.c_proj.weight",
    },
    "llama": {
        name: f"self_attn.{letter}_proj.weight"
        for name, letter in (("query", "q"), ("key", "k"), ("value", "v"), ("output", "o"))
    },
    "t5": {
        name: f"layer.0.SelfAttention.{letter}.weight"
        for name, letter in (("query", "q"), ("key", "k"), ("value", "v"), ("output", "o"))
    },
}  # fmt: skip


def _t5_reach(state: State, layers: Sequence[Sequence[Head]]) -> None:
    """T5 adds one table of distances in all layers: a head's `reach` is that of its column."""
    name = next(name for name in state if name.endswith("relative_attention_bias.weight"))
    for column in range(len(layers[0])):
        reach = next((layer[column].reach for layer in layers if layer[column].reach), {})
        for offset, weight in reach.items():
            bucket = abs(offset) + (2 * T5_NEAR if offset > 0 else 0)
            state[name][bucket, column] = weight


def _add_noise(state: State, noise: float, seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    for tensor in state.values():
        if noise and tensor.ndim > 1 and bool((there := tensor != 0).any()):
            size = noise * float(tensor[there].square().mean().sqrt())
            tensor += size * torch.randn(tensor.shape, generator=random)


def _tensor(values: Float64) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(values)).float()
