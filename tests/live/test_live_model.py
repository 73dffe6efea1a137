"""Does the live model read as `headscope.view` does, and change what the instrument changes?"""

from __future__ import annotations

import base64
import gzip
import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import AutoModelForSeq2SeqLM

import headscope as hs
from experiments.importance.made import language_model
from headscope.errors import InputError, ModelError
from headscope.live.answers import answer, head_answer
from headscope.live.live_model import LiveModel
from headscope.live.open_model import OpenedModel, open_model, parameter_count
from headscope.live.requests import (
    AbsentError,
    Changes,
    HeadRequest,
    ReadRequest,
    ScoreRequest,
    head_request,
    read_request,
)
from headscope.live.waiting import DroppedError
from headscope.model.attention import visible
from headscope.model.checkpoint import quietly
from headscope.tasks.task import own_task
from headscope.views.view_page import payload
from live.conftest import LOADING
from model.families.tiny import FAMILIES
from model.families.tokenizers_made import wordpiece
from tasks.made import MOOD, checkpoint

TEXT, PAIR = "The cat sat on the mat.", "It was tired."
WORDS = "Monday two cat Tuesday dog"


def nothing():
    """Nobody asks to stop."""


def off(*heads):
    return Changes(off=frozenset(heads))


def unfolded(raw):
    """The JSON of an answer, and what gives the bytes of one of its arrays."""
    end = 4 + int.from_bytes(raw[:4], "little")
    return json.loads(raw[4:end]), lambda place: raw[end + place[0] : end + sum(place)]


def unzipped(text):
    return gzip.decompress(base64.b64decode(text))


@pytest.mark.parametrize("pair", ["", PAIR])
def test_the_maps_are_those_of_a_view(encoder, tiny, pair):
    told, part = unfolded(answer(encoder.read(ReadRequest(TEXT, pair), nothing)))
    view = hs.view(tiny, TEXT, pair or None)
    file = payload(view.shown, labels=view.labels)
    mine, theirs = told["data"]["stacks"][0], file["stacks"][0]
    assert told["data"]["sides"] == json.loads(json.dumps(file["sides"]))
    assert mine["labels"] == theirs["labels"]
    attention, norms = zip(mine["measures"], theirs["measures"], strict=True)
    assert [part(one) for one in attention[0]["data"]] == list(map(unzipped, attention[1]["data"]))
    assert part(norms[0]["norm"]) == unzipped(norms[1]["norm"])
    assert norms[0]["scale"] == norms[1]["scale"]
    assert len(mine["detail"]["heads"]) == 8


def test_a_head_is_given_as_a_view_gives_it(encoder, tiny):
    shown = encoder.read(ReadRequest(TEXT), nothing).shown
    block = head_answer(shown, HeadRequest(ReadRequest(TEXT), (0, 1, 2)))
    view = hs.view(tiny, TEXT, detail=[(1, 2)])
    detail = payload(view.shown, labels=view.labels, detail=view.detail)["stacks"][0]["detail"]
    assert detail["bits"] == 16
    assert block == unzipped(detail["blocks"][0])
    with pytest.raises(InputError, match="found the head"):
        head_answer(shown, HeadRequest(ReadRequest(TEXT), (0, 2, 0)))


def test_a_head_of_the_untrained_network_is_that_of_a_view_beside_it(encoder, tiny):
    request = head_request(
        json.dumps({"text": TEXT, "stack": 0, "layer": 1, "head": 2, "untrained": True}).encode()
    )
    assert request.untrained
    block = head_answer(encoder.untrained.read(request.text, nothing).shown, request)
    view = hs.view(tiny, TEXT, detail=[(1, 2)], untrained=True)
    detail = payload(view.shown, labels=view.labels, detail=view.detail)["stacks"][0]["detail"]
    assert block == unzipped(detail["untrained"][0])
    assert block != unzipped(detail["blocks"][0])
    with pytest.raises(InputError, match="found untrained '1'; wanted true or false"):
        head_request(b'{"text": "a", "stack": 0, "layer": 0, "head": 0, "untrained": 1}')


def by_hand(model, text, intervene):
    """Logits of the last token, with an intervention of our own."""
    ids = model.model.tokenizer(text, return_tensors="pt").input_ids
    with torch.inference_mode(), hs.Instrument(model.model.network, interventions=[intervene]):
        return model.model.network(input_ids=ids).logits[0, -1]


