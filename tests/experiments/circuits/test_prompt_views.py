"""Are the numbers on the page of prompts those of plain passes of the network?"""

from __future__ import annotations

import numpy as np
import pytest
import torch

import headscope as hs
from experiments.circuits.decoders import decoder, pairs
from experiments.circuits.test_patching import projections, sides
from headscope.core.head_names import counting_from
from headscope.experiments.circuits.prompt_views import WRITERS, followed_heads, prompt_views
from headscope.experiments.circuits.prompts import Prompt, encode_prompts
from reference.circuits import difference, head_inputs, head_inputs_of_all, normed, patched

EVERY = pairs(7, 4, 5, seed=3)
FOLLOWED = [(0, 1), (1, 0), (1, 2)]


@pytest.fixture(scope="module")
def seen():
    model = decoder("Llama")
    asked = encode_prompts(model.model.tokenizer, EVERY)
    return (
        model,
        EVERY[:2],
        prompt_views(model, asked, shown=2, followed=FOLLOWED, batch_tokens=200),
    )


def log_p(model, ids):
    with torch.no_grad():
        logits = model.model.network(input_ids=torch.as_tensor(ids)[None]).logits[0]
    return logits.double().log_softmax(-1).numpy()


def test_probability_rank_and_loss_of_every_token_and_of_the_answer(seen):
    model, prompts, found = seen
    for at, (clean, _, right, wrong) in enumerate(sides(model, prompts)):
        told, n = log_p(model, clean), len(clean)
        own = told[np.arange(n - 1), clean[1:]]
        wanted = [np.exp(own), 1 + (told[:-1] > own[:, None]).sum(1), -own]
        np.testing.assert_allclose(found["told"][at, :, 1:n], wanted, rtol=1e-4)
        assert np.isnan(found["told"][at, :, 0]).all()
        assert np.isnan(found["told"][at, :, n:]).all()
        for end, token in enumerate((right, wrong)):
            rank = 1 + (told[-1] > told[-1, token]).sum()
            wanted = [np.exp(told[-1, token]), rank, -told[-1, token]]
            np.testing.assert_allclose(found["outcome"][at, :, end], wanted, rtol=1e-4)
        assert found["outcome_text"][at].values.tolist() == [f"w{right}", f"w{wrong}"]
        assert "".join(found["token_text"][at].values) == prompts[at].text.replace(" ", "")


@pytest.mark.parametrize("name", ["lost", "lost_mean"])
def test_what_is_lost_without_a_head_is_what_w_o_makes_of_zeros_or_its_mean(seen, name):
    model, prompts, found = seen
    net, heads = model.model.network, model.model.shape.heads
    maps = projections(net)
    texts = [ids for clean, corrupted, _, _ in sides(model, EVERY) for ids in (clean, corrupted)]
    every = [head_inputs_of_all(net, maps, ids) for ids in texts]  # [text][layer] [token, model]
    means = [torch.cat(layer).mean(0) for layer in zip(*every, strict=True)]
    for at, (clean, _, right, wrong) in enumerate(sides(model, prompts)):
        whole = difference(net, clean, right, wrong)
        wanted = [
            [
                whole
                - patched(
                    net,
                    one,
                    clean,
                    (right, wrong),
                    head,
                    heads,
                    slice(None),
                    (mean * (name == "lost_mean")).expand(len(clean), -1),
                )
                for head in range(heads)
            ]
            for one, mean in zip(maps, means, strict=True)
        ]
        np.testing.assert_allclose(found[name][at], wanted, atol=2e-5)
        assert np.abs(wanted).max() > 0.01
        assert float(found["difference"][at]) == pytest.approx(whole, abs=1e-5)


def test_what_heads_write_adds_up_by_source_and_with_the_rest(seen):
    model, prompts, found = seen
    direct = hs.prompts.direct_logits(model, prompts)
    np.testing.assert_allclose(found["direct"], direct["direct_of_prompt"], atol=1e-6)
    np.testing.assert_allclose(found["source"].sum("token"), found["direct"], atol=1e-5)
    whole = found["direct"].sum(("layer", "head")) + found["rest"].sum("part")
    np.testing.assert_allclose(whole, found["difference"], atol=1e-4)
    np.testing.assert_allclose(found["attention"].sum("token"), 1, atol=1e-5)
    assert np.isnan(found["attention"][1, ..., 4:]).all()


