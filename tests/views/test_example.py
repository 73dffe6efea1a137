"""Is what a page shows what the model computed?"""

from __future__ import annotations

import base64
import dataclasses
import gzip
import json

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import headscope as hs
from headscope.cli.main import group
from headscope.errors import InputError
from headscope.views.example import show
from headscope.views.payload import encoded, payload
from headscope.views.view import View

CAT = "The cat sat on the mat unbelievably."


@pytest.fixture(scope="module")
def shown(demo):
    return show(demo, CAT, "It was tired.")


def test_the_maps_are_those_of_stock_eager_attention(demo, shown):
    inputs = demo.tokenizer(CAT, "It was tired.", return_tensors="pt")
    with torch.no_grad():
        stock = demo.network(**inputs, output_attentions=True).attentions
    np.testing.assert_allclose(shown.attention, torch.cat(stock).numpy(), atol=5e-6)


def test_tokens_segments_and_words_are_the_tokenizers(demo, shown):
    encoded_pair = demo.tokenizer(CAT, "It was tired.")
    assert shown.tokens == tuple(encoded_pair.tokens())
    assert shown.segment.tolist() == encoded_pair.token_type_ids
    assert shown.boundary == encoded_pair.token_type_ids.index(1)
    assert shown.special.tolist() == [w is None for w in encoded_pair.word_ids()]
    pieces = [w for t, w in zip(shown.tokens, shown.word, strict=True) if t in ("un", "##bel")]
    assert len(pieces) == 2
    assert len(set(pieces)) == 1
    assert shown.word[shown.boundary] == shown.word[: shown.boundary].max() + 1


def test_one_segment_has_no_boundary(demo):
    assert show(demo, CAT).boundary is None


def test_maps_that_never_look_ahead_are_causal(shown):
    n = len(shown.tokens)
    maps = np.tril(np.ones((6, 12, n, n), np.float32))
    assert dataclasses.replace(shown, attention=maps).causal
    assert not shown.causal


def test_weighted_norms_are_weights_times_norms(demo, shown):
    assert shown.weighted_norm is not None
    layer, head, query, key = 2, 3, 4, 5
    expected = shown.attention[layer, head, query, key] * shown.value_norm[layer, head, key]
    assert shown.weighted_norm[layer, head, query, key] == pytest.approx(expected)


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_text_is_refused(demo, text):
    with pytest.raises(InputError, match="empty text"):
        show(demo, text)


def test_a_text_that_is_too_long_is_refused_with_the_numbers(demo):
    with pytest.raises(InputError, match=r"has \d{3,} tokens and \d+ fit"):
        show(demo, "word " * 600)


# --- the data of a page ---------------------------------------------------------------------


def decoded(measure: dict, shape: tuple[int, ...]) -> np.ndarray:
    """As the page does it."""
    codes = np.frombuffer(gzip.decompress(base64.b64decode(measure["data"])), np.uint8)
    scale = np.array(measure["scale"]).reshape(*shape[:2], 1, 1)
    return (codes.reshape(shape) / 255) ** 2 * scale


MAPS = arrays(np.float32, (2, 3, 4, 4), elements=st.floats(0, 50, width=32))


@given(MAPS)
def test_what_is_packed_is_read_again_within_the_stated_error(maps):
    data, scale = encoded(maps)
    found = decoded({"data": data, "scale": scale}, maps.shape)
    most = np.maximum(maps.max((2, 3), keepdims=True), 1e-30)
    assert (np.abs(found - maps) <= 0.004 * most + 1e-6 * most).all()


def test_the_payload_says_what_the_example_is(shown):
    data = payload(shown)
    n = len(shown.tokens)
    assert data["tokens"] == list(shown.tokens)
    assert (data["model"]["layers"], data["model"]["heads"]) == shown.attention.shape[:2]
    assert data["model"]["causal"] is False
    weights, norms = data["measures"]
    found = decoded(weights, (6, 12, n, n))
    np.testing.assert_allclose(found, shown.attention, atol=0.004)
    factor = np.array(norms["norm"]).reshape(6, 12, 1, n)
    largest = np.array(norms["scale"]).reshape(6, 12, 1, 1)
    assert (np.abs(shown.attention * factor - shown.weighted_norm) <= 1e-5 * largest).all()
    np.testing.assert_allclose(largest[..., 0, 0], shown.weighted_norm.max((2, 3)), rtol=1e-6)


def test_more_tokens_than_can_be_shown_are_refused(shown):
    long = dataclasses.replace(shown, tokens=("a",) * 600)
    with pytest.raises(InputError, match="600 tokens; wanted at most 512"):
        payload(long)


# --- hs.view and the command ------------------------------------------------------------------


def test_a_view_saves_a_page_and_shows_itself_in_a_frame_of_its_own(demo, tmp_path):
    shown = hs.view(demo, CAT, "</script><b>it</b>")
    page = shown.save(tmp_path / "cat.html").read_bytes()
    assert page == shown.page
    assert b"<b>it" not in page
    bundle = shown._repr_mimebundle_()
    assert bundle["text/html"].startswith("<iframe")
    assert "<script" not in bundle["text/html"]  # escaped, inside srcdoc
    assert bundle["text/plain"].startswith("<headscope.View demo: 6 layers × 12 heads")


def test_the_command_writes_the_page(tmp_path):
    path = tmp_path / "cat.html"
    done = CliRunner().invoke(group, ["view", "demo", CAT, "-o", str(path), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["bytes"] == path.stat().st_size


@pytest.mark.parametrize("text", ["", " "])
def test_the_command_refuses_an_empty_text_before_the_model_is_loaded(text):
    assert CliRunner().invoke(group, ["view", "no/such-model", text]).exit_code == 2


def test_the_command_draws_the_chosen_heads(tmp_path):
    svg, png = tmp_path / "cat.svg", tmp_path / "cat.png"
    line = ["view", "demo", CAT, "-o", str(tmp_path / "c.html"), "--svg", str(svg)]
    done = CliRunner().invoke(group, [*line, "--png", str(png), "--heads", "3-9, 5-1"])
    assert done.exit_code == 0, done.output
    assert "L3·H9" in svg.read_text("utf-8")
    assert "L5·H1" in svg.read_text("utf-8")
    assert png.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("heads", ["0-1", "3", "a-b", "3-"])
def test_heads_that_are_not_layer_head_from_one_are_refused(heads):
    done = CliRunner().invoke(group, ["view", "no/such-model", CAT, "--heads", heads])
    assert isinstance(done.exception, InputError)


def test_without_a_choice_the_head_between_tokens_is_drawn(demo, shown):
    view = View(shown, [[""] * 12] * 6)
    layer, head = view._plainest()
    real = ~shown.special
    maps = shown.attention[:, :, real][..., real].copy()
    maps[..., np.eye(real.sum(), dtype=bool)] = 0
    strengths = maps.max(-1).mean(-1)  # [layer, head]
    assert strengths[layer, head] == strengths.max() > 0.5