def told_by(outcome, at=2):
    """[token] probabilities by the token's text."""
    (row,) = outcome["rows"]
    return {name: one[at - 1] for name, *one in row["told"]}


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_the_writers_of_a_score_are_those_of_score_parts(kind, request):
    model, text, pair = request.getfixturevalue(kind), WORDS, (3, 1)
    sides = model.writers(ScoreRequest(ReadRequest(text), (0, 1, 2), pair), lambda: None)
    parts = hs.prompts.score_parts(model.model, text, (1, 2), *pair)
    for side, name in zip(sides, ("query_contrast", "key_contrast"), strict=True):
        largest = abs(parts[name].to_series()).nlargest(len(side)).index
        assert [part for part, _ in side] == list(largest)
        np.testing.assert_allclose([value for _, value in side], parts[name].sel(part=largest))


def test_a_head_that_is_off_changes_the_next_token_as_the_instrument_says(decoder):
    def mine(call):
        if call.layer == 1:
            call.attention = call.attention.clone()
            call.attention[:, 2] = 0

    outcome = decoder.read(ReadRequest(WORDS, "", off((0, 1, 2))), nothing).outcome
    wanted = by_hand(decoder, WORDS, mine).softmax(-1)
    as_it_is = by_hand(decoder, WORDS, lambda call: None).softmax(-1)
    assert outcome["kind"] == "next"
    for expected, found in ((as_it_is, told_by(outcome, 1)), (wanted, told_by(outcome, 2))):
        ids = decoder.model.tokenizer.convert_tokens_to_ids([name.strip() for name in found])
        np.testing.assert_allclose(list(found.values()), expected[ids], rtol=1e-4)
        assert len(found) == 8
    assert not torch.allclose(wanted, as_it_is)


def test_even_weights_and_values_of_zero_do_likewise(decoder):
    def even(call):
        if call.layer == 0:
            seen = visible(call.mask, call.attention).float()
            call.attention = call.attention.clone()
            call.attention[:, 1] = (seen / seen.sum(-1, keepdim=True))[:, 0]

    def zero(call):
        call.values = call.values.clone()
        call.values[:, :, 1] = 0

    for changes, mine in (
        (Changes(even=frozenset({(0, 0, 1)})), even),
        (Changes(zero=frozenset({(0, 1)})), zero),
    ):
        read = decoder.read(ReadRequest(WORDS, "", changes), nothing)
        wanted, found = by_hand(decoder, WORDS, mine).softmax(-1), told_by(read.outcome)
        ids = decoder.model.tokenizer.convert_tokens_to_ids([name.strip() for name in found])
        np.testing.assert_allclose(list(found.values()), wanted[ids], rtol=1e-4)
    rows = decoder.read(ReadRequest(WORDS, "", Changes(even=frozenset({(0, 0, 1)}))), nothing)
    map_ = rows.shown.stacks[0].versus.maps[0, 1]
    np.testing.assert_allclose(map_[4], np.full(5, 0.2), rtol=1e-6)
    np.testing.assert_allclose(map_[1], [0.5, 0.5, 0, 0, 0], rtol=1e-6)


def next_token_by_hand(network, ids, token, layers):
    """GPT-2 written out in float64: probabilities after the last token, and maps [layer][head].

    token, layers  whose value is zero, and where
    """
    weights = {name: one.double().numpy() for name, one in network.state_dict().items()}
    heads = network.config.n_head

    def normed(x, name):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x**2).mean(-1, keepdims=True) + network.config.layer_norm_epsilon)
        return x * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def linear(x, name):
        return x @ weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def softmax(x):
        x = np.exp(x - x.max(-1, keepdims=True))
        return x / x.sum(-1, keepdims=True)

    x, maps = (
        weights["transformer.wte.weight"][ids] + weights["transformer.wpe.weight"][: len(ids)],
        [],
    )
    for layer in range(network.config.n_layer):
        block = f"transformer.h.{layer}"
        q, k, v = np.split(linear(normed(x, f"{block}.ln_1"), f"{block}.attn.c_attn"), 3, axis=-1)
        if layer in layers:
            v[token] = 0
        mixed, own = [], []
        for one, key, value in zip(
            *(np.split(part, heads, axis=-1) for part in (q, k, v)), strict=True
        ):
            scores = one @ key.T / np.sqrt(key.shape[-1])
            own.append(softmax(np.where(np.tri(len(ids), dtype=bool), scores, -np.inf)))
            mixed.append(own[-1] @ value)
        maps.append(own)
        x = x + linear(np.concatenate(mixed, -1), f"{block}.attn.c_proj")
        inner = linear(normed(x, f"{block}.ln_2"), f"{block}.mlp.c_fc")
        inner = inner / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (inner + 0.044715 * inner**3)))
        x = x + linear(inner, f"{block}.mlp.c_proj")
    return softmax(normed(x, "transformer.ln_f")[-1] @ weights["lm_head.weight"].T), np.array(maps)


