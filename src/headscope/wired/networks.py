"""Writes the weights of real transformers so that each head does what it is wired to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from headscope.core.accumulators import Float64
from headscope.wired.families import (
    ABSOLUTE,
    NAMES,
    T5_NEAR,
    State,
    WiredShape,
    as_tensor,
    blank_network,
    columns_of,
    end_of,
)
from headscope.wired.features import JUNK, LETTER, LETTERED, PLACE, Feature
from headscope.wired.heads import Value, WiredHead
from headscope.wired.language import tokenizer
from headscope.wired.reach import ROPE_WAVES, rope_kernel, wave_kernel
from headscope.wired.stream import Stream, code_width, frequencies, make_stream

STEEP = 8.0  # what an activation function lets pass nearly whole


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
    heads: tuple[tuple[WiredHead, ...], ...]
    stream: Stream


@dataclass
class _Matrices:
    """Matrices of one head, or of the keys and values of a group, in codes: [code, number of the
    head]."""

    query: Float64
    key: Float64
    value: Float64
    output: Float64  # [number of the head, code]


def wire(
    family: str,
    layers: Sequence[Sequence[WiredHead]],
    *,
    seed: int = 0,
    noise: float = 0.0,
    turned: bool = False,
    overlap: float = 0.0,
    places: int = 64,
    grouped: int = 1,
    speaks: bool = False,
) -> Wired:
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
    speaks   with a language-model head, which reads SPOKEN; not of "t5"
    """
    tokens = tokenizer(family, masks=speaks and family == "bert")
    vocabulary = tokens.convert_ids_to_tokens(list(range(len(tokens))))
    absolute = places if family in ABSOLUTE else 0
    features = _features([one for layer in layers for one in layer], absolute)
    count, codes = len(layers[0]), code_width(features, absolute)
    groups = [layer[at : at + grouped] for layer in layers for at in range(0, count, grouped)]
    size = max(_rank(group, absolute) for group in groups) + 2 * ROPE_WAVES * (family == "llama")
    if absolute:  # heads together are as wide as the stream
        size = max(size, -(-2 * codes // count))
    shape = WiredShape(family, len(layers), count, size + size % 2, grouped, absolute, speaks)
    width = shape.size * count if absolute else -(-2 * codes // (2 * count)) * 2 * count
    stream = make_stream(
        features,
        vocabulary,
        width=width,
        places=absolute,
        seed=seed,
        turned=turned,
        overlap=overlap,
    )
    network = blank_network(shape, stream)
    state = network.state_dict()
    for index, layer in enumerate(layers):
        for at in range(0, count, grouped):
            group = layer[at : at + grouped]
            made = [_matrices(at, group, stream, shape) for at in range(grouped)]
            _write(state, (index, at), made, stream, shape)
    if family == "t5":
        _t5_reach(state, layers)
    if LETTERED.name in stream.spans:
        _read_letters(state, stream, family)
    _add_noise(state, noise, seed)
    network.load_state_dict(state)
    return Wired(network, tokens, tuple(map(tuple, layers)), stream)


def _features(heads: Sequence[WiredHead], places: int) -> list[Feature]:
    """What the heads read and write, and what they need beside it."""
    features = [feature for head in heads for feature in head.features]
    features += [LETTER] * any(one.name == LETTERED.name for one in features)
    features += [PLACE] * bool(places and any(head.reach for head in heads))
    return features


def _rank(group: Sequence[WiredHead], places: int) -> int:
    keys = sum(one.key.width for head in group for one in head.matches)
    keys += max(2 * frequencies(places) if places and head.reach else 0 for head in group)
    values = sum(sum(one.width for one in head.value.reads) for head in group)
    return max(keys, values)


def _matrices(
    place: int, group: Sequence[WiredHead], stream: Stream, shape: WiredShape
) -> _Matrices:
    """What a head of a group asks for, offers, takes and writes; each has its own numbers of the
    keys and values that they share.
    """
    head, places = group[place], shape.places
    query, key, value = (np.zeros((stream.codes, shape.size)) for _ in range(3))
    made = _Matrices(query, key, value, np.zeros((shape.size, stream.codes)))
    order = _content_numbers(shape)
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
    if shape.family == "llama":
        _rope_reach(made, head, group, stream)
    _value(made, head.value, sum(_read(other) for other in group[:place]), stream)
    return made


def _read(head: WiredHead) -> int:
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


def _content_numbers(shape: WiredShape) -> list[int]:
    """Which numbers of a head hold matches: in Llama, those that rotate least."""
    if shape.family != "llama":
        return list(range(shape.size))
    half = shape.size // 2
    slow = range(ROPE_WAVES, half)
    return [at for one in slow for at in (one, one + half)]


def _rope_reach(
    made: _Matrices, head: WiredHead, group: Sequence[WiredHead], stream: Stream
) -> None:
    """Keys are constant in the numbers that rotate fast; queries weigh and shift these waves."""
    if not any(other.reach for other in group):
        return
    constant = stream.tokens[0, stream.spans["one"]][0]
    one, half = stream.spans["one"].start, made.key.shape[1] // 2
    for wave in range(ROPE_WAVES):
        made.key[one, wave] = 1 / constant
    if head.reach:
        cosine, sine = rope_kernel(tuple(sorted(head.reach.items())))
        made.query[one, :ROPE_WAVES] = cosine / constant
        made.query[one, half : half + ROPE_WAVES] = sine / constant


def _write(
    state: State, at: tuple[int, int], made: Sequence[_Matrices], stream: Stream, shape: WiredShape
) -> None:
    """Writes a group of heads into the weights of a layer; `at`: the layer, its first head."""
    index, first = at
    names, size = NAMES[shape.family], shape.size
    scale = 1.0 if shape.family == "t5" else np.sqrt(size)  # by which scores are divided
    key, value = _together([one.key for one in made]), _together([one.value for one in made])
    group = first // len(made)
    for place, one in enumerate(made):
        rows = slice((first + place) * size, (first + place + 1) * size)
        _put(state, index, names["query"], rows, stream.directions @ (scale * one.query))
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
    embedded = as_tensor(stream.embedded(stream.tokens + stream.places[:1] + stream.segments[:1]))
    layers, heads = len(wired.heads), len(wired.heads[0])
    norms = np.zeros((layers, heads, len(embedded)))
    for layer in range(layers):
        value = columns_of(state, layer, NAMES[family]["value"])
        output = columns_of(state, layer, NAMES[family]["output"], out=True)
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
    columns_of(state, index, end, out=out)[:, rows] = as_tensor(columns)


def _t5_reach(state: State, layers: Sequence[Sequence[WiredHead]]) -> None:
    """T5 adds one table of distances in all layers: a head's `reach` is that of its column."""
    name = next(name for name in state if name.endswith("relative_attention_bias.weight"))
    for column in range(len(layers[0])):
        reach = next((layer[column].reach for layer in layers if layer[column].reach), {})
        for offset, weight in reach.items():
            bucket = abs(offset) + (2 * T5_NEAR if offset > 0 else 0)
            state[name][bucket, column] = weight


def _read_letters(state: State, stream: Stream, family: str) -> None:
    """The first feed-forward layer of a decoder writes which letter a token is: one neuron each."""
    read = as_tensor(stream.directions @ stream.select(LETTER))  # [width, letter]
    wrote = as_tensor(stream.directions @ stream.select(LETTERED)) / STEEP
    if family == "gpt2":
        end_of(state, ".0.mlp.c_fc.weight")[:] = STEEP * read
        end_of(state, ".0.mlp.c_proj.weight")[:] = wrote.T
    else:
        end_of(state, ".0.mlp.gate_proj.weight")[:] = STEEP * read.T
        end_of(state, ".0.mlp.up_proj.weight")[:] = read.T
        end_of(state, ".0.mlp.down_proj.weight")[:] = wrote


def _add_noise(state: State, noise: float, seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    for tensor in state.values():
        if noise and tensor.ndim > 1 and bool((there := tensor != 0).any()):
            size = noise * float(tensor[there].square().mean().sqrt())
            tensor.add_(size * torch.randn(tensor.shape, generator=random))
