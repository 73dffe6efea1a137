"""Do the parts of a logit difference add up to it, and is each head's its own?"""

from __future__ import annotations

import gc
import re
from weakref import ref

import numpy as np
import pytest
import torch

from experiments.circuits.decoders import ADDING, decoder, network, pairs, words
from headscope.errors import ModelError
from headscope.experiments.circuits import direct_logits as direct_logits_of
from headscope.experiments.circuits import residual_parts
from headscope.experiments.circuits.direct_logits import direct_logits, written
from headscope.experiments.circuits.prompts import encode_prompts
from headscope.experiments.circuits.residual_parts import Cut
from reference.circuits import head_inputs, normed


def parts_of(model, prompts):
    asked = encode_prompts(model.model.tokenizer, prompts)
    return written(model, asked.clean, asked, batch_tokens=40), asked


def last_logits(network, example):
    with torch.no_grad():
        return network(input_ids=torch.from_numpy(example.input_ids)[None]).logits[0, -1]


@pytest.mark.parametrize("name", [*ADDING, "OPT post-norm"])
def test_heads_mlps_embedding_and_biases_add_up_to_the_logit_difference(name):
    model = decoder(name, exact=True)
    told, asked = parts_of(model, pairs(7, 4, 9, 4))
    capped = getattr(model.model.network.config, "final_logit_softcapping", None)
    scale = getattr(model.model.network.config, "logit_scale", None) or 1
    for at, example in enumerate(asked.clean):
        logits = last_logits(model.model.network, example) / scale
        if capped:  # the parts are of what the head gives before it
            logits = capped * torch.atanh(logits / capped)
        wanted = logits[asked.right[at]] - logits[asked.wrong[at]]
        # transformers computes the softmax of most families in float32
        assert told.difference[at] == pytest.approx(float(wanted), abs=1e-4)
    assert np.abs(told.rest).max() < 1e-9
    assert bool(told.after) == bool(capped or scale != 1)
    assert np.abs(told.heads).min() > 1e-4  # else nothing was added
    np.testing.assert_allclose([s.sum(-1) for s in told.sources], told.heads, atol=1e-12)


@pytest.mark.parametrize("name", ["GPT-2", "Llama", "Gemma2"])
def test_in_half_precision_heads_write_the_same_but_for_its_rounding(name):
    wanted, half = parts_of(decoder(name), pairs(7, 4))[0], decoder(name)
    half.model.network.to(torch.bfloat16)
    own, _ = parts_of(half, pairs(7, 4))
    np.testing.assert_allclose(own.heads, wanted.heads, atol=0.05 * np.abs(wanted.heads).max())


def written_by_hand(model, example, right, wrong):
    """[layer, head] from what W_O is given, and the norms' formulas; float64."""
    net, config = model.model.network, model.model.network.config
    gpt2, gemma = config.model_type == "gpt2", config.model_type.startswith("gemma")
    layers = net.transformer.h if gpt2 else net.model.layers
    maps = [x.attn.c_proj if gpt2 else x.self_attn.o_proj for x in layers]
    last = net.transformer.ln_f if gpt2 else net.model.norm
    epsilon = config.layer_norm_epsilon if gpt2 else config.rms_norm_eps
    final: list[torch.Tensor] = []
    net.requires_grad_(False)
    hook = last.register_forward_pre_hook(lambda _, args: final.append(args[0][0, -1]))
    ids = example.input_ids.tolist()
    given = head_inputs(net, maps, ids)
    hook.remove()

    def gain(norm):
        return 1 + norm.weight if gemma else norm.weight

    out = np.zeros((len(layers), config.num_attention_heads))
    for at, (z, module) in enumerate(zip(given, maps, strict=True)):
        matrix = module.weight if gpt2 else module.weight.T  # [head · dim, model]
        after = z @ matrix
        parts = torch.stack(
            [
                one @ rows
                for one, rows in zip(
                    z.view(out.shape[1], -1),
                    matrix.reshape(out.shape[1], -1, len(after)),
                    strict=True,
                )
            ]
        )
        if config.model_type == "gemma2":  # attention is normed, then added
            own = gain(layers[at].post_attention_layernorm)
            parts = torch.stack(
                [normed(p, after, own, centred=False, epsilon=epsilon) for p in parts]
            )
        ahead = net.lm_head.weight[right] - net.lm_head.weight[wrong]
        for head, part in enumerate(parts):
            seen = normed(part, final[0], gain(last), centred=gpt2, epsilon=epsilon)
            out[at, head] = float(seen @ ahead)
    return out


@pytest.mark.parametrize("name", ["GPT-2", "Llama", "Gemma", "Gemma2"])
def test_each_head_writes_what_its_own_part_becomes_behind_the_norms(name):
    model = decoder(name, exact=True)
    told, asked = parts_of(model, pairs(7, 4, 9))
    for at, example in enumerate(asked.clean):
        (right,), (wrong,) = asked.right[at], asked.wrong[at]
        wanted = written_by_hand(model, example, right, wrong)
        np.testing.assert_allclose(told.heads[at], wanted, atol=1e-5)


