"""Is the effect of a head what comes back when W_O is given its part of the clean prompt?"""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
import pytest

from experiments.circuits.decoders import decoder, pairs
from headscope.core.intervals import estimate
from headscope.errors import InputError
from headscope.experiments.circuits.direct_logits import direct_logits
from headscope.experiments.circuits.discovery.discover import find_circuit
from headscope.experiments.circuits.head_swaps import AfterCommon
from headscope.experiments.circuits.patching import patch_heads
from headscope.experiments.circuits.prompts import Prompt, encode_prompts
from headscope.model.variants import mean_mixtures
from reference.circuits import difference, head_inputs_of_all, patched

FAMILIES = ["GPT-2", "GPT-NeoX", "Llama", "Gemma2", "Qwen3"]


def sides(model, prompts):
    asked = encode_prompts(model.model.tokenizer, prompts)
    for clean, other, right, wrong in zip(
        asked.clean, asked.corrupted, asked.right, asked.wrong, strict=True
    ):
        yield clean.input_ids, other.input_ids, int(right[0]), int(wrong[0])


def projections(network):
    names = {"gpt2": "attn.c_proj", "gpt_neox": "attention.dense", "opt": "self_attn.out_proj"}
    name = names.get(network.config.model_type, "self_attn.o_proj")
    body = network.transformer.h if "gpt2" in network.config.model_type else None
    body = body if body is not None else getattr(network, "gpt_neox", getattr(network, "model", 0))
    layers = body if hasattr(body, "__len__") else getattr(body, "decoder", body).layers
    return [layer.get_submodule(name) for layer in layers]


def by_hand(model, prompts, *, at=slice(None), share=1.0):
    """[layer, head] changes and the gap, summed over prompts, by plain hooks."""
    net, heads = model.model.network, model.model.shape.heads
    maps, changes, gap = projections(net), 0, 0.0
    for clean, other, right, wrong in sides(model, prompts):
        source = head_inputs_of_all(net, maps, clean)
        before = difference(net, other, right, wrong)
        gap += difference(net, clean, right, wrong) - before
        own = head_inputs_of_all(net, maps, other)
        changes = changes + np.array(
            [
                [
                    patched(
                        net,
                        maps[layer],
                        other,
                        (right, wrong),
                        head,
                        heads,
                        at,
                        own[layer] + share * (source[layer] - own[layer]),
                    )
                    - before
                    for head in range(heads)
                ]
                for layer in range(len(maps))
            ]
        )
    return changes, gap


@pytest.mark.parametrize("name", FAMILIES)
def test_an_effect_is_the_share_that_comes_back(name):
    model, prompts = decoder(name), pairs(7, 4, 9, seed=1)
    found = patch_heads(model, prompts, batch_tokens=60)
    changes, gap = by_hand(model, prompts)
    np.testing.assert_allclose(found["effect"], changes / gap, atol=2e-4)
    assert np.abs(changes / gap).min() > 1e-3  # else nothing was compared
    assert float(found["from"]) - float(found["into"]) == pytest.approx(gap / 3, rel=1e-3)


@pytest.mark.parametrize("name", [*FAMILIES, "Mistral", "OPT"])
def test_tokens_that_both_prompts_begin_with_run_once(name, monkeypatch):
    model, prompts = decoder(name), pairs(8, 7, 9, seed=1, common=5)
    ran: list[tuple[bool, int]] = []
    own = AfterCommon.told

    def told(self, batch, copies):
        ran.append((self.prompts.common, copies))
        return own(self, batch, copies)

    monkeypatch.setattr(AfterCommon, "told", told)
    found = patch_heads(model, prompts, batch_tokens=200)
    assert (5, 4) in ran  # all heads of a layer, without the first five tokens
    changes, gap = by_hand(model, prompts)
    np.testing.assert_allclose(found["effect"], changes / gap, atol=3e-4)


def test_no_pass_computes_logits_that_nobody_reads():
    """Those of the tokens that prompts begin with were: of 262,144 words they take gigabytes."""
    model, prompts = decoder("Gemma2"), pairs(8, 7, 9, seed=1, common=5)
    network, examples, rows = model.model.network, list[int](), list[tuple[int, int]]()
    asked = encode_prompts(model.model.tokenizer, prompts)
    words, head = network.get_input_embeddings(), network.get_output_embeddings()
    with ExitStack() as hooks:
        for module, hook in (
            (words, lambda _m, args, _out: examples.append(len(args[0]))),
            (head, lambda _m, _args, out: rows.append((out[..., 0].numel(), examples[-1]))),
        ):
            hooks.callback(module.register_forward_hook(hook).remove)
        patch_heads(model, prompts, batch_tokens=200)
        find_circuit(model, prompts, edges=True)
        before = len(rows)
        mean_mixtures(network, [model.model.batch(asked.clean)])
    assert len(rows) == before + 1
    assert all(told <= read or read == 1 for told, read in rows)  # of one prompt they are few


