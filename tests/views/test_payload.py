"""Is the data of a page what was captured, within the stated error, and no larger than allowed?"""

from __future__ import annotations

import base64
import gzip
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import headscope as hs
from headscope.errors import InputError
from headscope.views.capture import capture_example
from headscope.views.packed_arrays import coded_head, coded_maps, coded_norms, levels_for, plainest
from headscope.views.view_arrays import view_arrays
from headscope.views.view_page import payload

CAT = "The cat sat on the mat unbelievably."


@pytest.fixture(scope="module")
def shown(demo):
    return capture_example(demo, CAT, "It was tired.")


def raw(text: str) -> bytes:
    return gzip.decompress(base64.b64decode(text))


def read_maps(measure: dict, shape: tuple[int, ...]) -> np.ndarray:
    """As the page does it: [layer, head, query, key]."""
    _, heads, queries, keys = shape
    layers = [np.frombuffer(raw(text), np.uint8) for text in measure["data"]]
    codes = np.stack(layers).reshape(-1, heads, keys, queries).swapaxes(2, 3)
    scale = np.broadcast_to(
        np.reshape(measure["scale"], (-1, 1, 1, 1)), (codes.shape[0] * heads, 1, 1, 1)
    )
    scale = scale.reshape(codes.shape[0], heads, 1, 1)
    return np.minimum(codes / measure["levels"], 1) ** 2 * scale


def read_head(
    text: str, *, queries: int, keys: int, dim: int, bias: bool, bits: int = 8
) -> list[np.ndarray]:
    """Weights, q, k and bias of one head's block."""
    data, at = raw(text), 0
    kind, top = {8: ("i1", 127.0), 16: ("<i2", 32767.0)}[bits]

    def take(code, *shape):
        nonlocal at
        found = np.frombuffer(data, code, int(np.prod(shape)), at).reshape(shape)
        at += found.nbytes
        return found

    def signed(codes, scale):
        return np.sign(codes) * (codes / top) ** 2 * scale[:, None]

    high, low = take("u1", queries, keys), take("u1", queries, keys)
    found = [((high.astype(int) * 256 + low) / 65535) ** 2]
    if dim:
        q_scale, k_scale = take("<f4", queries), take("<f4", keys)
        q, k = take(kind, queries, dim), take(kind, keys, dim)
        found += [signed(q, q_scale), signed(k, k_scale)]
    if bias:
        scale = take("<f4", 1)
        found.append(signed(take(kind, 1, queries * keys), scale).reshape(queries, keys))
    assert at == len(data)
    return found


SHARES = arrays(np.float32, (2, 3, 4, 5), elements=st.floats(0, 1, width=32))
NORMS = arrays(np.float32, (2, 3, 4), elements=st.floats(0, 50, width=32))


@given(SHARES, st.sampled_from([255.0, 127.5, 51]))
def test_a_map_is_read_again_within_half_a_step_of_its_root(maps, levels):
    data = coded_maps(maps, scale=1.0, levels=levels)
    found = read_maps({"data": data, "scale": 1, "levels": levels}, maps.shape)
    assert np.abs(np.sqrt(found) - np.sqrt(maps)).max() <= 0.5 / levels + 1e-6


@given(SHARES)
def test_a_head_has_a_scale_of_its_own_where_it_is_no_probability(maps):
    maps = maps * 40
    scale = np.maximum(maps.max((2, 3)), 1e-3)
    data = coded_maps(maps, scale=scale, levels=255.0)
    found = read_maps({"data": data, "scale": scale.ravel(), "levels": 255}, maps.shape)
    assert (np.abs(found - maps) <= 0.005 * scale[..., None, None]).all()


@given(NORMS)
def test_norms_are_read_again(norms):
    text, scale = coded_norms(norms)
    found = np.frombuffer(raw(text), "<u2").reshape(norms.shape) / 65535 * scale[..., None]
    np.testing.assert_allclose(found, norms, atol=1e-5 * max(norms.max(), 1e-3))


@given(st.integers(0, 2**31), st.sampled_from([8, 16]))
def test_a_head_with_everything_is_read_again(seed, bits):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(4), 3).astype(np.float32)
    q, k = (rng.normal(0, 3, (n, 6)).astype(np.float32) for n in (3, 4))
    bias = rng.normal(0, 5, (3, 4)).astype(np.float32)
    block = coded_head(weights, q, k, bias, bits=bits)
    alpha, *rest = read_head(block, queries=3, keys=4, dim=6, bias=True, bits=bits)
    np.testing.assert_allclose(alpha, weights, atol=2e-5)
    for found, true in zip(rest, (q, k, bias), strict=True):
        largest = np.abs(true).max(-1 if true is not bias else None, keepdims=True)
        root = np.abs(np.sqrt(np.abs(found) / largest) - np.sqrt(np.abs(true) / largest))
        assert root.max() <= 0.5 / (2 ** (bits - 1) - 1) + 1e-6
        strong = np.abs(true) > 1e-3 * largest
        assert (np.sign(found) == np.sign(true))[strong].all()


