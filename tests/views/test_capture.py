"""Is what a page shows what the model computed, in every stack and family?"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from headscope.errors import InputError
from headscope.model.model import Model
from headscope.views.capture import capture_example
from model.families.tiny import FAMILIES, tiny
from model.families.tokenizers_made import bytes_bpe, wordpiece

CAT = "The cat sat on the mat unbelievably."
TINY = "the cat . a b , the cats a b the a b ."


def model_of(name: str, tokenizer=None) -> Model:
    return Model(tiny(name), tokenizer or wordpiece(), name, "", "")


@pytest.fixture(scope="module")
def pair(demo):
    return capture_example(demo, CAT, "It was tired.")


def test_the_maps_are_those_of_stock_eager_attention(demo, pair):
    inputs = demo.tokenizer(CAT, "It was tired.", return_tensors="pt")
    with torch.no_grad():
        stock = demo.network(**inputs, output_attentions=True).attentions
    np.testing.assert_allclose(pair.stacks[0].attention, torch.cat(stock).numpy(), atol=5e-6)


def test_tokens_segments_and_words_are_the_tokenizers(demo, pair):
    encoded = demo.tokenizer(CAT, "It was tired.")
    (side,) = pair.sides
    assert side.tokens == tuple(encoded.tokens())
    assert side.segment.tolist() == encoded.token_type_ids
    assert side.boundary == encoded.token_type_ids.index(1)
    assert side.special.tolist() == [w is None for w in encoded.word_ids()]
    pieces = [w for t, w in zip(side.tokens, side.word, strict=True) if t in ("un", "##bel")]
    assert len(pieces) == 2
    assert len(set(pieces)) == 1
    assert side.word[side.boundary] == side.word[: side.boundary].max() + 1


def test_one_segment_has_no_boundary(demo):
    assert capture_example(demo, CAT).sides[0].boundary is None


def test_a_boundary_is_shown_where_the_model_does_not_tell_segments_apart():
    """RoBERTa's `<s> a </s></s> b </s>`: the second text is a second text, by the tokenizer."""
    bpe = bytes_bpe(
        template=("<s> $A </s>", "<s> $A </s> </s> $B </s>"),
        bos_token="<s>",
        cls_token="<s>",
        eos_token="</s>",
        sep_token="</s>",
        pad_token="<pad>",
    )
    (side,) = capture_example(model_of("RoBERTa", bpe), "a b", "b a").sides
    assert side.boundary == side.tokens.index("</s>") + 1


def test_weighted_norms_are_weights_times_norms(pair):
    (stack,) = pair.stacks
    layer, head, query, key = 2, 3, 4, 5
    expected = stack.attention[layer, head, query, key] * stack.value_norm[layer, head, key]
    assert stack.weighted_norm[layer, head, query, key] == pytest.approx(expected)


REGISTRY = [name for name, family in FAMILIES.items() if family.on_registry]


@pytest.mark.parametrize("name", REGISTRY)
def test_every_weight_is_the_softmax_of_the_vectors_that_are_shown(name):
    """Rotated, grouped, scaled, capped and with the position bias, as it was really used."""
    shown = capture_example(model_of(name), TINY)
    (stack,) = shown.stacks
    vectors = stack.vectors
    scores = np.einsum("lhqd,lhkd->lhqk", vectors.queries, vectors.keys, dtype=np.float64)
    scores *= vectors.scaling[:, None, None, None]
    if vectors.softcap is not None:
        scores = vectors.softcap * np.tanh(scores / vectors.softcap)
    if vectors.bias is not None:
        scores = scores + vectors.bias
    scores[stack.attention == 0] = -np.inf  # later, or out of the window
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    np.testing.assert_allclose(weights, stack.attention, atol=1e-5)
    assert (vectors.bias is not None) == (name in ("T5", "mT5"))
    assert stack.causal == (FAMILIES[name].stacks.keys() == {"decoder"})


@pytest.mark.parametrize("name", ["MPNet", "DeBERTa v2"])
def test_a_family_that_hides_its_vectors_says_so(name):
    (stack,) = capture_example(model_of(name), TINY).stacks
    assert stack.vectors is None
    assert "does not show its queries and keys" in stack.why_none


@pytest.mark.parametrize("name", ["T5", "BART", "Marian"])
def test_an_encoder_decoder_shows_three_stacks_as_stock_attention_gives_them(name):
    model = model_of(name)
    shown = capture_example(model, TINY, "a b the cat")
    encoder, decoder = shown.sides
    config = model.network.config
    start = getattr(config, "decoder_start_token_id", config.pad_token_id)
    source = model.tokenizer(TINY, return_tensors="pt").input_ids
    target = model.tokenizer("a b the cat").input_ids
    read = torch.tensor([[start, *target[:-1]]])
    with torch.no_grad():
        stock = model.network(
            input_ids=source,
            attention_mask=torch.ones_like(source),
            decoder_input_ids=read,
            output_attentions=True,
        )
    wanted = {
        "encoder": stock.encoder_attentions,
        "decoder": stock.decoder_attentions,
        "cross": stock.cross_attentions,
    }
    assert [stack.name for stack in shown.stacks] == list(wanted)
    for stack in shown.stacks:
        np.testing.assert_allclose(stack.attention, torch.cat(wanted[stack.name]), atol=2e-6)
    assert [(s.queries, s.keys) for s in shown.stacks] == [(0, 0), (1, 1), (1, 0)]
    assert [s.causal for s in shown.stacks] == [False, True, False]
    assert list(decoder.tokens) == model.tokenizer.convert_ids_to_tokens(read[0].tolist())
    assert decoder.tokens[-4:] == ("a", "b", "the", "cat")
    assert decoder.word[-4:].tolist() == [0, 1, 2, 3]
    assert encoder.name == "encoder"


