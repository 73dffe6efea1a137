"""Do paths, function vectors and knockouts change what they say, and nothing else?"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from experiments.circuits.decoders import decoder, english_decoder, pairs
from experiments.circuits.test_patching import projections, sides
from headscope.errors import InputError
from headscope.experiments.circuits.head_paths import (
    VIA,
    function_vectors,
    knockouts,
    path_patch,
)
from headscope.experiments.circuits.made_prompts import few_shots
from headscope.experiments.circuits.prompts import encode_prompts
from headscope.model.variant_answers import naive
from headscope.model.variants import StandIn, single_heads
from reference.circuits import difference, head_inputs_of_all, patched


def set_to(module, value, at):
    """A hook that writes a part of what a module gives, or (given a slice) of what it is given."""

    def change(_module, _args, output):
        output = output.clone()
        output[0, :, at] = value[:, at]
        return output

    return module.register_forward_hook(change)


def path_by_hand(net, maps, ids, sender, receiver, via):
    """The logit difference where one projection's output of the receiver is as it would be."""
    clean, other, right, wrong = ids
    (low, one), (high, two), layers = sender, receiver, net.model.layers
    source, own = head_inputs_of_all(net, maps, clean), head_inputs_of_all(net, maps, other)
    size = own[0].shape[1] // 4
    hooks = []
    for at, module in enumerate(maps):
        given = own[at].clone()
        if at == low:
            given[:, one * size : (one + 1) * size] = source[at][:, one * size : (one + 1) * size]
        if at >= low:
            hooks.append(
                module.register_forward_pre_hook(lambda _m, _a, given=given: (given[None],))
            )
    part = getattr(layers[high].self_attn, f"{via}_proj")
    kept: list[torch.Tensor] = []
    hooks.append(part.register_forward_hook(lambda _m, _a, out: kept.append(out[0].clone())))
    difference(net, other, right, wrong)
    for hook in hooks:
        hook.remove()
    hook = set_to(part, kept[0], slice(two * size, (two + 1) * size))
    try:
        return difference(net, other, right, wrong)
    finally:
        hook.remove()


def test_a_path_is_what_the_receiver_makes_of_the_sender_alone():
    model = decoder("Llama", num_key_value_heads=4, num_hidden_layers=3)
    prompts, net = pairs(6, 4, seed=4), model.model.network
    senders, receivers = [(0, 1), (1, 2)], [(1, 0), (2, 3), (0, 0)]
    found = path_patch(model, prompts, senders=senders, receivers=receivers)["path"]
    changes, gap = np.zeros((2, 3, 3)), 0.0
    for clean, other, right, wrong in sides(model, prompts):
        before = difference(net, other, right, wrong)
        gap += difference(net, clean, right, wrong) - before
        for s, sender in enumerate(senders):
            for r, receiver in enumerate(receivers):
                for v, via in enumerate(VIA):
                    if receiver[0] > sender[0]:
                        after = path_by_hand(
                            net,
                            projections(net),
                            (clean, other, right, wrong),
                            sender,
                            receiver,
                            via,
                        )
                        changes[s, r, v] += after - before
    there = np.array([[r[0] > s[0] for r in receivers] for s in senders])
    np.testing.assert_allclose(found.values[there], (changes / gap)[there], atol=2e-4)
    assert np.isnan(found.values[~there]).all()
    assert np.abs(changes[there]).min() > 1e-5
    assert found["sender"].values.tolist() == ["0.1", "1.2"]  # from 0, whatever names count from
    with pytest.raises(InputError, match="the model has 3 layers of 4 heads"):
        path_patch(model, prompts, senders=[(0, 4)], receivers=receivers)


def test_a_function_vector_is_the_mean_of_the_other_prompts_at_the_last_token():
    model = english_decoder("GPT-2")
    net, maps = model.model.network, projections(model.model.network)
    found = function_vectors(model, "capitals", shots=2, count=4)
    asked = few_shots("capitals", model.model.tokenizer, shots=2, count=4, seed=0)
    last = [[z[-1] for z in head_inputs_of_all(net, maps, e.input_ids)] for e in asked.clean]
    changes = np.zeros((2, 4))
    for at, example in enumerate(asked.corrupted):
        right = int(asked.right[at][0])

        def probability(head=None, layer=0, at=at, example=example, right=right):
            others = [one for place, one in enumerate(last) if place != at]
            instead = torch.stack([one[layer] for one in others]).mean(0)
            whole = head_inputs_of_all(net, maps, example.input_ids)[layer].clone()
            whole[-1] = instead
            ends = []
            hook = net.register_forward_hook(lambda _m, _a, out: ends.append(out.logits[0, -1]))
            if head is None:
                difference(net, example.input_ids, right, 0)
            else:
                patched(net, maps[layer], example.input_ids, (right, 0), head, 4, -1, whole)
            hook.remove()
            return float(ends[-1].double().softmax(-1)[right])

        before = probability()
        changes += [[probability(h, layer) - before for h in range(4)] for layer in range(2)]
    np.testing.assert_allclose(found["indirect"], changes / 4, atol=1e-6)
    assert np.abs(changes).max() > 1e-4
    assert "4 independent items: values without intervals" in found.attrs["notes"]


def test_shuffled_examples_have_the_same_words_and_other_answers():
    model = english_decoder("GPT-2")
    asked = few_shots("antonyms", model.model.tokenizer, shots=3, count=20, seed=1)
    assert len({prompt.item for prompt in asked.prompts}) == 20
    for prompt in asked.prompts:
        clean, other = (text.split("\n") for text in (prompt.text, prompt.corrupted))
        assert sorted(clean) == sorted(other)
        assert all(a != b for a, b in zip(clean[1:-1:3], other[1:-1:3], strict=True))
        assert clean[::3] == other[::3]
    with pytest.raises(InputError, match="no task 'ioi' shown by examples"):
        few_shots("ioi", model.model.tokenizer, shots=3, count=20, seed=1)
    with pytest.raises(InputError, match="found 1 examples before each question"):
        few_shots("capitals", model.model.tokenizer, shots=1, count=20, seed=1)


def test_a_knockout_is_the_divergence_from_even_attention():
    model, prompts = decoder("Llama"), pairs(6, 9, 4, seed=6)
    asked = encode_prompts(model.model.tokenizer, prompts)
    found = knockouts(model, prompts)
    wanted = np.zeros(8)
    for example in asked.clean:
        batch = model.model.batch([example])
        logits = naive(model.model.network, batch, single_heads(2, 4), StandIn())
        told = logits[:, 0, len(example) - 1].double().log_softmax(-1)  # [variant + 1, vocabulary]
        wanted += (told[0].exp() * (told[0] - told[1:])).sum(-1).numpy()
    np.testing.assert_allclose(found["kl"].values.ravel(), wanted / 3, atol=1e-5)
    assert wanted.min() > 1e-3
