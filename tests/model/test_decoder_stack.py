"""Is an encoder-decoder read by its decoder as it is in training, and nothing else changed?"""

from __future__ import annotations

from functools import cache

import pytest
import torch

import headscope as hs
from experiments.alignment.made import SENTENCES, fast, network_of, saved
from experiments.replay.made import STOCK
from headscope.corpus.document import Document, Example, Passage, Word
from headscope.errors import InputError, ModelError
from headscope.experiments.replay.choosing import halves_of
from headscope.experiments.replay.replacements import replacing
from headscope.experiments.replay.replay import replay
from headscope.model.instrument import Instrument
from headscope.model.model import Model, forward, load
from headscope.run.plan import encoded, encoder_for
from headscope.run.settings import Settings

BOTH = ("T5", "BART")
LAYERS, HEADS = 3, 4
TEXTS = [text for pair in SENTENCES for text in pair]
FEW = {"inputs": 6, "choosing": 6, "replicates": 20, "draws": 0, "execution": STOCK}


@cache
def read_by_decoder(name: str) -> Model:
    """A tiny one in float64, with its language-model head."""
    return load(network_of(name).double(), tokenizer=fast(), stack="decoder")


def inputs_of(model: Model, texts: list[str] = TEXTS) -> list[Example]:
    """The texts as its decoder reads them."""
    encoder = encoder_for(model, Settings())
    return [one for document in hs.corpus_of(texts) for one in encoder.encode(document)]


def by_hand(network, text, **more):
    """A pass as in training: the encoder reads a text, the decoder the same one place later."""
    labels = torch.tensor([fast()(text)["input_ids"]])
    start = torch.full((1, 1), network.config.decoder_start_token_id)
    with torch.no_grad():
        read = torch.cat([start, labels[:, :-1]], 1)
        return labels, network(input_ids=labels, decoder_input_ids=read, **more)