def test_without_a_second_text_an_encoder_decoder_says_what_is_missing():
    shown = capture_example(model_of("T5"), TINY)
    assert [stack.name for stack in shown.stacks] == ["self"]
    assert "decoder is not shown" in shown.left_out


def test_a_window_is_a_part_of_what_the_model_read(demo):
    whole, part = capture_example(demo, CAT * 4), capture_example(demo, CAT * 4, window=(5, 17))
    assert part.sides[0].tokens == whole.sides[0].tokens[5:17]
    np.testing.assert_array_equal(
        part.stacks[0].attention, whole.stacks[0].attention[:, :, 5:17, 5:17]
    )
    np.testing.assert_array_equal(part.stacks[0].value_norm, whole.stacks[0].value_norm[..., 5:17])
    total = len(whole.sides[0])
    assert part.left_out.startswith(f"Tokens 6 to 17 of {total} are shown")
    assert whole.left_out == ""


def test_more_tokens_than_can_be_shown_give_the_first_and_say_so(demo, monkeypatch):
    monkeypatch.setattr("headscope.views.capture.MOST_TOKENS", 10)
    shown = capture_example(demo, CAT * 4)
    assert len(shown.sides[0]) == 10
    assert "Tokens 1 to 10 of" in shown.left_out
    with pytest.raises(InputError, match="wanted at most 10"):
        capture_example(demo, CAT * 4, window=(0, 11))


@pytest.mark.parametrize("window", [(5, 5), (-1, 4), (0, 400)])
def test_a_window_outside_the_text_is_refused(demo, window):
    with pytest.raises(InputError, match="window"):
        capture_example(demo, CAT, window=window)


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_text_is_refused(demo, text):
    with pytest.raises(InputError, match="empty text"):
        capture_example(demo, text)


def test_a_text_that_is_too_long_is_refused_with_the_numbers(demo):
    with pytest.raises(InputError, match=r"has \d{3,} tokens and \d+ fit; wanted .* shorten it"):
        capture_example(demo, "word " * 600)


def test_vectors_that_do_not_give_the_weights_are_not_shown(demo, monkeypatch):
    """A model that does something more to its scores is not explained by q·k."""
    monkeypatch.setattr("headscope.views.capture.AGREED", -1.0)
    (stack,) = capture_example(demo, CAT).stacks
    assert stack.vectors is None
    assert "not known" in stack.why_none


def test_maps_that_never_look_ahead_are_causal(pair):
    (stack,) = pair.stacks
    n = len(pair.sides[0])
    maps = np.tril(np.ones((6, 12, n, n), np.float32))
    assert dataclasses.replace(stack, attention=maps).causal
    assert not stack.causal


# --- the user's own text ------------------------------------------------------------------------


def test_the_text_is_what_the_user_wrote(demo):
    text = " The  Trainee unbelievably\tmisread it: café. "
    (side,) = capture_example(demo, text).sides
    assert side.text == "The Trainee unbelievably misread it: café."
    assert {"##bly", "cafe"} <= set(side.tokens)  # as the model reads it
    assert {"-bly", "cafe"} <= set(side.pieces)  # as it is shown
    assert capture_example(demo, CAT, "It was tired.").text == f"{CAT} It was tired."
    assert capture_example(demo, CAT, window=(3, 5)).text == "sat on"


def test_what_was_written_is_told_apart_by_tokens(demo):
    (side,) = capture_example(demo, "It was unbelievably good.").sides
    for token, written, own in zip(side.tokens, side.written, side.special, strict=True):
        assert written.strip().lower() == ("" if own else token.removeprefix("##"))
    assert side.written[:4] == ("", "It", " was", " un")


def test_a_tokenizer_of_bytes_shows_the_characters_that_they_stand_for():
    """Ġ, Ċ and parts of characters are how such a vocabulary spells, not what anybody wrote."""
    words = ["<s>", "a", "Ġ", "Ġa", "Ċ", "Ã", "©", "Ã©", "ä", "¸", "Ń", "b"]
    core = Tokenizer(models.BPE({w: i for i, w in enumerate(words)}, [("Ġ", "a"), ("Ã", "©")]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<s>")
    text = "a a\né 中  b"
    raw = ["a", "Ġa", "Ċ", "Ã©", "Ġ", "ä", "¸", "Ń", "Ġ", "Ġ", "b"]
    assert tokenizer(text).tokens() == raw
    (side,) = capture_example(model_of("GPT-2", tokenizer), text).sides
    assert side.tokens == ("a", "a", "\n", "é", " ", "中", "⋯", "⋯", " ", " ", "b")
    assert side.text == "a a é 中 b"
    assert "".join(side.written) == text