def test_what_heads_write_to_the_answer_alone_lies_above_the_mean_of_all_tokens(seen):
    model, prompts, found = seen
    net, heads, kept = model.model.network, model.model.shape.heads, []
    ahead = net.lm_head.weight - net.lm_head.weight.mean(0)
    maps, norm = projections(net), net.model.norm
    hook = norm.register_forward_pre_hook(lambda _m, args: kept.append(args[0]))
    for at, (clean, _, right, _) in enumerate(sides(model, prompts)):
        for layer, (one, z) in enumerate(
            zip(maps, head_inputs(net, maps, clean.tolist()), strict=True)
        ):
            own = one.weight.view(len(one.weight), heads, -1)  # [model, head, dim]
            parts = torch.einsum("mhd,hd->hm", own, z.view(heads, -1))
            parts = normed(
                parts, kept[-1][0, -1], norm.weight, centred=False, epsilon=norm.variance_epsilon
            )
            told = found["to_answer"][at, layer].sum("token")
            np.testing.assert_allclose(told, (parts @ ahead[right]).detach(), atol=1e-5)
    hook.remove()


def test_paths_are_those_of_path_patch_in_logits(seen):
    model, prompts, found = seen
    assert found["followed"].values.tolist() == [layer * 4 + head for layer, head in FOLLOWED]
    for at, prompt in enumerate(prompts):
        one = hs.prompts.path_patch(model, [prompt], senders=FOLLOWED, receivers=FOLLOWED)
        wanted = one["path"] * float(found["gap"][at])
        np.testing.assert_allclose(found["path"][at], wanted, atol=2e-5)
    assert np.nanmax(np.abs(found["path"])) > 1e-4


def test_what_wrote_the_strongest_score_of_a_followed_head_is_that_of_score_parts(seen):
    model, prompts, found = seen
    for at, (clean, *_) in enumerate(sides(model, prompts)):
        for unit, head in enumerate(FOLLOWED):
            key, last = int(found["looked_at"][at, unit]), len(clean) - 1
            attention = found["attention"][at, head[0], head[1], : last + 1]
            assert key == int(np.argmax(attention.values))
            parts = hs.prompts.score_parts(model, clean.tolist(), head, last, key)
            for side, name in enumerate(("query_contrast", "key_contrast")):
                own = parts[name].to_series()
                largest = own[own.abs().sort_values(ascending=False).index][:WRITERS]
                names = [one for one in found["writer"][at, unit, side].values if one]
                assert names == largest.index.tolist()
                values = found["wrote"][at, unit, side].values[: len(names)]
                np.testing.assert_allclose(values, largest, rtol=1e-4, atol=1e-5)
    assert {"token embedding", "MLP 1"} <= set(found["writer"].values.ravel())


def test_names_in_a_run_count_from_1_whatever_the_options(seen):
    model, prompts, found = seen
    asked = encode_prompts(model.model.tokenizer, prompts)
    with counting_from(0):
        other = prompt_views(model, asked, shown=1, followed=FOLLOWED, batch_tokens=200)
    assert (other["writer"][0] == found["writer"][0]).all()


def test_what_both_answers_begin_with_ends_the_prompt_and_the_compared_token_is_named():
    model = decoder("Llama")
    prompts = [Prompt("w5 w6", " w8 w9 w7", " w8 w4", "w6 w5")]
    asked = encode_prompts(model.model.tokenizer, prompts)
    found = prompt_views(model, asked, shown=1, batch_tokens=200)
    assert found["token_text"].values.tolist() == [["w5", "w6", "w8"]]
    assert found["outcome_text"].values.tolist() == [["w9", "w4"]]


def test_followed_heads_are_the_largest_of_each_number_in_turn():
    written, moved = np.zeros((4, 4)), np.zeros((4, 4))
    written.flat[[3, 9, 12]] = 3, -2, 1
    moved.flat[[5, 9, 0]] = -3, 2, 1
    assert followed_heads(written, moved)[:5] == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0)]
    assert {(0, 3), (1, 1), (2, 1), (3, 0), (0, 0)} <= set(followed_heads(written, moved))
    assert len(followed_heads(written, moved)) == 10
