"""Are maps from anywhere shown as they are, and refused with a reason where they make no sense?"""

from __future__ import annotations

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.errors import InputError
from headscope.views.view_page import payload

TOKENS = ["[CLS]", "the", "cat", "[SEP]"]


@pytest.fixture
def maps():
    """[layer, head, query, key]"""
    return np.random.default_rng(0).dirichlet(np.ones(4), (2, 3, 4)).astype(np.float32)


def test_arrays_of_any_framework_and_shape_are_the_same_maps(maps):
    given = [
        maps,
        maps.tolist(),
        torch.from_numpy(maps),
        torch.from_numpy(maps).requires_grad_(),
        tuple(torch.from_numpy(layer)[None] for layer in maps),
        maps[:, None],
    ]
    for one in given:
        (stack,) = hs.view_arrays(TOKENS, one).shown.stacks
        np.testing.assert_array_equal(stack.attention, maps)
    (stack,) = hs.view_arrays(TOKENS, torch.from_numpy(maps).bfloat16()).shown.stacks
    np.testing.assert_allclose(stack.attention, maps, atol=0.004)


def test_one_map_is_one_head(maps):
    assert hs.view_arrays(TOKENS, maps[0, 1]).shown.stacks[0].attention.shape == (1, 1, 4, 4)
    assert hs.view_arrays(TOKENS, maps[0]).shown.stacks[0].attention.shape == (1, 3, 4, 4)


def test_what_transformers_gives_is_taken_as_it_is(demo):
    inputs = demo.tokenizer("The cat sat.", return_tensors="pt")
    with torch.no_grad():
        given = demo.network(**inputs, output_attentions=True).attentions
    tokens = demo.tokenizer.convert_ids_to_tokens(inputs.input_ids[0].tolist())
    mine, ours = hs.view_arrays(tokens, given), hs.view(demo, "The cat sat.")
    np.testing.assert_allclose(
        mine.shown.stacks[0].attention, ours.shown.stacks[0].attention, atol=5e-6
    )
    assert mine.labels == ours.labels  # [CLS] and [SEP] are known by their form


def test_vectors_are_kept_with_their_scaling(maps):
    rng = np.random.default_rng(1)
    q, k = rng.normal(size=(2, 2, 3, 4, 16))
    view = hs.view_arrays(TOKENS, maps, queries=q, keys=k)
    np.testing.assert_allclose(view.shown.stacks[0].vectors.scaling, 0.25)
    other = hs.view_arrays(TOKENS, maps, queries=q, keys=k, scaling=1.0)
    np.testing.assert_allclose(other.shown.stacks[0].vectors.scaling, 1.0)


def test_cross_attention_has_tokens_of_its_own_on_either_side(maps):
    view = hs.view_arrays(["le", "chat"], maps[:, :, :2], key_tokens=TOKENS)
    rows, columns = view.shown.sides
    assert (rows.tokens, columns.tokens) == (("le", "chat"), tuple(TOKENS))
    assert view.shown.stacks[0].attention.shape == (2, 3, 2, 4)


def test_further_maps_stand_beside_attention(maps):
    view = hs.view_arrays(TOKENS, maps, measures={"rollout": maps * 3})
    (more,) = view.shown.stacks[0].measures
    assert more.name == "rollout"
    np.testing.assert_array_equal(more.maps, maps * 3)


def test_the_second_segment_and_the_words_are_those_that_are_given(maps):
    view = hs.view_arrays(TOKENS, maps, boundary=2, words=[-1, 0, 0, -1], special=[1, 0, 0, 0])
    (side,) = view.shown.sides
    assert side.segment.tolist() == [0, 0, 1, 1]
    assert side.word.tolist() == [-1, 0, 0, -1]
    assert side.special.tolist() == [True, False, False, False]


BAD = {
    "no tokens": ({"tokens": []}, "no tokens"),
    "too few tokens": ({"tokens": ["a", "b"]}, "4 rows and 4 columns for 2 and 2 tokens"),
    "a batch": ({"attention": [torch.zeros(2, 3, 4, 4)]}, "2 examples; wanted one"),
    "NaN": ({"attention": np.full((4, 4), np.nan)}, "NaN"),
    "below 0": ({"attention": -np.eye(4)}, "below 0"),
    "no probabilities": ({"attention": np.eye(4) * 2}, "sum to as much as 2"),
    "one dimension": ({"attention": np.zeros(4)}, "wanted \\[layer, head"),
    "no numbers": ({"attention": [["a"]]}, "no array of numbers"),
    "queries alone": ({"queries": np.zeros((2, 3, 4, 8))}, "wanted both"),
    "queries of other tokens": (
        {"queries": np.zeros((2, 3, 5, 8)), "keys": np.zeros((2, 3, 4, 8))},
        "queries has the shape",
    ),
    "keys of another width": (
        {"queries": np.zeros((2, 3, 4, 8)), "keys": np.zeros((2, 3, 4, 9))},
        "keys has the shape",
    ),
    "NaN among the norms": ({"value_norm": np.full((2, 3, 4), np.nan)}, "value_norm holds NaN"),
    "a measure of another shape": ({"measures": {"x": np.zeros((1, 3, 4, 4))}}, "x has the shape"),
    "special too short": ({"special": [True]}, "special has 1 entries for 4 tokens"),
    "a boundary outside": ({"boundary": 4}, "boundary is 4"),
    "labels of another model": ({"labels": [["", ""]]}, "labels do not fit 2 layers × 3 heads"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_makes_no_sense_is_refused(maps, what):
    changed, words = BAD[what]
    with pytest.raises(InputError, match=words):
        hs.view_arrays(**{"tokens": TOKENS, "attention": maps, **changed})


def resting(share, *, tokens=6):
    """[1, 2, query, key] causal maps that give so much to the first token, the rest evenly."""
    maps = np.zeros((1, 2, tokens, tokens))
    maps[..., 0, 0] = 1
    for query in range(1, tokens):
        maps[..., query, 0], maps[..., query, 1 : query + 1] = share, (1 - share) / query
    return maps


@pytest.mark.parametrize(("share", "sink"), [(0.8, True), (0.4, False)])
def test_the_first_token_of_a_decoder_is_set_aside_where_it_is_a_sink(share, sink):
    words = ["the", "cat", "sat", "on", "a", "mat"]
    shown = hs.view_arrays(words, resting(share)).shown
    (side,) = payload(shown)["sides"]
    assert side["special"] == [sink, *[False] * 5]
    assert side.get("sink", False) is sink
    assert shown.text == " ".join(words)  # what was read stays whole


def test_no_sink_is_set_aside_where_tokens_see_later_ones_or_one_stood_before():
    words = ["the", "cat", "sat", "on", "a", "mat"]
    both_ways = resting(0.8)
    both_ways[..., 1, 1:3] = 0.1
    window = resting(0.8)
    window[..., 0, 0] = 0.7
    for maps in (both_ways, window):
        assert not any(payload(hs.view_arrays(words, maps).shown)["sides"][0]["special"])
    marked = payload(hs.view_arrays(["<s>", *words[1:]], resting(0.8)).shown)["sides"][0]
    assert marked["special"][0]
    assert "sink" not in marked
