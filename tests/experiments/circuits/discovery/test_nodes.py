"""Is a node replaced what plain hooks replace, and nothing else?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from experiments.circuits.decoders import ADDING, decoder, pairs
from headscope.errors import ModelError
from headscope.experiments.circuits.discovery import paired_passes as P
from headscope.experiments.circuits.discovery.node_attribution import node_attribution
from headscope.experiments.circuits.discovery.node_sets import answers_of_sets, stand_in
from headscope.experiments.circuits.discovery.nodes import NodePass
from headscope.experiments.circuits.discovery.paired_passes import paired_passes
from headscope.experiments.circuits.prompts import encode_prompts
from reference.circuits import difference, head_inputs_of_all, patched

PROMPTS = pairs(7, 5, 9, seed=2)
W_O = {"GPT-2": "transformer.h.{}.attn.c_proj", "Llama": "model.layers.{}.self_attn.o_proj"}
MLP = {"GPT-2": "transformer.h.{}.mlp", "Llama": "model.layers.{}.mlp"}


def answers(name: str, sets, kind: str = "counterfactual"):
    model = decoder(name)
    prompts = encode_prompts(model.model.tokenizer, PROMPTS)
    with paired_passes(model, prompts, batch_tokens=60) as paired:
        every = torch.as_tensor(sets(len(paired.nodes))).bool().numpy()
        return model, prompts, answers_of_sets(paired, every, stand_in(paired, kind))


def sides(model, prompts):
    net = model.model.network
    for clean, other, right, wrong in zip(
        prompts.clean, prompts.corrupted, prompts.right, prompts.wrong, strict=True
    ):
        both = (int(right[0]), int(wrong[0]))
        yield clean.input_ids, other.input_ids, both
        assert net is not None


@pytest.mark.parametrize("name", ADDING)
def test_without_any_node_the_network_reads_the_corrupted_prompt_and_with_all_the_clean_one(name):
    model, prompts, seen = answers(name, lambda n: [[0] * n, [1] * n])
    net = model.model.network
    for row, (clean, other, ends) in zip(seen, sides(model, prompts), strict=True):
        wanted = [difference(net, ids, *ends) for ids in (other, clean)]
        assert abs(wanted[0] - wanted[1]) > 0.01  # else nothing was compared
        torch.testing.assert_close(row.tolist(), wanted, atol=2e-4, rtol=1e-4)


def without_each(n: int):
    return 1 - torch.eye(n)


@pytest.mark.parametrize("name", W_O)
def test_one_node_replaced_is_what_plain_hooks_replace(name):
    model, prompts, seen = answers(name, without_each)
    net, shape = model.model.network, model.model.shape
    maps = [net.get_submodule(W_O[name].format(at)) for at in range(shape.layers)]
    mlps = [net.get_submodule(MLP[name].format(at)) for at in range(shape.layers)]
    for row, (clean, other, ends) in zip(seen, sides(model, prompts), strict=True):
        source = head_inputs_of_all(net, maps, other)
        fed = outputs(net, mlps, other)
        wanted = []
        for layer in range(shape.layers):
            how = (net, maps[layer], clean, ends)
            wanted += [
                patched(*how, head, shape.heads, slice(None), source[layer])
                for head in range(shape.heads)
            ]
            wanted.append(instead(net, mlps[layer], fed[layer], clean, ends))
        assert len({round(one, 4) for one in wanted}) > shape.layers  # nodes differ
        torch.testing.assert_close(row[1:].tolist(), wanted, atol=2e-4, rtol=1e-4)


def outputs(net, modules, ids):
    kept = []
    hooks = [one.register_forward_hook(lambda _m, _a, out: kept.append(out)) for one in modules]
    difference(net, ids, 0, 0)
    for hook in hooks:
        hook.remove()
    return kept


def instead(net, module, gives, ids, ends) -> float:
    hook = module.register_forward_hook(lambda _m, _a, _out: gives)
    try:
        return difference(net, ids, *ends)
    finally:
        hook.remove()


def test_zero_and_mean_stand_in_for_feed_forward_layers():
    name = "Llama"
    model, prompts, seen = answers(name, without_each, "zero")
    _, _, of_means = answers(name, without_each, "mean")
    net, shape = model.model.network, model.model.shape
    mlps = [net.get_submodule(MLP[name].format(at)) for at in range(shape.layers)]
    whole = [outputs(net, mlps, ids) for side in sides(model, prompts) for ids in side[:2]]
    means = [torch.cat([one[at][0] for one in whole]).mean(0) for at in range(shape.layers)]
    for row, mean_row, (clean, _, ends) in zip(seen, of_means, sides(model, prompts), strict=True):
        for layer, mlp in enumerate(mlps):
            own = outputs(net, [mlp], clean)[0]
            place = 1 + layer * (shape.heads + 1) + shape.heads
            for stands_in, numbers in ((0 * own, row), (means[layer] + 0 * own, mean_row)):
                wanted = instead(net, mlp, stands_in, clean, ends)
                assert numbers[place] == pytest.approx(wanted, abs=3e-4)


def test_a_layer_that_adds_something_else_is_refused():
    model = decoder("Llama")
    layers = model.model.network.model.layers
    own = layers[0].forward
    layers[0].forward = lambda hidden, *args, **kwargs: 2 * own(hidden, *args, **kwargs)
    prompts = encode_prompts(model.model.tokenizer, PROMPTS)
    with (
        pytest.raises(ModelError, match="adds more to the residual stream"),
        paired_passes(model, prompts, batch_tokens=60),
    ):
        pass


@pytest.mark.parametrize("name", ["GPT-2", "Llama", "Gemma3"])
def test_reading_once_what_two_prompts_begin_with_changes_nothing(name, monkeypatch):
    model = decoder(name)
    prompts = encode_prompts(model.model.tokenizer, pairs(9, 9, 12, seed=3, common=4))
    with paired_passes(model, prompts, batch_tokens=80) as paired:
        apart = replace(paired, shares=False)
        tokens = [next(one.pairs()).real.shape[1] for one in (paired, apart)]
        seen, wanted = (node_attribution(one, steps=2) for one in (paired, apart))
    assert tokens[0] <= tokens[1] - 4
    np.testing.assert_allclose(seen, wanted, rtol=1e-5, atol=1e-5)

    def nothing(*_):
        raise ValueError("no cache")

    monkeypatch.setattr(P, "prefix_read", nothing)
    with paired_passes(model, prompts, batch_tokens=80) as paired:
        assert not paired.shares
        np.testing.assert_allclose(node_attribution(paired, steps=2), wanted, rtol=1e-5, atol=1e-5)


def test_what_a_pass_took_down_stays_while_the_network_runs_on():
    model = decoder("Llama")
    prompts = encode_prompts(model.model.tokenizer, PROMPTS)
    with paired_passes(model, prompts, batch_tokens=60) as paired:
        pair = next(paired.pairs())
        before = [one.clone() for one in pair.clean_gave.tensors()]
        how = NodePass()
        with torch.no_grad():
            paired.answers(pair.clean, how)
            model.model.network(input_ids=torch.tensor([[5, 6]]))
    for gave in (pair.clean_gave, how.gave):
        torch.testing.assert_close(list(gave.tensors()), before)