def test_effects_by_position_and_of_breaking():
    model, prompts = decoder("Llama"), pairs(5, 5, seed=2)
    found = patch_heads(model, prompts, positions=True)
    for place in range(5):
        changes, gap = by_hand(model, prompts, at=place)
        np.testing.assert_allclose(
            found["effect_of_position"][..., place], changes / gap, atol=2e-4
        )
    turned = [Prompt(p.corrupted, p.answer, p.wrong, p.text) for p in prompts]
    broken = patch_heads(model, turned, way="break")
    np.testing.assert_allclose(broken["effect"], found["effect"], atol=1e-5)
    assert float(broken["from"]) == pytest.approx(float(found["from"]))
    assert broken.attrs["way"] == "break"


def test_attribution_is_the_slope_of_the_effect_at_the_corrupted_prompt():
    model, prompts = decoder("Llama", exact=True), pairs(6, 6, seed=3)
    small = 1e-4
    changes, gap = by_hand(model, prompts, share=small)
    back, _ = by_hand(model, prompts, share=-small)
    whole, _ = by_hand(model, prompts)
    found = patch_heads(model, prompts)
    np.testing.assert_allclose(
        found["attribution"], (changes - back) / (2 * small * gap), rtol=1e-3, atol=1e-3
    )
    assert np.abs(found["attribution"] - whole / gap).max() > 0.01  # it is no effect


def test_the_rank_correlation_of_both_stands_beside_them():
    from scipy.stats import spearmanr

    found = patch_heads(decoder("GPT-2", num_hidden_layers=4, n_layer=4), pairs(6, 6, 8))
    wanted = spearmanr(found["effect"].values.ravel(), found["attribution"].values.ravel())
    assert float(found["rho"]) == pytest.approx(wanted.statistic)
    assert found["rho_ci_low"] < found["rho"] < found["rho_ci_high"]


def test_a_network_with_random_answers_has_no_effects():
    hits = 0
    for seed in range(8):
        told = patch_heads(decoder("GPT-2", seed=seed), pairs(*[5] * 16, seed=seed))
        hits += bool((told["effect_q"] < 0.05).any())
    assert hits <= 2  # of 8 at 5 % each: more once in 180 times
    few = patch_heads(decoder("GPT-2"), pairs(*[5] * 9))
    assert np.isnan(few["effect_q"]).all()
    assert np.isnan(few["effect_ci_low"]).all()


@pytest.mark.parametrize(
    ("change", "options", "said"),
    [
        ({"corrupted": "w5 w6"}, {}, "as 5 tokens and its corrupted prompt 'w5 w6' as 2; wanted"),
        ({"corrupted": ""}, {}, "some prompts have no corrupted text"),
        ({}, {"way": "both"}, "no way 'both' of patching; there are restore, break"),
        ({"answer": " w5 nil"}, {}, "makes of the answer ' w5 nil' 2 tokens"),
        ({"wrong": " w7", "answer": " w7"}, {}, "the answer ' w7' from the wrong one ' w7'"),
    ],
)
def test_bad_prompts_are_refused(change, options, said):
    from dataclasses import replace

    prompts = [replace(prompt, **change) for prompt in pairs(5, 5)]
    with pytest.raises(InputError, match=said):
        patch_heads(decoder("GPT-2"), prompts, **options)
    with pytest.raises(InputError, match="4 to 5 tokens; wanted one length"):
        patch_heads(decoder("GPT-2"), pairs(5, 4), positions=True)


def test_answers_of_several_tokens_are_asked_after_the_tokens_that_they_share():
    model, plain = decoder("Llama"), pairs(*[5, 6] * 6)
    longer = [
        Prompt(p.text, f" w8 w9{p.answer} w3", f" w8 w9{p.wrong}", p.corrupted, p.item)
        for p in plain
    ]
    by_hand = [
        Prompt(f"{p.text} w8 w9", p.answer, p.wrong, f"{p.corrupted} w8 w9", p.item) for p in plain
    ]
    for measure in (direct_logits, patch_heads):
        one, other = (measure(model, prompts) for prompts in (longer, by_hand))
        note = "24 answers have several tokens: the first that tells right from wrong was compared"
        assert one.attrs["notes"] == f"{other.attrs['notes']}; {note}"
        assert one.equals(other)
    with pytest.raises(InputError, match="is read as 7 tokens and its corrupted prompt 'w5' as 3"):
        patch_heads(model, [Prompt(plain[0].text, " w8 w9 w5", " w8 w9 w6", "w5")])


@pytest.mark.parametrize("way", ["restore", "break"])
def test_later_layers_add_what_is_not_written_directly(way):
    model, prompts = decoder("Llama"), pairs(*[7] * 12, seed=1)
    found = patch_heads(model, prompts, way=way)
    apart = found["effect"] - found["direct_share"]
    np.testing.assert_allclose(found["later_share"], apart, atol=1e-6)
    assert np.abs(apart).max() > 0.1
    direct, effect = (found[f"{name}_draws"].values for name in ("direct_share", "effect"))
    paired = estimate(effect - direct)  # over the same items, left out from both
    np.testing.assert_allclose(found["later_share_ci_low"], paired.low, atol=1e-6)
    np.testing.assert_allclose(found["later_share_ci_high"], paired.high, atol=1e-6)
