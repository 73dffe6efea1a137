"""Does a model know the answers, and is that said of independent items only?"""

from __future__ import annotations

import numpy as np
import pytest
import torch
import xarray as xr
from scipy.stats import beta, binomtest

import headscope as hs
from experiments.circuits import made
from experiments.circuits.decoders import decoder, pairs
from headscope.experiments.circuits import made_prompts
from headscope.experiments.circuits.over_items import accuracy, knows_answers
from headscope.experiments.circuits.prompts import encode_prompts
from headscope.experiments.circuits.written_answers import RULES
from recorded import claims

SIGNS = ".,<s>"


def share_of(right, items):
    return accuracy([str(one) for one in items], np.where(right, 1.0, -1.0))


@pytest.mark.parametrize("count", [10, 20, 40])
def test_of_independent_prompts_it_says_what_the_binomial_test_says(count):
    for right in range(count + 1):
        share = share_of(np.arange(count) < right, range(count))
        p = binomtest(right, count, 0.5, alternative="greater").pvalue
        if not 0.015 < p < 0.035:  # at the very edge a wider interval may say less
            assert knows_answers(share).holds == (p < 0.025), right
        assert float(share.value) == right / count


@pytest.mark.parametrize("each", [2, 6])
@pytest.mark.parametrize("items", [10, 16, 40])
def test_who_tosses_a_coin_for_each_item_is_seldom_taken_to_know(items, each):
    rng = np.random.default_rng(items * each)
    tosses = rng.integers(2, size=(400, items)).astype(bool).repeat(each, 1)
    known = [knows_answers(share_of(one, np.arange(items).repeat(each))).holds for one in tosses]
    assert np.mean(known) < 0.05  # wanted 0.025; more than 0.05 by chance once in 300 times


def test_who_always_gives_one_of_two_swapped_answers_does_not_know():
    share = share_of(np.arange(60) % 2 == 0, np.arange(60) // 2)
    assert float(share.value) == 0.5
    assert not knows_answers(share).holds
    all_equal = accuracy([str(at // 2) for at in range(60)], np.zeros(60))
    assert float(all_equal.value) == 0
    assert not knows_answers(share_of(np.ones(9), range(9))).holds  # too few items


def test_an_item_counts_once_however_many_prompts_it_has():
    one = share_of(np.ones(12), range(12))
    other = share_of(np.ones(72), np.arange(12).repeat(6))
    assert (float(other.low), float(other.high)) == (float(one.low), float(one.high))
    assert float(one.low) == pytest.approx(beta.ppf(0.025, 12.5, 0.5))  # Jeffreys, of 12 questions


def test_accuracy_is_how_often_the_answer_has_the_larger_logit():
    model, prompts = decoder("Llama"), pairs(*[5, 7] * 12)
    asked = encode_prompts(model.model.tokenizer, prompts)
    right = []
    for example, one, other in zip(asked.clean, asked.right, asked.wrong, strict=True):
        with torch.no_grad():
            ids = torch.from_numpy(example.input_ids)[None]
            logits = model.model.network(input_ids=ids).logits[0, -1]
        right.append(bool(logits[one[0]] > logits[other[0]]))
    assert 0 < sum(right) < len(right)
    direct = hs.prompts.direct_logits(model, prompts)
    for way in ("restore", "break"):  # the clean prompts are those asked, whatever is patched
        patched = hs.prompts.patch_heads(model, prompts, way=way)
        for end in ("", "_ci_low", "_ci_high"):
            assert float(patched[f"accuracy{end}"]) == float(direct[f"accuracy{end}"])
        assert patched.attrs["notes"] == direct.attrs["notes"]
    assert float(direct["accuracy"]) == pytest.approx(np.mean(right))


@pytest.mark.parametrize("knows", [True, False])
def test_a_network_wired_to_induce_answers_and_one_whose_head_is_off_does_not(knows, monkeypatch):
    words = " ".join(word for word in made.WORDS if word not in SIGNS)
    monkeypatch.setattr(made_prompts, "THINGS", words)
    network, size = made.wired(), made.DIM
    attention = network.transformer.h[1].attn
    with torch.no_grad():  # the second head sees what the first sees, and writes noise:
        for start in range(0, 6 * size, 2 * size):  # else no effect varies, none has an interval
            first = slice(start, start + size), slice(start + size, start + 2 * size)
            for some in (attention.c_attn.weight.T, attention.c_attn.bias):
                some[first[1]] = some[first[0]]
        noise = torch.randn(size, 2 * size, generator=torch.manual_seed(0))
        attention.c_proj.weight[size:] = 0.1 * noise
        if not knows:
            attention.c_proj.weight[:size] = 0
    model = made.language_model(network)
    patched = hs.prompts.patch_heads(model, "induction")
    assert (float(patched["accuracy"]) == 1) == knows
    assert patched.attrs["notes"].startswith("cannot tell") != knows
    if knows:
        np.testing.assert_allclose(patched["effect"], [[0, 0], [1, 0]], atol=0.2)
        assert patched["effect"][1, 0] != 1
    tree = xr.DataTree.from_dict({"writes": patched})
    passed = [one for one in claims(tree, "writes") if RULES[one.kind].passes(one)]
    heads = {(one.kind, one.layer, one.head) for one in passed}
    assert heads == ({(kind, 1, 0) for kind in RULES} if knows else set())
