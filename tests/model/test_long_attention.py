"""Attention read without whole maps: against the maps that the same network gives in float64."""

import copy
import gc
import weakref
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import (
    BertConfig,
    BertModel,
    Gemma2Config,
    Gemma2Model,
    GptOssConfig,
    GptOssModel,
    LlamaConfig,
    LlamaModel,
    MistralConfig,
    MistralModel,
    ModernBertConfig,
    ModernBertModel,
    T5Config,
    T5EncoderModel,
)

from headscope.corpus.document import Example, Word
from headscope.errors import ModelError
from headscope.model.batch import Batch
from headscope.model.instrument import Instrument
from headscope.model.long_layer import LongLayerView
from headscope.model.long_mask import LongMask
from headscope.model.vocabulary import Vocabulary

SIZE = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}
SHARED = {**SIZE, "num_key_value_heads": 2}
SPECIAL = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
NETWORKS = {
    "shared keys": lambda: LlamaModel(LlamaConfig(**SHARED)),
    "a window": lambda: MistralModel(MistralConfig(**SHARED, sliding_window=19)),
    "a cap": lambda: Gemma2Model(
        Gemma2Config(**SHARED, head_dim=8, sliding_window=19, attn_logit_softcapping=2.0)
    ),
    "sinks": lambda: GptOssModel(
        GptOssConfig(**SHARED, head_dim=8, num_local_experts=4, sliding_window=19)
    ),
    "a bias": lambda: T5EncoderModel(
        T5Config(vocab_size=64, d_model=32, d_kv=8, d_ff=32, num_layers=2, num_heads=4)
    ),
    "a window both ways": lambda: ModernBertModel(
        ModernBertConfig(**SIZE, **SPECIAL, cls_token_id=1, sep_token_id=2, local_attention=18)
    ),
    "nothing hidden": lambda: BertModel(BertConfig(**SIZE, max_position_embeddings=128)),
}
LENGTHS = (90, 61)


def network(name):
    """Weights large enough that heads differ."""
    torch.manual_seed(0)
    made = NETWORKS[name]().eval()
    with torch.no_grad():
        for weight in made.parameters():
            weight.mul_(3 if weight.ndim > 1 else 1)
    return made


