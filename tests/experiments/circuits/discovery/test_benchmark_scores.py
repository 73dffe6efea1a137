"""Are CPR and CMD those of the benchmark, on the same network, prompts and scores?"""

from __future__ import annotations

import numpy as np
import pytest

from experiments.circuits.decoders import decoder, pairs
from headscope.experiments.circuits.discovery.node_sets import (
    SHARES,
    answers_of_sets,
    areas,
    first_of_order,
    in_order,
    stand_in,
)
from headscope.experiments.circuits.discovery.paired_passes import paired_passes
from headscope.experiments.circuits.prompts import encode_prompts
from reference.circuit_discovery import ByEdges, areas_of


@pytest.mark.parametrize("name", ["Llama", "GPT-2"])
@pytest.mark.parametrize("absolute", [False, True])
def test_areas_are_those_of_the_benchmark(name, absolute):
    layers = {"Llama": "num_hidden_layers", "GPT-2": "n_layer"}[name]
    model = decoder(name, **{layers: 5})
    prompts = encode_prompts(model.model.tokenizer, pairs(7, 5, 9, seed=2))
    shape = model.model.shape
    with paired_passes(model, prompts, batch_tokens=60) as paired:
        nodes = len(paired.nodes)
        scores = np.random.default_rng(5).normal(size=nodes)
        scores[0] = 9  # without the input all is as in the corrupted prompt
        order = in_order(scores, absolute=absolute)
        counts = [int(share * nodes) for share in SHARES]
        ends = np.array([[False], [True]]).repeat(nodes, 1)
        sets = np.concatenate([ends, first_of_order(order, counts, nodes)])
        told = answers_of_sets(paired, sets, stand_in(paired, "counterfactual")).mean(0)
    curve = (told[2:] - told[0]) / (told[1] - told[0])
    shown = [
        (clean.input_ids, other.input_ids, (int(right[0]), int(wrong[0])))
        for clean, other, right, wrong in zip(
            prompts.clean, prompts.corrupted, prompts.right, prompts.wrong, strict=True
        )
    ]
    own = ByEdges(model.model.network, shape.heads)
    below, beside, wanted = areas_of(own, shown, scores, absolute=absolute)
    np.testing.assert_allclose(curve, wanted, atol=1e-4, rtol=1e-4)
    assert len(set(np.round(wanted, 3))) >= 4  # sets differ
    assert [float(one) for one in areas(curve)] == pytest.approx([below, beside], abs=1e-4)