def test_the_payload_says_what_the_example_is(shown):
    data = payload(shown)
    (side,), (stack,) = data["sides"], data["stacks"]
    n = len(shown.sides[0])
    assert side["tokens"] == list(shown.sides[0].tokens)
    assert (stack["layers"], stack["heads"], stack["causal"]) == (6, 12, False)
    weights, norms = stack["measures"]
    found = read_maps(weights, (6, 12, n, n))
    np.testing.assert_allclose(found, shown.stacks[0].attention, atol=0.004)
    assert norms["norm_scale"] == pytest.approx(shown.stacks[0].value_norm.max(-1).ravel())
    assert norms["scale"] == pytest.approx(shown.stacks[0].weighted_norm.max((2, 3)).ravel())
    json.dumps(data, allow_nan=False)


def test_vectors_on_the_page_give_the_exact_weights_on_the_page(shown):
    """Every head of a short text: the softmax of what is stored, against what is stored."""
    (stack,) = payload(shown)["stacks"]
    detail, n = stack["detail"], len(shown.sides[0])
    assert len(detail["heads"]) == 72
    assert (detail["why"], detail["bits"]) == ("", 16)
    for (layer, head), block in zip(detail["heads"], detail["blocks"], strict=True):
        alpha, q, k = read_head(block, queries=n, keys=n, dim=detail["dim"], bias=False, bits=16)
        true = shown.stacks[0].attention[layer, head]
        np.testing.assert_allclose(alpha, true, atol=2e-5)
        scores = detail["scaling"][layer] * q @ k.T
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        np.testing.assert_allclose(weights / weights.sum(-1, keepdims=True), true, atol=2e-4)


def long_example(tokens: int, *, layers: int = 12, heads: int = 12):
    """Maps as spread as those of a contrastively trained model, and vectors of 64 numbers."""
    rng = np.random.default_rng(1)
    scores = rng.normal(0, 1.5, (layers, heads, tokens, tokens)).astype(np.float32)
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    vectors = rng.normal(0, 1, (2, layers, heads, tokens, 64)).astype(np.float32)
    names = ["[CLS]", *map(str, range(tokens - 2)), "[SEP]"]
    return view_arrays(names, weights, queries=vectors[0], keys=vectors[1])


def test_as_many_heads_have_vectors_as_fit_and_the_page_says_how_many():
    view = long_example(60)
    (stack,) = payload(view.shown)["stacks"]
    there = len(stack["detail"]["heads"])
    assert 4 < there < 144
    assert f"vectors of {there} of 144 heads" in stack["detail"]["why"]
    assert len(json.dumps(payload(view.shown))) < 1_000_000
    assert (
        stack["detail"]["heads"]
        == [list(p) for p in plainest(view.shown.stacks[0], view.shown.sides)][:there]
    )


def test_heads_that_are_asked_for_have_vectors_whatever_they_take(shown):
    (stack,) = payload(shown, detail=[(2, 3), (0, 11)])["stacks"]
    assert stack["detail"]["heads"] == [[2, 3], [0, 11]]
    (stack,) = payload(shown, detail="none")["stacks"]
    assert stack["detail"]["heads"] == []
    assert "none of 72 heads" in stack["detail"]["why"]
    with pytest.raises(InputError, match=r"L7·H1 .* 6 layers × 12 heads"):
        payload(shown, detail=[(6, 0)])
    with pytest.raises(InputError, match="wanted auto, all, none"):
        payload(shown, detail="some")


def test_the_plainest_head_gives_other_ordinary_tokens_most(shown):
    stack, side = shown.stacks[0], shown.sides[0]
    layer, head = plainest(stack, shown.sides)[0]
    real = ~side.special
    maps = stack.attention[:, :, real][..., real].copy()
    maps[..., np.eye(real.sum(), dtype=bool)] = 0
    strengths = maps.max(-1).mean(-1)  # [layer, head]
    assert strengths[layer, head] == strengths.max() > 0.5


def test_longer_examples_are_coded_in_fewer_steps_and_say_so(shown):
    assert [levels_for(n) for n in (144 * 60**2, 144 * 128**2, 144 * 512**2)] == [255, 127.5, 51]
    assert "0.25 may be off by 0.002" in payload(shown)["precision"]
    assert "5 digits" in payload(shown)["precision"]
    assert "5 digits" not in payload(shown, detail="none")["precision"]


@pytest.mark.parametrize(("tokens", "most"), [(120, 1_815_000), (500, 12_000_000)])
def test_a_page_of_a_real_model_of_twelve_by_twelve_heads_is_this_small(shared, tokens, most):
    """All maps of all heads. A model whose heads attend broadly: others are smaller."""
    model = hs.load(str(shared / "models" / "e5-small"))
    words = (shared / "data" / "wikitext2" / "valid.txt").read_text("utf-8").split()[30:]
    words = [word for word in words if word != "<unk>"][:tokens]
    while len(model.tokenizer(" ".join(words), verbose=False).input_ids) > tokens + 8:
        words.pop()
    view = hs.view(model, " ".join(words))
    (side,) = view.shown.sides
    assert tokens < len(side) <= tokens + 8
    assert len(view.page) < most
