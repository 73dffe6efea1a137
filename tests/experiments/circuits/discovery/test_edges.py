"""Are edges between nodes scored and cut as plain hooks do it, one reader at a time?"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from experiments.circuits.decoders import ADDING, network, pairs, words
from headscope.core.head_names import HeadNames
from headscope.errors import ModelError
from headscope.experiments.circuits.discovery.edge_attribution import (
    before_norm,
    edge_attribution,
    reader_keys,
    real_edges,
    written,
)
from headscope.experiments.circuits.discovery.edge_sets import answers_of_edges
from headscope.experiments.circuits.discovery.layer_parts import first_of
from headscope.experiments.circuits.discovery.node_attribution import node_attribution
from headscope.experiments.circuits.discovery.node_sets import answers_of_sets, stand_in
from headscope.experiments.circuits.discovery.paired_passes import paired_passes
from headscope.experiments.circuits.prompts import encode_prompts
from headscope.model.language_model import LanguageModel
from headscope.model.model import Model
from reference.circuit_discovery import ByEdges

BESIDE = ("GPT-NeoX", "Cohere")  # attention and feed-forward layer read the same stream
UNKNOWN = "OLMo 2"  # one norm over the queries of all heads
WHOLE = [name for name in ADDING if name != UNKNOWN]
KEYS = {"GPT-2": "attn.c_attn", "Llama": "self_attn.k_proj"}


def exact(name: str) -> LanguageModel:
    return LanguageModel(Model(network(name, exact=True), words(), name, "", name), "causal")


def asked(model: LanguageModel):
    return encode_prompts(model.model.tokenizer, pairs(7, 5, 9, seed=1, common=2))


@pytest.mark.parametrize("name", WHOLE)
def test_edges_of_a_node_add_up_to_its_score(name):
    model = exact(name)
    with paired_passes(model, asked(model), batch_tokens=200) as paired:
        nodes, edges = (make(paired, steps=3) for make in (node_attribution, edge_attribution))
        real = real_edges(paired)
    np.testing.assert_allclose(edges.sum(2), nodes, atol=1e-6 * np.abs(nodes).max())
    assert not edges[:, ~real].any()
    assert (edges[:, real] != 0).all()


@pytest.mark.parametrize("name", ADDING)
def test_what_nodes_add_is_all_that_moves_the_stream(name):
    model, streams = exact(name), []
    with paired_passes(model, asked(model), batch_tokens=400) as paired:
        last = paired.passes.blocks[-1]
        hook = last.register_forward_hook(lambda _m, _a, out: streams.append(first_of(out)))
        (pair,) = paired.of([1]).pairs()
        hook.remove()
        clean, other = (added(paired, gave) for gave in (pair.clean_gave, pair.corrupted_gave))
    moved = streams[-2] - streams[-1]  # the first is of what both begin with
    torch.testing.assert_close(clean - other, moved, atol=1e-6, rtol=1e-6)
    assert float(moved.abs().max()) > 0.1


def added(paired, gave) -> torch.Tensor:
    """What all nodes add together, with the norms that attention passes."""
    every = written(paired, gave)
    for layer, part in enumerate(paired.passes.parts):
        if part.post_norm is not None:
            heads = every[paired.nodes.heads_of(layer)]
            whole = part.post_norm.forward(before_norm(paired, layer, heads))
            heads[:] = whole / len(heads)
    return every.sum(0)


@pytest.mark.parametrize("name", [name for name in WHOLE if name not in BESIDE])
def test_a_node_without_edges_is_a_node_replaced(name):
    model = exact(name)
    with paired_passes(model, asked(model), batch_tokens=300) as paired:
        size = len(paired.nodes)
        drawn = np.random.default_rng(0).random((2, size)) < 0.6
        sets = np.concatenate([np.zeros((1, size), bool), np.ones((1, size), bool), drawn])
        wanted = answers_of_sets(paired, sets, stand_in(paired, "counterfactual"))
        seen = answers_of_edges(paired, sets[..., None] & real_edges(paired))
    np.testing.assert_allclose(seen, wanted, atol=1e-9)
    assert len(np.unique(wanted.round(3))) > 6  # sets differ


@pytest.mark.parametrize("name", ["GPT-2", "Llama", "Gemma3"])
def test_a_score_is_the_slope_of_cutting_its_edge(name):
    model = exact(name)
    with paired_passes(model, asked(model), batch_tokens=400) as paired:
        scores = edge_attribution(paired, steps=1)
        edges = np.argwhere(real_edges(paired))[:: 23 if name == "GPT-2" else 17]
        step = 1e-4
        sets = np.ones((2 * len(edges), *real_edges(paired).shape))
        for place, (node, reader) in enumerate(edges):
            sets[2 * place, node, reader] -= step
            sets[2 * place + 1, node, reader] += step
        seen = answers_of_edges(paired, sets)
    slopes = (seen[:, 1::2] - seen[:, ::2]) / (2 * step)
    wanted = scores[:, edges[:, 0], edges[:, 1]]
    np.testing.assert_allclose(slopes, wanted, rtol=2e-4, atol=2e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("name", KEYS)
def test_one_head_alone_reads_other_keys_where_its_edge_is_cut(name):
    """Of heads that share keys the others keep theirs."""
    model, layer, head, sender = exact(name), 1, 2, 3
    prompts, net = asked(model), model.model.network
    net.set_attn_implementation("sdpa")  # eager softmaxes are in float32
    shape = model.model.shape
    with paired_passes(model, prompts, batch_tokens=200) as paired:
        keys = reader_keys(paired.nodes, HeadNames(()))
        sets = real_edges(paired)[None].copy()
        sets[0, sender, keys.index(f"a{layer}.h{head}<k>")] = False
        seen = answers_of_edges(paired, sets)[:, 0]
    plain = ByEdges(net, shape.heads)
    for row, (clean, other, right, wrong) in enumerate(
        zip(prompts.clean, prompts.corrupted, prompts.right, prompts.wrong, strict=True)
    ):
        ends = int(right[0]), int(wrong[0])
        whole, now = plain.run(clean.input_ids, ends)
        _, instead = plain.run(other.input_ids, ends)
        change = instead[sender] - now[sender]
        wanted = with_other_keys(plain, name, clean.input_ids, ends, layer, head, change)
        assert seen[row] == pytest.approx(wanted, abs=1e-9)
        assert abs(wanted - whole) > 1e-4


def with_other_keys(plain: ByEdges, name: str, ids, ends, layer: int, head: int, change) -> float:
    """First all heads get new keys, and what the one then mixes is kept; then it alone has that."""
    block = plain.layers[layer]
    keys, norm, w_o = block.get_submodule(KEYS[name]), plain.ln1[layer], plain.w_o[layer]
    given, kept = [], []

    def moved(_module, _args, output):
        new = keys.forward(norm.forward(given[0] + change))
        if name == "GPT-2":  # queries, keys and values side by side
            size = output.shape[-1] // 3
            output = output.clone()
            output[..., size : 2 * size] = new[..., size : 2 * size]
            return output
        return new

    hooks = [
        norm.register_forward_pre_hook(lambda _m, args: given.append(args[0])),
        keys.register_forward_hook(moved),
        w_o.register_forward_pre_hook(lambda _m, args: kept.append(args[0])),
    ]
    run(plain, ids, ends)
    for hook in hooks:
        hook.remove()

    def alone(_module, args):
        new, size = args[0].clone(), args[0].shape[-1] // plain.heads
        own = slice(head * size, (head + 1) * size)
        new[..., own] = kept[0][..., own]
        return (new,)

    hook = w_o.register_forward_pre_hook(alone)
    told = run(plain, ids, ends)
    hook.remove()
    return told


def run(plain: ByEdges, ids, ends) -> float:
    with torch.no_grad():
        logits = plain.network(input_ids=torch.as_tensor(ids)[None]).logits[0, -1]
    return float(logits[ends[0]] - logits[ends[1]])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (UNKNOWN, "no parts of one map"),
        ("GPT-NeoX", "read what its heads read"),
    ],
)
def test_what_cannot_be_cut_is_said(name, said):
    model = exact(name)
    with paired_passes(model, asked(model), batch_tokens=200) as paired:
        sets = np.ones((1, *real_edges(paired).shape), bool)
        with pytest.raises(ModelError, match=said):
            answers_of_edges(paired, sets)
