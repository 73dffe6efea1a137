"""Does the Mechanistic Interpretability Benchmark's own code say the same of our tiny decoders?

`make_benchmark_circuits.py` ran it once in float64, with the versions that stand in the file.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from experiments.circuits.decoders import network, pairs, words
from headscope.experiments.circuits.discovery.edge_attribution import edge_attribution, real_edges
from headscope.experiments.circuits.discovery.edge_sets import answers_of_edges
from headscope.experiments.circuits.discovery.node_attribution import node_attribution
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
from headscope.model.language_model import LanguageModel
from headscope.model.model import Model

THEIRS = json.loads(Path(__file__).with_name("benchmark_circuits.json").read_text("utf-8"))
WITHIN = {True: 1e-6, False: 1e-4}  # in float64, and in float32
LAYERS = {"GPT-2": "n_layer"}


@contextmanager
def passes(name: str, exact: bool):
    """Passes of the prompts that the benchmark's code was given."""
    changes = {LAYERS.get(name, "num_hidden_layers"): THEIRS["depth"]}
    made = network(name, exact=exact, **changes)
    model = LanguageModel(Model(made, words(), name, "", name), "causal")
    prompts = encode_prompts(words(), pairs(*THEIRS["lengths"], seed=THEIRS["prompts"]))
    with paired_passes(model, prompts, batch_tokens=400) as paired:
        yield paired


@pytest.mark.parametrize("exact", WITHIN)
@pytest.mark.parametrize("name", THEIRS["models"])
def test_edges_have_the_scores_that_the_benchmark_gives_them(name, exact):
    """Theirs goes from step 0 to m - 1, ours (and the paper) from 1 to m: one end is exchanged.

    In Gemma 2 theirs leaves out the norm behind attention, so edges from heads are not compared.
    """
    made, steps = THEIRS["models"][name]["scores"], THEIRS["steps"]
    first, last, along = (np.array(made[key]) for key in ("eap-ig-1", "eap", f"eap-ig-{steps}"))
    wanted = {1: last, steps: along + (last - first) / steps}
    with passes(name, exact) as paired:
        real = real_edges(paired)
        assert real.sum() == THEIRS["models"][name]["real"]
        for many, scores in wanted.items():
            near = {"atol": WITHIN[exact], "rtol": WITHIN[exact]}
            theirs = np.zeros(real.shape)
            theirs[real] = scores
            some = ~np.isin(paired.nodes.kinds(), ["head"] * (name == "Gemma2"))
            seen = edge_attribution(paired, steps=many).mean(0)
            np.testing.assert_allclose(seen[some], theirs[some], **near)
            nodes = node_attribution(paired, steps=many).mean(0)
            np.testing.assert_allclose(nodes[some], theirs[some].sum(1), **near)


@pytest.mark.parametrize("name", THEIRS["models"])
def test_the_input_and_heads_have_the_scores_that_the_benchmark_gives_them(name):
    """Not feed-forward layers: theirs multiplies what they give by the slope at what they read."""
    wanted = np.array(THEIRS["models"][name]["nodes"])
    with passes(name, exact=True) as paired:
        kinds = paired.nodes.kinds()
        seen = node_attribution(paired, steps=THEIRS["steps"]).mean(0)
    some = kinds == "input" if name == "Gemma2" else kinds != "mlp"
    np.testing.assert_allclose(seen[some], wanted[some], atol=1e-6, rtol=1e-6)
    assert np.abs(seen - wanted)[kinds == "mlp"].max() > 0.1


@pytest.mark.parametrize("exact", WITHIN)
@pytest.mark.parametrize("name", THEIRS["models"])
def test_curves_and_areas_are_those_of_the_benchmark(name, exact):
    theirs = THEIRS["models"][name]
    draw = np.random.default_rng(THEIRS["drawn"])
    with passes(name, exact) as paired:
        real, size = real_edges(paired), len(paired.nodes)
        nodes, edges, by_eap = (
            draw.normal(size=size),
            draw.normal(size=real.shape),
            np.zeros(real.shape),
        )
        nodes[0] = 9
        edges[0] += 2
        by_eap[real] = theirs["scores"]["eap"]
        other = stand_in(paired, "counterfactual")
        for key, curve in theirs["curves"].items():
            kind, order = key.split(", ")
            by = {"nodes": nodes, "edges": edges, "edges by EAP": by_eap}[kind]
            some = by if kind == "nodes" else np.where(real, by, np.nan).ravel()
            counts = [0, *(int(share * np.isfinite(some).sum()) for share in SHARES)]
            first = in_order(some, absolute=order == "size")
            sets = first_of_order(first, counts, len(some))
            if kind == "nodes":
                told = answers_of_sets(paired, sets, other).mean(0)
            else:
                told = answers_of_edges(paired, sets.reshape(-1, *real.shape)).mean(0)
            seen = (told[1:] - told[0]) / (told[-1] - told[0])
            assert len(set(np.round(curve["faithfulness"], 3))) >= 4  # sets differ
            np.testing.assert_allclose(seen, curve["faithfulness"], atol=WITHIN[exact])
            assert [float(area) for area in areas(seen)] == pytest.approx(
                [curve["cpr"], curve["cmd"]], abs=WITHIN[exact]
            )