@pytest.mark.parametrize(("layer", "layers"), [(0, {0}), (1, {1}), (None, {0, 1})])
def test_values_are_zero_in_the_chosen_layer_only(decoder, layer, layers):
    changes = Changes(zero=frozenset({(0, 1)}), layer=layer)
    read = decoder.read(ReadRequest(WORDS, "", changes), nothing)
    network, tokenizer = decoder.model.network, decoder.model.tokenizer
    wanted, maps = next_token_by_hand(network, tokenizer(WORDS).input_ids, 1, layers)
    found = told_by(read.outcome)
    ids = tokenizer.convert_tokens_to_ids([name.strip() for name in found])
    np.testing.assert_allclose(list(found.values()), wanted[ids], rtol=1e-4)
    np.testing.assert_allclose(read.shown.stacks[0].versus.maps, maps, atol=1e-5)
    as_it_is, before = next_token_by_hand(network, tokenizer(WORDS).input_ids, 1, ())
    assert np.abs(as_it_is - wanted).max() > 1e-3
    moved = np.abs(maps - before).sum(-1).mean(-1) / 2  # [layer, head]
    order = np.argsort(-moved[1])[:3] if 0 in layers else []
    assert [row[:3] for row in read.outcome["most"]] == [[0, 1, head] for head in order]
    np.testing.assert_allclose([row[3] for row in read.outcome["most"]], moved[1, order], atol=1e-5)


def test_layers_before_a_change_stay_and_the_model_is_as_it_was(decoder):
    whole = decoder.read(ReadRequest(WORDS), nothing).shown.stacks[0].attention.copy()
    changed = decoder.read(ReadRequest(WORDS, "", off((0, 0, 3))), nothing).shown.stacks[0]
    np.testing.assert_array_equal(changed.attention, whole)
    assert (changed.versus.maps[0, 3] == 0).all()
    np.testing.assert_array_equal(changed.versus.maps[0, :3], whole[0, :3])
    assert (changed.versus.maps[1] != whole[1]).any()
    decoder._kept.clear()
    np.testing.assert_array_equal(
        decoder.read(ReadRequest(WORDS), nothing).shown.stacks[0].attention, whole
    )


def test_without_a_head_it_is_told_how_far_output_vectors_moved(encoder, tiny):
    outcome = encoder.read(ReadRequest(TEXT, "", off((0, 1, 0))), nothing).outcome

    def mine(call):
        if call.layer == 1:
            call.attention = call.attention.clone()
            call.attention[:, 0] = 0

    given, vectors = tiny.tokenizer(TEXT, return_tensors="pt"), []
    for one in ([], [mine]):
        with torch.inference_mode(), hs.Instrument(tiny.network, interventions=one):
            vectors.append(tiny.network(**given).last_hidden_state[0])
    cosine = torch.nn.functional.cosine_similarity(*vectors, dim=-1)
    np.testing.assert_allclose(outcome["moved"], 1 - cosine, atol=2e-6)
    assert (outcome["kind"], outcome["rows"]) == ("vectors", [])


def test_classes_and_masked_tokens_are_told(tmp_path):
    classifier = LiveModel(
        open_model(str(checkpoint(tmp_path / "classes", head=MOOD)), **LOADING), longest=40
    )
    outcome = classifier.read(ReadRequest("the cat a"), nothing).outcome
    given = classifier.model.tokenizer("the cat a", return_tensors="pt")
    with torch.inference_mode():
        wanted = classifier.model.network(**given).logits[0].softmax(-1)
    found = {name: value for name, value, _ in outcome["rows"][0]["told"]}
    assert outcome["kind"] == "classes"
    np.testing.assert_allclose([found["no"], found["cat"]], wanted, rtol=1e-4)

    masked = LiveModel(open_model(str(language_model(tmp_path / "mask")), **LOADING), longest=40)
    assert masked.read(ReadRequest("the cat a"), nothing).outcome["rows"] == []
    outcome = masked.read(ReadRequest("the [MASK] a [MASK]"), nothing).outcome
    given = masked.model.tokenizer("the [MASK] a [MASK]", return_tensors="pt")
    with torch.inference_mode():
        wanted = masked.model.network(**given).logits[0].softmax(-1)
    assert [row["place"] for row in outcome["rows"]] == [2, 4]
    for row in outcome["rows"]:
        best = wanted[row["place"]].topk(8)
        np.testing.assert_allclose([one[1] for one in row["told"]], best.values, rtol=1e-4)


