"""Do the scores of heads that retrieve agree with loops over eager maps?"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch

import headscope as hs
from experiments.circuits import made
from experiments.circuits.decoders import decoder
from headscope.experiments.circuits.needles import Wording, needles
from headscope.experiments.circuits.retrieval import retrieved
from headscope.experiments.circuits.weight_maps import WeightMaps

WORDS = " ".join(f"w{2 + 7 * at % 40}" for at in range(200))
OWN = [Wording("w50 w51 w52", "w50 w51 w53"), Wording("w50", "w51 w52", "w60 w61 w60")]
TEXT = " ".join(["cat dog tree house"] * 10)


def eager(network: Any, ids: Any) -> list[torch.Tensor]:
    """[head, query, key] by layer, as transformers returns them."""
    network.set_attn_implementation("eager")
    with torch.no_grad():
        maps = network(input_ids=torch.as_tensor(ids)[None], output_attentions=True).attentions
    return [one[0].double() for one in maps]


def values(network: Any, ids: Any, heads: int) -> list[torch.Tensor]:
    """[head, key, dim] by layer, of a Llama; those of a group once for each of its heads."""
    kept: list[torch.Tensor] = []
    layers = network.model.layers
    hooks = [
        one.self_attn.v_proj.register_forward_hook(lambda _m, _a, out: kept.append(out[0]))
        for one in layers
    ]
    eager(network, ids)
    for hook in hooks:
        hook.remove()
    dim = layers[0].self_attn.head_dim
    grouped = [one.double().view(len(ids), -1, dim).transpose(0, 1) for one in kept]
    return [one.repeat_interleave(heads // len(one), 0) for one in grouped]


@pytest.mark.parametrize("whole", [None, 8])
def test_scores_are_those_of_loops_over_eager_maps(whole, monkeypatch):
    """Wholly, and in blocks without the keys and values of the pass before."""
    monkeypatch.setattr("headscope.experiments.circuits.retrieval.WINDOWS", ((2, 3), (30, 60)))
    model = decoder("Llama").model
    network, heads = model.network, model.shape.heads
    told = needles(model, hs.corpus_of([WORDS]), runs=10, haystack=20, seed=0, wordings=OWN)
    if whole is not None:
        monkeypatch.setattr("transformers.cache_utils.DynamicCache.__init__", forgetful)
    unembedding = WeightMaps(model).unembedding
    found = retrieved(model, told, range(4), unembedding, whole=whole)
    for run in range(4):
        ids, right, places = told.examples[run].input_ids, told.right[run], told.places[run]
        hay = ids[: len(ids) - len(right) + 1 - told.question[run]]
        steps = range(len(ids) - len(right), len(ids))
        sentence = range(places[0] - told.sentence[run], places[-1] + 2)
        nothing = [*hay, 1]  # the tokenizer's word for what it does not know
        every = zip(
            eager(network, ids), eager(network, nothing), values(network, ids, heads), strict=True
        )
        for layer, (maps, null, value) in enumerate(every):
            output = network.model.layers[layer].self_attn.o_proj.weight.detach().double()
            for head in range(heads):
                dim = value.shape[-1]
                wrote = value[head] @ output[:, head * dim : (head + 1) * dim].T  # f_h(x_j)
                asking = range(len(hay), len(ids) - len(right) + 1)
                qr = np.mean([sum(float(maps[head, i, j]) for j in sentence) for i in asking])
                qr -= sum(float(null[head, -1, j]) for j in sentence)
                locos, hits, near = 0.0, 0, 0.0
                for step, token, place in zip(steps, right, places, strict=True):
                    phi = maps[head, step] * (wrote @ unembedding[token].double())
                    on = sum(float(phi[j]) for j in places)
                    off = sum(float(phi[j]) for j in range(step + 1) if j not in places)
                    locos += on - off * len(places) / (step + 1 - len(places))
                    hits += int(maps[head, step].argmax()) == place
                    near += sum(
                        float(maps[head, step, j]) for j in (0, 1, step - 2, step - 1, step)
                    )
                at = run, layer, head
                assert found["qr_score"][at] == pytest.approx(qr, abs=1e-5)
                assert found["locos"][at] == pytest.approx(locos / len(right), abs=1e-4)
                assert found["hits"][at] == hits / len(right)
                assert found["streaming"][at][0] == pytest.approx(near / len(right), abs=1e-5)
    assert np.isnan(found["streaming"][..., 1]).all()  # no step sees more than 90 tokens


def forgetful(self: Any, *_args: Any, **_more: Any) -> None:
    """A cache that keeps nothing of what passes."""
    from transformers.cache_utils import Cache, DynamicLayer

    class Forgotten(DynamicLayer):
        """A layer of another kind."""

    Cache.__init__(self, layer_class_to_replicate=Forgotten)


def test_what_needles_of_one_haystack_share_is_read_once():
    """The deepest needle wholly, the others from their own sentence on; the numbers are the same as
    when each is read by itself.
    """
    model = decoder("Llama").model
    told = needles(model, hs.corpus_of([WORDS]), runs=12, haystack=30, seed=0)
    assert told.haystack.tolist() == [0, 1] * 6
    unembedding, read = WeightMaps(model).unembedding, list[int]()
    count = lambda _, __, more: read.append(more["input_ids"].shape[1])  # noqa: E731
    hook = model.network.register_forward_pre_hook(count, with_kwargs=True)
    found = retrieved(model, told, range(12), unembedding, whole=None)
    hook.remove()
    sizes = [len(example) for example in told.examples]
    own = [int(at[0]) - told.sentence[run] for run, at in enumerate(told.places)]
    expected = list[int]()
    for deepest in (10, 11):
        after = range(deepest - 2, -1, -2)
        expected += [sizes[deepest], *(sizes[run] - own[run] for run in after)]
    assert [one for one in read if one > 2] == expected  # “N/A” has one token or two
    for run in (0, 3, 8):
        alone = retrieved(model, told, [run], unembedding, whole=None)
        for name, values in found.items():
            np.testing.assert_allclose(values[run], alone[name][0], atol=1e-5, err_msg=name)


def test_some_needles_are_at_all_depths():
    model = decoder("Llama").model
    told = needles(model, hs.corpus_of([WORDS]), runs=20, haystack=30, seed=0)
    some = told.some(10)
    assert (some.depth[0], some.depth[-1], len(some.examples)) == (0, 1, 10)
    assert np.diff(some.depth).max() < 0.16
    assert some.right[3] is told.right[6]


@pytest.mark.parametrize("keeps", [True, False])
def test_what_a_model_writes_twice_counts_twice(keeps, monkeypatch):
    """As the authors' code counts it; by the argmax of eager maps of what the model wrote.

    The haystack is read once, or in each of the passes where a cache keeps nothing that is known.
    """
    model = made.language_model(made.wired()).model
    told = needles(model, hs.corpus_of([TEXT]), runs=10, haystack=20, seed=0)
    if not keeps:
        monkeypatch.setattr("transformers.cache_utils.DynamicCache.__init__", forgetful)
    speaks, read = WeightMaps(model).unembedding, list[int]()
    count = lambda _, __, more: read.append(more["input_ids"].shape[1])  # noqa: E731
    hook = model.network.register_forward_pre_hook(count, with_kwargs=True)
    found = retrieved(model, told, [9], speaks, whole=None, steps=24)
    hook.remove()
    assert sum(one > 30 for one in read) == (1 if keeps else 4)  # 24 are the answer's
    for row, run in enumerate([9]):
        ids, start = list(told.asked(run)), len(told.asked(run))
        for _ in range(24):
            with torch.no_grad():
                ids.append(int(model.network(torch.tensor([ids])).logits[0, -1].argmax()))
        wrote, right = ids[start:], told.right[run]
        maps = eager(model.network, ids[:-1])
        for layer, head in np.ndindex(2, 2):
            most = maps[layer][head, start - 1 :].argmax(-1).tolist()
            hits = sum(
                at in told.places[run] and ids[at] == word
                for at, word in zip(most, wrote, strict=True)
            )
            assert found["step_hits"][row, layer, head] == hits / len(right)
        there = (Counter(wrote) & Counter(right.tolist())).total()
        assert found["step_recall"][row] == there / len(right)
    assert found["step_hits"].max() > 1