@pytest.mark.parametrize("split", [False, True])
def test_no_graph_outlives_its_batch(split, monkeypatch):
    """Until Python happened to look for cycles, a batch of a large model held a gigabyte."""
    held = list[ref]()

    class Watched(Cut):
        def __init__(self, *request):
            super().__init__(*request)
            held.append(ref(self))

    for place in (direct_logits_of, residual_parts):
        monkeypatch.setattr(place, "Cut", Watched)
    model = decoder("Llama")
    prompts = encode_prompts(model.model.tokenizer, pairs(7, 4, 9, seed=1))
    assert model.model.shape.layers
    gc.disable()
    try:
        if split:
            residual_parts.split_layer(model.model, model.model.batch(prompts.clean[:1]), 1)
        else:
            direct_logits_of.written(model, prompts.clean, prompts, batch_tokens=60)
        assert held
        assert all(one() is None for one in held)
    finally:
        gc.enable()


def test_a_source_token_counts_by_its_weight_and_its_vector():
    model = decoder("GPT-2", exact=True)
    told, asked = parts_of(model, pairs(6))
    net, ids = model.model.network, torch.from_numpy(asked.clean[0].input_ids)[None]
    block, last = net.transformer.h[1].attn, net.transformer.ln_f
    kept: list[torch.Tensor] = []
    hooks = [
        block.c_attn.register_forward_hook(lambda _m, _a, out: kept.append(out[0, :, 64:])),
        last.register_forward_pre_hook(lambda _m, args: kept.append(args[0][0, -1])),
    ]
    with torch.no_grad():
        maps = net(input_ids=ids, output_attentions=True).attentions[1][0, :, -1]  # [head, key]
        for hook in hooks:
            hook.remove()
        values, final = kept[0].view(6, 4, 8), kept[1]
        ahead = net.lm_head.weight[asked.right[0][0]] - net.lm_head.weight[asked.wrong[0][0]]
        vectors = torch.einsum("khd,hdm->hkm", values, block.c_proj.weight.view(4, 8, 32))
        parts = normed(
            vectors * maps[..., None],
            final,
            last.weight,
            centred=True,
            epsilon=net.config.layer_norm_epsilon,
        )
    np.testing.assert_allclose(told.sources[0][1], (parts @ ahead).numpy(), atol=1e-6)


def test_the_answers_loss_rank_and_probability_are_those_of_the_logits():
    model = decoder("Llama")
    told, asked = parts_of(model, pairs(7, 5))
    for at, example in enumerate(asked.clean):
        p = last_logits(model.model.network, example).double().softmax(-1).numpy()
        own = p[asked.right[at][0]]
        assert told.probability[at] == pytest.approx(own, rel=1e-4)
        assert told.loss[at] == pytest.approx(-np.log(own), rel=1e-4)
        assert told.rank[at] == 1 + (p > own).sum()


def test_a_module_between_the_values_and_their_projection_is_refused():
    said = "has another module between the values and its output projection"
    with pytest.raises(ModelError, match=said):
        parts_of(decoder("BitNet"), pairs(5))


@pytest.mark.parametrize(
    ("place", "said"), [(0, "its parts differ from the whole"), (1, "its parts differ")]
)
def test_a_stream_that_is_bent_behind_a_layer_is_refused(place, said):
    model = decoder("Llama")
    layer = model.model.network.model.layers[place]
    hook = layer.register_forward_hook(lambda _m, _a, out: out + 0.1 * out.square())
    try:
        with pytest.raises(ModelError, match=said):
            parts_of(model, pairs(5))
    finally:
        hook.remove()


def test_an_encoder_and_a_model_without_head_are_refused(tmp_path):
    from experiments.importance.made import language_model

    with pytest.raises(ModelError, match="an encoder; wanted a decoder"):
        direct_logits(language_model(tmp_path / "masked"))
    bare = network("Llama").model
    bare.save_pretrained(tmp_path / "bare")
    words().save_pretrained(tmp_path / "bare")
    with pytest.raises(ModelError, match="has no language-model head"):
        direct_logits(tmp_path / "bare")


def test_intervals_are_over_items_and_few_items_have_none():
    model = decoder("Llama")
    whole = direct_logits(model, pairs(*[5] * 24, item=2))
    assert whole.attrs["n"] == 12
    assert re.fullmatch(r"cannot tell what heads do [^;]*", whole.attrs["notes"])
    by_item = whole["direct_of_prompt"].values.reshape(12, 2, 2, 4).mean(1)
    error = by_item.std(0, ddof=1) / np.sqrt(12)
    width = (whole["direct_ci_high"] - whole["direct_ci_low"]).values
    assert ((width > 3 * error) & (width < 8 * error)).all()
    few = direct_logits(model, pairs(*[5] * 18, item=2))
    assert "9 independent items: values without intervals" in few.attrs["notes"]
    assert np.isnan(few["direct_ci_low"]).all()
    assert np.isfinite(few["direct"]).all()