@pytest.mark.parametrize(
    ("head", "problem"),
    [(own_task("score", None), "regression"), (MOOD, "multi_label_classification")],
)
def test_what_is_no_choice_of_one_class_is_not_told_as_one(tmp_path, head, problem):
    place = checkpoint(tmp_path / "model", head=head, problem_type=problem)
    assert open_model(str(place), **LOADING).answers == "vectors"


def test_a_pass_ends_between_two_layers_when_nobody_waits(decoder):
    asked = []

    def stop():
        asked.append(1)
        if len(asked) == 2:
            raise DroppedError("a newer one came")

    with pytest.raises(DroppedError):
        decoder.read(ReadRequest("cat dog tree"), stop)
    assert len(asked) == 2
    assert (
        decoder.read(ReadRequest("cat dog tree"), nothing).shown.stacks[0].attention.shape[0] == 2
    )


def test_what_was_read_is_not_read_again_and_little_is_kept(decoder, monkeypatch):
    decoder.read(ReadRequest(WORDS), nothing)
    decoder.read(ReadRequest(WORDS), pytest.fail)
    monkeypatch.setattr("headscope.live.live_model.MOST_KEPT", 1)
    decoder.read(ReadRequest("cat dog"), nothing)
    assert [key[0] for key in decoder._kept] == ["cat dog"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (ReadRequest("  "), "found an empty text"),
        (ReadRequest("cat " * 65), "found 65 tokens; wanted 64 at most"),
        (ReadRequest(WORDS, "", off((0, 7, 0))), "not there, from 0: off 0 7 0"),
        (ReadRequest(WORDS, "", Changes(zero=frozenset({(0, 1)}), layer=2)), "0: layer 2; wanted"),
    ],
)
def test_what_cannot_be_read_is_told(decoder, asked, said):
    with pytest.raises(InputError, match=said):
        decoder.read(asked, nothing)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b"{}",
        b'{"text": 3}',
        b'{"text": "a", "changes": []}' * 2,
        b'{"text": "a", "changes": {"of": []}}',
        b'{"text": "a", "changes": {"off": [[0, 1]]}}',
        b'{"text": "a", "changes": {"off": [[0, 1, -1]]}}',
        b"[" * 90_000,
        b'{"text": "a", "changes": {"zero": [[0, true]]}}',
        b'{"text": "a", "changes": {"zero": [[0, 0]], "layer": "1"}}',
        b'{"text": "a", "pair": {}}',
        b'{"text": "a", "changes": null}',
        b'{"text": "a", "changes": 0}',
        b'{"text": "a", "changes": false}',
        b'{"text": "a", "changes": []}',
        b'{"text": "a", "changes": {"off": null}}',
        b'{"text": "a", "changes": {"off": [[0, 1, 1]], "even": [[0, 1, 1]]}}',
        b'{"text": "a", "changes": {"layer": 1}}',
        b'{"text": "a", "layer": 1}',
        b'{"text": "a", "change": {"off": [[0, 1, 1]]}}',
        b'{"text": "' + b"a" * 20_001 + b'"}',
        b"\xff\xfe",
    ],
)
def test_a_request_that_is_none_is_refused(body):
    with pytest.raises(InputError, match="found "):
        read_request(body)


def test_a_model_that_does_not_fit_is_refused_before_its_weights_are_read(
    decoder, decoder_place, monkeypatch
):
    count = parameter_count(decoder.model.network.config)
    assert count == sum(p.numel() for p in decoder.model.network.transformer.parameters())
    monkeypatch.setattr("headscope.live.open_model.free_bytes", lambda _: 4 * count - 1)
    monkeypatch.setattr(
        "headscope.live.open_model.load_language_model", lambda *_, **__: pytest.fail("was read")
    )
    with pytest.raises(ModelError, match=r"parameters of 4 bytes.*are free on cpu"):
        open_model(str(decoder_place), **LOADING)


def loaded(name):
    """A tiny model of a family, with a tokenizer of a dozen words."""
    return LiveModel(
        OpenedModel(hs.load(FAMILIES[name].build(), tokenizer=wordpiece())), longest=30
    )


