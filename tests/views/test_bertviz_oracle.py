"""Do the views show what BertViz shows for the same model and text: maps, filters, vectors?

What the page tells is read back in a real browser and compared with BertViz's own payloads.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

import headscope as hs
from headscope.views.view_page import payload
from views.looking import cell, shown_map
from views.looking_at_neurons import ask, column, open_head

SOME = [(0, 2), (2, 8), (5, 11)]  # heads


@pytest.fixture(scope="module")
def head_view(shared):
    return json.loads((shared / "oracles" / "bertviz_head_view_minilm.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def neuron_view(shared):
    return json.loads((shared / "oracles" / "bertviz_neuron_view_minilm.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def given(demo, head_view):
    text = head_view["input"]
    return hs.view(demo, text["text_a"], text["text_b"])


def test_tokens_boundary_and_maps_are_bertvizs(given, head_view):
    (side,), (stack,) = given.shown.sides, given.shown.stacks
    everything = head_view["attention"][0]
    assert list(side.tokens) == everything["left_text"] == everything["right_text"]
    assert side.boundary == head_view["input"]["sentence_b_start"]
    np.testing.assert_allclose(stack.attention, np.array(everything["attn"]), atol=2e-6)


def test_queries_and_keys_are_bertvizs(given, neuron_view):
    vectors = given.shown.stacks[0].vectors
    for ours, theirs in ((vectors.queries, "queries"), (vectors.keys, "keys")):
        np.testing.assert_allclose(ours, np.array(neuron_view["all"][theirs]), atol=2e-5)


@pytest.mark.parametrize("way", ["AA", "BB", "AB", "BA"])
def test_a_filter_shows_the_slice_that_bertviz_shows(opened, given, head_view, way):
    """A slice, not renormalised; [CLS] and the first [SEP] belong to A."""
    name = f"Sentence {way[0]} -> Sentence {way[1]}"
    (theirs,) = (part for part in head_view["attention"] if part["name"] == name)
    n, boundary = len(given.shown.sides[0]), given.shown.sides[0].boundary
    part = {"A": slice(0, boundary), "B": slice(boundary, n)}
    page = opened(given=payload(given.shown))
    page.select_option("#filter", way)
    for layer, head in SOME:
        page.click("#tab-model")
        cell(page, layer, head).click()
        page.locator("[data-heads=only]").click()
        shown = shown_map(page)
        wanted = np.full((n, n), np.nan)
        wanted[part[way[0]], part[way[1]]] = theirs["attn"][layer][head]
        np.testing.assert_allclose(shown, wanted, atol=0.0051)


def test_the_neuron_view_shows_bertvizs_scaled_products_and_weights(opened, given, neuron_view):
    layer, head, query = 1, 8, 3
    page = open_head(opened, payload(given.shown), layer=layer, head=head)
    ask(page, query)
    q, k = (np.array(neuron_view["all"][name][layer][head]) for name in ("queries", "keys"))
    scores = k @ q[query] / np.sqrt(32)
    np.testing.assert_allclose(column(page, "dot"), scores, atol=0.006)
    weights = np.exp(scores - scores.max())
    np.testing.assert_allclose(column(page, "weight"), weights / weights.sum(), atol=0.0002)