def batch():
    random = np.random.default_rng(0)
    examples = []
    for at, n in enumerate(LENGTHS):
        ids = random.integers(5, 64, n)
        ids[[0, n // 2, n - 1]] = 1, 2, 2
        word = np.arange(n) // 2
        word[[0, n // 2, n - 1]] = -1
        examples.append(
            Example(str(at), str(at), ids, np.zeros(n, np.int64), np.isin(ids, (1, 2)), word)
        )
    return Batch.of(examples, Vocabulary(1, 2, (3,)), replicates=0)


def shown(made, given, whole, look):
    """What `look` makes of every layer."""
    seen = []
    with (
        torch.inference_mode(),
        Instrument(made, observers=[lambda v: seen.append(look(v))], whole=whole),
    ):
        made(input_ids=given.input_ids, attention_mask=given.mask.long())
    return seen


def numbers(view, given):
    """Every way to read a layer; what belongs to padding is 0."""
    real = given.mask.to(torch.float64)
    pair = (torch.tensor([0, 0, 1]), torch.tensor([70, 3, 60]), torch.tensor([60, 5, 0]))
    chosen = torch.tensor([[0, 40, 89], [1, 20, 60]])
    read = {
        "entropy": view.entropy(given),
        "smoothed entropy": view.entropy(given, smoothing=1e-3) * real[:, None],
        "column sums": view.column_sums(given) * real[:, None, None],
        "self": view.neighbour(0) * real[:, None],
        "previous": view.neighbour(-1) * real[:, None, 1:],
        "next": view.neighbour(1) * real[:, None, 1:],
        "rest": view.rest * real[:, None],
        "rows": view.rows(chosen),
        "pairs": view.pairs(*pair),
    }
    if "projection" in view.offers:
        read["value norm"] = view.value_norm * real[:, None]
        read["layer norm"] = view.summed_norm_received(given) * real
        read["layer norm, own"] = view.summed_norm_own(given) * real
        read["own"] = view.own * real[..., None]
        read["weighted pairs"] = view.pairs(*pair, measure="weighted_norm")
    return {name: each.double().numpy() for name, each in read.items()}


@pytest.mark.parametrize("name", NETWORKS)
def test_each_family_gives_what_its_float64_maps_give(name):
    given, made = batch(), network(name)
    wider = made if name == "sinks" else copy.deepcopy(made).double()  # experts are float32 alone
    wide = shown(wider, given, None, lambda view: numbers(view, given))
    read = shown(made, given, 32, lambda view: (type(view), numbers(view, given)))
    assert len(wide) == len(read) == 2
    for wanted, (kind, found) in zip(wide, read, strict=True):
        assert kind is LongLayerView
        assert wanted.keys() == found.keys()
        for what in wanted:
            scale = 1 + np.abs(wanted[what]).max()
            np.testing.assert_allclose(
                found[what] / scale, wanted[what] / scale, atol=3e-5, err_msg=what
            )


@pytest.mark.parametrize("name", ["shared keys", "a window", "a cap", "nothing hidden"])
@pytest.mark.parametrize("pieces", ["mean", "first", "max"])
def test_words_are_the_same(name, pieces):
    """Maps between words, and the largest weights, by the other measure too."""
    plain = batch()
    words = tuple(Word(str(at)) for at in range(45))
    given = Batch(
        plain.input_ids,
        plain.segment_ids,
        plain.mask,
        plain.groups,
        tuple(replace(e, words=words) for e in plain.examples),
        plain.vocabulary,
    )
    of = np.array([[1, 7, 40], [2, 3, -1]])

    def look(view):
        rows = view.word_rows(given, of, pieces=pieces)
        return rows.double().numpy(), view.largest_words(given, pieces=pieces)

    made = network(name)
    for wanted, found in zip(
        shown(made, given, None, look), shown(made, given, 32, look), strict=True
    ):
        np.testing.assert_allclose(found[0], wanted[0], atol=1e-6)
        for one, other in zip(found[1], wanted[1], strict=True):
            np.testing.assert_array_equal(one, other)


class Largest(TorchDispatchMode):
    """Records the numbers of the largest tensor that any operation gives."""

    most = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for one in out if isinstance(out, (tuple, list)) else [out]:
            if isinstance(one, torch.Tensor):
                self.most = max(self.most, one.numel())
        return out


def test_no_tensor_grows_with_the_square_of_the_length():
    made, most = network("shared keys"), {}
    for tokens in (2048, 4096):
        ids = torch.arange(tokens)[None] % 64
        example = Example("a", "a", ids[0].numpy(), *np.zeros((2, tokens), np.int64))
        given = Batch.of([example], Vocabulary(None, None, ()), replicates=0)
        look = partial(lambda of, view: (view.entropy(of), view.summed_norm_received(of)), given)
        with Largest() as mode:
            shown(made, given, 1024, look)
        most[tokens] = mode.most
    assert most[4096] <= 2 * most[2048] < 4 * 2048**2


def test_the_first_tokens_of_a_decoder_have_the_maps_of_a_shorter_input():
    given, made = batch(), network("shared keys")
    short = given.leading(24)
    assert [len(e) for e in short.examples] == [24, 24]
    wanted = shown(made, short, None, lambda view: view)
    found = shown(made, given, 32, lambda view: view.leading(24))
    for one, other in zip(found, wanted, strict=True):
        assert torch.equal(one.seen.expand_as(other.seen), other.seen)
        for part in ("attention", "values", "queries", "keys", "residual", "output"):
            left, right = getattr(one, part), getattr(other, part)
            torch.testing.assert_close(left, right, atol=1e-6, rtol=1e-5, msg=part)


def test_a_whole_map_is_refused_where_it_is_not_made():
    given = batch()
    with pytest.raises(ModelError, match=r"96 tokens is read without whole maps; .*--whole-maps"):
        shown(network("shared keys"), given, 32, lambda view: view.attention)
    with pytest.raises(ModelError, match=r"without whole maps"):  # rows of it would not be whole
        shown(network("nothing hidden"), given, 32, lambda view: view.leading(24))


def test_a_model_that_looks_into_its_mask_is_refused_by_name():
    mask = LongMask(
        lambda *_: torch.ones(1, dtype=torch.bool), (90,), "", 90, 90, torch.device("cpu")
    )
    with pytest.raises(ModelError, match=r"reads 'dtype' of its mask.*--whole-maps 90"):
        _ = mask.dtype


def test_padding_before_the_tokens_is_refused():
    left = torch.tensor([[0, 1, 1]], dtype=torch.bool)
    with pytest.raises(ModelError, match=r"found padding before"):
        LongMask.of(1, 3, 3, mask_function=None, attention_mask=left)


@pytest.mark.parametrize("name", ["shared keys", "a window", "nothing hidden"])
def test_what_is_asked_beforehand_is_what_is_read_afterwards(name):
    """The same sums, and the same mixed values, from the one pass that does both."""
    given, made, seen = batch(), network(name), {}
    for asked in (True, False):
        views = seen[asked] = []
        with torch.inference_mode(), Instrument(made, observers=[views.append], whole=32) as reader:
            reader.long_reading = (given, True, None) if asked else None
            made(input_ids=given.input_ids, attention_mask=given.mask.long())
    for one, other in zip(*seen.values(), strict=True):
        assert one.long.asked is not None
        assert other.long.asked is None
        real = given.mask[..., None]
        torch.testing.assert_close(one.output * real, other.output * real, atol=1e-6, rtol=1e-5)
        for read in (
            LongLayerView.entropy,
            LongLayerView.column_sums,
            LongLayerView.summed_norm_received,
        ):
            torch.testing.assert_close(read(one, given), read(other, given), atol=2e-6, rtol=1e-5)


def test_a_layer_goes_when_it_has_been_shown():
    """Without the collector of circles: the layers of a long input would fill the memory."""
    given, made, seen = batch(), network("shared keys"), []

    def look(view):
        view.summed_norm_received(given)
        seen.append(weakref.ref(view))

    gc.disable()
    try:
        with torch.inference_mode(), Instrument(made, observers=[look], whole=32) as reader:
            reader.long_reading = given, True, None
            made(input_ids=given.input_ids, attention_mask=given.mask.long())
        assert [view() for view in seen] == [None, None]
    finally:
        gc.enable()