def test_of_an_encoder_decoder_each_stack_and_side_is_changed_by_itself():
    model, text, pair = loaded("BART"), "the cat a b", "a cat ."
    assert [model.about[name] for name in ("pairs", "decodes", "answers")] == [
        True,
        True,
        "vectors",
    ]
    whole = model.read(ReadRequest(text, pair), nothing).shown
    assert [stack.name for stack in whole.stacks] == ["encoder", "decoder", "cross"]
    read = model.read(ReadRequest(text, pair, off((2, 1, 3))), nothing)
    for stack in read.shown.stacks:
        gone = stack.versus.maps[1, 3] if stack.name == "cross" else stack.versus.maps[:0]
        assert (gone == 0).all()
        assert (stack.versus.maps[0] == stack.attention[0]).all()
    assert len(read.outcome["moved"]) == len(whole.sides[1])
    assert max(read.outcome["moved"]) > 0
    # A value of the decoder's own tokens is nothing to the encoder.
    zero = model.read(ReadRequest(text, pair, Changes(zero=frozenset({(1, 1)}))), nothing).shown
    encoder, decoder, _ = zero.stacks
    np.testing.assert_array_equal(encoder.versus.maps, encoder.attention)
    assert (decoder.versus.maps != decoder.attention).any()
    assert len(model.read(ReadRequest(text), nothing).shown.stacks) == 1
    with pytest.raises(InputError, match=r"found .* tokens; wanted 30 at most"):
        model.read(ReadRequest(text, "cat " * 40), nothing)


@pytest.mark.parametrize("kind", ["T5", "BART"])
def test_of_an_encoder_decoder_with_its_head_the_next_token_is_told(tmp_path, kind):
    config = FAMILIES[kind].build().config
    config.decoder_start_token_id = 2
    with quietly():
        network = AutoModelForSeq2SeqLM.from_config(config).eval()
        network.save_pretrained(tmp_path)
        (tokenizer := wordpiece()).save_pretrained(tmp_path)
        opened = open_model(str(tmp_path), **LOADING)
    model, text, pair = LiveModel(opened, longest=30), "the cat a b", "a cat ."
    assert opened.answers == "next"

    def mine(call):
        if call.site.stack == "cross" and call.layer == 1:
            call.attention = call.attention.clone()
            call.attention[:, 3] = 0

    ids = torch.tensor([tokenizer(text).input_ids])
    written = torch.tensor([[2, *tokenizer(text_target=pair).input_ids[:-1]]])
    (row,) = model.read(ReadRequest(text, pair, off((2, 1, 3))), nothing).outcome["rows"]
    assert row["place"] == written.shape[1] - 1
    stacks = ["encoder", "decoder", "cross"]
    shares = []
    for one in ([], [mine]):
        with torch.inference_mode(), hs.Instrument(network, interventions=one, stacks=stacks):
            logits = network(input_ids=ids, decoder_input_ids=written).logits
        shares.append(logits[0, -1].softmax(-1).numpy())
    for at, wanted in enumerate(shares):
        found = sorted(one[1 + at] for one in row["told"])
        assert found[-1] == pytest.approx(wanted.max(), rel=1e-4)
    assert not np.allclose(*shares)
    alone = model.read(ReadRequest(text), nothing).outcome
    assert (alone["kind"], alone["rows"]) == ("next", [])


def test_a_space_that_a_decoder_of_sentencepiece_leaves_out_is_told(decoder):
    pieces = {1: "▁cat", 2: "s"}
    tokenizer = SimpleNamespace(
        decode=lambda ids: pieces[ids[0]].removeprefix("▁"), convert_ids_to_tokens=pieces.get
    )
    opened = SimpleNamespace(model=SimpleNamespace(tokenizer=tokenizer))
    model = SimpleNamespace(opened=opened, model=opened.model)
    assert [LiveModel._token(model, number) for number in pieces] == [" cat", "s"]


def test_a_family_that_can_only_be_read_is_read_and_not_changed():
    model = loaded("DeBERTa v2")
    assert model.about["changes"] is False
    assert model.read(ReadRequest("the cat"), nothing).shown.stacks[0].attention.shape[0] == 2
    with pytest.raises(ModelError, match="it can be read, not changed"):
        model.read(ReadRequest("the cat", "", off((0, 0, 0))), nothing)


def test_all_changes_of_what_a_text_does_not_have_are_told(decoder):
    gone = Changes(off=frozenset({(2, 0, 0), (0, 1, 1)}), zero=frozenset({(0, 50), (1, 0)}))
    with pytest.raises(AbsentError, match="found changes of what is not there") as refused:
        decoder.read(ReadRequest(WORDS, "", gone), nothing)
    assert refused.value.absent == [["off", 2, 0, 0], ["zero", 0, 50], ["zero", 1, 0]]