@pytest.mark.parametrize("name", BOTH)
def test_a_padded_batch_gives_what_training_gives_of_each_text(name):
    model, plain = read_by_decoder(name), network_of(name).double()
    examples = inputs_of(model)
    assert [one.document for one in examples] == [f"text {at}" for at in range(len(TEXTS))]
    logits = forward(model.network, *model.batch(examples).inputs).logits
    for row, (example, text) in enumerate(zip(examples, TEXTS, strict=True)):
        labels, wanted = by_hand(plain, text)
        assert example.input_ids.tolist() == [0, *labels[0, :-1].tolist()]
        assert example.special.tolist() == [True] + [False] * (len(example) - 1)
        own = logits[row, : len(example)]
        torch.testing.assert_close(own, wanted.logits[0], rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", BOTH)
def test_an_observer_sees_the_self_attention_of_the_decoder(name):
    model, seen = read_by_decoder(name), []
    example = encoded(model, TEXTS[0], None)
    with Instrument(model.network, observers=[seen.append], stacks=[model.shape.stack]):
        forward(model.network, *model.batch([example]).inputs)
    _, whole = by_hand(network_of(name).double(), TEXTS[0], output_attentions=True)
    assert (model.shape.stack, model.shape.layers, model.shape.heads) == ("decoder", LAYERS, HEADS)
    for view, wanted in zip(seen, whole.decoder_attentions, strict=True):
        own = view.attention[..., : len(example), : len(example)].to(wanted)
        torch.testing.assert_close(own, wanted, rtol=0, atol=1e-6)


def test_words_keep_their_tokens_behind_the_start():
    model = read_by_decoder("T5")
    words = tuple(Word(form) for form in ("dogs", "see", "cats"))
    document = Document("one", (Passage("one", words=words),))
    (example,) = encoder_for(model, Settings()).encode(document)
    assert model.tokens(example.input_ids) == ("<pad>", "dog", "##s", "see", "cat", "##s")
    assert example.word_index.tolist() == [-1, 0, 0, 1, 2, 2]


def test_the_loaded_network_is_read_by_its_encoder_as_before():
    network = network_of("BART")
    model = load(network, tokenizer=fast(), stack="decoder")
    assert type(network).__mro__[0] is not type(model.network)
    assert load(network, tokenizer=fast()).shape.stack == "encoder"
    assert load(model) is model
    assert load(model, stack="decoder") is model
    with pytest.raises(ModelError, match="is read by its decoder; wanted --stack decoder"):
        load(model, stack="encoder")


def test_what_cannot_be_read_by_a_decoder_is_refused_by_name(tiny_place):
    with pytest.raises(ModelError, match="is no encoder-decoder, so it has one stack"):
        load(tiny_place, stack="decoder")
    network = network_of("BART")
    network.config.decoder_start_token_id = None
    with pytest.raises(ModelError, match="does not say with which token its decoder starts"):
        load(network, tokenizer=fast(), stack="decoder")


# --- replay -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BOTH)
def test_heads_of_the_decoder_that_are_replayed_by_their_own_maps_change_nothing(name):
    model, called = read_by_decoder(name), set()
    every = frozenset((layer, head) for layer in range(LAYERS) for head in range(HEADS))
    inputs = model.batch(inputs_of(model)).inputs

    def own(call, heads):
        called.add(call.site.stack)
        return call.attention[:, heads]

    with replacing(model.network) as change:
        whole = forward(model.network, *inputs).logits
        change.use(every, own)
        same = forward(model.network, *inputs).logits
        change.use(every, lambda call, heads: call.attention[:, heads].roll(1, 1))
        other = forward(model.network, *inputs).logits
    torch.testing.assert_close(same, whole, rtol=0, atol=1e-6)
    assert (other - whole).abs().max() > 1e-3
    assert called == {"decoder"}  # the encoder and cross-attention stay the model's own


@pytest.mark.parametrize("name", BOTH)
def test_the_loss_with_even_attention_is_that_of_a_network_without_queries(name):
    model, plain = read_by_decoder(name), network_of(name).double()
    run = replay(model, corpus=TEXTS * 2, shares=[1.0], replacements=("even",), **FEW)
    replayed = run["replay"].isel(order=0, share=0, replacement=0)
    assert replayed.attrs["score"] == "causal language-model loss"
    halves = halves_of(inputs_of(model, TEXTS * 2), choosing=6, trying=6, seed=0)
    whole = _loss(plain, halves.trying)
    with torch.no_grad():
        for part, values in plain.named_parameters():
            queries = "decoder" in part and ("SelfAttention.q." in part or "self_attn.q_" in part)
            if queries or ("decoder" in part and "relative_attention_bias" in part):
                values.zero_()
    assert float(replayed["baseline"]) == pytest.approx(whole, abs=1e-6)
    assert float(replayed["loss"]) == pytest.approx(_loss(plain, halves.trying), abs=1e-6)
    assert abs(float(replayed["loss"]) - whole) > 1e-3
    assert run.manifest["model"]["encoder_reads"] == "the same text"
    assert "of the decoder, whose encoder reads the same text" in run.manifest["model"]["size"]


def _loss(network, examples):
    """Nats per token that the decoder of a network predicts of what it reads."""
    sums, predicted = 0.0, 0
    for one in examples:
        read = torch.from_numpy(one.input_ids)[None]
        labels = torch.cat([read[:, 1:], torch.tensor([[network.config.eos_token_id]])], 1)
        with torch.no_grad():
            logits = network(input_ids=labels, decoder_input_ids=read).logits[0, :-1]
        sums += float(torch.nn.functional.cross_entropy(logits, read[0, 1:], reduction="sum"))
        predicted += len(one) - 1
    return sums / predicted


def test_the_rules_of_an_atlas_of_the_decoder_replace_its_heads(tmp_path):
    place = saved(tmp_path / "t5")
    atlas = hs.atlas(
        place, stack="decoder", corpus=TEXTS * 2, analyses=["explained"], control="none"
    )
    assert atlas.manifest["model"]["stack"] == "decoder"
    assert atlas["explained"].sizes["layer"] == LAYERS
    run = replay(atlas, corpus=TEXTS * 2, shares=[1.0], replacements=("rules",), **FEW)
    assert run["replay"].attrs["kind"] == "causal"
    assert run.manifest["model"]["stack"] == "decoder"
    with pytest.raises(InputError, match="read the decoder; wanted no --stack"):
        replay(atlas, corpus=TEXTS, stack="encoder", **FEW)


def test_a_decoder_without_its_head_is_compared_by_its_vectors(tmp_path):
    run = replay(
        saved(tmp_path / "bart", "BART"),
        corpus=TEXTS * 2,
        stack="decoder",
        score="vectors",
        shares=[1.0],
        replacements=("even",),
        **FEW,
    )
    assert run["replay"].attrs["kind"] == "vectors"
    assert float(run["replay"]["loss"].max()) > 0
    assert run["replay"].sizes["layer"] == LAYERS
