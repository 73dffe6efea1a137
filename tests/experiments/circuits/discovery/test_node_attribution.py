"""Are the scores those of integrated gradients, by differences in float64?"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from experiments.circuits.decoders import ADDING, network, pairs, words
from headscope.experiments.circuits.discovery.node_attribution import node_attribution
from headscope.experiments.circuits.discovery.node_sets import answers_of_sets, stand_in
from headscope.experiments.circuits.discovery.paired_passes import paired_passes
from headscope.experiments.circuits.prompts import encode_prompts
from headscope.model.language_model import LanguageModel
from headscope.model.model import Model

STEP = 1e-5
W_O = {"GPT-2": "transformer.h.{}.attn.c_proj", "Llama": "model.layers.{}.self_attn.o_proj"}
MLP = {"GPT-2": "transformer.h.{}.mlp", "Llama": "model.layers.{}.mlp"}


def exact(name: str) -> LanguageModel:
    return LanguageModel(Model(network(name, exact=True), words(), name, "", name), "causal")


class Nudged:
    """A network whose embeddings are given, and whose nodes are moved a little, by plain hooks."""

    def __init__(self, name: str, net, heads: int, layers: int) -> None:
        self.net, self.heads, self.layers = net, heads, layers
        self.maps = [net.get_submodule(W_O[name].format(at)) for at in range(layers)]
        self.mlps = [net.get_submodule(MLP[name].format(at)) for at in range(layers)]
        self.embed = net.get_input_embeddings()

    def outputs(self, ids):
        """By node what it gives: W_O's input of a head, the output of an MLP."""
        heads, fed = [], []
        hooks = [m.register_forward_pre_hook(lambda _, a: heads.append(a[0])) for m in self.maps]
        hooks += [m.register_forward_hook(lambda _m, _a, out: fed.append(out)) for m in self.mlps]
        with torch.no_grad():
            self.net(input_ids=ids)
        for hook in hooks:
            hook.remove()
        return heads, fed

    def told(self, embedded, ends, layer=0, head=None, move=None) -> float:
        """The logit difference with something added to a head, or to the MLP of a layer."""
        hooks = []
        if move is not None and head is not None:
            size = move.shape[-1] // self.heads
            own = torch.zeros_like(move)
            own[..., head * size : (head + 1) * size] = 1
            hooks = [self.maps[layer].register_forward_pre_hook(lambda _, a: (a[0] + own * move,))]
        elif move is not None:
            hooks = [self.mlps[layer].register_forward_hook(lambda _m, _a, out: out + move)]
        with torch.no_grad():
            logits = self.net(inputs_embeds=embedded).logits[0, -1]
        for hook in hooks:
            hook.remove()
        return float(logits[ends[0]] - logits[ends[1]])


def by_differences(net: Nudged, clean, other, ends, *, steps: int) -> list[float]:
    """[node] but the input: the change of a node times the mean slope along the way."""
    ids = [torch.as_tensor(one)[None] for one in (clean, other)]
    with torch.no_grad():
        start, end = (net.embed(one) for one in ids[::-1])
    heads, fed = zip(*(net.outputs(one) for one in ids), strict=True)
    scores = []
    for layer in range(net.layers):
        for head in (*range(net.heads), None):
            of = heads if head is not None else fed
            change = of[0][layer] - of[1][layer]
            slopes = []
            for at in range(1, steps + 1):
                way = start + at / steps * (end - start)
                up, down = (
                    net.told(way, ends, layer, head, sign * STEP * change) for sign in (1, -1)
                )
                slopes.append((up - down) / (2 * STEP))
            scores.append(float(np.mean(slopes)))
    return scores


@pytest.mark.parametrize("name", W_O)
def test_scores_are_changes_times_the_mean_slope_along_the_way(name):
    model = exact(name)
    prompts = encode_prompts(model.model.tokenizer, pairs(6, 8, seed=4))
    with paired_passes(model, prompts, batch_tokens=100) as paired:
        seen = node_attribution(paired, steps=3)
    model.model.network.set_attn_implementation("sdpa")  # eager softmaxes are in float32
    net = Nudged(name, model.model.network, model.model.shape.heads, model.model.shape.layers)
    for row, clean, other, right, wrong in zip(
        seen, prompts.clean, prompts.corrupted, prompts.right, prompts.wrong, strict=True
    ):
        ends = int(right[0]), int(wrong[0])
        wanted = by_differences(net, clean.input_ids, other.input_ids, ends, steps=3)
        assert np.abs(wanted).min() > 1e-4  # else nothing was compared
        np.testing.assert_allclose(row[1:], wanted, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", ADDING)
def test_along_a_long_way_the_input_moves_all_of_the_difference(name):
    model = exact(name)
    prompts = encode_prompts(model.model.tokenizer, pairs(6, seed=4))
    with paired_passes(model, prompts, batch_tokens=600) as paired:
        none = np.zeros((2, len(paired.nodes)), bool)
        none[1] = True
        ends = answers_of_sets(paired, none, stand_in(paired, "counterfactual"))[0]
        seen = [node_attribution(paired, steps=steps)[0, 0] for steps in (100, 200)]
    gap = ends[1] - ends[0]
    errors = [abs(one - gap) for one in seen]
    assert errors[1] < 0.75 * errors[0]  # of right ends of steps it falls as 1 / steps
    assert 2 * seen[1] - seen[0] == pytest.approx(gap, abs=0.04 * max(abs(gap), 1))
